"""The interface of vectorised environments, and the base class of its wrappers."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike

from baselines.common.base.errors import DivergedError, UserTypeError, UserValueError
from baselines.common.envs.masks import KEY
from baselines.common.envs.recorder import has_wrapper

Indices = int | Iterable[int] | None  # of environments; None for all
# Observations, rewards, dones and infos, as ``step_wait`` returns them.
Step = tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]


class VecEnv(ABC):
    """``num_envs`` environments that step together and reset themselves.

    When an episode ends, the observation returned is the first of the next
    episode, and ``infos[i]`` holds ``terminal_observation``, the last of the
    episode that ended, and ``TimeLimit.truncated``, whether a limit cut it short.
    Returned arrays belong to the caller; no later step changes them.

    Attributes:
        num_envs: how many environments there are (N).
        observation_space: Gymnasium space of one environment.
        action_space: Gymnasium space of one environment.
        warn: function of a text that the user should know, such as that a worker was
            replaced. It prints to stderr; a run puts its log in its place.
    """

    warn = staticmethod(lambda text: print(f"warning: {text}", file=sys.stderr))

    # A VecEnv that can be resumed has get_state(), which returns a nest of arrays
    # and JSON values, and set_state(state), which restores it without a reset.
    # The state of a wrapper includes that of the VecEnv inside it.
    get_state = None

    def __init__(
        self, num_envs: int, observation_space: spaces.Space, action_space: spaces.Space
    ):
        self.num_envs = num_envs
        self.observation_space = observation_space
        self.action_space = action_space

    @abstractmethod
    def reset(self) -> np.ndarray:
        """Starts an episode in each environment; returns observations [N, *shape]."""

    @abstractmethod
    def step_async(self, actions: ArrayLike) -> None:
        """Sends actions [N, *shape] without waiting for the results."""

    @abstractmethod
    def step_wait(self) -> Step:
        """Waits for the step that was sent.

        Returns:
            obs [N, *shape], rewards [N] float32, dones [N] bool, and infos, a
            list of N dicts.
        """

    @abstractmethod
    def close(self) -> None:
        """Frees all resources; closing twice is allowed."""

    @abstractmethod
    def get_images(self) -> list:
        """Returns an RGB frame [height, width, 3] of every environment.

        Each is None if environments were not made to return images.
        """

    def step(self, actions: ArrayLike) -> Step:
        """Steps every environment once; see ``step_wait`` for what it returns."""
        self.step_async(actions)
        return self.step_wait()

    def render(self) -> np.ndarray:
        """Returns the frames of all environments tiled into one image.

        Raises:
            UserValueError: if the environments return no images.
        """
        return tile_images(self.get_images())

    def for_each(self, fn: Callable[[gym.Env], Any], indices: Indices = None) -> list:
        """Returns ``fn(env)`` of environments, called in the process that runs them.

        Raises:
            UserTypeError: if this VecEnv has no access to single environments.
        """
        raise UserTypeError(f"{type(self).__name__} has no access to its environments")

    def env_method(self, name: str, *args, indices: Indices = None, **kwargs) -> list:
        """Returns what a method of each environment, or of its wrappers, returns."""
        return self.for_each(
            lambda env: env.get_wrapper_attr(name)(*args, **kwargs), indices
        )

    def get_attr(self, name: str, indices: Indices = None) -> list:
        """Returns an attribute of each environment, or of its wrappers."""
        return self.env_method("get_wrapper_attr", name, indices=indices)

    def set_attr(self, name: str, value: Any, indices: Indices = None) -> None:
        """Sets an attribute of each environment, or of the wrapper that has it."""
        self.env_method("set_wrapper_attr", name, value, indices=indices)

    def env_is_wrapped(self, kind: type, indices: Indices = None) -> list[bool]:
        """Returns whether each environment has a Gymnasium wrapper of that class."""
        return self.for_each(lambda env: has_wrapper(env, kind), indices)

    @property
    def unwrapped(self) -> "VecEnv":
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()


class VecEnvWrapper(VecEnv):
    """A VecEnv around another; unknown public attributes are the inner one's."""

    keeps_observations = False  # whether it never changes the inner observations

    def __init__(
        self,
        venv: VecEnv,
        observation_space: spaces.Space | None = None,
        action_space: spaces.Space | None = None,
    ):
        self.venv = venv
        inner = venv.observation_space
        observation_space = observation_space or inner
        fixed = KEY in getattr(inner, "parts", {}) or getattr(inner, "packed", False)
        if fixed and not hasattr(observation_space, "parts"):
            raise UserTypeError(
                f"{type(self).__name__} changes observations as if they were numbers, "
                f"but they are images and vectors, or have an {KEY}: "
                f"{list(inner.parts)}"
            )
        action_space = action_space or venv.action_space
        super().__init__(venv.num_envs, observation_space, action_space)

    def reset(self) -> np.ndarray:
        return self.venv.reset()

    def step_async(self, actions: ArrayLike) -> None:
        self.venv.step_async(actions)

    def step_wait(self) -> Step:
        return self.venv.step_wait()

    def close(self) -> None:
        self.venv.close()

    def get_images(self) -> list:
        return self.venv.get_images()

    def for_each(self, fn: Callable[[gym.Env], Any], indices: Indices = None) -> list:
        return self.venv.for_each(fn, indices)

    def env_method(self, name: str, *args, indices: Indices = None, **kwargs) -> list:
        return self.venv.env_method(name, *args, indices=indices, **kwargs)

    @property
    def unwrapped(self) -> VecEnv:
        return self.venv.unwrapped

    def __getattr__(self, name):
        if name.startswith("_") or name == "venv":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.venv, name)


