"""Optimisers as the original results had them, and the update that they make."""

import itertools
import math
import zlib

import keras
import numpy as np
from keras import ops

from baselines.common import backend, mpi
from baselines.common.errors import DivergedError

CHECK_INTERVAL = 100  # updates from one comparison of the ranks to the next


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


def make_update(loss, optimizer, variables, scan=False):
    """Returns ``update(learning_rate, *batch) -> metrics``, a step of an optimiser.

    That is one compiled call. With several MPI ranks it is two, and in between the
    gradients are averaged over the ranks, so that the optimiser limits the norm of the
    average. Every rank starts from the variables of rank 0; ``update`` raises
    RuntimeError if they differ later, and DivergedError if a metric is not finite. (A
    gradient that is not is found by the next update's loss, or by ``Model.get_state``.)

    Args:
        loss: function of ``*batch`` that returns (loss, metrics).
        optimizer: a Keras optimiser, which is built here.
        variables: all that the loss reads. Those that are trainable are trained.
        scan: whether ``update`` takes several steps, one for each slice of
            ``batch[0]`` [K, ...], which the loss is given in its place. That is one
            compiled call as well. Metrics have a first axis K then.
    """
    trained = [variable for variable in variables if variable.trainable]
    optimizer.build(trained)
    everything = [*variables, *optimizer.variables]
    loss_and_gradients = backend.value_and_grad(loss, trained)

    def checked(metrics):
        for name, value in metrics.items():
            wrong = np.asarray(value)
            wrong = wrong[~np.isfinite(wrong)]
            if wrong.size:
                raise DivergedError(
                    f"{name} is {wrong[0]} after optimiser step "
                    f"{int(optimizer.iterations)}; a smaller lr may help"
                )
        return metrics

    def apply(learning_rate, gradients):
        optimizer.learning_rate.assign(learning_rate)
        optimizer.apply(gradients, trained)

    def update(learning_rate, *batch):
        (_, metrics), gradients = loss_and_gradients(*batch)
        apply(learning_rate, gradients)
        return metrics

    if mpi.size == 1 and not scan:
        update = backend.compile(update, everything)
        return lambda *arguments: checked(update(*arguments))
    if mpi.size == 1:
        scanned = backend.scan(
            lambda x, rate, *batch: update(rate, x, *batch), everything
        )
        return lambda rate, slices, *batch: checked(scanned(slices, rate, *batch))

    def differentiate(*batch):
        (_, metrics), gradients = loss_and_gradients(*batch)
        return metrics, ops.concatenate([ops.reshape(x, (-1,)) for x in gradients])

    def apply_flat(learning_rate, gradients):
        ends = np.cumsum([math.prod(variable.shape) for variable in trained])
        parts = ops.split(gradients, ends[:-1])
        shaped = [ops.reshape(x, v.shape) for x, v in zip(parts, trained)]
        apply(learning_rate, shaped)

    differentiate = backend.compile(differentiate, everything)
    apply_flat = backend.compile(apply_flat, everything)
    for variable in variables:
        variable.assign(mpi.broadcast(ops.convert_to_numpy(variable)))
    updates = itertools.count()

    def update_together(learning_rate, *batch):
        if next(updates) % CHECK_INTERVAL == 0:
            check_equal(variables)
        metrics, gradients = differentiate(*batch)
        apply_flat(learning_rate, mpi.mean(gradients))
        return checked(metrics)

    def scan_together(learning_rate, slices, *batch):
        metrics = []
        for k in range(len(keras.tree.flatten(slices)[0])):
            one = keras.tree.map_structure(lambda x, k=k: x[k], slices)
            metrics.append(update_together(learning_rate, one, *batch))
        return keras.tree.map_structure(lambda *x: np.stack(x), *metrics)

    return scan_together if scan else update_together


def check_equal(variables) -> None:
    """Raises RuntimeError if a variable is not the same on all ranks, bit for bit."""
    sums = mpi.gather([zlib.crc32(ops.convert_to_numpy(v)) for v in variables])
    for rank, found in enumerate(sums):
        for variable, expected, crc in zip(variables, sums[0], found):
            if crc != expected:
                raise RuntimeError(
                    f"the ranks have come apart: {variable.path} of rank {rank} is not "
                    "that of rank 0"
                )
