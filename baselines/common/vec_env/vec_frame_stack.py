"""The last few frames of every environment, side by side as channels."""

import numpy as np
from gymnasium import spaces

from baselines.common.vec_env.vec_env import VecEnvWrapper


class VecFrameStack(VecEnvWrapper):
    """Stacks the last ``nstack`` observations along the last axis, newest last.

    After a reset the older frames are zero.

    Args:
        venv: a VecEnv whose observations are a Box.
        nstack: how many frames.
    """

    def __init__(self, venv, nstack):
        self.nstack = nstack
        space = venv.observation_space
        self.stacked_obs = np.zeros(
            (venv.num_envs, *space.shape[:-1], space.shape[-1] * nstack), space.dtype
        )
        super().__init__(
            venv,
            observation_space=spaces.Box(
                np.repeat(space.low, nstack, axis=-1),
                np.repeat(space.high, nstack, axis=-1),
                dtype=space.dtype,
            ),
        )

    def reset(self):
        self.stacked_obs = np.zeros_like(self.stacked_obs)
        self.stacked_obs = push(self.stacked_obs, self.venv.reset())
        return self.stacked_obs.copy()

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        previous = self.stacked_obs
        self.stacked_obs = push(previous, obs)
        for i in np.flatnonzero(dones):
            last = infos[i]["terminal_observation"]
            infos[i]["terminal_observation"] = push(previous[i], last)
            self.stacked_obs[i] = push(np.zeros_like(previous[i]), obs[i])
        return self.stacked_obs.copy(), rewards, dones, infos

    def get_state(self) -> dict:
        return {"venv": self.venv.get_state(), "stack": self.stacked_obs}

    def set_state(self, state) -> None:
        self.venv.set_state(state["venv"])
        self.stacked_obs = state["stack"]


def push(stack, frame):
    """Returns a new stack with ``frame`` behind it and the oldest frame dropped."""
    channels = frame.shape[-1]
    if stack.dtype == np.uint8 and channels == 1 and stack.shape[-1] == 4:
        # Four bytes shifted as one little-endian integer: ten times as fast.
        newest = frame.astype("<u4") << 24
        return (stack.view("<u4") >> 8 | newest).view(np.uint8)
    pushed = np.empty_like(stack)
    pushed[..., :-channels] = stack[..., channels:]
    pushed[..., -channels:] = frame
    return pushed
