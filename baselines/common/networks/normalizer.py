"""The first stage of models that normalise their observations."""

import keras
import numpy as np
from gymnasium import spaces
from keras import ops

from baselines.common import backend
from baselines.common.base.errors import UserTypeError
from baselines.common.base.running_moments import RunningMoments
from baselines.common.envs.nests import is_byte, is_float_box
from baselines.common.networks.layers import split_last


class Normalizer(keras.layers.Layer):
    """Subtracts the mean of samples so far, divides by their standard deviation.

    The result is clipped to ±10. On-policy training has to use the same statistics as
    acting, so algorithms update them with a rollout only after training on it. The
    first rollout is therefore not normalised, whereas OpenAI Baselines' wrapper updates
    the statistics with each step before the policy sees it.

    The statistics are non-trainable variables, so they are saved and loaded with the
    model. They are in float64: after many samples, what another one changes would be
    lost in the rounding of float32.

    Attributes:
        mean, deviation: tensors in float32, 0 and 1 at first.
        count: a variable, the number of samples so far.
    """

    def build(self, input_shape):
        fixed = dict(trainable=False, dtype="float64")
        shape = input_shape[1:]
        mean = self.add_weight(shape=shape, initializer="zeros", name="mean", **fixed)
        var = self.add_weight(shape=shape, initializer="ones", name="var", **fixed)
        count = self.add_weight(shape=(), initializer="zeros", name="count", **fixed)
        self.statistics, self.count = [mean, var, count], count
        self.set_statistics = backend.compile(self._assign, self.variables)

    def _assign(self, *values):
        for variable, value in zip(self.statistics, values):
            variable.assign(value)

    def call(self, x):
        return ops.clip((x - self.mean) / self.deviation, -10.0, 10.0)

    @property
    def mean(self):
        return ops.cast(self.statistics[0], "float32")

    @property
    def deviation(self):
        return ops.cast(ops.sqrt(self.statistics[1] + 1e-8), "float32")

    def update(self, batch, *copies) -> None:
        """Updates the statistics with a batch [B, ...].

        Args:
            batch: an array.
            copies: other Normalizers that get the same statistics.
        """
        moments = RunningMoments()
        moments.mean, moments.var, moments.count = map(np.asarray, self.statistics)
        moments.update(batch)
        for normalizer in (self, *copies):
            normalizer.set_statistics(moments.mean, moments.var, moments.count)


class PartsNormalizer(Normalizer):
    """Normalises the numbers of a dict, but not its images, flags and bytes.

    Args:
        space: a ``FlatBox`` of bytes.
    """

    def __init__(self, space):
        super().__init__()
        self.space = space
        leaves = space.leaves.items()
        sizes = {k: spaces.flatdim(x) for k, (x, _) in leaves if not is_byte(x)}
        self.sizes = {name: space.stack * size for name, size in sizes.items()}

    def build(self, shapes):
        super().build((None, sum(self.sizes.values())))

    def call(self, parts):
        numbers = ops.concatenate([parts[name] for name in self.sizes], axis=-1)
        numbers = split_last(super().call(numbers), [*self.sizes.values()])
        return parts | dict(zip(self.sizes, numbers))

    def update(self, batch, *copies):
        super().update(self.space.numbers(batch), *copies)


def make_normalizer(space) -> Normalizer:
    """Returns a Normalizer; raises UserTypeError unless there are floats in a space."""
    if is_float_box(space):
        return Normalizer()
    leaves = space.leaves.values() if getattr(space, "packed", False) else ()
    if all(is_byte(leaf) for leaf, _ in leaves):
        raise UserTypeError(
            "normalize_observations is for a Box of floats; the observation space is "
            f"{space}"
        )
    return PartsNormalizer(space)