def venvs_of(env):
    """Yields a VecEnv and those that it wraps, outermost first."""
    while isinstance(env, VecEnvWrapper):
        yield env
        env = env.venv
    yield env


def is_resumable(env) -> bool:
    """Whether a VecEnv, ours or one with the same interface, can return its state."""
    venvs = list(venvs_of(env))
    have_states = all(getattr(venv, "get_state", None) for venv in venvs)
    return have_states and getattr(venvs[-1], "resumable", True)


def list_indices(indices: Indices, num_envs: int) -> list[int]:
    """Returns the numbers of the environments that ``indices`` stands for."""
    numbers = np.arange(num_envs)
    return np.atleast_1d(numbers if indices is None else numbers[indices]).tolist()


def check_equal_spaces(spaces) -> None:
    """Raises unless all (observation, action) spaces are equal and hold arrays.

    Raises:
        UserTypeError: for observations that are dicts or tuples.
        UserValueError: for spaces that differ.
    """
    if spaces[0][0].shape is None:
        raise UserTypeError(
            "observations have to be arrays, or Dicts and Tuples of them, received the "
            f"space {spaces[0][0]}; gymnasium.wrappers.TransformObservation can pick a "
            "part"
        )
    for i, pair in enumerate(spaces):
        if pair != spaces[0]:
            raise UserValueError(
                "all environments need the same spaces: environment 0 has "
                f"{spaces[0][0]} and {spaces[0][1]}, environment {i} has {pair[0]} "
                f"and {pair[1]}"
            )


def check_actions(actions, num_envs) -> np.ndarray:
    """Returns actions [N, *shape] as an array.

    Raises:
        UserValueError: unless there is one for each environment.
        DivergedError: if one is NaN, which an environment would be blamed for.
    """
    actions = np.asarray(actions)
    if len(np.atleast_1d(actions)) != num_envs:
        raise UserValueError(f"{num_envs} environments need as many actions: {actions}")
    if actions.dtype.kind == "f" and np.isnan(actions).any():
        raise DivergedError(
            "an action is NaN: if a model chose it, training has diverged, and a "
            "smaller learning rate may help"
        )
    return actions


def tile_images(images) -> np.ndarray:
    """Returns N images [height, width, 3] as one, in a near-square grid.

    Raises:
        UserValueError: if one of them is None.
    """
    if any(image is None for image in images):
        raise UserValueError(
            'the environments return no images; make them with render_mode="rgb_array" '
            '(make_vec_env(..., env_kwargs={"render_mode": "rgb_array"}))'
        )
    images = np.asarray(images)
    count, height, width, channels = images.shape
    rows = int(np.ceil(np.sqrt(count)))
    columns = int(np.ceil(count / rows))
    grid = np.zeros((rows * columns, height, width, channels), images.dtype)
    grid[:count] = images
    grid = grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)
