"""A policy over Discrete actions and the values of all actions, on one network."""

from typing import Any

import numpy as np
from gymnasium import spaces
from keras import ops
from numpy.typing import ArrayLike

from baselines.common.envs.spaces import check_observations
from baselines.common.networks.distributions import Categorical
from baselines.common.networks.layers import dense
from baselines.common.networks.model import Model, State, build_network


class DiscreteActorCritic(Model):
    """A policy π(a|s) and action values Q(s, a), as two heads of one network.

    Args:
        observation_space: a Box, Discrete, MultiDiscrete or MultiBinary space.
        action_space: a Discrete space.
        network: function that builds the network, or its name.
        seed: seed of the generator that actions are drawn from.
        algorithm: name of the module that trains it; saved with the model.

    Raises:
        UserTypeError: for spaces or networks that are not supported.
        UserValueError: if the network cannot take the observations.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        network: Any,
        seed: int | None = None,
        algorithm: str | None = None,
    ):
        super().__init__(observation_space, action_space, seed, algorithm)
        self.distribution = Categorical(action_space)
        self.parts["network"] = build_network(network, recurrent=False)
        self.parts["pi"] = self.distribution.head()
        self.parts["q"] = dense(self.distribution.num_params, gain=1.0)
        self.make_variables(network, self)
        self._act = self.compile(self._sample)

    def __call__(self, obs: Any) -> tuple:
        """Returns logits of π and action values, both [..., A], as tensors.

        Args:
            obs: raw observations, [..., *observation shape].
        """
        shape = self.observation_space.shape
        before = obs.shape[: len(obs.shape) - len(shape)]
        obs = ops.reshape(obs, (-1, *shape))
        features = self.features(self.inputs(obs))
        logits = self.masked(self.parts["pi"](features), obs)
        action_values = self.parts["q"](features)
        return tuple(ops.reshape(x, (*before, -1)) for x in (logits, action_values))

    def best(self, obs: Any, states: Any, masks: Any) -> tuple:
        """Returns the most likely actions as a tensor, and None."""
        logits = self.parts["pi"](self.features(self.inputs(obs)))
        return self.distribution.mode(self.masked(logits, obs)), None

    def _sample(self, obs, noise):
        logits, action_values = self(obs)
        probabilities = ops.softmax(logits)
        values = ops.sum(probabilities * action_values, axis=-1)
        actions = self.distribution.sample(logits, noise)
        neglogps = self.distribution.neglogp(logits, actions)
        return actions, values, probabilities, neglogps

    def act(self, obs: ArrayLike, deterministic: bool = False) -> tuple:
        """Chooses an action for each observation.

        Args:
            obs: [N, *observation shape], an array or a tensor on the device.
            deterministic: whether to take the most likely action.

        Returns:
            actions [N], values of the policy [N], the probabilities [N, A] of all
            actions, and neglogps [N], as NumPy arrays.
        """
        check_observations(obs, self.observation_space)
        if deterministic:
            noise = np.zeros((len(obs), self.distribution.num_params), np.float32)
        else:
            noise = self.distribution.noise(self.rng, len(obs))
        actions, *others = self._act(obs, noise)
        return self.to_actions(actions), *map(np.asarray, others)

    def step(
        self, obs: Any, S: State = None, M: State = None, deterministic: bool = False
    ) -> tuple:
        """Chooses an action for each observation.

        Args:
            obs: [N, *observation shape], an array or a tensor on the device.
            S, M: not used, as there is no recurrent state.
            deterministic: whether to take the most likely action.

        Returns:
            actions [N], values of the policy [N], None, as there is no recurrent state,
            and neglogps [N], as NumPy arrays.
        """
        actions, values, _, neglogps = self.act(obs, deterministic)
        return actions, values, None, neglogps

    def value(self, obs: Any, S: State = None, M: State = None) -> np.ndarray:
        """Returns the values of the policy, [N]; arguments as in ``step``."""
        return self.act(obs, deterministic=True)[1]
