"""Seeding of the global random generators."""

import keras

from baselines.common import mpi
from baselines.common.lazy import moved_names

__getattr__ = moved_names(__name__)


def set_global_seeds(seed) -> None:
    """Seeds the global generators of Python, NumPy and Keras; None changes nothing.

    Each MPI rank gets its own seed. ``learn()`` does its own seeding, from its argument
    ``seed``.
    """
    if seed is not None:
        keras.utils.set_random_seed(mpi.own_seed(seed))
