"""Running mean and variance of batches."""

import numpy as np
from gymnasium.wrappers.utils import RunningMeanStd

from baselines.common.base import mpi


class RunningMoments(RunningMeanStd):
    """Mean and variance of samples that arrive in batches, in float64.

    Batches are combined by equation 2.1 of Chan et al. 1979, "Updating formulae and a
    pairwise algorithm for computing sample variances", in Gymnasium's code.

    Args:
        shape: of a sample.

    Attributes:
        mean, var: [*shape], 0 and 1 before the first batch.
        count: number of samples so far.
    """

    def __init__(self, shape=()):
        super().__init__(epsilon=0, shape=shape)

    def update(self, batch) -> None:
        """Adds a batch, [B, *shape]; with several MPI ranks, the batches of all ranks.

        All ranks have to call this; afterwards they have the same moments.
        """
        batch = np.asarray(batch, np.float64)
        moments = batch.mean(axis=0), batch.var(axis=0), len(batch)
        for moments_of_rank in mpi.gather(moments):
            self.update_from_moments(*moments_of_rank)

    def get_state(self) -> dict:
        return {"mean": self.mean, "var": self.var, "count": self.count}

    def set_state(self, state) -> None:
        self.mean, self.var = np.array(state["mean"]), np.array(state["var"])
        self.count = state["count"]
