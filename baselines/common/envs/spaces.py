"""Spaces: which are images, which are flattened, and how files describe them."""

import gymnasium as gym
import numpy as np

from baselines.common.base.errors import UserTypeError, UserValueError


def flatten_observations(env) -> gym.Env:
    """Returns ``env``, with Dict and Tuple observations flattened to a vector.

    Raises:
        UserTypeError: if one of the parts is an image, from which a network for
            vectors would learn little.
    """
    space = env.observation_space
    if not isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)):
        return env
    if has_image(space):
        raise UserTypeError(
            "Dict and Tuple observations are flattened to a vector, but one of these "
            f"parts is an image: {space}; use a wrapper that returns the image alone, "
            "or leaves it out"
        )
    return gym.wrappers.FlattenObservation(env)


def has_image(space) -> bool:
    """Whether a space is one of images, or a Dict or Tuple with such a part."""
    if isinstance(space, gym.spaces.Dict):
        return any(map(has_image, space.values()))
    if isinstance(space, gym.spaces.Tuple):
        return any(map(has_image, space))
    return is_image(space)


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


def looks_like_pixels(space) -> bool:
    """Whether all numbers of a Box go from 0 to 255, so that it may show an image.

    Unless it ``is_image`` too, observations are not divided by 255.
    """
    return isinstance(space, gym.spaces.Box) and bool(
        (space.low == 0).all() and (space.high == 255).all()
    )


def has_channels_first(space) -> bool:
    """Whether an image looks like one with the axes [channels, height, width]."""
    first, second, third = space.shape
    return first <= 16 < min(second, third) and third > 32


class ClipActions(gym.ActionWrapper):
    """Clips the actions of a Box to its bounds."""

    def action(self, action):
        return clip_actions(action, self.action_space)


def clip_actions(actions, space) -> np.ndarray:
    """Returns actions [N, ...], clipped to the bounds of a Box and of its dtype."""
    if isinstance(space, gym.spaces.Box):
        clipped = np.clip(actions, space.low, space.high)
        return clipped.astype(space.dtype, copy=False)
    return actions


def describe_space(space) -> str:
    """Returns a description of a space, without most bounds of a Box."""
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


def space_to_json(space) -> dict:
    """Returns a Box, Discrete, MultiDiscrete or MultiBinary space as JSON values."""
    kind = type(space).__name__
    if isinstance(space, gym.spaces.Discrete):
        values = {"kind": kind, "n": int(space.n), "start": int(space.start)}
        # Early versions of Gymnasium have no other type.
        is_default = space.dtype == np.int64
        return values if is_default else values | {"dtype": str(space.dtype)}
    if isinstance(space, gym.spaces.MultiDiscrete):
        nvec, start = space.nvec.tolist(), space.start.tolist()
        return {"kind": kind, "nvec": nvec, "start": start, "dtype": str(space.dtype)}
    if isinstance(space, gym.spaces.MultiBinary):
        n = space.n if isinstance(space.n, int) else list(space.n)
        return {"kind": kind, "n": n}
    shape, dtype = list(space.shape), str(space.dtype)
    low, high = map(bound_to_json, (space.low, space.high))
    return {"kind": kind, "shape": shape, "dtype": dtype, "low": low, "high": high}


def bound_to_json(bound):
    """Returns one number if all are equal, as an image has as many as pixels."""
    is_one = bound.size and (bound == bound.flat[0]).all()
    return bound.flat[0].item() if is_one else bound.tolist()


def space_from_json(values) -> gym.Space:
    """Returns the space that ``space_to_json`` was given."""
    arguments = dict(values)
    kind = arguments.pop("kind")
    if kind == "Box":
        shape, dtype = tuple(arguments["shape"]), arguments["dtype"]
        for bound in ("low", "high"):
            array = np.asarray(arguments[bound], dtype)
            arguments[bound] = np.broadcast_to(array, shape)
        arguments["shape"] = shape
    return getattr(gym.spaces, kind)(**arguments)
