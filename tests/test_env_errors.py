"""Environments that raise, exit or return what cannot be sent: which one it was."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from toy_envs import CounterEnv

from baselines import run
from baselines.common.base.errors import UserTypeError
from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv, WorkerError

in_a_worker = partial(SubprocVecEnv, num_workers=1)


def three_steps(make_venv, env_fn):
    with make_venv([CounterEnv, env_fn]) as env:
        env.reset()
        for _ in range(3):
            env.step([0, 0])


def test_an_info_that_cannot_be_pickled():
    class Secretive(CounterEnv):
        def step(self, action):
            return *super().step(action)[:4], {"secret": lambda: None}

    with pytest.raises(WorkerError, match="environment 1 raised"):
        three_steps(in_a_worker, Secretive)


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
