"""Gymnasium's contract, checked wherever an environment answers."""

import inspect
import math
import reprlib

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from baselines.common.errors import UserTypeError, UserValueError

STEP_RESULT = "(observation, reward, terminated, truncated, info)"


class CheckedEnv(gym.Wrapper):
    """Refuses what an environment may not return, before anything is trained on it.

    Bounds of a Box are not checked, as many tasks give them loosely.

    Raises:
        UserTypeError: for results of a wrong kind, or an environment without spaces or
            a seed for ``reset``.
        UserValueError: for observations of another shape or type than the space, values
            that are not finite, and spaces that change.
    """

    def __init__(self, env):
        super().__init__(env)
        self.name = env.spec.id if env.spec else type(env.unwrapped).__name__
        self.num_steps = 0
        for kind in ("observation_space", "action_space"):
            space = getattr(env, kind, None)
            if not isinstance(space, gym.Space):
                raise self.broken(f"its {kind} is {space!r}, no gymnasium.Space")
        parameters = inspect.signature(env.unwrapped.reset).parameters.values()
        if not any(p.name == "seed" or p.kind == p.VAR_KEYWORD for p in parameters):
            raise self.broken("reset() does not take a seed")
        self.spaces = env.observation_space, env.action_space

    def reset(self, **kwargs):
        result = self.env.reset(**kwargs)
        self.num_steps = 0
        if not (isinstance(result, tuple) and len(result) == 2):
            raise self.broken(
                f"reset() returned {shown(result)}, expected (observation, info)"
            )
        obs, info = result
        self.check_info("reset", info)
        for before, now in zip(
            self.spaces, (self.env.observation_space, self.env.action_space)
        ):
            if now != before:
                raise self.broken(
                    f"its space was {before} and is {now} after reset()", UserValueError
                )
        self.check_observation("reset", self.spaces[0], obs)
        return obs, info

    def step(self, action):
        result = self.env.step(action)
        self.num_steps += 1
        if not (isinstance(result, tuple) and len(result) == 5):
            raise self.broken(
                f"step() returned {shown(result)}, expected {STEP_RESULT}"
            )
        obs, reward, terminated, truncated, info = result
        self.check_observation("step", self.spaces[0], obs)
        if not is_number(reward):
            raise self.broken(
                f"step() gave the reward {shown(reward)}, expected one number"
            )
        if not math.isfinite(reward):
            raise self.broken(
                f"step() gave the reward {reward}, expected a finite number",
                UserValueError,
            )
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not (is_number(flag) and (flag == 0 or flag == 1)):
                raise self.broken(
                    f"step() gave {name} {shown(flag)}, expected true or false"
                )
        self.check_info("step", info)
        return result

    def check_info(self, method, info):
        if not isinstance(info, dict):
            raise self.broken(
                f"{method}() gave the info {shown(info)}, expected a dict"
            )

    def check_observation(self, method, space, obs):
        """Raises unless ``obs`` can be put into an array of the space."""
        if isinstance(space, spaces.Box):
            fits, parts = fits_box(obs, space), []
        elif isinstance(space, spaces.Dict):
            fits = isinstance(obs, dict) and obs.keys() == space.spaces.keys()
            parts = [(part, obs[key]) for key, part in space.items()] if fits else []
        elif isinstance(space, spaces.Tuple):
            fits = isinstance(obs, tuple) and len(obs) == len(space)
            parts = zip(space, obs) if fits else []
        else:
            fits, parts = space.contains(obs), []
        if not fits:
            raise self.broken(
                f"{method}() gave the observation {shown(obs)}, expected a finite one "
                f"of {space}",
                UserValueError,
            )
        for part, part_obs in parts:
            self.check_observation(method, part, part_obs)

    def broken(self, how, error=UserTypeError):
        when = f" (step {self.num_steps} of an episode)" if self.num_steps else ""
        return error(
            f"environment {self.name} breaks Gymnasium's contract: {how}{when}"
        )


def is_number(value) -> bool:
    """Whether a value is one real number or truth value, not an array with an axis."""
    if isinstance(value, (int, float, np.number, np.bool_)):
        return not isinstance(value, np.complexfloating)
    return (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"
    )


def fits_box(obs, space) -> bool:
    """Whether an observation has a Box's shape, a type near to its, and no NaN."""
    try:
        array = np.asarray(obs)
    except ValueError:  # rows of different lengths
        return False
    if array.shape != space.shape or (
        array.dtype != space.dtype
        and not np.can_cast(array.dtype, space.dtype, "same_kind")
    ):
        return False
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def shown(value) -> str:
    """Returns a short description for messages."""
    if isinstance(value, np.ndarray) and value.ndim:
        text = f"of shape {value.shape} and type {value.dtype}"
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            text += f", with {np.count_nonzero(~np.isfinite(value))} not finite"
        return text
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return " ".join(reprlib.repr(value).split())
