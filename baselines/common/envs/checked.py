"""Checks of what an environment returns, before anything is learned from it."""

import math

import gymnasium as gym
import numpy as np

from baselines.common.base.errors import UserTypeError, UserValueError, shown


class CheckedEnv(gym.Wrapper):
    """Refuses what would go wrong silently, or is of the interface before Gymnasium.

    The bounds of a Box are not checked, because in many tasks they are not exact.

    Raises:
        UserTypeError: if ``reset`` does not return two values, or ``step`` five.
        UserValueError: for an observation of another shape or type than that of the
            space, and for numbers that are not finite.
    """

    stateless = True  # for checkpoints

    def __init__(self, env):
        super().__init__(env)
        self.space = env.observation_space

    def reset(self, **kwargs):
        result = self.env.reset(**kwargs)
        self.check("reset()", result, ("observation", "info"))
        return result

    def step(self, action):
        result = self.env.step(action)
        parts = "observation", "reward", "terminated", "truncated", "info"
        self.check("step()", result, parts)
        if not math.isfinite(result[1]):
            raise UserValueError(
                f"step() of {self.unwrapped} returned the reward {result[1]}"
            )
        return result

    def check(self, method, result, parts) -> None:
        """Raises a UserError unless a result has all parts and a valid observation."""
        if not (isinstance(result, tuple) and len(result) == len(parts)):
            raise UserTypeError(
                f"{method} of {self.unwrapped} has to return ({', '.join(parts)})"
            )
        obs = result[0]
        is_box = isinstance(self.space, gym.spaces.Box)
        if not (fits_box(obs, self.space) if is_box else self.space.contains(obs)):
            raise UserValueError(
                f"{method} of {self.unwrapped} returned the observation {shown(obs)}, "
                f"expected a finite one of {self.space}"
            )


def fits_box(obs, space) -> bool:
    """Whether an observation has a Box's shape, fits its type and is finite."""
    array = np.asarray(obs)
    if array.shape != space.shape:
        return False
    if space.dtype.kind == "f":
        return array.dtype.kind in "biuf" and bool(np.isfinite(array).all())
    if array.dtype == space.dtype:
        return True
    is_integer = array.dtype.kind in "biu"
    return is_integer and bool((array.astype(space.dtype) == array).all())
