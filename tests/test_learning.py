"""Algorithms learn what they should, on environments small enough to wait for."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from baselines.a2c import learn
from baselines.common.envs import make_env
from baselines.common.vec_env import DummyVecEnv, VecMonitor


class Identity(gym.Env):
    """Pays 1 for the action that the observation names; 100 steps an episode."""

    action_space = spaces.Discrete(5)
    observation_space = spaces.Discrete(5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.obs = int(self.np_random.integers(5))
        return self.obs, {}

    def step(self, action):
        reward = float(action == self.obs)
        self.steps += 1
        self.obs = int(self.np_random.integers(5))
        return self.obs, reward, False, self.steps == 100, {}


def make_identity(seed):
    env = Identity()
    env.reset(seed=seed)
    return env


def last_mean_return(env, **settings):
    """Mean return of the last 100 episodes of training, and the model."""
    means = []

    def callback(local_variables, global_variables):
        returns = [episode["r"] for episode in local_variables["episodes"].results]
        means.append(np.mean(returns) if returns else 0)

    model = learn(env=env, callback=callback, **settings)
    return means[-1], model


def test_a2c_learns_identity():
    env = VecMonitor(DummyVecEnv([lambda i=i: make_identity(i) for i in range(8)]))
    mean, model = last_mean_return(
        env, network="mlp", seed=0, total_timesteps=60_000, lr=3e-3, gamma=0.5
    )
    obs = np.arange(5)
    actions, *_ = model.step(obs, deterministic=True)
    np.testing.assert_array_equal(actions, obs)
    assert mean > 90  # Guessing earns 20.


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


def test_a2c_reaches_195_on_cartpole():
    mean, _ = last_mean_return(**cartpole_settings(seed=0))
    assert mean >= 195


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a2c_reaches_195_on_cartpole_with_other_seeds(seed):
    mean, _ = last_mean_return(**cartpole_settings(seed))
    assert mean >= 195
