"""The adversary of GAIL: distinguishes an expert's transitions from a policy's."""

from typing import Any, NamedTuple

import keras
import numpy as np
from gymnasium import spaces
from keras import ops

from baselines.common import backend
from baselines.common.base.errors import UserValueError
from baselines.common.envs.nests import MixedActions
from baselines.common.networks.layers import dense
from baselines.common.networks.model import make_scaling
from baselines.common.networks.normalizer import Normalizer
from baselines.common.saving.states import VariableState
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import Step, make_update


class Transitions(NamedTuple):
    """What the adversary learns from: [steps, B, ...], or a batch [B, ...] of it."""

    obs: Any  # of the policy
    acs: Any
    expert_obs: Any
    expert_acs: Any


def adversary_loss(logits, expert_logits, *, ent_coef):
    """Returns the loss of the adversary and a dict of metrics.

    L = mean[-log(1 - D)] of the policy + mean[-log D] of the expert
        - ent_coef mean[H(D)]

    with D = sigmoid(logit), the probability that a transition is the expert's. Ho and
    Ermon 2016, equation 17, where D is the probability that it is the policy's. OpenAI
    Baselines added the entropy bonus.

    Args:
        logits: [B] for transitions of the policy
        expert_logits: [B] for transitions of the expert
        ent_coef: weight of the entropy
    """
    generator_loss = ops.mean(imitation_rewards(logits))
    expert_loss = ops.mean(ops.softplus(-expert_logits))
    both = ops.concatenate([logits, expert_logits])
    entropy = ops.mean(ops.softplus(both) - ops.sigmoid(both) * both)
    return generator_loss + expert_loss - ent_coef * entropy, {
        "generator_loss": generator_loss,
        "expert_loss": expert_loss,
        "adversary_entropy": entropy,
        "generator_acc": ops.mean(ops.cast(logits < 0, "float32")),
        "expert_acc": ops.mean(ops.cast(expert_logits > 0, "float32")),
    }


def imitation_rewards(logits):
    """Returns rewards -log(1 - D) = log(1 + exp(logit)) > 0 for logits [B] of D."""
    return ops.softplus(logits)


class Adversary:
    """A network D(s, a), the probability that a transition is the expert's.

    Args:
        observation_space, action_space: of the environment.
        expert: an ``Expert``.
        hidden_size: units in each of its two layers.
        ent_coef: weight of the entropy in its loss.
        seed: of the generator that draws the transitions it is trained on.
    """

    def __init__(
        self, observation_space, action_space, expert, hidden_size, ent_coef, seed
    ):
        self.expert = expert
        self.observation_vectors = to_vectors(observation_space)
        self.action_vectors = to_vectors(action_space)
        self.normalizer = Normalizer()
        self.network = keras.Sequential(
            [
                dense(hidden_size, "tanh"),
                dense(hidden_size, "tanh"),
                dense(1, gain=1.0),
            ]
        )
        # Not the random numbers of the policy, of memories and of players.
        self.rng = np.random.default_rng([seed, 6])
        pair = [
            np.zeros((1, *space.shape), space.dtype)
            for space in (observation_space, action_space)
        ]
        self.logits(*pair)
        variables = [*self.normalizer.variables, *self.network.variables]
        optimizer = Adam()

        def loss(batch):
            logits = self.logits(batch.obs, batch.acs)
            expert_logits = self.logits(batch.expert_obs, batch.expert_acs)
            return adversary_loss(logits, expert_logits, ent_coef=ent_coef)

        step = Step(loss, optimizer, self.network.trainable_variables)
        self.update = make_update(step, variables=variables, scan=True)
        self.rewards = backend.compile(
            lambda obs, acs: imitation_rewards(self.logits(obs, acs)), variables
        )
        self.saved = VariableState([*variables, *optimizer.variables])

    def logits(self, obs, acs):
        """Returns logits [B] of D for raw observations and actions, both [B, ...]."""
        obs = self.normalizer(self.observation_vectors(obs))
        inputs = ops.concatenate([obs, self.action_vectors(acs)], axis=-1)
        return self.network(inputs)[:, 0]

    def train(self, obs, acs, steps, stepsize) -> dict:
        """Takes optimiser steps and returns the mean metrics of ``adversary_loss``.

        Each step uses its share of the policy's transitions and the same number of the
        expert's. First, the observations of both update the normalisation statistics.

        Args:
            obs, acs: [n, ...] of the policy.
            steps: number of optimiser steps; if more than n, transitions are reused.
            stepsize: learning rate.
        """
        shape = steps, max(1, len(obs) // steps)
        expert = self.expert
        mine = np.resize(self.rng.permutation(len(obs)), shape)
        theirs = self.rng.integers(len(expert.obs), size=shape)
        seen = np.concatenate([obs[mine.ravel()], expert.obs[theirs.ravel()]])
        self.normalizer.update(self.observation_vectors(seen))
        batches = Transitions(
            obs[mine], acs[mine], expert.obs[theirs], expert.acs[theirs]
        )
        metrics = self.update(np.float32(stepsize), batches)
        return {name: float(np.mean(values)) for name, values in metrics.items()}

    def get_state(self) -> dict:
        return {
            "expert": self.expert.checksum,
            "variables": self.saved.get_state(),
            "generator": self.rng.bit_generator.state,
        }

    def set_state(self, state) -> None:
        if state["expert"] != self.expert.checksum:
            raise UserValueError(
                "cannot resume: the expert data are not those that the run was begun "
                "with; give expert_path the same file again"
            )
        self.saved.set_state(state["variables"])
        self.rng.bit_generator.state = state["generator"]


def to_vectors(space):
    """Returns a function from observations or actions [B, *shape] to vectors [B, n]."""
    numbers = isinstance(space, (spaces.MultiBinary, MixedActions))
    scale = (lambda x: ops.cast(x, "float32")) if numbers else make_scaling(space)

    def vectors(x):
        parts = keras.tree.flatten(scale(x))
        sizes = [int(np.prod(part.shape[1:], dtype=int)) for part in parts]
        flat = [ops.reshape(part, (-1, size)) for part, size in zip(parts, sizes)]
        return ops.concatenate(flat, axis=-1)

    return vectors
