"""What is said when a run begins, about settings with no effect or a bad one."""

import warnings

import gymnasium as gym
import keras
import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv

from baselines import a2c, logger, sac
from baselines.bench import Monitor
from baselines.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize


@pytest.fixture(autouse=True)
def log_folder(tmp_path):
    with logger.scoped_configure(str(tmp_path / "log"), ["stdout"]):
        yield


def warnings_of(capsys, env, learn=a2c.learn, network="mlp"):
    learn(env=env, network=network, seed=0, total_timesteps=40)
    printed = capsys.readouterr()
    return printed.out + printed.err


def box_env(low, high, dtype=np.float32):
    env = CounterEnv(terminate_after=3)
    env.action_space = spaces.Box(low, high, (1,), dtype)
    return env


@pytest.mark.parametrize(
    ("low", "high", "doubtful"),
    [
        (-1, 1, False),
        (-2, 2, False),
        (0, 1, False),
        (-np.inf, np.inf, False),
        (99, 101, True),
        (-0.01, 0.01, True),
        (-1000, 1000, True),
    ],
)
def test_bounds_of_actions(capsys, low, high, doubtful):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # such as NumPy's
        text = warnings_of(capsys, box_env(low, high))
    assert ("gymnasium.wrappers.RescaleAction" in text) == doubtful


def test_policies_that_scale_their_actions_need_no_other_bounds(capsys):
    assert "RescaleAction" not in warnings_of(capsys, box_env(99, 101), sac.learn)


@pytest.mark.parametrize(
    ("lr", "doubtful"),
    [
        (lambda fraction: 1e-3 * fraction, True),  # as OpenAI Baselines' functions
        (lambda fraction: 1e-3 * (1 - fraction), False),
        (lambda fraction: 1e-4 + 1e-3 * fraction, False),
        (1e-3, False),
    ],
)
def test_learning_rates_that_rise_from_zero(capsys, lr, doubtful):
    a2c.learn(CounterEnv(terminate_after=3), "mlp", lr=lr, total_timesteps=40)
    printed = capsys.readouterr()
    text = "lr is 0 when training begins: its function gets the fraction of training"
    assert (text in printed.out + printed.err) == doubtful


@pytest.mark.parametrize(
    ("wrap", "wrap_all", "doubtful"),
    [
        (lambda env: env, lambda venv: venv, True),
        (lambda env: env, lambda venv: VecNormalize(venv, ob=False), True),
        (lambda env: env, VecMonitor, False),
        (lambda env: env, lambda venv: VecNormalize(VecMonitor(venv), ob=False), False),
        (lambda env: Monitor(env, None), lambda venv: venv, False),
    ],
)
def test_environments_without_monitors(capsys, wrap, wrap_all, doubtful):
    env = wrap_all(DummyVecEnv([lambda: wrap(CounterEnv(terminate_after=3))] * 2))
    assert ("have no Monitor" in warnings_of(capsys, env)) == doubtful


@pytest.mark.parametrize("ob", [False, True])
def test_statistics_of_observations_that_no_model_has(capsys, ob):
    env = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")]), ob=ob)
    assert ("not saved with the model" in warnings_of(capsys, env)) == ob


@pytest.mark.parametrize(("kind", "doubtful"), [("Observation", 1), ("Reward", 0)])
def test_statistics_of_gymnasium_that_no_model_has(capsys, kind, doubtful):
    wrapper = getattr(gym.wrappers, f"Normalize{kind}")
    text = warnings_of(capsys, wrapper(gym.make("CartPole-v1")))
    assert ("not saved with the model" in text) == doubtful


@pytest.mark.parametrize(
    ("shape", "high", "doubtful"),
    [((128,), 255, True), ((9, 9), 255, True), ((9,), 10, False)],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_bytes_that_are_not_divided(capsys, shape, high, dtype, doubtful):
    env = CounterEnv(terminate_after=3)
    env.observation_space = spaces.Box(0, high, shape, dtype)
    env.observation = lambda: np.zeros(shape, dtype)
    found = warnings_of(capsys, env)
    assert ("go from 0 to 255 and are not divided" in found) == doubtful


@pytest.mark.parametrize(
    ("shape", "doubtful"), [((4, 48, 48), True), ((48, 48, 4), False)]
)
def test_images_with_channels_first(capsys, shape, doubtful):
    env = CounterEnv(terminate_after=3)
    env.observation_space = spaces.Box(0, 255, shape, np.uint8)
    env.observation = lambda: np.zeros(shape, np.uint8)
    assert ("[channels, height, width]" in warnings_of(capsys, env)) == doubtful


class Layered(keras.layers.Layer):
    """A layer with an attribute that is something else in Keras' models."""

    layers = 2

    def call(self, inputs):
        return inputs


def test_layers_of_the_users_own(capsys):
    text = warnings_of(capsys, CounterEnv(terminate_after=3), network=Layered)
    assert "layers, which act" not in text


def test_layers_that_only_act_in_training(capsys):
    def network():
        inner = [keras.layers.Dense(4), keras.layers.Dropout(0.5)]
        layers = [keras.Sequential(inner), keras.layers.BatchNormalization()]
        return keras.Sequential(layers)

    text = warnings_of(capsys, CounterEnv(terminate_after=3), network=network)
    assert "has BatchNormalization and Dropout layers" in text
    assert "regularizers" not in text


def test_regularizers(capsys):
    def network():
        return keras.Sequential([keras.layers.Dense(4, kernel_regularizer="l2")])

    text = warnings_of(capsys, CounterEnv(terminate_after=3), network=network)
    assert "regularizers, which are not part of the loss" in text


def test_evaluations_may_reset_monitors_in_an_episode():
    def make():
        return Monitor(gym.make("CartPole-v1"))

    a2c.learn(
        env=DummyVecEnv([make]),
        network="mlp",
        seed=0,
        total_timesteps=60,
        eval_env=DummyVecEnv([make, make]),
        eval_interval=20,
        eval_episodes=3,
    )


def test_actions_have_the_type_of_their_space():
    env = box_env(-1, 1, np.float16)
    model = a2c.learn(env=env, network="mlp", seed=0, total_timesteps=0)
    action, _ = model.predict(env.reset(seed=0)[0])
    assert env.action_space.contains(action)
