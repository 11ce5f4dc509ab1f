"""Algorithms learn what they should, on environments small enough to wait for."""

import gymnasium as gym
import numpy as np
import pytest
from conftest import slow
from gymnasium import spaces

from baselines import a2c, dqn, ppo2, rainbow
from baselines.common.envs import make_env
from baselines.common.vec_env import DummyVecEnv, VecMonitor
from baselines.ppo2 import defaults as ppo2_defaults


class Identity(gym.Env):
    """Pays up to 1 for the action that equals the observation; 100 steps an episode.

    Of vectors, every equal part pays its share; of a Box, closeness pays.
    """

    def __init__(self, space):
        self.action_space = space
        # Bits are shown as numbers.
        bits = isinstance(space, spaces.MultiBinary)
        self.observation_space = spaces.Box(0, 1, space.shape) if bits else space

    def draw(self):
        space = self.action_space
        if isinstance(space, spaces.Discrete):
            self.obs = int(self.np_random.integers(space.n))
        elif isinstance(space, spaces.MultiDiscrete):
            self.obs = self.np_random.integers(space.nvec)
        elif isinstance(space, spaces.MultiBinary):
            self.obs = self.np_random.integers(2, size=space.shape).astype(np.float32)
        else:
            self.obs = self.np_random.uniform(-1, 1, space.shape).astype(np.float32)
        return self.obs

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.draw(), {}

    def step(self, action):
        if isinstance(self.action_space, spaces.Box):
            reward = float(1 - np.mean(np.abs(action - self.obs)))
        else:
            reward = float(np.mean(action == self.obs))
        self.steps += 1
        return self.draw(), reward, False, self.steps == 100, {}


def make_identity(space, seed):
    env = Identity(space)
    env.reset(seed=seed)
    return env


def make_identities(space, num_env=8):
    env_fns = [lambda i=i: make_identity(space, i) for i in range(num_env)]
    return VecMonitor(DummyVecEnv(env_fns))


def last_mean_return(learn, env, **settings):
    """Mean return of the last 100 episodes of training, and the model."""
    means = []

    def callback(local_variables, global_variables):
        returns = [episode["r"] for episode in local_variables["run"].episodes.results]
        means.append(np.mean(returns) if returns else 0)

    model = learn(env=env, callback=callback, **settings)
    return means[-1], model


IDENTITIES = [  # with what guessing earns, and what has to be earned
    (spaces.Discrete(5), 20, 90),
    (spaces.MultiDiscrete([3, 4]), 29, 90),
    (spaces.MultiBinary(3), 50, 90),
    (spaces.Box(-1, 1, (2,)), 33, 80),
]
by_space = pytest.mark.parametrize(
    ("space", "guessing", "bar"),
    IDENTITIES,
    ids=[type(space).__name__ for space, *_ in IDENTITIES],
)


@by_space
def test_a2c_learns_identity(space, guessing, bar):
    mean, model = last_mean_return(
        a2c.learn,
        make_identities(space),
        network="mlp",
        seed=0,
        total_timesteps=50_000,
        lr=1e-2,
        gamma=0.5,
    )
    assert guessing < bar < mean
    if isinstance(space, spaces.Discrete):
        actions, *_ = model.step(np.arange(5), deterministic=True)
        np.testing.assert_array_equal(actions, np.arange(5))


@by_space
def test_ppo2_learns_identity(space, guessing, bar):
    mean, _ = last_mean_return(
        ppo2.learn,
        make_identities(space),
        network="mlp",
        seed=0,
        total_timesteps=50_000,
        nsteps=64,
        lr=2e-3,
        gamma=0.5,
    )
    assert guessing < bar < mean


@pytest.mark.parametrize(
    "settings",
    [{}, dict(values="categorical", v_min=0.0, v_max=2.0, dueling=True, n_step=3)],
    ids=["dqn", "additions"],
)
def test_dqn_learns_identity(settings):
    space = spaces.Discrete(5)
    _, model = last_mean_return(
        dqn.learn,
        make_identities(space),
        network="mlp",
        hiddens=[],
        seed=0,
        total_timesteps=12_000,
        train_freq=8,
        lr=2e-3,
        gamma=0.5,
        exploration_final_eps=0.1,
        checkpoint_freq=0,
        **settings,
    )
    # Guessing would be right for one of five.
    actions, *_ = model.step(np.arange(5), deterministic=True)
    np.testing.assert_array_equal(actions, np.arange(5))


