"""Images with white pixels, and a layer that records how they are scaled."""

import keras
import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import Broken

from baselines.common.envs import make_vec_env
from baselines.common.vec_env import DummyVecEnv, VecFrameStack


class Peak(keras.layers.Layer):
    """Records the largest value of its inputs."""

    def build(self, input_shape):
        self.peak = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, inputs):
        self.peak.assign(keras.ops.maximum(self.peak, keras.ops.max(inputs)))
        return inputs


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
    white = np.full((40, 40, 3), 255, np.uint8)
    return DummyVecEnv([lambda: Broken(spaces.Box(0, 255, white.shape, "u1"), white)])


on_white_images = pytest.mark.parametrize(
    "make", [atari_env, image_env], ids=["atari", "image"]
)
