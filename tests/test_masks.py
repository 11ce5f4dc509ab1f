"""Masks of actions: none that is invalid is chosen, anywhere."""

import gymnasium as gym
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from toy_envs import Masked

import baselines
from baselines import a2c, acer, acktr, dqn, ppo2, trpo
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.envs.masks import MaskedObservation
from baselines.common.envs.nests import flatten_env
from baselines.common.networks.policies import Policy
from baselines.common.run.evaluation import evaluate
from baselines.common.vec_env import (
    DummyVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

TAXI = max(x for x in gym.registry if x.startswith("Taxi-v"))


SMALL = dict(network="mlp", total_timesteps=300, seed=0)
ACTIONS = {
    "start": spaces.Discrete(4, start=2),
    "MultiDiscrete": spaces.MultiDiscrete([3, 4]),
    "MultiBinary": spaces.MultiBinary(4),
}


@pytest.mark.parametrize(
    ("alg", "name", "settings"),
    [
        (ppo2, "MultiDiscrete", dict(nsteps=20)),
        (trpo, "MultiBinary", dict(timesteps_per_batch=100)),
        (acktr, "start", dict(nsteps=20)),
        (acer, "start", dict(nsteps=20, replay_start=50)),
        (dqn, "start", dict(learning_starts=50)),
    ],
    ids=lambda x: x if isinstance(x, str) else getattr(x, "__name__", ""),
)
def test_no_algorithm_chooses_an_invalid_action(alg, name, settings, tmp_path):
    space = ACTIONS[name]
    model = alg.learn(Masked(space), **SMALL, **settings)
    model.save(tmp_path / "model")
    for one in model, baselines.load(tmp_path / "model"):
        for deterministic in False, True:
            evaluate(one, Masked(space), 5, deterministic)


def test_an_invalid_action_has_no_probability_and_no_gradient():
    env = flatten_env(Masked(spaces.Discrete(3)))
    policy = Policy(env.observation_space, env.action_space, "mlp")
    obs = np.float32([[1, 0, 1, 0.5, 0.5]])
    kernel = policy.parts["pi"].trainable_variables[0]
    with tf.GradientTape() as tape:
        params, *_ = policy._one_step(tf.constant(obs), None, np.ones(1, bool))
        entropy = policy.distribution.entropy(params)
        likelihood = policy.distribution.neglogp(params, np.array([2]))
        loss = tf.reduce_sum(entropy + likelihood)
    assert np.asarray(tf.nn.softmax(params))[0, 1] == 0
    assert np.isfinite(loss) and float(entropy[0]) <= np.log(2) + 1e-6
    gradient = np.asarray(tape.gradient(loss, kernel.value))
    assert not gradient[:, 1].any() and gradient[:, 2].any()


class Cards(gym.Env):
    """Play the lowest of 5 cards out of 60; a card that is not in the hand ends a game.

    Args:
        key: name of what shows the hand.
    """

    action_space = spaces.Discrete(60)

    def __init__(self, key):
        self.key = key
        self.observation_space = spaces.Dict({key: spaces.MultiBinary(60)})

    def draw(self):
        self.hand = np.zeros(60, np.int8)
        self.hand[self.np_random.choice(60, 5, replace=False)] = 1
        return {self.key: self.hand}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.draw(), {}

    def step(self, action):
        lost, reward = not self.hand[action], float(action == self.hand.argmax())
        self.t += 1
        return self.draw(), reward, lost, self.t == 20, {}


@pytest.mark.slow
@pytest.mark.parametrize("alg", [ppo2, dqn], ids=lambda alg: alg.__name__)
def test_masks_decide_what_is_learned_in_a_short_time(alg):
    scores = {}
    for key in "action_mask", "hand":
        model = alg.learn(Cards(key), total_timesteps=20_000, seed=0)
        results = evaluate(model, Cards(key), 50, deterministic=True)
        scores[key] = np.mean([result["r"] for result in results])
    # Of 20. Without a mask, ppo2 had 0.7 and dqn 12.3; with one, 18.7 and 19.7.
    assert scores["action_mask"] > 16 > 14 > scores["hand"]


def test_masks_of_infos_and_methods():
    """Those of Taxi forbid moves into walls, and to pick up nobody."""
    env = MaskedObservation(gym.make(TAXI))
    model = a2c.learn(env, **SMALL)
    for seed in range(3):
        obs, info = env.reset(seed=seed)
        assert info["action_mask"][model.predict(obs)[0]]

    class WithMethod(gym.Wrapper):
        def action_masks(self):
            return [False, True]

    env = MaskedObservation(WithMethod(gym.make("CartPole-v1")))
    assert env.reset()[0]["action_mask"].tolist() == [0, 1]
    model = a2c.learn(env, **SMALL)
    results = evaluate(model, MaskedObservation(WithMethod(gym.make("CartPole-v1"))), 3)
    assert max(result["l"] for result in results) < 12  # always to the right


@pytest.mark.parametrize("space", [spaces.Discrete(3), spaces.MultiDiscrete([2, 2])])
def test_a_mask_without_a_valid_action_is_refused(space):
    env = Masked(space)
    good = env.draw

    def draw():
        obs = good()
        if env.t == 5:
            obs["action_mask"][: 2 if len(env.mask) == 4 else None] = 0
        return obs

    env.draw = draw
    with pytest.raises(UserValueError, match="Masked"):
        a2c.learn(env, **SMALL)


def test_wrappers_that_would_lose_a_mask_are_refused():
    venv = DummyVecEnv([Masked])
    assert VecMonitor(venv).resumable
    with pytest.raises(UserTypeError, match="action_mask"):
        VecNormalize(venv)


def test_the_newest_mask_of_a_stack_counts():
    env = Masked()
    venv = VecFrameStack(DummyVecEnv([lambda: env]), 2)
    part = venv.observation_space.parts["action_mask"]
    venv.reset()
    for _ in range(3):
        obs, *_ = venv.step([np.argmax(env.mask)])
        np.testing.assert_array_equal(obs[0, part], env.mask)


def test_a_mask_of_another_size_is_refused():
    env = Masked()
    env.observation_space["action_mask"] = spaces.MultiBinary(5)
    with pytest.raises(UserValueError, match="5"):
        a2c.learn(env, **SMALL)
