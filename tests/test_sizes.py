"""Sizes that no machine has: one line each, within seconds, and nothing is written."""

import os

import pytest
from gymnasium import spaces

import baselines
from baselines import run
from baselines.common.base.errors import UserValueError
from baselines.common.data.replay_buffer import ReplayBuffer
from baselines.common.envs import make_vec_env

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """Gives the machine 24 GB, or what the returned function is called with."""

    def set_memory(size):
        name = "baselines.common.base.machine.available_memory"
        monkeypatch.setattr(name, lambda: size)

    set_memory(24e9)
    return set_memory


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--alg=a2c --nsteps=1e12", "a rollout of 1,000,000,000,000 steps needs"),
        ("--alg=ppo2 --nsteps=1e8", "24.0 GB left; give a smaller rollout"),
        ("--alg=trpo --timesteps_per_batch=1e12", "a rollout of 500,000,000,000"),
        ("--alg=dqn --buffer_size=1e12", "give a smaller buffer_size"),
        ("--alg=a2c --nsteps=1e18", "nsteps"),
        (f"--alg=a2c --nsteps=1{400 * '0'}", "nsteps"),
        (f"--alg=a2c --gamma=1{5000 * '0'}", "gamma"),
    ],
)
def test_size_that_does_not_fit(words, message, capfd):
    with pytest.raises(SystemExit) as stop:
        run.main(["--env=CartPole-v1", "--num_timesteps=1e15", *words.split()])
    out, err = capfd.readouterr()
    assert stop.value.code == 2 and out == ""
    assert err.startswith("error: ") and err.count("\n") == 1 and len(err) < 300
    assert message in err
    assert os.listdir() == []


def test_learn_refuses_it_too():
    env = make_vec_env("CartPole-v1", seed=0)
    with pytest.raises(UserValueError, match="a rollout of 1,000,000,000,000 steps"):
        baselines.a2c.learn(env, "mlp", total_timesteps=10**15, nsteps=10**12)


def test_large_machine_has_large_memories(memory):
    memory(2e12)
    space = spaces.Box(-1, 1, (4,))
    ReplayBuffer(space, spaces.Discrete(2), 10**8, num_envs=64)
