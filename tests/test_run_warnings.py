"""What is said when a run begins: mistakes that raise no error, but train badly."""

import warnings

import gymnasium as gym
import keras
import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv

from baselines import a2c, logger, sac
from baselines.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize


def acting(low, high):
    env = CounterEnv(terminate_after=3)
    env.action_space = spaces.Box(low, high, (1,), np.float32)
    return env


def seeing(shape, high=255, dtype=np.uint8):
    env = CounterEnv(terminate_after=3)
    env.observation_space = spaces.Box(0, high, shape, dtype)
    env.observation = lambda: np.zeros(shape, dtype)
    return env


def normalized(ob):
    env = VecMonitor(DummyVecEnv([lambda: gym.make("CartPole-v1")]))
    return VecNormalize(env, ob=ob)


def dropping():
    inner = [keras.layers.Dense(4), keras.layers.Dropout(0.5)]
    return keras.Sequential([keras.Sequential(inner), keras.layers.Dense(4)])


def regularized():
    return keras.Sequential([keras.layers.Dense(4, kernel_regularizer="l2")])


ACTIONS = "gymnasium.wrappers.RescaleAction"
IMAGES = "not the shape of images"
NETWORK = "of the network have no effect"
SCHEDULE = "is 0 when training begins"
STATISTICS = "not saved with the model"


@pytest.mark.parametrize(
    ("make", "arguments", "words"),
    [
        (CounterEnv, {}, None),
        (CounterEnv, {"lr": lambda done: 1e-3 * done}, f"lr {SCHEDULE}"),
        (CounterEnv, {"lr": lambda done: 1e-3 * (1 - done)}, None),
        (CounterEnv, {"network": dropping}, f"Dropout {NETWORK}"),
        (CounterEnv, {"network": regularized}, f"regularizers {NETWORK}"),
        (lambda: normalized(True), {}, STATISTICS),
        (lambda: normalized(False), {}, None),
        (lambda: seeing((128,)), {}, IMAGES),
        (lambda: seeing((9,), 10), {}, None),
        (lambda: seeing((4, 48, 48)), {}, IMAGES),
        (lambda: seeing((48, 48, 4)), {}, None),
        (lambda: acting(-0.01, 0.01), {}, ACTIONS),
        (lambda: acting(0, 1), {}, None),
        (lambda: acting(-np.inf, np.inf), {}, None),
        (lambda: acting(99, 101), {"learn": sac.learn}, None),  # which scales them
    ],
)
def test_warnings(make, arguments, words, tmp_path, capsys, monkeypatch):
    def stop(*arguments):
        raise StopIteration

    monkeypatch.setattr("baselines.common.run.run.begin_status", stop)
    arguments = {"learn": a2c.learn, "network": "mlp", **arguments}
    learn = arguments.pop("learn")
    with (
        logger.scoped_configure(str(tmp_path), ["stdout"]),
        warnings.catch_warnings(),
        pytest.raises(StopIteration),
    ):
        warnings.simplefilter("error", RuntimeWarning)  # such as NumPy's
        learn(make(), total_timesteps=40, **arguments)
    out = capsys.readouterr().out
    known = ACTIONS, IMAGES, NETWORK, SCHEDULE, STATISTICS
    assert sum(text in out for text in known) == (words is not None)
    assert words is None or words in out
