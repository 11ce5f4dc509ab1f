"""Optimisers as the original results had them."""

import keras
from keras import ops


class RMSprop(keras.optimizers.RMSprop):
    """RMSProp as TensorFlow 1 had it: mean squares start at 1, not at 0.

    The first steps are smaller so, which steadies A2C. (The epsilon is inside
    the square root in Keras as well.)
    """

    def build(self, variables):
        super().build(variables)
        for mean_square in self._velocities:
            mean_square.assign(ops.ones_like(mean_square))
