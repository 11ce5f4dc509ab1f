"""Optimisers as in the original results, with few passes over memory.

Keras' own optimisers make a pass over each variable for every operation.
"""

import keras
from keras import ops

from baselines.common import backend


def clip_gradients(optimizer, gradients):
    """Returns gradients, their norms clipped as an optimiser's arguments say."""
    limit = optimizer.clipnorm or optimizer.global_clipnorm
    if limit is None:
        return gradients
    norms = [backend.norm(gradient) for gradient in gradients]
    if optimizer.clipnorm is None:
        norms = [backend.norm(ops.stack(norms))] * len(gradients)
    return [
        gradient * (limit / ops.maximum(norm, limit))
        for gradient, norm in zip(gradients, norms)
    ]


def unchanged(optimizer, gradients_and_variables):
    """Returns gradients unchanged.

    Keras would sum them over TensorFlow's replicas, of which there is only one here.
    To do so, it registers a gradient function that TensorFlow never releases, which
    keeps alive the graph of every update that was ever compiled.
    """
    return gradients_and_variables


class RMSprop(keras.optimizers.RMSprop):
    """RMSProp as TensorFlow 1 had it: mean squares start at 1, not at 0.

    This makes the first steps smaller, which stabilises A2C. (The epsilon is
    inside the square root in Keras as well.)
    """

    _clip_gradients = clip_gradients
    _all_reduce_sum_gradients = unchanged

    def build(self, variables):
        super().build(variables)
        for mean_square in self._velocities:
            mean_square.assign(ops.ones_like(mean_square))
        self._updates = self.add_optimizer_variables(variables, "update")

    def update_step(self, gradient, variable, learning_rate):
        i = self._get_variable_index(variable)
        backend.rmsprop_step(
            variable,
            self._velocities[i],
            self._updates[i],
            gradient,
            learning_rate,
            self.rho,
            self.epsilon,
        )


class Adam(keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015)."""

    _clip_gradients = clip_gradients
    _all_reduce_sum_gradients = unchanged

    def __init__(
        self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-8, **keywords
    ):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **keywords)

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
