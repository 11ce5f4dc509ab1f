"""The update of every algorithm: losses and optimisers in one compiled call."""

import itertools
import math
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from baselines.common import backend
from baselines.common.base import mpi
from baselines.common.base.errors import DivergedError, UserTypeError, shown
from baselines.common.base.timing import timed
from baselines.common.networks.layers import split_last

CHECK_INTERVAL = 100  # calls, or slices of a scan, between comparisons of the ranks


class Step(NamedTuple):
    """One step of an optimiser."""

    loss: Callable  # loss(batch, *more) -> (loss, metrics)
    optimizer: keras.optimizers.Optimizer
    variables: list  # what is trained


def make_optimizer(
    build: Callable | None, kind: Callable, limits: dict, **settings
) -> keras.optimizers.Optimizer:
    """Returns the optimizer of a run.

    Args:
        build: function that returns it, such as the argument ``optimizer`` of
            ``learn()``; None for the algorithm's own.
        kind: class of that one.
        limits: what any optimizer gets, such as ``clipnorm``, ``global_clipnorm`` or
            ``learning_rate``.
        settings: other arguments of ``kind``.
    """
    if build is None:
        return kind(**limits, **settings)
    optimizer = build()
    for name, limit in limits.items():
        setattr(optimizer, name, limit)
    return optimizer


def make_update(
    *steps,
    variables: Sequence = (),
    after: Callable | None = None,
    scan: bool = False,
    until: Callable | None = None,
) -> Callable:
    """Returns ``update(learning_rate, batch, *more) -> metrics``, one compiled call.

    It makes the steps in order, each with the weights that the previous one left, and
    returns the metrics of all steps. ``learning_rate`` is set on every optimiser; None
    leaves each its own. ``batch`` and ``more`` are what the losses get: a batch is a
    NamedTuple, whose fields they read by name.

    With several MPI ranks, each step is two calls, between which its gradients are
    averaged over the ranks, so that the optimiser clips the norm of the average. Every
    rank starts from the variables of rank 0; ``update`` raises RuntimeError if they
    differ later. It raises DivergedError if a metric is not finite. (A gradient that is
    not finite is found by the next update's loss, or by ``Model.get_state``.)

    Args:
        steps: each a ``Step``. Two may share an optimiser if they train the same.
        variables: all that the losses read and ``after`` writes, trained or not.
        after: function without arguments, called after the last step, which may move
            variables, see ``move_towards``.
        scan: whether ``update`` is repeated for each slice of ``batch``, an array
            [K, ...] or a nest of them; ``more`` is the same every time. This is one
            compiled call as well. Metrics then have a first axis K.
        until: function of the metrics of a slice (of rank 0) that says whether those
            after it are left out, also from the metrics; None for never.

    Raises:
        UserTypeError: if a step trains nothing; from ``update``, if a loss does not
            return (loss, metrics), or reads weights that nobody trains.
    """
    everything = list(variables)
    for step in steps:
        if not step.variables:
            raise UserTypeError(
                "a Step has no variables to train; a layer has none before it is "
                "built, see Policy.add_head"
            )
        if not step.optimizer.built:
            step.optimizer.build(step.variables)
        everything += [*step.variables, *step.optimizer.variables]
    several = mpi.size > 1

    def compiled_part(fn):
        # Ranks meet between the parts of an update; one rank compiles it as a whole.
        return backend.compile(fn, everything, True) if several else fn

    parts = [
        [compiled_part(fn) for fn in parts_of(step, everything, several)]
        for step in steps
    ]
    sizes = [sum(math.prod(v.shape) for v in step.variables) for step in steps]
    means = [np.empty(size, np.float32) for size in sizes]  # not touched by one rank
    move = compiled_part(after) if after is not None else lambda: None

    def update(learning_rate, *inputs):
        metrics = {}
        for (differentiate, apply), mean in zip(parts, means):
            its_metrics, gradients = differentiate(*inputs)
            apply(learning_rate, mpi.mean(gradients, mean) if several else gradients)
            metrics |= its_metrics
        move()
        return metrics

    if several:
        checked = with_equal_variables(update, variables, steps)
        call = scanned(checked, until) if scan else checked
    elif scan:
        compiled = backend.scan(
            lambda batch, rate, *more: update(rate, batch, *more), everything, until
        )

        def call(learning_rate, batch, *more):
            found = compiled(batch, learning_rate, *more)
            if until is None:
                return found
            metrics, made = found
            return {k: x[: np.count_nonzero(made)] for k, x in metrics.items()}

    else:
        call = backend.compile(update, everything, side_by_side=True)
    iterations = steps[0].optimizer.iterations
    return timed("updates")(lambda *inputs: check_finite(call(*inputs), iterations))


