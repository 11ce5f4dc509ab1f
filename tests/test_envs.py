"""Environments by id: their types, seeds, and what is refused."""

import gymnasium as gym
import numpy as np
import pytest
from toy_envs import CounterEnv

from baselines.common.base.errors import (
    UserTypeError,
    UserValueError,
)
from baselines.common.envs import (
    as_vec_env,
    find_env_type,
    find_spec,
    make_env,
    make_vec_env,
)
from baselines.common.envs.make import use_workers
from baselines.common.vec_env import DummyVecEnv, VecMonitor


@pytest.mark.parametrize(
    ("env_id", "env_type"),
    [
        ("CartPole-v1", "classic_control"),
        ("PongNoFrameskip-v4", "atari"),
        ("LunarLander-v3", "box2d"),
        ("toy_envs:CounterByClass-v0", "toy_envs"),
    ],
)
def test_type_of_an_environment(env_id, env_type):
    assert find_env_type(find_spec(env_id)) == env_type


def test_unknown_environment_names_the_nearest():
    for env_id, nearest in (
        ("CartPole-v7", "CartPole-v1"),
        ("toy_envs:CounterByNam-v0", "toy_envs:CounterByName-v0"),
    ):
        with pytest.raises(UserValueError, match=f"did you mean '{nearest}'"):
            find_spec(env_id)


def test_custom_environment_in_workers():
    given = dict(num_env=2, env_kwargs={"terminate_after": 4}, worker_timeout=60)
    with make_vec_env("toy_envs:CounterByClass-v0", **given, num_workers=2) as venv:
        assert venv.worker_timeout == 60
        assert venv.reset().tolist() == [[0], [0]]
        for _ in range(4):
            obs, rewards, dones, infos = venv.step([0, 0])
        assert rewards.tolist() == [4, 4]
        assert dones.all()
        assert infos[1]["episode"]["r"] == 10


def test_environments_of_a_vec_env_have_different_seeds():
    def start(**kwargs):
        with make_vec_env("CartPole-v1", **kwargs) as venv:
            return venv.reset()

    obs = start(num_env=3, seed=5)
    assert len({tuple(row) for row in obs}) == 3
    np.testing.assert_array_equal(start(num_env=3, seed=5), obs)
    np.testing.assert_array_equal(start(num_env=1, seed=7), obs[2:])
    np.testing.assert_array_equal(start(num_env=1, seed=5, start_index=1), obs[1:2])
    assert (start(num_env=1, seed=None) != start(num_env=1, seed=None)).any()


def test_rewards_are_scaled_above_the_monitor():
    kwargs = {"terminate_after": 3}
    env = make_env("toy_envs:CounterByName-v0", reward_scale=0.25, env_kwargs=kwargs)
    env.reset()
    steps = [env.step(0) for _ in range(3)]
    assert [reward for _, reward, *_ in steps] == [0.25, 0.5, 0.75]
    assert steps[-1][-1]["episode"]["r"] == 6


def test_gymnasium_env_becomes_a_vec_env_with_a_monitor():
    venv = as_vec_env(gym.make("CartPole-v1", max_episode_steps=3), seed=4)
    assert isinstance(venv, VecMonitor) and isinstance(venv.unwrapped, DummyVecEnv)
    again = as_vec_env(gym.make("CartPole-v1", max_episode_steps=3), seed=4)
    np.testing.assert_array_equal(venv.reset(), again.reset())
    for _ in range(3):
        *_, infos = venv.step([0])
    assert infos[0]["episode"]["l"] == 3
    assert infos[0]["TimeLimit.truncated"]


def test_gymnasium_vector_env_gets_a_monitor():
    vector_env = gym.make_vec(
        "CartPole-v1",
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP},
        max_episode_steps=3,
    )
    venv = as_vec_env(vector_env, seed=4)
    venv.reset()
    for _ in range(3):
        *_, infos = venv.step([0, 1])
    assert [info["episode"]["l"] for info in infos] == [3, 3]
    default = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    with pytest.raises(UserTypeError, match="SAME_STEP"):
        as_vec_env(default)


def test_vec_env_is_returned_unchanged():
    venv = DummyVecEnv([CounterEnv])
    assert as_vec_env(venv) is venv

    class OfAnotherLibrary:
        num_envs = 1
        reset = step = step_async = step_wait = None

    venv = OfAnotherLibrary()
    assert as_vec_env(venv) is venv


def test_actions_of_a_box_are_clipped_where_environments_are_made():
    env = make_env("Pendulum-v1", seed=0)
    env.reset()
    env.step(np.array([99.0], np.float32))
    assert env.unwrapped.last_u == 2
    assert env.action_space == gym.make("Pendulum-v1").action_space


class Parts(gym.Env):
    action_space = gym.spaces.Discrete(2)
    pair = gym.spaces.Tuple([gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(2)])
    observation_space = gym.spaces.Dict(goal=gym.spaces.Discrete(3), p=pair)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return {"goal": 2, "p": (np.array([0.5, -0.5], np.float32), 1)}, {}

    def step(self, action):
        return self.reset()[0], 1.0, True, False, {}


def test_dicts_and_tuples_become_one_vector():
    env = as_vec_env(Parts())
    # goal 2 of 3, then the Box, then 1 of 2
    expected = [[0, 0, 1, 0.5, -0.5, 0, 1]]
    np.testing.assert_array_equal(env.reset(), expected)
    obs, _, _, infos = env.step([0])
    np.testing.assert_array_equal(obs, expected)
    np.testing.assert_array_equal(infos[0]["terminal_observation"], expected[0])


@pytest.mark.parametrize(
    ("env_type", "num_env", "cores", "expected"),
    [
        ("classic_control", 8, 2, False),
        ("mujoco", 8, 2, False),  # saves 200 us of stepping, costs 300 us
        ("mujoco", 16, 8, True),  # saves 700 us
        ("atari", 2, 2, True),
        ("atari", 1, 2, False),
        ("atari", 4, 1, False),
    ],
)
def test_workers_only_where_they_save_time(
    env_type, num_env, cores, expected, monkeypatch
):
    monkeypatch.setattr("baselines.common.base.mpi.available_cores", lambda: cores)
    assert use_workers(env_type, num_env) == expected


def test_what_is_no_environment_is_refused():
    class OldEnv:
        reset = step = None

    for env in "CartPole-v1", CounterEnv, OldEnv(), None:
        with pytest.raises(UserTypeError, match="make_vec_env.*shimmy"):
            as_vec_env(env)
    with pytest.raises(UserValueError, match="wrapper_kwargs are for"):
        make_env("CartPole-v1", wrapper_kwargs={"frame_stack": True})
