"""A policy and action values Q(s, a), for off-policy learning of continuous actions."""

from typing import Any

import keras
import numpy as np
from gymnasium import spaces
from keras import ops
from numpy.typing import ArrayLike

from baselines.common import backend
from baselines.common.envs.spaces import check_observations, clip_actions
from baselines.common.networks.critics import Minimum
from baselines.common.networks.layers import dense
from baselines.common.networks.model import Model, State, build_network
from baselines.common.networks.normalizer import Normalizer, make_normalizer


class Critic(keras.layers.Layer):
    """Q(s, a): a network that takes an observation and an action.

    A vector observation is concatenated with the action before the network; Lillicrap
    et al. 2016 do so after its first layer. Any other observation, such as an image,
    goes through the network first, and its features are concatenated with the action
    before one more dense layer.

    Args:
        network: function that builds the network, or its name.
        size: how many outputs it has.
    """

    def __init__(self, network, size):
        super().__init__()
        self.network = build_network(network)
        self.joined = dense(256, "relu")
        self.value = dense(size, gain=1.0)

    def build(self, obs_shape, actions_shape):
        self.joins_features = isinstance(obs_shape, dict) or len(obs_shape) > 2

    def call(self, obs, actions, training=False):
        """Returns outputs [B, size].

        Args:
            obs: [B, ...], or a dict of parts, as ``Model.inputs`` returns them.
            actions: [B, *action shape]
        """
        actions = ops.reshape(actions, (-1, np.prod(actions.shape[1:], dtype=int)))
        if self.joins_features:
            features = self.network(obs, training=training)
            features = self.joined(ops.concatenate([features, actions], axis=-1))
        else:
            obs = ops.reshape(obs, (-1, np.prod(obs.shape[1:], dtype=int)))
            both = ops.concatenate([obs, actions], axis=-1)
            features = self.network(both, training=training)
        return self.value(features)

    def weight_decay(self):
        """Returns half the sum of squared weights, except biases and the last layer's.

        Its gradient is the weights themselves (Lillicrap et al. 2016).
        """
        weights = self.network.trainable_variables + self.joined.trainable_variables
        kernels = [v for v in weights if len(v.shape) > 1]
        return 0.5 * sum(ops.sum(ops.square(v)) for v in kernels)


