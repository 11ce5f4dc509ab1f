"""Images with white pixels, and a layer that records how they are scaled."""

import gymnasium as gym
import keras
import numpy as np
import pytest
from gymnasium import spaces

from baselines.common.envs import make_vec_env
from baselines.common.vec_env import DummyVecEnv, VecFrameStack


class Peak(keras.layers.Layer):
    """Records the largest value of its inputs."""

    def build(self, input_shape):
        self.peak = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, inputs):
        self.peak.assign(keras.ops.maximum(self.peak, keras.ops.max(inputs)))
        return inputs


def white_image_env():
    class WhiteImages(gym.Env):
        observation_space = spaces.Box(0, 255, (40, 40, 3), np.uint8)
        action_space = spaces.Discrete(4)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.full((40, 40, 3), 255, np.uint8), {}

        def step(self, action):
            return np.full((40, 40, 3), 255, np.uint8), 0.0, False, False, {}

    return WhiteImages()


def atari_env():
    env = VecFrameStack(make_vec_env("PongNoFrameskip-v4", seed=0), 4)
    bright = env.step_wait

    def step_wait():
        obs, *rest = bright()
        obs[:, 0, 0] = 255  # The game itself has no white there.
        return obs, *rest

    env.step_wait = step_wait
    return env


def image_env():
    return DummyVecEnv([white_image_env])


on_white_images = pytest.mark.parametrize(
    "make", [atari_env, image_env], ids=["atari", "image"]
)
