"""What is said when a run begins: mistakes that raise no error, but train badly."""

import warnings

import gymnasium as gym
import keras
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import NormalizeObservation, NormalizeReward
from toy_envs import CounterEnv

from baselines import a2c, dqn, logger, sac
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecMonitor,
    VecNormalize,
)


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


def with_position(*shape, dtype=np.uint8):
    env = seeing(shape, dtype=dtype)
    space = spaces.Dict(image=env.observation_space, at=spaces.Box(0, 1, (2,)))
    env.observation_space, env.observation = space, space.sample
    return env


def in_env(wrapper):
    return wrapper(gym.make("CartPole-v1"))


def in_worker(wrapper):
    return VecMonitor(SubprocVecEnv([lambda: in_env(wrapper)], num_workers=1))


def in_vector_env(wrapper):
    mode = AutoresetMode.SAME_STEP
    return SyncVectorEnv([lambda: in_env(wrapper)], autoreset_mode=mode)


def dropping():
    inner = [keras.layers.Dense(4), keras.layers.Dropout(0.5)]
    return keras.Sequential([keras.Sequential(inner), keras.layers.Dense(4)])


def regularized():
    return keras.Sequential([keras.layers.Dense(4, kernel_regularizer="l2")])


ACTIONS = "gymnasium.wrappers.RescaleAction"
CHANNELS = "with the channels first"
NORMALIZED = {"normalize_observations": True}
LARGE = "have bounds beyond -127 to 127"
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
        (lambda: in_env(NormalizeObservation), {}, STATISTICS),
        (lambda: in_worker(NormalizeObservation), {}, STATISTICS),
        (lambda: in_vector_env(NormalizeObservation), {}, STATISTICS),
        (lambda: seeing((128,)), {}, LARGE),
        (lambda: seeing((9,), 255, np.float32), NORMALIZED, None),
        (lambda: seeing((9,), 10), {}, None),
        (lambda: seeing((4, 8, 8, 3)), {}, LARGE),
        (lambda: with_position(48, 48), {}, LARGE),
        (lambda: with_position(8, 8, 3, dtype=np.float32), {}, LARGE),
        (lambda: seeing((4, 48, 48)), {}, CHANNELS),
        (lambda: seeing((4, 84, 84), 1, np.float32), {}, CHANNELS),
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
    known = ACTIONS, CHANNELS, LARGE, NETWORK, SCHEDULE, STATISTICS
    assert sum(text in out for text in known) == (words is not None)
    assert words is None or words in out


def test_a_memory_refuses_rewards_of_changing_unit():
    with pytest.raises(UserValueError):
        dqn.learn(in_worker(NormalizeReward), total_timesteps=40)


def test_evaluations_refuse_observations_that_training_does_not_see():
    envs = in_env(lambda env: env), in_vector_env(NormalizeObservation)
    for env, eval_env in (envs, envs[::-1]):
        with pytest.raises(UserValueError):
            a2c.learn(env, eval_env=eval_env, eval_interval=20, total_timesteps=40)


@pytest.mark.parametrize("space", [(-255, 255, np.float32), (0, 65535, np.uint16)])
def test_images_that_are_not_divided_are_refused(space):
    env = seeing((48, 48, 3))
    low, high, dtype = space
    env.observation_space = spaces.Box(low, high, (48, 48, 3), dtype)
    with pytest.raises(UserTypeError):
        a2c.learn(env, total_timesteps=40)
