"""The files of episode results, byte for byte, and when they are written."""

import time
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv

from baselines.bench import Monitor, load_results
from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor


class DictEnv(CounterEnv):
    """An environment with Dict observations, whose episodes take three steps."""

    observation_space = spaces.Dict(t=spaces.Discrete(4), x=spaces.Box(0, 1, (2,)))

    def __init__(self):
        super().__init__(terminate_after=3)

    def observation(self):
        return {"t": self.t, "x": self.np_random.random(2, np.float32)}


@pytest.fixture
def clock(monkeypatch):
    """A clock that changes only by ``clock.now += seconds``."""

    class Clock:
        now = 100.5

    monkeypatch.setattr(time, "time", lambda: Clock.now)
    return Clock


def play_episode(env):
    """Steps to the end of an episode; returns the infos of its steps."""
    infos, ended = [], False
    while not ended:
        *_, terminated, truncated, info = env.step(0)
        infos.append(info)
        ended = terminated or truncated
    return infos


def scaled_counter(scale, **kwargs):
    """A registered CounterEnv whose reward t is multiplied by ``scale``."""
    env = gym.make("CounterByName-v0", disable_env_checker=True, **kwargs)
    return gym.wrappers.TransformReward(env, lambda reward: scale * reward)


def test_file_of_one_environment_byte_for_byte(tmp_path, clock):
    env = scaled_counter(0.1234567, terminate_after=3)
    env = Monitor(env, str(tmp_path / "0.0"), info_keywords=("double",))
    env.reset()
    clock.now += 2.1234567
    infos = play_episode(env)
    assert ["episode" in info for info in infos] == [False, False, True]
    # As many decimals as there are: only the file rounds.
    result = {"r": 0.7407402, "l": 3, "t": 2.1234567, "double": 6}
    assert infos[-1]["episode"] == pytest.approx(result, rel=1e-12)
    env.reset()
    clock.now += 10
    play_episode(env)
    # Read before it is closed: a row is there as soon as its episode has ended.
    assert (tmp_path / "0.0.monitor.csv").read_bytes() == (
        b'# {"t_start": 100.5, "env_id": "CounterByName-v0"} \n'
        b"r,l,t,double\r\n"
        b"0.74074,3,2.123457,6\r\n"
        b"0.74074,3,12.123457,6\r\n"
    )
    env.close()


def test_early_reset_raises_if_it_is_not_allowed():
    env = Monitor(CounterEnv(terminate_after=3), allow_early_resets=False)
    env.reset()
    env.reset()  # Nothing was lost.
    env.step(0)
    with pytest.raises(RuntimeError, match="allow_early_resets"):
        env.reset()
    env.step(0)
    env.step(0)
    env.reset()
    assert play_episode(env)[-1]["episode"]["r"] == 6


def test_file_of_a_vec_env_has_rows_of_all_environments(tmp_path, clock):
    envs = [lambda: CounterEnv(terminate_after=2), lambda: CounterEnv(None, 3)]
    venv = VecMonitor(DummyVecEnv(envs), str(tmp_path / "run"), ("double",))
    venv.reset()
    venv.step([0, 0])
    venv.reset()  # It drops the episodes before.
    for _ in range(4):
        clock.now += 1
        venv.step([0, 0])
    path = tmp_path / "run.monitor.csv"
    assert path.read_bytes() == (
        b'# {"t_start": 100.5} \n'
        b"r,l,t,double\r\n"
        b"3.0,2,2.0,4\r\n"
        b"6.0,3,3.0,6\r\n"
        b"3.0,2,4.0,4\r\n"
    )
    venv.close()
    venv.close()


def make_monitor(filename):
    return Monitor(CounterEnv(terminate_after=2), filename)


def make_vec_monitor(filename):
    return VecMonitor(DummyVecEnv([lambda: CounterEnv(terminate_after=2)]), filename)


@pytest.mark.parametrize("make", [make_monitor, make_vec_monitor])
def test_time_of_a_resumed_run_goes_on_where_it_stopped(make, tmp_path, clock):
    def play(env, seconds):
        for _ in range(2):
            clock.now += seconds / 2
            env.step(np.zeros(1, int))

    env = make(str(tmp_path / "0.0"))
    env.reset()
    play(env, 10)
    env.reset()
    clock.now += 5
    state = env.get_state()
    env.close()
    clock.now += 1000  # Nobody trains.
    env = make(str(tmp_path / "0.0"))
    (env.venv if isinstance(env, VecMonitor) else env.env).reset()
    env.set_state(state)
    play(env, 6)
    env.close()
    assert load_results(tmp_path).t.tolist() == [10, 21]


@pytest.mark.parametrize(
    ("vec_env", "make"),
    [(DummyVecEnv, DictEnv), (SubprocVecEnv, partial(CounterEnv, terminate_after=3))],
)
def test_replaying_an_episode_records_none(vec_env, make, tmp_path):
    def make_env():
        env = Monitor(make(), str(tmp_path / "0"))
        env.reset(seed=0)  # as some do to seed it
        is_dict = isinstance(env.observation_space, spaces.Dict)
        return gym.wrappers.FlattenObservation(env) if is_dict else env

    def play(venv, steps):
        return [venv.step([0])[:3] for _ in range(steps)]

    with vec_env([make_env]) as venv:
        venv.reset()
        play(venv, 8)
        state = venv.get_state()
        expected = play(venv, 5)
    with vec_env([make_env]) as venv:
        venv.set_state(state)
        for results, others in zip(play(venv, 5), expected):
            for array, other in zip(results, others):
                np.testing.assert_array_equal(array, other)
    assert load_results(tmp_path).l.tolist() == [3] * 4


def test_wrappers_above_a_monitor_are_restored():
    def make():
        env = Monitor(gym.make("CartPole-v1"), None)
        env = gym.wrappers.FrameStackObservation(env, 3)
        return gym.wrappers.TimeLimit(gym.wrappers.FlattenObservation(env), 100)

    with DummyVecEnv([make]) as first, DummyVecEnv([make]) as second:
        assert first.resumable
        first.reset()
        obs = [first.step([0])[0] for _ in range(25)][-1]  # of the third episode
        second.set_state(first.get_state())
        np.testing.assert_array_equal(second.get_state()["obs"], obs)
