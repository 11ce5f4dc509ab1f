"""A distribution over actions for each kind of action space.

A distribution is a set of pure functions of ``params`` [B, num_params], the output
of the layer that ``head`` makes. It draws no random numbers itself: sampling takes
noise, drawn beforehand by ``noise``. Log-probabilities and entropies are in nats.

All have the methods of ``Categorical``: ``sample`` and ``mode`` return actions
[B, *action shape]; ``neglogp``, ``entropy`` and ``kl`` return [B].
"""

import math

import keras
import numpy as np
from gymnasium import spaces
from keras import ops

from baselines.common import backend
from baselines.common.base.errors import UserTypeError
from baselines.common.envs.nests import MixedActions, is_float_box
from baselines.common.networks.layers import Constant, dense, split_last

HEAD_GAIN = 0.01  # so that the initial distribution hardly depends on the observation


class Categorical:
    """Discrete actions with unnormalised log-probabilities (logits) [B, n]."""

    def __init__(self, space):
        self.num_params = int(space.n)
        self.start = int(space.start)

    def head(self):
        """Returns a Keras layer that maps features [B, F] to params [B, num_params]."""
        return dense(self.num_params, gain=HEAD_GAIN)

    def noise(self, rng, *batch):
        """Returns standard Gumbel noise [*batch, n] from a NumPy generator."""
        return rng.gumbel(size=(*batch, self.num_params)).astype(np.float32)

    def sample(self, logits, noise):
        """Returns actions [B]: argmax(logits + Gumbel noise) is a sample."""
        return self.mode(logits + noise)

    def mode(self, logits):
        """Returns the most likely actions [B]."""
        return backend.argmax(logits) + self.start

    def neglogp(self, logits, actions):
        """Returns -log p(action), [B]."""
        one_hot = ops.one_hot(actions - self.start, self.num_params)
        return -ops.sum(one_hot * ops.log_softmax(logits), axis=-1)

    def entropy(self, logits):
        """Returns -Σ p log p, [B]."""
        log_p = ops.log_softmax(logits)
        return -ops.sum(ops.exp(log_p) * log_p, axis=-1)

    def kl(self, old, new):
        """Returns KL(old || new) = Σ p_old (log p_old - log p_new), [B]."""
        log_old, log_new = ops.log_softmax(old), ops.log_softmax(new)
        return ops.sum(ops.exp(log_old) * (log_old - log_new), axis=-1)


class Joint:
    """Actions [B, A] of independent parts, side by side, as of a Tuple or Dict.

    Args:
        leaves: for each part its space, and its columns in actions, as of
            ``MixedActions``.
    """

    def __init__(self, leaves):
        self.leaves = leaves
        self.parts = [make_distribution(space) for space, _ in leaves]
        self.sizes = [part.num_params for part in self.parts]
        self.num_params = sum(self.sizes)
        self.noises = [x.noise(np.random.default_rng(0)).size for x in self.parts]

    def head(self):
        return JointHead([part.head() for part in self.parts])

    def noise(self, rng, *batch):
        noises = [part.noise(rng, *batch) for part in self.parts]
        return np.concatenate(noises, axis=-1)

    def sample(self, params, noise):
        noises = split_last(noise, self.noises)
        triples = zip(self.parts, self._split(params), noises)
        return self._join(part.sample(x, noise) for part, x, noise in triples)

    def mode(self, params):
        pairs = zip(self.parts, self._split(params))
        return self._join(part.mode(x) for part, x in pairs)

    def neglogp(self, params, actions):
        triples = zip(self.parts, self._split(params), self.leaves)
        return sum(
            part.neglogp(x, self._taken(actions[:, columns], space))
            for part, x, (space, columns) in triples
        )

    def entropy(self, params):
        pairs = zip(self.parts, self._split(params))
        return sum(part.entropy(x) for part, x in pairs)

    def kl(self, old, new):
        triples = zip(self.parts, self._split(old), self._split(new))
        return sum(part.kl(x, y) for part, x, y in triples)

    def _split(self, params):
        return split_last(params, self.sizes)

    def _taken(self, columns, space):
        kind = "float32" if isinstance(space, spaces.Box) else "int32"
        return ops.reshape(ops.cast(columns, kind), (-1, *space.shape))

    def _join(self, actions):
        actions = [ops.cast(x, "float32") for x in actions]
        pairs = zip(actions, self.leaves)
        flat = [ops.reshape(x, (-1, math.prod(space.shape))) for x, (space, _) in pairs]
        return ops.concatenate(flat, axis=-1)


class MultiCategorical(Joint):
    """MultiDiscrete actions [B, k]: independent Categoricals, side by side."""

    head, noise = Categorical.head, Categorical.noise

    def __init__(self, space):
        if len(space.nvec.shape) != 1:
            raise UserTypeError(
                f"a MultiDiscrete action has to be a vector, received {space}"
            )
        ranges = zip(space.nvec.tolist(), space.start.tolist())
        parts = [spaces.Discrete(n, start=start) for n, start in ranges]
        super().__init__([(part, slice(i, i + 1)) for i, part in enumerate(parts)])


