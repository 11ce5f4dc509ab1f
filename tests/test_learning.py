"""Algorithms learn what they should, on environments small enough to wait for."""

import gymnasium as gym
import numpy as np
import pytest
from conftest import cartpoles, skipped_if_refused, slow
from gymnasium import spaces
from toy_envs import seeded

from baselines import dqn, trpo
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.arguments.discovery import find_algorithm, find_defaults
from baselines.common.envs import make_vec_env
from baselines.common.run.evaluation import evaluate
from baselines.common.vec_env import DummyVecEnv, VecMonitor


class Identity(gym.Env):
    """Pays up to 1 for the action that equals the observation; 10 steps an episode.

    Of vectors, every part pays its share; of a Box, 1 - (action - observation)².
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
            reward = float(1 - np.mean(np.square(action - self.obs)))
        else:
            reward = float(np.mean(action == self.obs))
        self.steps += 1
        return self.draw(), reward, False, self.steps == 10, {}


def make_identities(space):
    env_fns = [lambda i=i: seeded(Identity(space), i) for i in range(4)]
    return VecMonitor(DummyVecEnv(env_fns))


def those_of(learn, **settings):
    """The settings that are arguments of an algorithm."""
    known = declared_arguments(learn)
    return {name: value for name, value in settings.items() if name in known}


def train_to(score, learn, make_venv, episodes, **settings):
    """Trains until the best actions earn so much; returns the model's mean return."""
    model = learn(
        env=make_venv(),
        eval_env=make_venv(),
        eval_interval=1000,
        eval_episodes=episodes,
        stop_at=score,
        seed=0,
        **settings,
    )
    results = evaluate(model, make_venv(), episodes, deterministic=True)
    return np.mean([result["r"] for result in results])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(5),
        slow(spaces.MultiDiscrete([3, 4])),
        slow(spaces.MultiBinary(3)),
        spaces.Box(-2, 2, (2,)),  # wider than what is shown, as actions are clipped
    ],
    ids=lambda space: type(space).__name__,
)
def test_identity_is_learned(learn, small, space):
    if not isinstance(space, learn.actions):
        pytest.skip("it does not take such actions")
    mean = train_to(
        9.5,
        learn,
        lambda: make_identities(space),
        episodes=40,
        network="mlp",
        total_timesteps=30_000,
        **small | those_of(learn, lr=5e-3, gamma=0.5, train_freq=4),
    )
    assert mean >= 9  # 2, 2.9, 5 and 6.7 by the best action that is always the same


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


def make_sequences():
    return VecMonitor(DummyVecEnv([FixedSequence] * 4))


@pytest.mark.parametrize("network", ["lstm", slow("lnlstm")])
def test_recurrent_networks_learn_a_fixed_sequence(learn, small, network):
    if spaces.Discrete not in learn.actions:
        pytest.skip("it does not take such actions")
    with skipped_if_refused(learn):
        mean = train_to(
            4,
            learn,
            make_sequences,
            episodes=4,
            network=network,
            nlstm=32,
            total_timesteps=80_000,
            **small | those_of(learn, lr=1e-2, gamma=0.5, value_network="shared"),
        )
    assert mean == 4  # 1 without a state


@pytest.mark.slow
def test_cartpole_is_balanced_for_195_steps(alg, learn, small):
    """After so many agent steps at most, with its settings for classic control."""
    if spaces.Discrete not in learn.actions:
        pytest.skip("it does not take such actions")
    if small.get("reward") != learn.settings.get("reward"):
        pytest.skip("it learns from other rewards, in a test of its own")
    defaults = find_defaults(find_algorithm(alg), "classic_control")
    num_env = defaults.pop("num_env", 2)
    # dqn's settings are for 100,000: six seeds took 11,000 to 52,000.
    most = 60_000 if alg == "dqn" else 30_000
    mean = train_to(
        250,
        learn,
        lambda: cartpoles(num_env),
        episodes=10,
        network="mlp",
        # Schedules may be for more steps.
        callback=lambda names, _: names["num_timesteps"] >= most,
        **dict(total_timesteps=most)
        | those_of(learn, lr=5e-3, value_network="copy", train_freq=4)
        | defaults,
    )
    assert mean >= 195


@pytest.mark.slow
def test_trpo_swings_a_pendulum_up():
    """By RL Baselines3 Zoo's settings, but for its noise (gSDE) and observations."""
    model = trpo.learn(
        env=make_vec_env("Pendulum-v1", num_env=8, seed=0),
        network="mlp",
        seed=0,
        normalize_observations=True,
        timesteps_per_batch=2048,
        max_kl=0.01,
        cg_iters=10,
        cg_damping=0.1,
        gamma=0.9,
        lam=0.95,
        vf_stepsize=1e-3,
        vf_iters=15,
        total_timesteps=300_000,
    )
    env = make_vec_env("Pendulum-v1", num_env=8, seed=1000)
    results = evaluate(model, env, 100, deterministic=True)
    assert np.mean([result["r"] for result in results]) > -200  # -1,200 at random


@pytest.mark.long
@pytest.mark.parametrize(
    "system",
    [
        dict(n_step=3),
        dict(double_q=True),
        dict(noisy=True),
        dict(prioritized_replay=True),
        dict(dueling=True),
        # Returns are at most 1 / (1 - gamma) = 100.
        dict(values="categorical", v_min=0.0, v_max=100.0),
    ],
    ids=lambda system: next(iter(system)),
)
def test_systems_of_rainbow_reach_195_on_cartpole(system):
    """Each by itself; dqn without them and rainbow are among the algorithms above."""
    runs = []
    dqn.learn(
        cartpoles(8),
        "mlp",
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
        stop_at=195,
        on_update=runs.append,
        **system,
    )
    assert runs[-1].episodes.mean("r") >= 195
