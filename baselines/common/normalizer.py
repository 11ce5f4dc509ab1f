"""The first stage of models that normalise their observations."""

import keras
import numpy as np
from gymnasium import spaces
from keras import ops

from baselines.common import backend
from baselines.common.errors import UserTypeError
from baselines.common.running_moments import RunningMoments

MOST = 2**23  # samples; float32 could not count many more


class Normalizer(keras.layers.Layer):
    """Subtracts the running mean, divides by the running deviation, clips to ±10.

    On-policy training has to use the same statistics as acting, so algorithms update
    them with a rollout only after training on it. The first rollout is therefore not
    normalised, whereas OpenAI Baselines' wrapper updates the statistics with each step
    before the policy sees it.

    The statistics are non-trainable variables, so they are saved and loaded with the
    model. After ``MOST`` samples, each batch counts as if it were the last of as many.
    """

    def build(self, input_shape):
        for name, shape, initial in (
            ("mean", input_shape[1:], "zeros"),
            ("var", input_shape[1:], "ones"),
            ("count", (), "zeros"),
        ):
            weight = self.add_weight(
                shape=shape, initializer=initial, trainable=False, name=name
            )
            setattr(self, name, weight)
        self.set_statistics = backend.compile(self._assign, self.variables)

    def _assign(self, mean, var, count):
        self.mean.assign(mean)
        self.var.assign(var)
        self.count.assign(count)

    def call(self, x):
        return ops.clip((x - self.mean) / self.deviation, -10.0, 10.0)

    @property
    def deviation(self):
        """The running standard deviation, 1 at first."""
        return ops.sqrt(self.var + 1e-8)

    def update(self, batch, *copies) -> None:
        """Updates the statistics with a batch [B, ...].

        Args:
            batch: an array.
            copies: other Normalizers that get the same statistics.
        """
        moments, names = RunningMoments(), ("mean", "var", "count")
        moments.set_state({name: np.asarray(getattr(self, name)) for name in names})
        moments.update(batch)
        moments.count = min(moments.count, MOST)
        statistics = [np.float32(getattr(moments, name)) for name in names]
        for normalizer in (self, *copies):
            normalizer.set_statistics(*statistics)


def make_normalizer(space) -> Normalizer:
    """Returns a Normalizer; raises UserTypeError unless ``space`` is a float Box."""
    if not (isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)):
        raise UserTypeError(
            "normalize_observations is for a Box of floats; the observation space is "
            f"{space}"
        )
    return Normalizer()
