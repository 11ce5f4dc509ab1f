"""Seeds of global random generators."""

import keras

from baselines.common import mpi
from baselines.common.lazy import names_of

__getattr__ = names_of(__name__)


def set_global_seeds(seed) -> None:
    """Seeds the global generators of Python, NumPy and Keras; None changes nothing.

    Each MPI rank has a seed of its own. ``learn()`` seeds what it draws from by its
    argument ``seed``.
    """
    if seed is not None:
        keras.utils.set_random_seed(mpi.own_seed(seed))
