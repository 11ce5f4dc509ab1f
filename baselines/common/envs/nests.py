"""Dicts and Tuples of spaces, each as one array, and how files describe spaces.

An observation or action that is a nest travels as one row of an array, from the
environment to the model, through workers, memories, rollouts and checkpoints. Only
environments, ``predict`` and networks see the nest.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from baselines.common.base.errors import UserTypeError, UserValueError, shown
from baselines.common.envs.masks import KEY, has_choice
from baselines.common.envs.spaces import is_image

NESTS = gym.spaces.Dict, gym.spaces.Tuple
FLAGS = gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary


class Leaf(NamedTuple):
    """A space in a nest that is no nest itself."""

    space: gym.Space
    columns: slice  # where it is in a flattened observation


class FlatBox(gym.spaces.Box):
    """The space of the vectors that a Dict or Tuple is flattened to.

    If one of its parts is an image, such a vector is of bytes: images and other parts
    of bytes, flags and one-hot numbers as they are, all others as float32, four bytes
    each. So they need no more memory than apart.

    Args:
        nest: the Dict or Tuple.
        stack: how many observations, one after another, make one vector.

    Attributes:
        leaves: a ``Leaf`` for each part that is no nest, in the order of the nest, by
            name: ``"arm.joints"`` is in a Dict in a Dict, ``"0"`` in a Tuple.
        parts: where each part of the nest is in a vector, slices by name (by number, of
            a Tuple); in the newest observation of a stack.
        packed: whether vectors are of bytes.
        size: the length of one observation.
    """

    def __init__(self, nest, stack=1):
        self.nest, self.stack = nest, stack
        self.packed = has_image(nest)
        self.leaves, parts, start = {}, {}, 0
        for path, space in leaves_of(nest):
            four = self.packed and not is_byte(space)
            stop = start + gym.spaces.flatdim(space) * (4 if four else 1)
            self.leaves[".".join(path)] = Leaf(space, slice(start, stop))
            parts[path[0]] = parts.get(path[0], (start,))[0], stop
            start = stop
        self.size, newest = start, (stack - 1) * start
        self.parts = {
            name: slice(newest + a, newest + b) for name, (a, b) in parts.items()
        }
        if self.packed:
            super().__init__(0, 255, (stack * start,), np.uint8)
        else:
            flat = gym.spaces.flatten_space(nest)
            low, high = np.tile(flat.low, stack), np.tile(flat.high, stack)
            super().__init__(low, high, dtype=flat.dtype)

    def flatten(self, obs) -> np.ndarray:
        """Returns one observation as a vector.

        Raises:
            UserValueError: for a part among images of another size or type than that of
                its space, or that is not finite.
        """
        if not self.packed:
            return gym.spaces.flatten(self.nest, obs)
        columns = []
        for (name, leaf), value in zip(self.leaves.items(), values_of(self.nest, obs)):
            flat = gym.spaces.flatten(leaf.space, value)
            whole = np.asarray(value).dtype.kind in "biu"
            fits = whole if is_byte(leaf.space) else np.isfinite(flat).all()
            if not fits or flat.size != gym.spaces.flatdim(leaf.space):
                raise UserValueError(
                    f"the part {name} of an observation has to be a finite one of "
                    f"{leaf.space}, received {shown(value)}"
                )
            if not is_byte(leaf.space):
                flat = flat.astype(np.float32).view(np.uint8)
            columns.append(flat)
        return np.concatenate(columns, dtype=np.uint8, casting="unsafe")

    def unflatten(self, vector) -> Any:
        """Returns the nest of a vector that is not of bytes."""
        return gym.spaces.unflatten(self.nest, vector)

    def numbers(self, obs) -> np.ndarray:
        """Returns the parts that are not bytes, [..., D], of vectors of bytes."""
        frames = np.reshape(obs, (*np.shape(obs)[:-1], self.stack, self.size))
        columns = [
            np.ascontiguousarray(frames[..., leaf.columns]).view(np.float32)
            for leaf in self.leaves.values()
            if not is_byte(leaf.space)
        ]
        columns = [x.reshape(*x.shape[:-2], -1) for x in columns]
        return np.concatenate(columns, axis=-1)


class MixedActions(gym.Space):
    """The space of the vectors that stand for actions of a Dict or Tuple.

    A part takes as many columns, of float32, as its actions have numbers: one for
    Discrete.

    Args:
        nest: the Dict or Tuple, of Discrete, MultiDiscrete, MultiBinary and Box spaces.

    Attributes:
        leaves: a ``Leaf`` for each part that is no nest, see ``FlatBox``.
    """

    def __init__(self, nest):
        self.nest, self.leaves, start = nest, {}, 0
        for path, space in leaves_of(nest):
            stop = start + int(np.prod(space.shape))
            self.leaves[".".join(path)] = Leaf(space, slice(start, stop))
            start = stop
        super().__init__((start,), np.float32)

    def unflatten(self, vector) -> Any:
        """Returns the action of a vector, clipped to the bounds of Boxes."""
        values = []
        for space, columns in self.leaves.values():
            value = np.reshape(vector[columns], space.shape)
            if isinstance(space, gym.spaces.Box):
                value = np.clip(value, space.low, space.high)
            values.append(value.astype(space.dtype)[()])
        return assemble(self.nest, iter(values))

    def contains(self, x) -> bool:
        return self.nest.contains(self.unflatten(x))

    def __eq__(self, other):
        return isinstance(other, MixedActions) and self.nest == other.nest

    def __repr__(self):
        return repr(self.nest)


class FlatEnv(gym.Wrapper):
    """Flattens observations of Dicts and Tuples; takes their actions as vectors.

    Raises:
        UserValueError: for an ``action_mask`` without a valid action.
    """

    stateless = True  # for checkpoints

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = flat_observations(env.observation_space)
        self.action_space = flat_actions(env.action_space)
        self._mask = getattr(self.observation_space, "parts", {}).get(KEY)
        self._steps = 0

    def reset(self, **kwargs):
        self._steps = 0
        obs, info = self.env.reset(**kwargs)
        return self._flatten(obs), info

    def step(self, action):
        self._steps += 1
        action = unflatten(self.action_space, action)
        obs, *results, info = self.env.step(action)
        return self._flatten(obs, any(results[1:])), *results, info

    def _flatten(self, obs, ended=False):
        """Returns observations flattened; a mask may be empty only at an end."""
        obs = flatten(self.observation_space, obs)
        if self._mask and not (ended or has_choice(obs[self._mask], self.action_space)):
            raise UserValueError(
                f"{self.unwrapped} has no valid action in its {KEY} after step "
                f"{self._steps} of an episode"
            )
        return obs


def flatten_env(env) -> gym.Env:
    """Returns ``env``, with nests as vectors, and its mask of actions checked."""
    both = env.observation_space, env.action_space
    return FlatEnv(env) if any(isinstance(space, NESTS) for space in both) else env


def flat_observations(space, stack=1) -> gym.Space:
    """Returns the space of observations as models get them."""
    flattens = isinstance(space, NESTS) and space.is_np_flattenable
    return FlatBox(space, stack) if flattens else space


def flat_actions(space) -> gym.Space:
    """Returns the space of actions as models choose them.

    Raises:
        UserTypeError: if a part of a nest is neither a Box of floats nor has a fixed
            number of choices.
    """
    if not isinstance(space, NESTS):
        return space
    leaves = [leaf for _, leaf in leaves_of(space)]
    if all(is_float_box(leaf) for leaf in leaves):
        return FlatBox(space)
    if all(is_float_box(leaf) or isinstance(leaf, FLAGS) for leaf in leaves):
        return MixedActions(space)
    raise UserTypeError(f"a part of the action space {space} is not supported")


def flatten(space, obs) -> Any:
    """Returns an observation as models get it; ``space`` as ``flat_observations``."""
    return space.flatten(obs) if isinstance(space, FlatBox) else obs


def unflatten(space, action) -> Any:
    """Returns an action as environments take it; ``space`` as ``flat_actions``."""
    return space.unflatten(action) if hasattr(space, "unflatten") else action


def leaves_of(space, path=()):
    """Yields (path, space) for each part of a nest that is no nest itself."""
    if not isinstance(space, NESTS):
        yield path, space
        return
    for name, part in parts_of(space):
        yield from leaves_of(part, (*path, str(name)))


def values_of(space, value):
    """Yields the value of each part of a nest, in the order of ``leaves_of``."""
    if not isinstance(space, NESTS):
        yield value
        return
    for name, part in parts_of(space):
        yield from values_of(part, value[name])


def assemble(space, values):
    """Returns the nest whose parts an iterator has, in the order of ``leaves_of``."""
    if not isinstance(space, NESTS):
        return next(values)
    parts = {name: assemble(part, values) for name, part in parts_of(space)}
    return parts if isinstance(space, gym.spaces.Dict) else tuple(parts.values())


def parts_of(nest):
    """Returns (name, space) of each part of a Dict, or (number, space) of a Tuple."""
    return nest.items() if isinstance(nest, gym.spaces.Dict) else enumerate(nest)


def has_image(space) -> bool:
    """Whether a space is one of images, or a Dict or Tuple with such a part."""
    return any(is_image(leaf) for _, leaf in leaves_of(space))


def network_for(space) -> str | None:
    """Returns the name of the network that suits images in a space; None for none."""
    if is_image(space):
        return "cnn"
    return "multi" if has_image(getattr(space, "nest", space)) else None


def is_byte(space) -> bool:
    """Whether each number of a flattened value fits in a byte, 0 to 255."""
    if not isinstance(space, gym.spaces.Box):
        return isinstance(space, FLAGS)  # one-hot, or 0 and 1
    whole = space.dtype.kind in "biu"
    return bool(whole and (space.low >= 0).all() and (space.high <= 255).all())


def is_float_box(space) -> bool:
    return isinstance(space, gym.spaces.Box) and space.dtype.kind == "f"


def find_mask(observation_space, action_space) -> slice | None:
    """Returns where a mask of actions is in flattened observations; None if nowhere.

    Raises:
        UserTypeError: if actions are a Tuple or Dict, for which there are no masks.
        UserValueError: if it has not a number for each action.
    """
    part = getattr(observation_space, "parts", {}).get(KEY)
    if part is None or isinstance(action_space, gym.spaces.Box):
        return None
    if isinstance(action_space, MixedActions):
        raise UserTypeError(f"no {KEY} is supported for actions {action_space}")
    size, actions = part.stop - part.start, gym.spaces.flatdim(action_space)
    if size != actions:
        raise UserValueError(
            f"the {KEY} has {size} numbers, but there are {actions} actions "
            f"({action_space})"
        )
    return part


def space_to_json(space) -> dict:
    """Returns a space as JSON values.

    Args:
        space: a Box, Discrete, MultiDiscrete or MultiBinary, a nest of them, or what
            ``flat_observations`` or ``flat_actions`` made of one.

    Raises:
        UserTypeError: for any other.
    """
    if getattr(space, "stack", 1) > 1:
        return space_to_json(space.nest) | {"stack": space.stack}
    space = getattr(space, "nest", space)
    known = *NESTS, *FLAGS, gym.spaces.Box
    kind = next((x.__name__ for x in known if isinstance(space, x)), None)
    if kind is None:
        raise UserTypeError(f"models cannot have a space {space}")
    if isinstance(space, gym.spaces.Dict):
        inner = {name: space_to_json(part) for name, part in space.items()}
        return {"kind": kind, "spaces": inner}
    if isinstance(space, gym.spaces.Tuple):
        return {"kind": kind, "spaces": [space_to_json(part) for part in space]}
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
    """Returns the space that ``space_to_json`` was given, or the nest of it."""
    arguments = dict(values)
    kind = arguments.pop("kind")
    if kind == "Dict":
        inner = arguments["spaces"].items()
        return gym.spaces.Dict([(name, space_from_json(x)) for name, x in inner])
    if kind == "Tuple":
        return gym.spaces.Tuple(map(space_from_json, arguments["spaces"]))
    if kind == "Box":
        shape, dtype = tuple(arguments["shape"]), arguments["dtype"]
        for bound in ("low", "high"):
            array = np.asarray(arguments[bound], dtype)
            arguments[bound] = np.broadcast_to(array, shape)
        arguments["shape"] = shape
    return getattr(gym.spaces, kind)(**arguments)
