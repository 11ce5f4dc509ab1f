"""Environments that raise, exit or return what cannot be sent: which one it was."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from toy_envs import CounterEnv, FailingEnv

from baselines import run
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.envs import make_env
from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv, WorkerError

in_a_worker = partial(SubprocVecEnv, num_workers=1)


def three_steps(make_venv, env_fn):
    with make_venv([CounterEnv, env_fn]) as env:
        env.reset()
        for _ in range(3):
            env.step([0, 0])


def test_an_environment_that_raises_in_this_process_is_named_by_its_number():
    with pytest.raises(ValueError, match="gearbox") as error:
        three_steps(DummyVecEnv, partial(FailingEnv, "step"))
    if hasattr(error.value, "add_note"):  # since Python 3.11
        assert "environment 1 of 2" in error.value.__notes__[0]


@pytest.mark.parametrize("where", ["constructor", "reset", "step"])
def test_an_environment_that_exits_is_one_that_raised(where):
    env_fn = partial(FailingEnv, where, SystemExit)
    with pytest.raises(RuntimeError, match=r"environment 1 of 2 called sys.exit\('the"):
        three_steps(DummyVecEnv, env_fn)
    with pytest.raises(WorkerError, match="environment 1 raised") as error:
        three_steps(in_a_worker, env_fn)
    assert "SystemExit: the gearbox is on fire" in str(error.value)


@pytest.mark.parametrize("where", ["constructor", "reset"])
def test_an_environment_that_exits_when_it_is_made(where):
    gym.register("Exit-v0", lambda: FailingEnv(where, SystemExit))
    try:
        with pytest.raises(UserValueError, match=r"py:\d+: SystemExit: the gearbox"):
            make_env("Exit-v0")
    finally:
        del gym.registry["Exit-v0"]


def test_an_info_that_cannot_be_pickled():
    class Secretive(CounterEnv):
        def step(self, action):
            return *super().step(action)[:4], {"secret": lambda: None}

    with pytest.raises(WorkerError, match="environment 1 raised"):
        three_steps(in_a_worker, Secretive)


def test_an_info_that_cannot_be_unpickled():
    class Unreadable:
        def __reduce__(self):
            return int, ("not a number",)

    class Secretive(CounterEnv):
        def step(self, action):
            return *super().step(action)[:4], {"secret": Unreadable()}

    with pytest.raises(WorkerError, match="environment 1 returned an info") as error:
        three_steps(in_a_worker, Secretive)
    assert "not a number" in str(error.value)


class LegacyEnv(CounterEnv):
    """Draws from the generator that NumPy had before 1.17, as many older ones do."""

    def reset(self, *, seed=None, options=None):
        self.np_random = np.random.RandomState(seed)
        return super().reset()


def test_a_legacy_random_generator_is_trained_in_but_not_saved(empty_folder):
    gym.register("Legacy-v0", lambda: LegacyEnv(truncate_after=4))
    try:
        words = ["--alg=a2c", "--env=Legacy-v0", "--num_timesteps=20"]
        run.main([*words, "--checkpoint_interval=5"])
    finally:
        del gym.registry["Legacy-v0"]
    log = (empty_folder / "log" / "log.txt").read_text()
    assert "no checkpoints are written" in log and "np_random" in log
    with DummyVecEnv([LegacyEnv]) as env:
        env.reset()
        with pytest.raises(UserTypeError, match=r"Generator, received RandomState"):
            env.get_state()
