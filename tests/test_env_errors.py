"""Environments that break Gymnasium's contract, raise, or cannot be saved."""

import sys
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import BOX, GOOD, Broken, CounterEnv, FailingEnv

from baselines.common.base.errors import MissingDependency, UserError, UserValueError
from baselines.common.envs import as_vec_env, make_env
from baselines.common.vec_env import SubprocVecEnv, WorkerError

IMAGE = spaces.Box(0, 255, (8, 8, 1), np.uint8)
PAIR, BOTH = spaces.Dict(a=spaces.Discrete(3), b=BOX), {"a": 1, "b": GOOD}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (dict(info=None), r"reset\(\) .* has to return \(observation, info\)"),
        (dict(step=(GOOD, 0.0, False, {})), "has to return .*terminated, truncated"),
        (
            dict(space=PAIR, first=BOTH, step=(BOTH, 0.0, False, {})),
            "has to return .*terminated, truncated",
        ),
        (dict(first=np.zeros(3, "f")), r"reset\(\) .* returned the observation"),
        (dict(step={0: np.zeros(1, "f")}), r"step\(\) .* returned the observation"),
        (dict(step={0: np.array([0, np.nan], "f")}), "expected a finite one"),
        (dict(space=IMAGE, first=np.full((8, 8, 1), 300)), "Box"),
        (dict(space=IMAGE, first=np.zeros((8, 8, 1))), "Box"),
        (dict(space=spaces.Discrete(3), first=3), r"observation 3, .* Discrete\(3\)"),
        (dict(space=PAIR, first={"a": 1, "b": np.zeros(3)}), "returned the observ"),
        (dict(step={1: np.nan}), "returned the reward nan"),
    ],
)
def test_what_would_go_wrong_silently_is_refused(broken, message):
    with pytest.raises(UserError, match=message):
        env = as_vec_env(Broken(**broken), seed=0)
        env.reset()
        env.step([0])


def test_an_error_of_our_own_is_raised_from_a_worker_as_it_is():
    make = partial(Broken, step={0: np.zeros(1, "f")})
    with SubprocVecEnv([Broken, make]) as env:
        env.reset()
        with pytest.raises(UserValueError, match="returned the observation"):
            env.step([0, 0])


def test_what_gymnasium_allows_is_accepted():
    """Types similar to the space's, values outside bounds, NumPy flags and rewards."""
    results = {0: [7, 8], 1: np.int64(1), 2: np.bool_(False), 3: np.array(0)}
    for env in (
        Broken(spaces.Box(-1, 1, (2,)), step=results),
        Broken(spaces.Discrete(3, start=2), np.int32(4), step={1: np.array(2.0)}),
        Broken(PAIR, {"b": GOOD, "a": 0}, step={1: True}),
        Broken(
            spaces.Box(0, 255, (2,), np.uint8), step={0: [7, 8], 1: 1}, first=[1, 2]
        ),
    ):
        venv = as_vec_env(env, seed=0)
        venv.reset()
        obs, rewards, dones, _ = venv.step([0])
        assert np.isfinite(obs).all() and rewards[0] > 0 and not dones[0]


def test_numbers_of_a_gymnasium_vector_env_are_finite():
    same_step = gym.vector.AutoresetMode.SAME_STEP
    envs = gym.vector.SyncVectorEnv(
        [Broken, partial(Broken, first=np.float32([np.nan, 0]))],
        autoreset_mode=same_step,
    )
    with pytest.raises(UserValueError, match="an observation that is not finite"):
        as_vec_env(envs).reset()


def test_an_info_that_cannot_be_pickled():
    class Secretive(CounterEnv):
        def step(self, action):
            return *super().step(action)[:4], {"secret": threading.Lock()}

    with SubprocVecEnv([CounterEnv, Secretive]) as env:
        env.reset()
        with pytest.raises(WorkerError, match="environment 1 raised"):
            env.step([0, 0])


def test_what_an_environment_raises_when_it_is_made_is_raised():
    gym.register("Fails-v0", lambda: FailingEnv("constructor"))
    try:
        with pytest.raises(ValueError, match="gearbox") as error:
            make_env("Fails-v0")
    finally:
        del gym.registry["Fails-v0"]
    assert not isinstance(error.value, UserError)


def test_packages_that_are_missing_are_named(monkeypatch):
    with pytest.raises(MissingDependency, match="Reacher-v4"):
        make_env("Reacher-v2")
    monkeypatch.setitem(sys.modules, "pygame", None)
    make_env("CartPole-v1")
    with pytest.raises(MissingDependency, match=r"pip install -e '.*\[play\]' first"):
        make_env("CartPole-v1", env_kwargs={"render_mode": "rgb_array"})