class ActorCritic(Model):
    """A policy π(a|s) and one or more critics Q(s, a), each with its own network.

    Critics get actions scaled from the bounds of their distribution to [-1, 1].

    Args:
        observation_space: a Box, Discrete, MultiDiscrete or MultiBinary space.
        action_space: a Box.
        network: function that builds each network, or its name.
        distribution: of actions, such as ``SquashedGaussian`` or ``Deterministic``.
        critic: the kind of critics, an object as in ``critics.py``.
        normalize_observations: whether to subtract the running mean of float
            observations and divide by their running standard deviation (``observe``).
        normalize_returns: whether the critics' outputs are values minus the running
            mean of returns, divided by their running standard deviation
            (``observe_returns``).
        seed: seed of the random generator for acting.
        algorithm: name of the module that trains it; saved with the model.

    Raises:
        UserTypeError: for spaces or networks that are not supported.
        UserValueError: if the network cannot take the observations.
    """

    format = 5  # since critics get scaled actions, and statistics are in float64

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        network: Any,
        distribution: Any,
        *,
        critic: Any = Minimum(),  # noqa: B008, as it has no state
        normalize_observations: bool = False,
        normalize_returns: bool = False,
        seed: int | None = None,
        algorithm: str | None = None,
    ):
        super().__init__(observation_space, action_space, seed, algorithm)
        self.distribution = distribution
        if normalize_observations:
            self.parts["normalizer"] = make_normalizer(observation_space)
        if normalize_returns:
            self.parts["returns"] = Normalizer()
            self.parts["returns"].build((None,))
        self.parts["network"] = build_network(network, recurrent=False)
        self.parts["pi"] = distribution.head()
        self.kind = critic
        self.critics = [Critic(network, critic.size) for _ in range(critic.num_critics)]
        self.parts |= {f"critic_{i}": critic for i, critic in enumerate(self.critics)}
        self.make_variables(network, self._build)
        variables = self.variables
        self._act = backend.compile(self._choose, variables)
        self._value = backend.compile(
            lambda obs, actions: critic.value(self.outputs(obs, actions)), variables
        )

    def _build(self, obs):
        self.outputs(obs, self._choose(obs, None))

    def _choose(self, obs, noise):
        params, pi = self.policy(obs), self.distribution
        return pi.mode(params) if noise is None else pi.sample(params, noise)

    def best(self, obs: Any, states: Any, masks: Any) -> tuple:
        """Returns the most likely actions as a tensor, and None."""
        return self._choose(obs, None), None

    @property
    def policy_variables(self) -> list:
        """The trained variables of the policy."""
        parts = self.parts["network"], self.parts["pi"]
        return [v for part in parts for v in part.trainable_variables]

    @property
    def critic_variables(self) -> list:
        """The trained variables of the critics."""
        return [v for critic in self.critics for v in critic.trainable_variables]

    def policy(self, obs: Any, training: bool = False) -> Any:
        """Returns parameters [B, P] of π(·|s) for raw observations."""
        return self.parts["pi"](self.features(self.inputs(obs), training=training))

    def outputs(
        self,
        obs: Any,
        actions: Any,
        num_critics: int | None = None,
        training: bool = False,
    ) -> Any:
        """Returns the critics' outputs for raw observations, [critics, B, size].

        Args:
            obs: [B, *observation shape]
            actions: [B, *action shape]
            num_critics: how many of the critics to ask, the first ones; None for all.
            training: for layers that tell training from acting.
        """
        obs, pi = self.inputs(obs), self.distribution
        actions = (ops.cast(actions, "float32") - pi.middle) / pi.half_width
        critics = self.critics[:num_critics]
        outputs = [critic(obs, actions, training=training) for critic in critics]
        outputs = ops.stack(outputs)
        if "returns" in self.parts:
            outputs = self.parts["returns"].mean + self.deviation_of_returns * outputs
        return outputs

    def values(self, obs: Any, actions: Any, num_critics: int | None = None) -> Any:
        """Returns ``outputs`` of critics that have one, [critics, B]."""
        return self.outputs(obs, actions, num_critics)[..., 0]

    @property
    def deviation_of_returns(self):
        """The factor on the critics' outputs; 1 unless returns are normalised."""
        return self.parts["returns"].deviation if "returns" in self.parts else 1.0

    def observe(self, obs: ArrayLike, target: "ActorCritic") -> None:
        """Updates the observation statistics, if any, of this model and of ``target``.

        Args:
            obs: a batch [B, *observation shape].
            target: the target model, made with the same arguments as this one.
        """
        if "normalizer" in self.parts:
            self.parts["normalizer"].update(obs, target.parts["normalizer"])

    def observe_returns(self, returns: ArrayLike, target: "ActorCritic") -> None:
        """Updates the return statistics, if any, without changing any predicted value.

        Pop-Art: van Hasselt et al. 2016, "Learning values across many orders of
        magnitude", equation 4.

        Args:
            returns: an array of any shape.
            target: as in ``observe``.
        """
        if "returns" not in self.parts:
            return
        moments = self.parts["returns"]
        mean, deviation = np.asarray(moments.mean), np.asarray(moments.deviation)
        moments.update(np.ravel(returns), target.parts["returns"])
        ratio = deviation / moments.deviation
        shift = (mean - moments.mean) / moments.deviation
        for critic in (*self.critics, *target.critics):
            critic.value.kernel.assign(critic.value.kernel * ratio)
            critic.value.bias.assign(critic.value.bias * ratio + shift)

    def step(
        self, obs: Any, S: State = None, M: State = None, deterministic: bool = False
    ) -> tuple:
        """Chooses an action for each observation.

        Args:
            obs: [N, *observation shape], an array or a tensor on the device.
            S, M: not used, as there is no recurrent state.
            deterministic: whether to take the mode of the distribution.

        Returns:
            actions [N, *action shape] and their values [N], as
            NumPy arrays, then None twice, for recurrent state and likelihood.
        """
        actions = self.act(obs, deterministic)
        return actions, np.asarray(self._value(obs, actions)), None, None

    def act(self, obs: ArrayLike, deterministic: bool = False) -> np.ndarray:
        """Returns only the actions of ``step``, without computing their values."""
        check_observations(obs, self.observation_space)
        noise = None if deterministic else self.distribution.noise(self.rng, len(obs))
        # In float32, they may lie beyond the bounds by a rounding error.
        return clip_actions(np.asarray(self._act(obs, noise)), self.action_space)

    def value(self, obs: Any, S: State = None, M: State = None) -> np.ndarray:
        """Returns the values of the most likely actions, [N]."""
        return self.step(obs, deterministic=True)[1]
