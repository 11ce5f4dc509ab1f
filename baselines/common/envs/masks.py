"""Masks of valid actions, which are a part of observations.

An environment tells which actions are valid by ``action_mask`` in a Dict observation:
1 or True for each valid action, in the order of the actions (for MultiDiscrete, those
of each component one after another; for MultiBinary, whether each bit may be 1). Models
find it there, whoever acts: in training, evaluations, ``play`` and ``predict``.
"""

import gymnasium as gym
import numpy as np

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


def has_choice(mask, space) -> bool:
    """Returns whether a mask has a valid action; for MultiDiscrete, in each component.

    Bits of MultiBinary may always be 0.
    """
    if isinstance(space, gym.spaces.MultiDiscrete):
        first = np.cumsum([0, *space.nvec.ravel().tolist()])[:-1]
        return bool(np.maximum.reduceat(mask, first).all())
    return not isinstance(space, gym.spaces.Discrete) or bool(mask.any())
