"""Checks of what an environment returns, before anything is learned from it."""

import reprlib
import traceback

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from baselines.common.base.errors import UserTypeError, UserValueError

STEP_RESULT = "(observation, reward, terminated, truncated, info)"
MAX_REWARD = float(np.finfo(np.float32).max)  # that a VecEnv can return
MAX_TEXT_LENGTH = 150  # of a value or space in a message


class CheckedEnv(gym.Wrapper):
    """Raises if an environment breaks Gymnasium's contract or returns NaN or infinity.

    The bounds of a Box are not checked, because in many tasks they are not exact.

    Raises:
        UserTypeError: for results of the wrong type, an environment without spaces, or
            a ``reset`` that does not accept a seed.
        UserValueError: for observations whose shape or type differs from the space's,
            numbers that are not finite, and spaces that change.
    """

    stateless = True  # for checkpoints

    def __init__(self, env):
        super().__init__(env)
        self.name = env.spec.id if env.spec else type(env.unwrapped).__name__
        self.num_steps = 0
        for kind in ("observation_space", "action_space"):
            space = getattr(env, kind, None)
            if not isinstance(space, gym.Space):
                raise self.error(
                    UserTypeError,
                    f"its {kind} is {describe(space)}, not a gymnasium.Space",
                )
        self.first_spaces = env.observation_space, env.action_space

    def reset(self, **kwargs):
        self.num_steps = 0
        try:
            result = self.env.reset(**kwargs)
        except TypeError as error:
            if "reset() got an unexpected keyword argument" not in str(error):
                raise
            raise self.error(UserTypeError, shorten(str(error))) from error
        if not (isinstance(result, tuple) and len(result) == 2):
            raise self.error(
                UserTypeError,
                f"reset() returned {describe(result)}, expected (observation, info)",
            )
        obs, info = result
        self.check_info("reset", info)
        for before, now in zip(
            self.first_spaces, (self.env.observation_space, self.env.action_space)
        ):
            if not equal_but_for_bounds(before, now):
                raise self.error(
                    UserValueError,
                    f"reset() changed its space from {describe(before)} to "
                    f"{describe(now)}",
                )
        self.check_observation("reset()", self.first_spaces[0], obs)
        return obs, info

    def step(self, action):
        try:
            result = self.env.step(action)
        except ValueError as error:
            if not is_of_old_step(error):
                raise
            raise self.error(
                UserTypeError,
                f"step() did not return five values, {STEP_RESULT}",
            ) from error
        self.num_steps += 1
        if not (isinstance(result, tuple) and len(result) == 5):
            raise self.error(
                UserTypeError,
                f"step() returned {describe(result)}, expected {STEP_RESULT}",
            )
        obs, reward, terminated, truncated, info = result
        self.check_observation("step()", self.first_spaces[0], obs)
        number = to_number(reward)
        if number is None:
            raise self.error(
                UserTypeError,
                f"step() returned the reward {describe(reward)}, expected one number",
            )
        if not abs(number) <= MAX_REWARD:  # Every comparison with NaN is false.
            raise self.error(
                UserValueError,
                f"step() returned the reward {describe(reward)}, expected a finite "
                "float32",
            )
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if to_number(flag) not in (0.0, 1.0):
                raise self.error(
                    UserTypeError,
                    f"step() returned {name} {describe(flag)}, expected true or false",
                )
        self.check_info("step", info)
        return result

    def check_info(self, method, info):
        if not isinstance(info, dict):
            raise self.error(
                UserTypeError,
                f"{method}() returned the info {describe(info)}, expected a dict",
            )

    def check_observation(self, where, space, obs):
        """Raises UserValueError unless ``obs`` fits ``space``, bounds aside."""
        if isinstance(space, spaces.Box):
            fits, parts = fits_box(obs, space), []
        elif isinstance(space, spaces.Dict):
            fits = isinstance(obs, dict) and obs.keys() == space.spaces.keys()
            parts = space.items() if fits else []
        elif isinstance(space, spaces.Tuple):
            fits = isinstance(obs, (tuple, list)) and len(obs) == len(space)
            parts = enumerate(space) if fits else []
        else:
            fits, parts = space.contains(obs), []
        if not fits:
            raise self.error(
                UserValueError,
                f"{where} returned the observation {describe(obs)}, expected a finite "
                f"one of {describe(space)}",
            )
        for key, part in parts:
            self.check_observation(f"{where}, part {key!r},", part, obs[key])

    def error(self, kind, what):
        """Returns an exception of class ``kind`` with the problem and the step."""
        when = f" (step {self.num_steps} of an episode)" if self.num_steps else ""
        return kind(f"environment {self.name} cannot be used: {what}{when}")


def is_of_old_step(error) -> bool:
    """Whether a Gymnasium wrapper, such as TimeLimit, did not get five values."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    in_gymnasium = str(frame.f_globals.get("__name__")).startswith("gymnasium.")
    return in_gymnasium and "values to unpack (expected 5" in str(error)


def to_number(value):
    """Returns a number or boolean as a float, infinite if too large, or else None."""
    if type(value) is float:
        return value
    if isinstance(value, (str, bytes)) or getattr(value, "ndim", 0):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return None


def equal_but_for_bounds(before, now) -> bool:
    """Whether two spaces are the same, apart from the bounds of a Box."""
    if isinstance(before, spaces.Box) and isinstance(now, spaces.Box):
        return (before.shape, before.dtype) == (now.shape, now.dtype)
    return before == now


def fits_box(obs, space) -> bool:
    """Whether an observation has a Box's shape, fits its type and is finite."""
    try:
        array = np.asarray(obs)
    except ValueError:  # rows of different lengths
        return False
    if array.shape != space.shape:
        return False
    if array.dtype != space.dtype:
        if array.dtype.kind not in ("biuf" if space.dtype.kind == "f" else "biu"):
            return False
        with np.errstate(over="ignore"):
            converted = array.astype(space.dtype)
        if space.dtype.kind != "f" and (converted != array).any():
            return False
        array = converted
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def describe(value) -> str:
    """Returns a short description of a value for messages, on one line."""
    if isinstance(value, np.ndarray) and value.ndim:
        text = f"of shape {value.shape} and type {value.dtype}"
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            text += f", with {np.count_nonzero(~np.isfinite(value))} not finite"
        return text
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    is_space = isinstance(value, gym.Space)
    return shorten(str(value) if is_space else reprlib.repr(value))


def shorten(text) -> str:
    """Returns a text on one line, with the middle left out if it is long."""
    text = " ".join(text.split())
    half = MAX_TEXT_LENGTH // 2
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:half]} ... {text[-half:]}"
