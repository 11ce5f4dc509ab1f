"""Every VecEnv returns what DummyVecEnv returns, step by step."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from conftest import slow
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import RandomEnv, seeded

from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv
from baselines.common.vec_env.gymnasium_vec_env import GymnasiumVecEnv


def same(a, b):
    """Whether two infos are equal, except for the time of an episode."""
    if isinstance(a, dict):
        keys = a.keys() - {"t"}
        return keys == b.keys() - {"t"} and all(same(a[key], b[key]) for key in keys)
    return type(a) is type(b) and np.array_equal(a, b)


def assert_same_results(results, expected):
    """Compares what two VecEnvs returned for a step."""
    *arrays, infos = results
    *expected_arrays, expected_infos = expected
    for array, other in zip(arrays, expected_arrays):
        assert array.dtype == other.dtype
        np.testing.assert_array_equal(array, other)
    assert len(infos) == len(expected_infos) == len(arrays[0])
    assert all(map(same, infos, expected_infos))


def steps_of_both(make, num_workers, num_steps):
    """Yields actions and results of five environments, equal with and without workers.

    Args:
        make: function of a seed that makes an environment.
        num_workers: processes that they are in.
        num_steps: after each of two resets.
    """
    env_fns = [partial(make, seed=seed) for seed in range(5)]
    with SubprocVecEnv(env_fns, num_workers) as venv, DummyVecEnv(env_fns) as dummy:
        assert venv.observation_space == dummy.observation_space
        assert venv.action_space == dummy.action_space
        dummy.action_space.seed(0)
        for _ in range(2):  # The second begins in the middle of episodes.
            obs, expected = venv.reset(), dummy.reset()
            assert obs.dtype == expected.dtype == venv.observation_space.dtype
            assert obs.shape == (5, *venv.observation_space.shape)
            np.testing.assert_array_equal(obs, expected)
            for _ in range(num_steps):
                actions = np.array([dummy.action_space.sample() for _ in range(5)])
                results = venv.step(actions)
                assert_same_results(results, dummy.step(actions))
                yield actions, results


SPACES = {  # of observations and of actions
    "image": (spaces.Box(0, 255, (6, 5, 3), np.uint8), spaces.Discrete(4)),
    "vector": (spaces.Box(-np.inf, np.inf, (3,), np.float32), spaces.Box(-2, 2, (2,))),
    "numbers": (spaces.Discrete(5, start=-2), spaces.Discrete(3, start=1)),
    "parts": (spaces.MultiDiscrete([3, 4]), spaces.MultiDiscrete([[2, 3], [4, 5]])),
    "bits": (spaces.MultiBinary(4), spaces.MultiBinary(3)),
    "double": (
        spaces.Box(-1, 1, (), np.float64),
        spaces.Box(-1, 1, (2, 2), np.float64),
    ),
}


@pytest.mark.parametrize(
    ("kind", "num_workers"),
    [
        ("image", 1),
        ("vector", 2),
        ("numbers", 3),
        slow("parts", 5),
        slow("bits", 4),
        slow("double", 3),
    ],
)
def test_workers_return_what_one_process_returns(kind, num_workers):
    ends = 0
    make = partial(RandomEnv, *SPACES[kind])
    for actions, (*_, dones, infos) in steps_of_both(make, num_workers, 40):
        ends += int(dones.sum())
        for action, info in zip(actions, infos):
            assert info["type"] == action.dtype.str
            np.testing.assert_array_equal(info["action"], action)
    assert ends > 20


def test_gymnasium_vector_env_equals_dummy():
    def short_cartpole(seed=None):
        return seeded(gym.make("CartPole-v1", max_episode_steps=15), seed)

    vector_env = SyncVectorEnv(
        [short_cartpole] * 3, autoreset_mode=AutoresetMode.SAME_STEP
    )
    venv = GymnasiumVecEnv(vector_env, seed=7)
    dummy = DummyVecEnv([lambda i=i: short_cartpole(7 + i) for i in range(3)])
    assert venv.observation_space == vector_env.single_observation_space
    assert venv.action_space == vector_env.single_action_space
    # The first reset seeds, which the environments of the other have done.
    venv.reset()
    actions = np.random.default_rng(0).integers(2, size=(100, 3))
    limits = []
    np.testing.assert_array_equal(venv.reset(), dummy.reset())
    for row in actions:
        *_, dones, infos = results = venv.step(row)
        assert_same_results(results, dummy.step(row))
        limits += [infos[i]["TimeLimit.truncated"] for i in np.flatnonzero(dones)]
    assert {True, False} == set(limits)