class Bernoulli:
    """MultiBinary actions [B, n] of independent bits, with logits [B, n]."""

    def __init__(self, space):
        self.shape = space.shape
        self.num_params = math.prod(space.shape)

    def head(self):
        return dense(self.num_params, gain=HEAD_GAIN)

    def noise(self, rng, *batch):
        """Returns standard logistic noise [*batch, n]."""
        return rng.logistic(size=(*batch, self.num_params)).astype(np.float32)

    def sample(self, logits, noise):
        return self.mode(logits + noise)

    def mode(self, logits):
        return ops.reshape(ops.cast(logits > 0, "int32"), (-1, *self.shape))

    def neglogp(self, logits, actions):
        bits = ops.cast(ops.reshape(actions, (-1, self.num_params)), "float32")
        return ops.sum(ops.softplus(logits) - bits * logits, axis=-1)

    def entropy(self, logits):
        p = ops.sigmoid(logits)
        return ops.sum(ops.softplus(logits) - p * logits, axis=-1)

    def kl(self, old, new):
        p = ops.sigmoid(old)
        return ops.sum(p * (old - new) + ops.softplus(new) - ops.softplus(old), axis=-1)


class DiagGaussian:
    """Continuous actions [B, *shape] with a mean and a log standard deviation each.

    A ``Runner`` clips actions to the space when it plays them, so that likelihoods are
    those of the actions drawn.

    Args:
        space: a Box.
        state_dependent: whether the log standard deviations depend on the observation;
            else they are variables.
    """

    middle, half_width = 0.0, 1.0  # It has no bounds that actions could be scaled by.

    def __init__(self, space, state_dependent=False):
        self.shape = space.shape
        self.state_dependent = state_dependent
        self.num_actions = math.prod(space.shape)
        self.num_params = 2 * self.num_actions

    def head(self):
        if self.state_dependent:
            return dense(self.num_params, gain=HEAD_GAIN)
        return GaussianHead(self.num_actions)

    def noise(self, rng, *batch):
        """Returns standard normal noise [*batch, actions]."""
        return rng.standard_normal((*batch, self.num_actions), np.float32)

    def sample(self, params, noise):
        mean, logstd = self._split(params)
        return ops.reshape(mean + ops.exp(logstd) * noise, (-1, *self.shape))

    def mode(self, params):
        return ops.reshape(self._split(params)[0], (-1, *self.shape))

    def neglogp(self, params, actions):
        """Returns Σ ½ ((a - μ) / σ)² + log σ + ½ log 2π, [B]."""
        mean, logstd = self._split(params)
        actions = ops.reshape(ops.cast(actions, "float32"), (-1, self.num_actions))
        squares = ops.square((actions - mean) / ops.exp(logstd))
        return ops.sum(0.5 * squares + logstd + 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self, params):
        """Returns Σ log σ + ½ log 2πe, [B]."""
        logstd = self._split(params)[1]
        return ops.sum(logstd + 0.5 * math.log(2 * math.pi * math.e), axis=-1)

    def kl(self, old, new):
        """Returns Σ log σ'/σ + (σ² + (μ - μ')²) / 2σ'² - ½, [B]; new has the primes."""
        (mean, logstd), (new_mean, new_logstd) = self._split(old), self._split(new)
        squares = ops.exp(2 * logstd) + ops.square(mean - new_mean)
        squares = 0.5 * squares / ops.exp(2 * new_logstd)
        return ops.sum(new_logstd - logstd + squares - 0.5, axis=-1)

    def _split(self, params):
        return ops.split(params, 2, axis=-1)


class Deterministic:
    """Continuous actions c + h tanh(μ): c is the middle, h half the width of a Box."""

    def __init__(self, space):
        self.shape = space.shape
        self.num_params = math.prod(space.shape)
        self.middle, self.half_width = middle_and_half_width(space)

    def head(self):
        return dense(self.num_params, gain=HEAD_GAIN)

    def noise(self, rng, *batch):
        """Returns [*batch, 0]: nothing is drawn."""
        return np.zeros((*batch, 0), np.float32)

    def sample(self, params, noise):
        return self.mode(params)

    def mode(self, params):
        shaped = ops.reshape(ops.tanh(params), (-1, *self.shape))
        return self.middle + self.half_width * shaped

    def smoothed(self, params, noise, limit):
        """Returns actions with clipped noise, within the bounds, [B, *shape].

        Fujimoto et al. 2018, "Addressing Function Approximation Error in Actor-Critic
        Methods" (TD3), equation 14.

        Args:
            params: [B, num_params]
            noise: [B, *shape], in half widths
            limit: largest absolute value of that noise
        """
        noise = self.half_width * ops.clip(noise, -limit, limit)
        low, high = self.middle - self.half_width, self.middle + self.half_width
        return ops.clip(self.mode(params) + noise, low, high)


