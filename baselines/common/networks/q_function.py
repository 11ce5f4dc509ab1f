"""Action values of Discrete actions: network, streams, acting."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from keras import ops
from numpy.typing import ArrayLike

from baselines.common import backend
from baselines.common.base.errors import UserTypeError
from baselines.common.envs.spaces import check_observations
from baselines.common.networks.layers import Scalar, Stream, split_last
from baselines.common.networks.model import Model, State, build_network


class QFunction(Model):
    """Action values Q(s, a) of Discrete actions, and epsilon-greedy acting.

    Args:
        observation_space: a Box, Discrete, MultiDiscrete or MultiBinary space.
        action_space: a Discrete space.
        network: function that builds the network, or its name.
        values: the kind of action values, an object as in ``values.py``.
        hiddens: units of the layers between the network and the values.
        dueling: whether these form two streams, one for the value of a state and one
            for the advantages of actions (Wang et al. 2016, equation 9).
        sigma: initial standard deviation of the noise on their weights, see
            ``NoisyDense``; None for no noise.
        seed: of the generator that acting draws from.
        algorithm: name of the module that trains it; saved with the model.

    Attributes:
        epsilon: probability of a random action in training; None for
            ``final_epsilon``, a variable that is saved with the model.

    Raises:
        UserTypeError: for spaces or networks that are not supported.
        UserValueError: if the network cannot take the observations.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        network: Any,
        values: Any,
        hiddens: Sequence[int] = (),
        dueling: bool = False,
        sigma: float | None = None,
        seed: int | None = None,
        algorithm: str | None = None,
    ):
        super().__init__(observation_space, action_space, seed, algorithm)
        self.values = values
        self.num_actions = int(action_space.n)
        self.parts["network"] = build_network(network, recurrent=False)
        units = {"actions": self.num_actions * values.size}
        if dueling:
            units["state"] = values.size
        # TensorFlow sums gradients in the order of layer names. Keras' own names count
        # up, so that a second model in a process would differ in the last bits.
        self.streams = [Stream([*hiddens, n], sigma, name) for name, n in units.items()]
        self.parts |= zip(units, self.streams)
        self.parts["exploration"] = Scalar("epsilon", trainable=False)
        self.epsilon = None
        self.make_variables(network, self._build)
        self.noise_sizes = [stream.noise_size for stream in self.streams]
        self._act = self.compile(self._mean)

    @property
    def description(self) -> dict:
        """As in ``Model``, with the kind of values, which has to match as well."""
        return super().description | {"values": type(self.values).__name__}

    def _build(self, obs):
        features = self.features(self.inputs(obs))
        for stream in self.streams:
            stream.build(features.shape)

    def noise(self, *shape) -> np.ndarray:
        """Draws noise for ``outputs``, [*shape, F]; F is 0 without noisy weights."""
        return self.rng.standard_normal((*shape, sum(self.noise_sizes)), np.float32)

    def outputs(self, obs: Any, noise: Any) -> Any:
        """Returns the outputs [B, actions, values.size], see ``values.py``.

        Args:
            obs: [B, *observation shape]
            noise: [B or 1, F]
        """
        features = self.features(self.inputs(obs))
        noise = split_last(noise, self.noise_sizes)
        outputs = [stream(features, x) for stream, x in zip(self.streams, noise)]
        shape = -1, self.num_actions, self.values.size
        actions = ops.reshape(outputs[0], shape)
        if len(outputs) == 1:
            return actions
        advantages = actions - ops.mean(actions, axis=1, keepdims=True)
        return ops.expand_dims(outputs[1], 1) + advantages

    def _mean(self, obs, noise):
        return self.masked(self.values.mean(self.outputs(obs, noise)), obs)

    def best(self, obs: Any, states: Any, masks: Any) -> tuple:
        """Returns the best actions as a tensor, and None, see ``Policy.best``."""
        values = self._mean(obs, np.zeros((1, sum(self.noise_sizes)), np.float32))
        return backend.argmax(values) + int(self.action_space.start), None

    def __call__(self, obs: ArrayLike) -> np.ndarray:
        """Returns actions [N] for observations [N, *observation shape], from ``step``.

        In OpenAI Baselines, deepq's ``learn()`` returns such a function.
        """
        return self.step(obs)[0]

    @property
    def final_epsilon(self) -> float:
        return float(self.parts["exploration"].value.numpy())

    @final_epsilon.setter
    def final_epsilon(self, value: float):
        self.parts["exploration"].value.assign(value)

    def step(
        self, obs: Any, S: State = None, M: State = None, deterministic: bool = False
    ) -> tuple:
        """Chooses an action for each observation.

        Args:
            obs: [N, *observation shape], an array or a tensor on the device.
            S, M: not used, as there is no recurrent state.
            deterministic: whether to take the best action, without noise.

        Returns:
            actions [N] and the values of the best actions [N], as NumPy arrays, and
            None twice, as there is no recurrent state and no likelihood.
        """
        check_observations(obs, self.observation_space)
        noise = self.noise(len(obs))
        if deterministic:
            noise[:] = 0
        values = np.asarray(self._act(obs, noise))
        actions = values.argmax(axis=1)
        if not deterministic:
            epsilon = self.final_epsilon if self.epsilon is None else self.epsilon
            at_random = self.rng.random(len(obs)) < epsilon
            drawn = self._draw(obs)
            actions = np.where(at_random, drawn, actions)
        actions = actions + self.action_space.start
        return actions.astype(self.action_space.dtype), values.max(axis=1), None, None

    def _draw(self, obs):
        """Returns random actions [N] for observations [N, ...], from 0."""
        if self.mask is None:
            return self.rng.integers(self.num_actions, size=len(obs))
        valid = np.asarray(obs)[:, self.mask] > 0
        return np.argmax(valid * (1 - self.rng.random(valid.shape)), axis=1)

    def value(self, obs: Any, S: State = None, M: State = None) -> np.ndarray:
        """Returns the values of the best actions, [N]; arguments as in ``step``."""
        check_observations(obs, self.observation_space)
        noise = np.zeros((1, sum(self.noise_sizes)), np.float32)
        return np.asarray(self._act(obs, noise)).max(axis=1)


def losses_and_priorities(values, outputs, targets):
    """Returns what ``values.losses`` does: losses [B] and priorities [B].

    Raises:
        UserTypeError: for other shapes, which would be multiplied with weights [B].
    """
    losses, priorities = values.losses(outputs, targets)
    if len(losses.shape) != 1 or len(priorities.shape) != 1:
        raise UserTypeError(
            f"losses() of {type(values).__name__} has to return losses and priorities, "
            f"both [B], returned shapes {tuple(losses.shape)} and "
            f"{tuple(priorities.shape)}"
        )
    return losses, priorities


def take_actions(outputs, actions):
    """Returns [B, size], the outputs [B, actions, size] of the actions [B] taken."""
    return ops.take_along_axis(outputs, actions[:, None, None], axis=1)[:, 0]


def epsilon_at(step, num_steps, final) -> float:
    """Returns ε, which falls linearly from 1 to ``final`` over ``num_steps`` steps."""
    return max(final, 1.0 - (1.0 - final) * step / num_steps) if num_steps else final
