"""A policy and its value function: network, heads, acting."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from keras import ops
from numpy.typing import ArrayLike

from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.envs.spaces import check_observations
from baselines.common.networks.distributions import make_distribution
from baselines.common.networks.layers import dense, reshape_first, split_last
from baselines.common.networks.model import Model, State, build_network, check_separate
from baselines.common.networks.normalizer import make_normalizer


class Outputs(NamedTuple):
    """What a policy makes of T steps of B environments, as tensors."""

    params: Any  # [T * B, P] of its distribution of actions
    values: Any  # [T * B]
    features: Any  # [T * B, F] of its network, which heads take
    states: Any  # [B, S] recurrent state after the last step; None if none


class Policy(Model):
    """A stochastic policy π(a|s) and a value function v(s).

    Takes raw observations of the environment: images are scaled from uint8 to
    [0, 1] here, in the first stage, on the device, and nowhere else.

    Args:
        observation_space: a Box, Discrete, MultiDiscrete or MultiBinary space.
        action_space: a Discrete, MultiDiscrete, MultiBinary or Box space.
        network: function that builds the trunk, or its name.
        value_network: ``shared`` puts the value head on the policy's trunk,
            ``copy`` gives it a trunk of its own of the same kind, and any other network
            is its trunk.
        normalize_observations: whether to subtract the running mean of float
            observations and divide by their running deviation, see ``observe``.
        distribution: function of the action space that returns its distribution; None
            for ``make_distribution``.
        seed: of the generator that actions are drawn from.
        algorithm: name of the module that trains it; saved with the model.

    Raises:
        UserTypeError: for spaces that are not supported.
        UserValueError: if the network cannot take the observations.
    """

    format = 5  # since statistics of observations are in float64

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        network: Any,
        value_network: str = "shared",
        normalize_observations: bool = False,
        distribution: Callable | None = None,
        seed: int | None = None,
        algorithm: str | None = None,
    ):
        super().__init__(observation_space, action_space, seed, algorithm)
        self.distribution = (distribution or make_distribution)(action_space)
        if normalize_observations:
            self.parts["normalizer"] = make_normalizer(observation_space)
        self.parts["network"] = build_network(network)
        self.parts["pi"] = self.distribution.head()
        if value_network != "shared":
            other = network if value_network == "copy" else value_network
            self.parts["value_network"] = build_network(other)
        trunks = [x for name, x in self.parts.items() if name.endswith("network")]
        sizes = [getattr(trunk, "state_size", None) for trunk in trunks]
        if any(sizes):
            if None in sizes:
                raise UserTypeError(
                    "the networks of policy and value function have to be recurrent "
                    f"both, or neither; received {network!r} and {value_network!r}"
                )
            self.initial_state = np.zeros((1, sum(sizes)), np.float32)
        self.parts["vf"] = dense(1, gain=1.0)
        outputs = self.make_variables(
            network,
            lambda obs: self._one_step(obs, self.initial_state, np.ones(1, bool)),
        )
        self.num_features = outputs.features.shape[-1]
        if len(trunks) > 1:
            check_separate(*trunks)
        self._act = self.compile(self._step)
        self._value = self.compile(lambda *inputs: self._one_step(*inputs).values)

    @property
    def policy_variables(self) -> list:
        """The trainable variables of π, including those of a shared network."""
        return self._trained("network", "pi")

    @property
    def value_variables(self) -> list:
        """The trainable variables of v alone."""
        return self._trained("value_network", "vf")

    def _trained(self, *names):
        parts = [self.parts[name] for name in names if name in self.parts]
        return [v for part in parts for v in part.trainable_variables]

    def add_head(self, name: str, layer: Callable) -> Callable:
        """Adds a layer that takes the network's features; returns it, built.

        Call it before ``run.load`` and ``make_update``, so that the layer is restored
        and trained. A loss calls it with ``features`` of the policy's ``Outputs``.

        Args:
            name: of the part, also in saved models.
            layer: a Keras layer for features [B, F].

        Raises:
            UserValueError: if there is a part of that name.
        """
        if name in self.parts:
            raise UserValueError(f"the policy has a part {name!r} already")
        layer(np.zeros((1, self.num_features), np.float32))
        self.parts[name] = layer
        return layer

    def __call__(self, batch: Any) -> Outputs:
        """Returns the ``Outputs`` for a batch, such as ``runners.Batch``.

        Args:
            batch: has obs [T, B, *observation shape], and for a recurrent network
                states [B, S] before the first step and masks [T, B], true where a new
                episode begins with that observation.
        """
        return self._forward(batch.obs, batch.states, batch.masks)

    def _forward(self, obs, states, masks):
        raw = ops.reshape(obs, (-1, *self.observation_space.shape))
        inputs = self.inputs(raw)
        networks = [name for name in ("network", "value_network") if name in self.parts]
        if self.initial_state is None:
            features = [self.features(inputs, name) for name in networks]
        else:
            inputs = reshape_first(inputs, 1, (masks.shape[0], -1))
            sizes = [self.parts[name].state_size for name in networks]
            states = split_last(states, sizes)
            results = [
                self.parts[name](inputs, state, masks)
                for name, state in zip(networks, states)
            ]
            features = [ops.reshape(x, (-1, x.shape[-1])) for x, _ in results]
            states = ops.concatenate([state for _, state in results], axis=-1)
        values = ops.squeeze(self.parts["vf"](features[-1]), axis=-1)
        params = self.masked(self.parts["pi"](features[0]), raw)
        return Outputs(params, values, features[0], states)

    def _one_step(self, obs, states, masks):
        masks = None if masks is None else masks[None]
        return self._forward(ops.expand_dims(obs, 0), states, masks)

    def _step(self, obs, states, masks, noise):
        params, values, _, states = self._one_step(obs, states, masks)
        pi = self.distribution
        actions = pi.mode(params) if noise is None else pi.sample(params, noise)
        return actions, values, states, pi.neglogp(params, actions)

    def best(self, obs: Any, states: Any, masks: Any) -> tuple:
        """Returns the most likely actions and the next states, as tensors."""
        actions, _, states, _ = self._step(obs, states, masks, None)
        return actions, states

    def step(
        self, obs: Any, S: State = None, M: State = None, deterministic: bool = False
    ) -> tuple:
        """Chooses an action for each observation.

        Args:
            obs: [N, *observation shape], an array or a tensor on the device.
            S: [N, S] recurrent state of each environment; None at the start.
            M: [N] bool, true where a new episode has begun since the last step.
            deterministic: whether to take the most likely action.

        Returns:
            actions [N, *action shape], values [N], the next recurrent state, and
            neglogps [N], as NumPy arrays.
        """
        check_observations(obs, self.observation_space)
        states, masks = self._state_of(len(obs), S, M)
        noise = None if deterministic else self.distribution.noise(self.rng, len(obs))
        actions, values, states, neglogps = self._act(obs, states, masks, noise)
        if states is not None:
            states = np.asarray(states)
        actions = self.to_actions(actions)
        return actions, np.asarray(values), states, np.asarray(neglogps)

    def value(self, obs: Any, S: State = None, M: State = None) -> np.ndarray:
        """Returns the values of observations, [N]; arguments as in ``step``."""
        check_observations(obs, self.observation_space)
        return np.asarray(self._value(obs, *self._state_of(len(obs), S, M)))

    def _state_of(self, batch, states, masks):
        """Returns state [batch, S] and masks [batch]; None twice if not recurrent."""
        if self.initial_state is None:
            return None, None
        masks = np.zeros(batch, bool) if masks is None else np.asarray(masks)
        states = self.initial_state if states is None else states
        return np.broadcast_to(states, (batch, states.shape[-1])), masks

    def observe(self, obs: ArrayLike) -> None:
        """Adds observations [..., *observation shape] to the statistics, if any."""
        if "normalizer" in self.parts:
            shape = self.observation_space.shape
            obs = np.asarray(obs).reshape(-1, *shape)
            self.parts["normalizer"].update(obs)
