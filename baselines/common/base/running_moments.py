"""Running mean and variance of batches."""

import numpy as np

from baselines.common.base import mpi


class RunningMoments:
    """Mean and variance of samples that arrive in batches, in float64.

    Args:
        shape: of a sample.

    Attributes:
        mean, var: [*shape], 0 and 1 before the first batch.
        count: number of samples so far.
    """

    def __init__(self, shape=()):
        self.mean = np.zeros(shape)
        self.var = np.ones(shape)
        self.count = 0

    def update(self, batch) -> None:
        """Adds a batch, [B, *shape]; with several MPI ranks, the batches of all ranks.

        All ranks have to call this; afterwards they have the same moments.
        """
        batch = np.asarray(batch, np.float64)
        moments = batch.mean(axis=0), batch.var(axis=0), len(batch)
        for moments_of_rank in mpi.gather(moments):
            self._combine(*moments_of_rank)

    def _combine(self, mean, var, count):
        """Adds the moments of other samples.

        Chan et al. 1979, "Updating formulae and a pairwise algorithm for computing
        sample variances", equation 2.1.
        """
        total = self.count + count
        delta = mean - self.mean
        squares = self.var * self.count + var * count
        squares += delta**2 * self.count * count / total
        self.mean = self.mean + delta * count / total
        self.var = squares / total
        self.count = total

    def get_state(self) -> dict:
        return {"mean": self.mean, "var": self.var, "count": self.count}

    def set_state(self, state) -> None:
        self.mean, self.var = np.array(state["mean"]), np.array(state["var"])
        self.count = state["count"]
