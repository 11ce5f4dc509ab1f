"""Masks of valid actions, which are a part of observations.

An environment tells which actions are valid by ``action_mask`` in a Dict observation:
1 or True for each valid action, in the order of the actions (for MultiDiscrete, those
of each component one after another; for MultiBinary, whether each bit may be 1). Models
find it there, whoever acts: in training, evaluations, ``play`` and ``predict``.
"""

import gymnasium as gym
import numpy as np

from baselines.common.base.errors import UserValueError

KEY = "action_mask"


class MaskedObservation(gym.Wrapper):
    """Makes a Dict of ``observation`` and ``action_mask``.

    For environments with the mask in ``info["action_mask"]``, such as Gymnasium's
    Taxi, or with a method ``action_masks()``, as sb3-contrib's MaskablePPO reads it.
    """

    stateless = True  # for checkpoints

    def __init__(self, env: gym.Env):
        super().__init__(env)
        mask = gym.spaces.MultiBinary(gym.spaces.flatdim(env.action_space))
        self.observation_space = gym.spaces.Dict(
            {"observation": env.observation_space, KEY: mask}
        )

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        return self._with_mask(obs, info), info

    def step(self, action):
        obs, *results, info = self.env.step(action)
        return self._with_mask(obs, info), *results, info

    def _with_mask(self, obs, info):
        mask = info.get(KEY)
        if mask is None:
            mask = self.get_wrapper_attr("action_masks")()
        return {"observation": obs, KEY: np.asarray(mask, np.int8).ravel()}


class CheckedMask(gym.Wrapper):
    """Refuses a mask without a valid action, of flattened observations.

    Args:
        env: the environment.
        part: where the mask is in an observation.
    """

    stateless = True  # for checkpoints

    def __init__(self, env, part):
        super().__init__(env)
        self.part = part
        self.steps = 0
        # A bit may always be 0; of other actions, each component needs a valid one.
        space, counts = env.action_space, []
        if isinstance(space, gym.spaces.Discrete):
            counts = [int(space.n)]
        elif isinstance(space, gym.spaces.MultiDiscrete):
            counts = space.nvec.ravel().tolist()
        self.first = np.cumsum([0, *counts])[:-1]

    def reset(self, **kwargs):
        self.steps = 0
        obs, info = self.env.reset(**kwargs)
        self._check(obs)
        return obs, info

    def step(self, action):
        self.steps += 1
        obs, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            self._check(obs)
        return obs, reward, terminated, truncated, info

    def _check(self, obs):
        mask, first = obs[self.part], self.first
        if first.size and not np.maximum.reduceat(mask, first).all():
            raise UserValueError(
                f"{self.unwrapped} has no valid action in its {KEY} after step "
                f"{self.steps} of an episode"
            )
