"""The base of every model: named layers that are saved and loaded together."""

import os
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces
from keras import ops
from numpy.typing import ArrayLike

from baselines.common import backend
from baselines.common.arguments.parts import Builder
from baselines.common.arguments.types import NETWORK
from baselines.common.base import mpi
from baselines.common.base.errors import (
    DivergedError,
    UserError,
    UserTypeError,
    UserValueError,
    first_line,
)
from baselines.common.envs.nests import FlatBox, find_mask, is_byte, space_to_json
from baselines.common.envs.spaces import (
    check_observations,
    clip_actions,
    describe_space,
    has_large_numbers,
    is_image,
)
from baselines.common.networks.layers import call_in_halves
from baselines.common.saving.models import load_model, save_model
from baselines.common.saving.states import check_like

State = ArrayLike | None
INVALID = -1e30  # a logit whose probability is exactly 0, as is its gradient


class Model:
    """Named Keras layers, in ``parts``, and a random generator for acting.

    Args:
        observation_space, action_space: of the environment.
        seed: of the generator.
        algorithm: name of the module that trains it; saved with the model.

    Attributes:
        arguments: those of the ``learn()`` that trains it, as JSON; saved with it.
        num_timesteps: agent steps that it was trained for; saved with it.
        initial_state: of a recurrent network, zeros [1, S], for any number of
            environments; None of others.
    """

    format = 4  # of its files; a class has a higher one once its own have changed
    observation_space: Any
    action_space: Any
    initial_state = None

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        seed: int | None,
        algorithm: str | None,
    ):
        self.observation_space = observation_space
        self.action_space = action_space
        self.algorithm = algorithm
        # A stream of its own: the environment is given the same seed.
        self.rng = np.random.default_rng(None if seed is None else [seed, 2])
        self.scale = make_scaling(observation_space)
        self.mask = find_mask(observation_space, action_space)
        for space in observation_space, action_space:
            space_to_json(space)  # raises an error now if it cannot be saved later
        self.parts = {}
        self.arguments = None
        self.num_timesteps = 0

    def make_variables(self, network: Any, call: Callable) -> Any:
        """Creates the variables of all parts; returns what ``call`` returns.

        Args:
            network: name of the network, for the message.
            call: function that calls all parts on observations [1, *observation shape].

        Raises:
            UserValueError: if the network cannot take such observations.
        """
        space = self.observation_space
        try:
            return call(np.zeros((1, *space.shape), space.dtype))
        except UserError:
            raise
        except Exception as error:
            hint = ""
            if getattr(space, "packed", False):
                hint = (
                    f", the parts {list(space.leaves)}; network='multi' takes a dict "
                    "of them, and image_network='impala_cnn' images of any size"
                )
            elif len(space.shape) == 3:
                hint = (
                    "; networks take [height, width, channels] (see "
                    "gymnasium.wrappers.TransformObservation), and impala_cnn images "
                    "of any size"
                )
            raise UserValueError(
                f"the network {network!r} cannot take observations of shape "
                f"{space.shape}{hint} ({first_line(error)})"
            ) from error

    def masked(self, values: Any, obs: Any) -> Any:
        """Returns logits or values [B, A], with ``INVALID`` for actions that are not.

        Args:
            values: [B, A], one for each action.
            obs: raw observations [B, *observation shape], whose ``action_mask`` says
                which actions are valid; without one, all are.
        """
        if self.mask is None:
            return values
        return ops.where(obs[:, self.mask] > 0, values, INVALID)

    def inputs(self, obs: Any) -> Any:
        """Returns what networks take of raw observations: scaled, maybe normalised.

        Args:
            obs: [B, *observation shape].
        """
        obs = self.scale(obs)
        return self.parts["normalizer"](obs) if "normalizer" in self.parts else obs

    def features(self, inputs: Any, network: str = "network", **modes) -> Any:
        """Returns the features [B, F] that a network makes of inputs [B, ...].

        Args:
            inputs: as ``inputs`` returns them.
            network: name of the part.
            modes: ``training=True`` for layers that tell it from acting.

        Raises:
            UserValueError: if it returns anything else.
        """
        features = call_in_halves(self.parts[network], inputs, **modes)
        if len(features.shape) != 2:
            raise UserValueError(
                "the network has to return features [B, F], a vector for each "
                f"observation, returned {list(features.shape)}; flatten them"
            )
        return features

    def compile(self, fn: Callable) -> Callable:
        """Returns a function that acts, with this model's networks, as one call."""
        space = self.observation_space
        images = len(space.shape) == 3 or getattr(space, "packed", False)
        return backend.compile(fn, self.variables, side_by_side=images)

    @property
    def named_variables(self) -> dict:
        """All variables, by names that do not depend on what else was built."""
        return {
            f"{part}.{i}.{variable.name}": variable
            for part, layer in self.parts.items()
            for i, variable in enumerate(layer.variables)
        }

    @property
    def variables(self) -> list:
        return list(self.named_variables.values())

    @property
    def trainable_variables(self) -> list:
        return [variable for variable in self.variables if variable.trainable]

    def to_actions(self, tensor: Any) -> np.ndarray:
        """Returns actions as an array, of the space's own type unless it is a Box."""
        actions, space = np.asarray(tensor), self.action_space
        return actions if isinstance(space, spaces.Box) else actions.astype(space.dtype)

    @cached_property
    def _best(self) -> Callable:
        return backend.compile(self.best, self.variables)

    def predict(
        self,
        obs: ArrayLike,
        state: np.ndarray | None = None,
        episode_start: State = None,
        deterministic: bool = False,
    ) -> tuple[Any, np.ndarray | None]:
        """Chooses actions that can be passed to an environment.

        Args:
            obs: one observation, [*observation shape], or a batch, [N, ...]. Of a
                Dict or Tuple, one as its environment returns it, or flattened arrays.
            state: of a recurrent network, as the previous call returned it; None at the
                start.
            episode_start: [N] bool, true where a new episode has begun since then.
            deterministic: whether to take the most likely or best action.

        Returns:
            the action or the list or batch of actions, clipped to the bounds of a Box;
            and the next recurrent state, None if there is none.
        """
        nest = getattr(self.observation_space, "nest", None)
        if isinstance(obs, dict if isinstance(nest, spaces.Dict) else tuple) and nest:
            obs = self.observation_space.flatten(obs)
        if isinstance(obs, (dict, tuple)):
            raise UserTypeError(
                f"predict() takes an observation of {nest or self.observation_space}, "
                f"received a {type(obs).__name__}; reset() returns (obs, info)"
            )
        obs = np.asarray(obs)
        one = obs.ndim == len(self.observation_space.shape)
        obs = obs[None] if one else obs
        masks = None if episode_start is None else np.reshape(episode_start, -1)
        if deterministic and self.initial_state is None and hasattr(self, "best"):
            check_observations(obs, self.observation_space)
            actions, state = self._best(obs, None, None)
            actions = self.to_actions(actions)
        else:
            actions, _, state, _ = self.step(
                obs, S=state, M=masks, deterministic=deterministic
            )
        actions = clip_actions(actions, self.action_space)
        if hasattr(self.action_space, "unflatten"):
            actions = [self.action_space.unflatten(action) for action in actions]
        return actions[0] if one else actions, state

    def get_state(self) -> dict:
        """Returns all variables by name, and the generator's state.

        Raises:
            DivergedError: if a variable is not finite.
        """
        named = self.named_variables.items()
        variables = {name: np.asarray(variable).copy() for name, variable in named}
        for name, value in variables.items():
            if not np.isfinite(value).all():
                raise DivergedError(
                    f"training has diverged: {name} became NaN or infinite; a smaller "
                    "learning rate may help"
                )
        return {
            "variables": variables,
            "generator": self.rng.bit_generator.state,
            "metadata": self.metadata,  # for loading the model from a checkpoint
        }

    def set_state(self, state: dict) -> None:
        check_like(state["variables"], self.named_variables, "its network")
        self.assign(state["variables"])
        self.rng.bit_generator.state = state["generator"]

    def assign(self, values: dict) -> None:
        """Sets all variables to arrays, by name."""
        for name, variable in self.named_variables.items():
            variable.assign(values[name])

    @property
    def description(self) -> dict:
        """What a file has to match to be loaded: format, algorithm and spaces."""
        return {
            "algorithm": self.algorithm,
            "format": self.format,  # after the algorithm, as they may differ in it
            "observation": describe_space(self.observation_space),
            "action": describe_space(self.action_space),
        }

    @property
    def metadata(self) -> dict:
        """What a file says about its model, as JSON values: enough to rebuild it."""
        return {
            **self.description,
            "observation_space": space_to_json(self.observation_space),
            "action_space": space_to_json(self.action_space),
            "arguments": self.arguments,
            "num_timesteps": self.num_timesteps,
        }

    def save(self, path: str | os.PathLike) -> None:
        """Writes all variables to one safetensors file.

        With several MPI ranks, rank 0 writes it, as all have the same variables.
        """
        if mpi.rank == 0:
            save_model(path, self.get_state()["variables"], self.metadata)

    def load(self, path: str | os.PathLike, arguments: Collection[str] = ()) -> None:
        """Loads all variables from a file that ``save`` wrote.

        Args:
            path: of the file, of a checkpoint, or of a log folder that has either.
            arguments: arguments that this model is made with, by name, as JSON values.
                Any of them that is in the file has to have the same value there.

        Raises:
            UserFileError: if there is no such file.
            UserValueError: if it is damaged, or was saved by another algorithm,
                for other spaces, or with another network or other arguments. Nothing
                has been changed then.
        """
        tensors, metadata = load_model(
            path, self.description, dict(arguments), self.named_variables
        )
        self.assign(tensors)
        # Older files of this format do not say it.
        self.num_timesteps = metadata.get("num_timesteps", 0)


