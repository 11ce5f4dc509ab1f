"""Spaces: which are images, and whether two of them suit each other."""

import gymnasium as gym
import numpy as np

from baselines.common.base.errors import UserValueError


def is_image(space) -> bool:
    """Whether observations are uint8 images [height, width, channels].

    Others, such as a board of a few kinds of pieces, have upper bounds below 128.
    """
    return (
        isinstance(space, gym.spaces.Box)
        and len(space.shape) == 3
        and space.dtype == np.uint8
        and space.high.max() > 127
    )


def has_large_numbers(space) -> bool:
    """Whether bounds of a Box go beyond -127 to 127, as those of bytes and pixels do.

    Unless it ``is_image``, observations are not divided by 255. Bounds of a million and
    more stand for unknown ones.
    """
    if not isinstance(space, gym.spaces.Box):
        return False
    bounds = np.abs(np.float64([space.low, space.high]))
    return bool(((bounds > 127) & (bounds < 1e6)).any())


def has_channels_first(space) -> bool:
    """Whether a Box looks like images with the axes [channels, height, width]."""
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 3:
        return False
    first, second, third = space.shape
    return first <= 16 < third and 2 * first <= min(second, third)


def clip_actions(actions, space) -> np.ndarray:
    """Returns actions [N, ...], clipped to the bounds of a Box and of its dtype."""
    if isinstance(space, gym.spaces.Box):
        clipped = np.clip(actions, space.low, space.high)
        return clipped.astype(space.dtype, copy=False)
    return actions


def describe_space(space) -> str:
    """Returns a description of a space, without most bounds of a Box."""
    if getattr(space, "packed", False):
        inner = {name: describe_space(leaf) for name, (leaf, _) in space.leaves.items()}
        return f"{space.stack} x {inner}" if space.stack > 1 else str(inner)
    if isinstance(space, gym.spaces.Box):
        # Bounds say whether such a Box is an image, and divided by 255.
        bytes_only = len(space.shape) == 3 and space.dtype == np.uint8
        other = ", no image" if bytes_only and not is_image(space) else ""
        return f"Box{space.shape} {space.dtype}{other}"
    return str(space)


def check_spaces(model, env) -> None:
    """Raises UserValueError unless an environment has the spaces of a model.

    The bounds of a Box may differ for observations, but not for actions, which would be
    in another unit then.
    """
    for kind, describe in {"observation": describe_space, "action": str}.items():
        mine, other = (describe(getattr(x, f"{kind}_space")) for x in (model, env))
        if mine != other:
            message = (
                f"the model was trained with the {kind} space {mine}; this environment "
                f"has {other}"
            )
            raise UserValueError(" ".join(message.split()))  # bounds may have lines


def check_observations(obs, space) -> None:
    """Raises UserValueError unless observations are a batch [N, ...] of a space's."""
    if len(obs.shape) != len(space.shape) + 1 or tuple(obs.shape[1:]) != space.shape:
        raise UserValueError(
            "observations have to come as a batch of shape "
            f"({', '.join(['N', *map(str, space.shape)])}), received {tuple(obs.shape)}"
        )
