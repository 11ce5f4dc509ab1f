"""A saved model acts as it did, for every algorithm with every network it takes."""

import gymnasium as gym
import numpy as np
import pytest
from conftest import long, skipped_if_refused
from toy_envs import RandomEnv

import baselines
from baselines import dqn
from baselines.common.arguments.types import NETWORK
from baselines.common.base.errors import UserValueError
from baselines.common.vec_env import DummyVecEnv

IMAGES = gym.spaces.Box(0, 255, (36, 36, 2), np.uint8)
# All but multi, which is for Dicts.
NETWORKS = [dict(network=name) for name in NETWORK.known() if name != "multi"]
NETWORKS.append(dict(network="mlp", layer_norm=True))
# test_algorithms.py saves and loads one without a state for each space of actions.
QUICK = dict(network="lstm")


def play(model, observations, deterministic):
    """What ``step`` returns for [T, N, ...]; new episodes begin in the middle."""
    states, rows = None, []
    for t, obs in enumerate(observations):
        begun = np.full(len(obs), t in (0, len(observations) // 2))
        rows.append(model.step(obs, states, begun, deterministic=deterministic))
        states = rows[-1][2]
    return [np.array(x) for x in zip(*rows)]


@pytest.mark.parametrize(
    "network",
    [network if network == QUICK else long(network) for network in NETWORKS],
    ids=lambda network: "-".join(map(str, network.values())),
)
def test_loaded_model_acts_as_the_saved_one(
    alg, learn, small, env_id, network, tmp_path
):
    space = gym.make(env_id).action_space
    env = DummyVecEnv([lambda: RandomEnv(IMAGES, space)] * 2)
    with skipped_if_refused(learn):
        model = learn(**small, **network, seed=0, total_timesteps=0, env=env)
    rng = np.random.default_rng(0)
    for variable in model.variables:  # No seed builds them like this.
        variable.assign_add(rng.uniform(0, 0.01, variable.shape))
    model.save(tmp_path / "model")
    loaded = baselines.load(tmp_path / "model", trust=True)
    # What is drawn goes on from a seed, as generators are no part of a saved model.
    loaded.rng.bit_generator.state = model.rng.bit_generator.state
    observations = rng.integers(256, size=(4, 20, 36, 36, 2), dtype=np.uint8)
    for deterministic in True, False:
        expected = play(model, observations, deterministic)
        for found, array in zip(play(loaded, observations, deterministic), expected):
            np.testing.assert_array_equal(found, array)
        assert expected[1].std() > 0


@pytest.mark.parametrize(
    ("name", "trained", "now"),
    [("activation", "tanh", "relu"), ("v_min", -10.0, -5.0)],
)
def test_a_model_is_not_loaded_as_another_of_the_same_shapes(
    name, trained, now, tmp_path
):
    words = dict(network="mlp", values="categorical", total_timesteps=0)
    words["env"] = gym.make("CartPole-v1")
    dqn.learn(**words, **{name: trained}).save(tmp_path / "model")
    words["load_path"] = tmp_path / "model"
    expected = f"was saved with {name} {trained!r}, but this run has {now!r}"
    with pytest.raises(UserValueError, match=expected):
        dqn.learn(**words, **{name: now})
    dqn.learn(**words, **{name: trained}, lr=1e-5)