def middle_and_half_width(space):
    """Returns both, [*shape], of a bounded Box of floats; or raises UserTypeError."""
    if is_float_box(space):
        low, high = np.float32(space.low), np.float32(space.high)
        with np.errstate(all="ignore"):
            middle, half_width = (high + low) / 2, (high - low) / 2
        valid = np.isfinite(middle) & np.isfinite(half_width) & (half_width > 0)
        if valid.all():
            return middle, half_width
    raise UserTypeError(
        f"the action space {space} is not supported: a squashed action needs a Box of "
        "floats with finite bounds, and the lower below the upper one"
    )


class SquashedGaussian(DiagGaussian):
    """Continuous actions [B, *shape] within the bounds of the space.

    a = c + h tanh(u), where the mean and log standard deviation of the Gaussian u
    depend on the observation, and c and h are the middle and half the width of the
    bounds. Haarnoja et al. 2018, "Soft Actor-Critic", appendix C. Its entropy has no
    closed form: -log p of a sample estimates it. p is the density of (a - c) / h, from
    -1 to 1, so that it does not depend on the unit of the actions.
    """

    LOG_STD = -20.0, 2.0  # bounds of log standard deviations, as in the authors' code

    def __init__(self, space):
        super().__init__(space, state_dependent=True)
        self.middle, self.half_width = middle_and_half_width(space)

    def sample_with_neglogp(self, params, noise):
        """Returns actions [B, *shape] and their -log p [B], without inverting tanh."""
        mean, logstd = self._split(params)
        u = mean + ops.exp(logstd) * noise
        return self._squash(u), self._neglogp(params, u)

    def sample(self, params, noise):
        return self.sample_with_neglogp(params, noise)[0]

    def mode(self, params):
        """Returns the action at the Gaussian's mean, [B, *shape]."""
        return self._squash(self._split(params)[0])

    def neglogp(self, params, actions):
        ratio = (ops.cast(actions, "float32") - self.middle) / self.half_width
        # At the bounds themselves u would be infinite.
        ratio = ops.clip(ratio, -0.999999, 0.999999)
        ratio = ops.reshape(ratio, (-1, self.num_actions))
        return self._neglogp(params, ops.arctanh(ratio))

    def entropy(self, params):
        """Raises NotImplementedError: use ``sample_with_neglogp``."""
        raise NotImplementedError(
            "the entropy of a SquashedGaussian has no closed form"
        )

    def _squash(self, u):
        shaped = ops.reshape(ops.tanh(u), (-1, *self.shape))
        return self.middle + self.half_width * shaped

    def _neglogp(self, params, u):
        """Returns -log p, [B], of the actions that u [B, actions] is squashed to."""
        # log(1 - tanh(u)²) = 2 (log 2 - u - softplus(-2u)) stays finite for large u.
        log_slope = 2.0 * (math.log(2.0) - u - ops.softplus(-2.0 * u))
        return super().neglogp(params, u) + ops.sum(log_slope, axis=-1)

    def _split(self, params):
        mean, logstd = ops.split(params, 2, axis=-1)
        return mean, ops.clip(logstd, *self.LOG_STD)


class JointHead(keras.layers.Layer):
    """Concatenates what several heads make of the same features."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def build(self, input_shape):
        for head in self.heads:
            head.build(input_shape)

    def call(self, features):
        return ops.concatenate([head(features) for head in self.heads], axis=-1)


class GaussianHead(keras.layers.Layer):
    """Maps features [B, F] to means and log standard deviations [B, 2 k]."""

    def __init__(self, num_actions):
        super().__init__()
        # Saved models have their variables in this order.
        self.logstd = Constant(num_actions, name="logstd")
        self.mean = dense(num_actions, gain=HEAD_GAIN)

    def build(self, input_shape):
        self.mean.build(input_shape)

    def call(self, features):
        return ops.concatenate([self.mean(features), self.logstd(features)], axis=-1)


DISTRIBUTIONS = {
    spaces.Discrete: Categorical,
    spaces.MultiDiscrete: MultiCategorical,
    spaces.MultiBinary: Bernoulli,
    spaces.Box: DiagGaussian,
    MixedActions: lambda space: Joint([*space.leaves.values()]),
}


def make_distribution(space):
    """Returns the distribution for an action space.

    Raises:
        UserTypeError: if the space is not supported.
    """
    for kind, distribution in DISTRIBUTIONS.items():
        if isinstance(space, kind) and (kind is not spaces.Box or is_float_box(space)):
            return distribution(space)
    raise UserTypeError(
        f"the action space {space} is not supported; it has to be Discrete, "
        "MultiDiscrete, MultiBinary or a Box of floats, or a Dict or Tuple of these"
    )
