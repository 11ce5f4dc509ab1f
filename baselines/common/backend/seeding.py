"""Seeding of the global random generators."""

import secrets

import keras

from baselines.common.base import mpi


def set_global_seeds(seed) -> None:
    """Seeds the global generators of Python, NumPy and Keras; None changes nothing.

    Each MPI rank gets its own seed. ``learn()`` does its own seeding, from its argument
    ``seed``.
    """
    if seed is not None:
        keras.utils.set_random_seed(mpi.seed_of_rank(seed))


def make_seed(seed) -> int:
    """Seeds the initial weights; returns the seed for later draws, random for None.

    With several MPI ranks, the seed of the weights is the same on all of them, and the
    one returned is each rank's own.
    """
    if seed is None:
        seed = mpi.broadcast(secrets.randbelow(2**31))
    keras.utils.set_random_seed(int(seed))
    return mpi.seed_of_rank(int(seed))