def parts_of(step, variables, several):
    """Returns the two parts of a ``Step``: gradients, and a step of its optimiser.

    Args:
        step: the step.
        variables: all that losses may read.
        several: whether gradients are one vector, for the mean over ranks.
    """
    loss = checked_loss(step.loss, variables)
    loss_and_gradients = backend.value_and_grad(loss, step.variables)

    def differentiate(*inputs):
        (_, metrics), gradients = loss_and_gradients(*inputs)
        return metrics, to_vector(gradients) if several else gradients

    def apply(learning_rate, gradients):
        if several:
            gradients = from_vector(gradients, step.variables)
        if learning_rate is not None:
            step.optimizer.learning_rate.assign(learning_rate)
        step.optimizer.apply(gradients, step.variables)

    return differentiate, apply


def with_equal_variables(update, variables, steps):
    """Returns an update of several ranks, which all start with the weights of rank 0.

    It compares them every ``CHECK_INTERVAL`` calls.
    """
    trained = [variable for step in steps for variable in step.variables]
    shared = list({id(v): v for v in (*variables, *trained)}.values())
    broadcast(shared)
    calls = itertools.count()

    def checked_update(*inputs):
        if next(calls) % CHECK_INTERVAL == 0:
            check_equal(shared)
        return update(*inputs)

    return checked_update


def scanned(update, until):
    """Returns a function that calls ``update`` once for each slice of a batch.

    Args:
        update: of one slice.
        until: as in ``make_update``.
    """

    def update_with_slices(learning_rate, slices, *batch):
        metrics = []
        for k in range(len(keras.tree.flatten(slices)[0])):
            one = keras.tree.map_structure(lambda x, k=k: x[k], slices)
            metrics.append(update(learning_rate, one, *batch))
            if until is not None and mpi.broadcast(bool(until(metrics[-1]))):
                break
        return keras.tree.map_structure(lambda *x: np.stack(x), *metrics)

    return update_with_slices


def checked_loss(loss, variables):
    """Returns a ``loss`` of a ``Step`` that checks what it returns and reads.

    It raises UserTypeError unless that is ``(loss, metrics)``, a scalar and a dict, and
    unless all trainable weights that it reads are among ``variables``.
    """
    name = getattr(loss, "__qualname__", type(loss).__name__)
    compute_watched = backend.unknown_reads(loss, variables)

    def compute(*inputs):
        result, unknown = compute_watched(*inputs)
        if unknown:
            raise UserTypeError(
                f"the loss {name} reads {', '.join(unknown)}, which is not among the "
                "variables of the update, so nobody would train it; see Policy.add_head"
            )
        if not (isinstance(result, tuple) and len(result) == 2):
            raise UserTypeError(
                f"the loss {name} has to return (loss, metrics), a scalar and a dict, "
                f"returned {shown(result)}"
            )
        if shape := tuple(result[0].shape):
            raise UserTypeError(
                f"the loss {name} has to return a scalar, such as a mean over the "
                f"batch, returned a tensor of shape {shape}"
            )
        return result

    return compute


def check_finite(metrics, iterations) -> dict:
    """Returns metrics; raises DivergedError if one is not finite.

    Args:
        metrics: numbers or arrays by name.
        iterations: optimiser steps so far, for the message.
    """
    for name, value in metrics.items():
        wrong = np.asarray(value)
        wrong = wrong[~np.isfinite(wrong)]
        if wrong.size:
            raise DivergedError(
                f"{name} is {wrong[0]} after optimiser step {int(iterations)}; a "
                "smaller learning rate may help"
            )
    return metrics


def to_vector(tensors):
    """Returns tensors as one vector."""
    return ops.concatenate([ops.reshape(x, (-1,)) for x in tensors])


def from_vector(vector, variables) -> list:
    """Returns a vector's parts, in the shapes of variables."""
    parts = split_last(vector, [math.prod(variable.shape) for variable in variables])
    return [ops.reshape(x, variable.shape) for x, variable in zip(parts, variables)]


def assign(variables, vector) -> None:
    """Assigns the parts of a vector to variables, see ``from_vector``."""
    for variable, value in zip(variables, from_vector(vector, variables)):
        variable.assign(value)


def move_towards(targets: list, sources: list, fraction: float) -> None:
    """Moves variables by a fraction of their distance to others (Polyak averaging).

    target += fraction (source - target); 1 makes them equal. Lillicrap et al. 2016
    (DDPG), algorithm 1, where the fraction is τ.
    """
    for target, source in zip(targets, sources, strict=True):
        moved = source if fraction == 1 else target + fraction * (source - target)
        target.assign(moved)


def broadcast(variables) -> None:
    """Sets variables to their values on rank 0."""
    if mpi.size > 1:
        for variable in variables:
            variable.assign(mpi.broadcast(np.asarray(variable)))


def check_equal(variables) -> None:
    """Raises RuntimeError if a variable is not the same on all ranks, bit for bit."""
    sums = mpi.gather([zlib.crc32(np.asarray(v)) for v in variables])
    for rank, sums_of_rank in enumerate(sums):
        for variable, expected, crc in zip(variables, sums[0], sums_of_rank):
            if crc != expected:
                raise RuntimeError(
                    f"the variables of the ranks differ: {variable.path} of rank "
                    f"{rank} is not that of rank 0"
                )
