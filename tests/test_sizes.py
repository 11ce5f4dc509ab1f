"""Sizes that no machine has: one line each, within seconds, and nothing is written."""

import pytest
from conftest import error_of
from gymnasium import spaces

from baselines.common.base.errors import UserValueError
from baselines.common.data.replay_buffer import ReplayBuffer

pytestmark = pytest.mark.usefixtures("empty_folder")


def set_memory(monkeypatch, size):
    name = "baselines.common.base.machine.available_memory"
    monkeypatch.setattr(name, lambda: size)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--alg=a2c --nsteps=1e12", "a rollout of 1,000,000,000,000 steps needs"),
        ("--alg=trpo --timesteps_per_batch=1e12", "a rollout of 500,000,000,000"),
        ("--alg=dqn --buffer_size=1e12", "give a smaller buffer_size"),
        ("--alg=a2c --nsteps=1e18", "nsteps"),
    ],
)
def test_size_that_does_not_fit(words, message, capfd, monkeypatch):
    set_memory(monkeypatch, 24e9)
    err = error_of(capfd, f"--env=CartPole-v1 --num_timesteps=1e15 {words}")
    assert message in err and len(err) < 300


def test_only_memories_that_fit_are_made(monkeypatch):
    set_memory(monkeypatch, 2e12)
    space, actions = spaces.Box(-1, 1, (4,)), spaces.Discrete(2)
    ReplayBuffer(space, actions, 10**8, num_envs=64)
    set_memory(monkeypatch, 8 * 2**30)  # A million frames are under 7.6 GB.
    space = spaces.Box(0, 255, (84, 84, 4), "u1")
    ReplayBuffer(space, actions, 10**6, num_envs=1, frame_stack=4)
    set_memory(monkeypatch, 7 * 10**9)
    with pytest.raises(UserValueError, match="give a smaller buffer_size"):
        ReplayBuffer(space, actions, 10**6, num_envs=1, frame_stack=4)