class FixedSequence(gym.Env):
    """Pays 1 for the next action of a secret sequence; shows nothing, ends at its end.

    Only the state of a recurrent network tells the actions apart.
    """

    action_space = spaces.Discrete(4)
    observation_space = spaces.Discrete(1)
    sequence = [2, 0, 3, 1]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return 0, {}

    def step(self, action):
        reward = float(action == self.sequence[self.t])
        self.t += 1
        return 0, reward, self.t == len(self.sequence), False, {}


A2C_SETTINGS = dict(nsteps=8, lr=3e-2, total_timesteps=80_000)
PPO2_SETTINGS = dict(nsteps=16, nminibatches=2, lr=2e-3, total_timesteps=40_000)


@pytest.mark.parametrize(
    ("learn", "settings", "network"),
    [
        (ppo2.learn, PPO2_SETTINGS, "lstm"),
        slow(ppo2.learn, PPO2_SETTINGS, "lnlstm"),
        slow(a2c.learn, A2C_SETTINGS, "lstm"),
        slow(a2c.learn, A2C_SETTINGS, "lnlstm"),
    ],
)
def test_recurrent_networks_learn_a_fixed_sequence(learn, settings, network):
    env = VecMonitor(DummyVecEnv([FixedSequence for _ in range(8)]))
    mean, _ = last_mean_return(
        learn, env, network=network, nlstm=32, seed=0, gamma=0.5, **settings
    )
    assert mean > 3.7  # of 4; at most 1 without a state


@pytest.mark.slow
def test_ppo2_reaches_195_on_cartpole():
    settings = ppo2_defaults.classic_control()
    assert settings.pop("env") == dict(num_env=8)
    mean, _ = last_mean_return(
        ppo2.learn,
        make_cartpoles(8, seed=0),
        network="mlp",
        seed=0,
        total_timesteps=100_000,
        **settings,
    )
    assert mean >= 195


def make_cartpoles(num_env, seed):
    return DummyVecEnv(
        [lambda i=i: make_env("CartPole-v1", seed=seed + i) for i in range(num_env)]
    )


def cartpole_settings(seed):
    return dict(
        env=make_cartpoles(8, 100 * seed),
        network="mlp",
        value_network="copy",
        seed=seed,
        lr=5e-3,
        ent_coef=0.0,
        total_timesteps=150_000,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a2c_reaches_195_on_cartpole(seed):
    mean, _ = last_mean_return(a2c.learn, **cartpole_settings(seed))
    assert mean >= 195


SYSTEMS = {
    "dqn": {},
    "n_step": dict(n_step=3),
    "double": dict(double_q=True),
    "noisy": dict(noisy=True),
    "prioritized": dict(prioritized_replay=True),
    "dueling": dict(dueling=True),
    "categorical": dict(values="categorical", v_min=0.0, v_max=100.0),
    # Returns are at most 1 / (1 - gamma) = 100.
    "rainbow": dict(v_min=0.0, v_max=100.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_of_rainbow_reach_195_on_cartpole(name):
    learn = rainbow.learn if name == "rainbow" else dqn.learn
    best = 0

    def callback(local_variables, global_variables):
        nonlocal best
        best = max(best, local_variables["run"].episodes.mean("r"))
        return best >= 195

    learn(
        env=make_cartpoles(8, seed=0),
        network="mlp",
        activation="relu",
        num_layers=1,
        num_hidden=256,
        hiddens=[64],
        seed=0,
        lr=1e-3,
        batch_size=64,
        train_freq=4,
        exploration_fraction=0.05,
        exploration_final_eps=0.03,
        # The whole run: what balances by now forgets how without early falls.
        buffer_size=100_000,
        target_network_update_freq=500,
        total_timesteps=200_000,  # Most need half of it.
        callback=callback,
        **SYSTEMS[name],
    )
    assert best >= 195
