"""Optimisers as in the original results, with few passes over memory.

Keras' own optimisers make a pass over each variable for every operation.
"""

from typing import Annotated

import keras
from keras import ops

from baselines.common import backend
from baselines.common.arguments.types import Fraction, NonNegative
from baselines.common.base.errors import UserTypeError


def adam(beta_1: Annotated[Fraction, "decay of the mean gradient"] = 0.9):
    """Adam (Kingma and Ba 2015)."""
    return Adam(beta_1=beta_1)


def adamw(
    weight_decay: Annotated[NonNegative, "decay of weights, times lr"] = 0.01,
):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""
    return keras.optimizers.AdamW(weight_decay=weight_decay)


def rmsprop(rho: Annotated[Fraction, "decay of the mean square"] = 0.99):
    """RMSProp, with an epsilon of 1e-5 inside the square root."""
    return RMSprop(rho=rho, epsilon=1e-5)


def sgd(momentum: Annotated[Fraction, "momentum of the gradient"] = 0.0):
    """Stochastic gradient descent."""
    return keras.optimizers.SGD(momentum=momentum)


def _clipped(optimizer, gradients):
    """Returns gradients, their norms clipped as an optimiser's arguments say."""
    limit = optimizer.clipnorm or optimizer.global_clipnorm
    if limit is None:
        return gradients
    norms = [backend.norm(gradient) for gradient in gradients]
    if optimizer.clipnorm is None:
        norms = [backend.norm(ops.stack(norms))] * len(gradients)
    pairs = zip(gradients, norms)
    return [gradient * (limit / ops.maximum(norm, limit)) for gradient, norm in pairs]


def _unchanged(optimizer, gradients_and_variables):
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

    _clip_gradients = _clipped
    _all_reduce_sum_gradients = _unchanged

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

    _clip_gradients = _clipped
    _all_reduce_sum_gradients = _unchanged

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


class Groups:
    """Several optimisers, each for some of the variables that one ``Step`` trains.

    Its gradients are computed together, and clipped as each optimiser says.

    Args:
        groups: for each optimiser (optimizer, variables, factor): the factor on the
            learning rate of the update.
    """

    def __init__(self, *groups):
        self.groups = groups
        for optimizer, variables, _ in groups:
            optimizer.build(variables)
        self.built = True
        self.iterations = groups[0][0].iterations
        self.learning_rate = self  # which is set as a Keras optimizer's is

    @property
    def variables(self) -> list:
        return [v for optimizer, _, _ in self.groups for v in optimizer.variables]

    def assign(self, learning_rate) -> None:
        """Sets the learning rate of all groups."""
        for optimizer, _, factor in self.groups:
            optimizer.learning_rate.assign(factor * learning_rate)

    def apply(self, gradients, variables) -> None:
        """Takes a step; raises UserTypeError for a variable that is in no group."""
        left = {id(v): gradient for v, gradient in zip(variables, gradients)}
        for optimizer, group, _ in self.groups:
            optimizer.apply([left.pop(id(v)) for v in group], group)
        if left:
            raise UserTypeError(f"{len(left)} variables of the step are in no group")