def build_network(network, recurrent=True):
    """Returns a new network.

    Args:
        network: a function that builds one, or its name.
        recurrent: whether it may be recurrent.

    Raises:
        UserValueError: if there is no such network, or it cannot be built.
        UserTypeError: if it is recurrent and may not be.
    """
    if not isinstance(network, Builder):
        network = Builder(NETWORK, network, {})
    built = network()
    if hasattr(built, "state_size") and not recurrent:
        raise UserTypeError(
            f"the network {network!r} is recurrent, which this algorithm does not "
            "support"
        )
    return built


def check_separate(network, other) -> None:
    """Raises UserTypeError if two networks that should be separate share variables."""
    if {id(v) for v in network.variables} & {id(v) for v in other.variables}:
        raise UserTypeError(
            "network has to build a new network at each call; received a function that "
            "returns one with the same variables"
        )


def make_scaling(space):
    """Returns a function that turns raw observations into inputs of networks.

    Images [B, height, width, channels] are divided by 255, Discrete and MultiDiscrete
    values become one-hot, and any other Box and MultiBinary values are passed on
    unchanged; all as float32. Of a Dict or Tuple with images, the function returns a
    dict of images and vectors.

    Raises:
        UserTypeError: for other spaces, and for images of another type than uint8.
    """
    if has_large_numbers(space) and len(space.shape) == 3 and not is_image(space):
        raise UserTypeError(
            f"the observations {space} look like an image of {space.dtype}, which "
            "would not be divided by 255; return uint8, which is, or divide them"
        )
    if isinstance(space, FlatBox) and space.packed:
        return lambda obs: unpack(space, obs)
    if is_image(space):
        return scaled
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        return lambda obs: ops.cast(obs, "float32")
    if isinstance(space, spaces.Discrete):
        return lambda obs: ops.one_hot(obs - int(space.start), int(space.n))
    if isinstance(space, spaces.MultiDiscrete) and len(space.shape) == 1:
        ranges = list(enumerate(zip(space.start.tolist(), space.nvec.tolist())))
        return lambda obs: ops.concatenate(
            [ops.one_hot(obs[:, i] - start, n) for i, (start, n) in ranges], axis=-1
        )
    raise UserTypeError(
        f"the observation space {type(space).__name__} is not supported; it has to be "
        "a Box, Discrete, MultiBinary or a vector of MultiDiscrete, or a Dict or "
        "Tuple of these"
    )


def scaled(pixels):
    """Returns bytes as numbers from 0 to 1. Nothing else divides them."""
    return ops.cast(pixels, "float32") / 255.0


def unpack(space, obs):
    """Returns the parts of observations of bytes, by name.

    Args:
        space: a ``FlatBox``.
        obs: [B, bytes].

    Returns:
        images [B, height, width, stack x channels] from 0 to 1, and vectors
        [B, stack x D].
    """
    frames, parts = ops.reshape(obs, (-1, space.stack, space.size)), {}
    for name, (leaf, columns) in space.leaves.items():
        x = frames[..., columns]
        if is_image(leaf):
            height, width, channels = leaf.shape
            x = ops.reshape(x, (-1, space.stack, *leaf.shape))
            x = ops.transpose(scaled(x), (0, 2, 3, 1, 4))
            parts[name] = ops.reshape(x, (-1, height, width, space.stack * channels))
        else:
            size = spaces.flatdim(leaf) * space.stack
            if is_byte(leaf):
                x = ops.cast(x, "float32")
            else:
                x = backend.floats_of_bytes(ops.reshape(x, (-1, size, 4)))
            parts[name] = ops.reshape(x, (-1, size))
    return parts
