"""The last few frames of every environment, stacked as channels."""

import numpy as np
from gymnasium import spaces

from baselines.common.envs.nests import FlatBox
from baselines.common.vec_env.vec_env import VecEnv, VecEnvWrapper, venvs_of


class VecFrameStack(VecEnvWrapper):
    """Stacks the last ``nstack`` observations along the last axis, newest last.

    After a reset the older frames are zero.

    Args:
        venv: a VecEnv whose observations are a Box. Of a Dict or Tuple, each image is
            stacked by itself, and vectors are.
        nstack: how many frames.
    """

    def __init__(self, venv: VecEnv, nstack: int):
        space = venv.observation_space
        if isinstance(space, FlatBox):
            stacked = FlatBox(space.nest, nstack * space.stack)
        else:
            low = np.concatenate([space.low] * nstack, axis=-1)
            high = np.concatenate([space.high] * nstack, axis=-1)
            stacked = spaces.Box(low, high, dtype=space.dtype)
        super().__init__(venv, stacked)
        self.nstack = nstack
        self.stacked_obs = np.zeros((self.num_envs, *stacked.shape), space.dtype)

    def reset(self):
        self.stacked_obs[:] = 0
        push(self.stacked_obs, self.venv.reset())
        return self.stacked_obs.copy()

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        for i in np.flatnonzero(dones):
            terminal_obs = self.stacked_obs[i].copy()
            push(terminal_obs, infos[i]["terminal_observation"])
            infos[i]["terminal_observation"] = terminal_obs
            self.stacked_obs[i] = 0
        push(self.stacked_obs, obs)
        return self.stacked_obs.copy(), rewards, dones, infos

    def get_state(self) -> dict:
        return {"venv": self.venv.get_state(), "stack": self.stacked_obs.copy()}

    def set_state(self, state) -> None:
        self.venv.set_state(state["venv"])
        self.stacked_obs[:] = state["stack"]


def count_stacked(env) -> int:
    """Returns how many frames a VecFrameStack has stacked in observations.

    1 if there is no VecFrameStack, or a wrapper above it may change its observations.
    """
    for venv in venvs_of(env):
        if isinstance(venv, VecFrameStack):
            return venv.nstack
        if not getattr(venv, "keeps_observations", False):
            break
    return 1


def push(stack, frame) -> None:
    """Drops the oldest frame of ``stack`` and adds ``frame``, in place."""
    channels = frame.shape[-1]
    if stack.dtype == np.uint8 and channels == 1 and stack.shape[-1] == 4:
        # Shifting four bytes as one little-endian integer is ten times as fast.
        words = stack.view("<u4")
        words >>= 8
    else:
        stack[..., :-channels] = stack[..., channels:]
    stack[..., -channels:] = frame


def stack_frames(frames):
    """Returns arrays [..., C] of one shape, concatenated along the last axis."""
    single_bytes = frames[0].dtype == np.uint8 and frames[0].shape[-1] == 1
    if not single_bytes or len(frames) > 128:  # OpenCV's limit
        return np.concatenate(frames, axis=-1)
    import cv2  # Only here, because workers do not need it.

    # For single bytes, this takes a ninth of the time of np.concatenate.
    merged = cv2.merge([frame.reshape(1, -1) for frame in frames])
    return merged.reshape(*frames[0].shape[:-1], len(frames))
