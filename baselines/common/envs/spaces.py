"""Observation spaces: images, and what is flattened to a vector."""

import gymnasium as gym
import numpy as np

from baselines.common.errors import UserTypeError


def flatten_observations(env) -> gym.Env:
    """Returns ``env`` with Dict and Tuple observations as one vector, else as it is.

    Raises:
        UserTypeError: if an image is among the parts, as a network for vectors would
            learn little from it.
    """
    space = env.observation_space
    if not isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        return env
    if any(is_image(part) for part in parts_of(space)):
        raise UserTypeError(
            "Dict and Tuple observations are flattened to a vector, but one of these "
            f"parts is an image: {space}; use a wrapper that returns the image alone, "
            "or leaves it out"
        )
    return gym.wrappers.FlattenObservation(env)


def parts_of(space):
    """Yields the simple spaces that a Dict or Tuple space is made of."""
    if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        children = space.values() if isinstance(space, gym.spaces.Dict) else space
        for child in children:
            yield from parts_of(child)
    else:
        yield space


def is_image(space) -> bool:
    """Whether observations are uint8 images [height, width, channels]."""
    return (
        isinstance(space, gym.spaces.Box)
        and len(space.shape) == 3
        and space.dtype == np.uint8
    )


def is_image_of_floats(space) -> bool:
    """Whether observations are float images [height, width, channels] up to 255."""
    return (
        isinstance(space, gym.spaces.Box)
        and len(space.shape) == 3
        and np.issubdtype(space.dtype, np.floating)
        and bool((space.low == 0).all() and (space.high == 255).all())
    )


class ClipActions(gym.ActionWrapper):
    """Clips the actions of a Box to its bounds."""

    def action(self, action):
        return np.clip(action, self.action_space.low, self.action_space.high)
