"""Optimisers as the original results had them."""

import keras
from keras import ops

from baselines.common import backend


class RMSprop(keras.optimizers.RMSprop):
    """RMSProp as TensorFlow 1 had it: mean squares start at 1, not at 0.

    The first steps are smaller so, which steadies A2C. (The epsilon is inside
    the square root in Keras as well.)
    """

    def build(self, variables):
        super().build(variables)
        for mean_square in self._velocities:
            mean_square.assign(ops.ones_like(mean_square))


class Adam(keras.optimizers.Adam):
    """Adam, in one pass over each variable.

    Keras' own makes a pass for every operation, which on a CPU takes a quarter of an
    update of 32 frames.
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-8,
        clipnorm=None,
        global_clipnorm=None,
    ):
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            clipnorm=clipnorm,
            global_clipnorm=global_clipnorm,
        )

    def update_step(self, gradient, variable, learning_rate):
        i = self._get_variable_index(variable)
        backend.adam_step(
            variable,
            self._momentums[i],
            self._velocities[i],
            gradient,
            learning_rate,
            self.iterations + 1,
            self.beta_1,
            self.beta_2,
            self.epsilon,
        )
