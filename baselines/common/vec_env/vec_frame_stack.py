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
    """Returns how many frames a VecFrameStack has put side by side in observations.

    1 if there is none, or something above it that may change what it shows.
    """
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecFrameStack):
            return env.nstack
        if not env.keeps_observations:
            return 1
        env = env.venv
    return 1


def push(stack, frame) -> None:
    """Moves ``stack`` up in place: its oldest frame goes, ``frame`` is the newest."""
    channels = frame.shape[-1]
    if stack.dtype == np.uint8 and channels == 1 and stack.shape[-1] == 4:
        # Four bytes shifted as one little-endian integer: ten times as fast.
        words = stack.view("<u4")
        words >>= 8
    else:
        stack[..., :-channels] = stack[..., channels:]
    stack[..., -channels:] = frame
