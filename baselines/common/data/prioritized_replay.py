"""Replay memory whose transitions are sampled by priority."""

import numpy as np

from baselines.common.base import mpi
from baselines.common.data.replay_buffer import ReplayBuffer, Transitions


class PrioritizedReplayBuffer(ReplayBuffer):
    """Samples transitions in proportion to their priorities, such as TD errors.

    Schaul et al. 2016, "Prioritized Experience Replay", proportional variant:
    P(i) = p_i^α / Σ p^α, stratified; weights (len P(i))^-β, divided by the largest of
    the batch. New transitions get the largest priority seen so far.

    Args:
        alpha: exponent of priorities (α); 0 samples uniformly.
        beta: exponent of the importance weights at the start (β).
        beta_iters: agent steps, over all ranks, over which β rises to 1.
        eps: added to each priority, so that every transition can be sampled.
        arguments, keywords: of ReplayBuffer.
    """

    def __init__(
        self, *arguments, beta_iters, alpha=0.6, beta=0.4, eps=1e-6, **keywords
    ):
        super().__init__(*arguments, **keywords)
        self.alpha = alpha
        self.beta = beta
        self.beta_iters = beta_iters
        self.eps = eps
        self.tree = SumTree(self.num_rows * self.num_envs)
        self.max_priority = 1.0

    def add(self, *step) -> None:
        """As in ReplayBuffer."""
        newest, oldest = self.count, self.first_row
        super().add(*step)
        if self.first_row > oldest:
            self.tree.set(self._indices_of(oldest), 0.0)
        self.tree.set(self._indices_of(newest), self.max_priority**self.alpha)

    def _indices_of(self, row):
        return row % self.num_rows * self.num_envs + np.arange(self.num_envs)

    def sample(self, num_batches, batch_size) -> Transitions:
        """As in ReplayBuffer."""
        strata = np.arange(batch_size) + self.rng.random((num_batches, batch_size))
        indices = self.tree.find(strata / batch_size * self.tree.total)
        num_timesteps = mpi.size * self.num_envs * self.count
        progress = min(num_timesteps / self.beta_iters, 1.0)
        beta = self.beta + (1.0 - self.beta) * progress
        probabilities = self.tree.get(indices) / self.tree.total
        weights = (len(self) * probabilities) ** -beta
        weights /= weights.max(axis=1, keepdims=True)
        return self._transitions(indices, weights.astype(np.float32))

    def update_priorities(self, indices, priorities) -> None:
        """Sets the priorities of sampled transitions, before the next ``add``.

        Args:
            indices: [K, B] as sampled.
            priorities: [K, B], at least 0.
        """
        priorities = np.asarray(priorities, np.float64).ravel() + self.eps
        self.max_priority = max(self.max_priority, priorities.max())
        self.tree.set(indices.ravel(), priorities**self.alpha)

    def get_state(self) -> dict:
        leaves = self.tree.levels[0][: self.num_rows * self.num_envs]
        state = {"priorities": leaves.copy(), "max_priority": float(self.max_priority)}
        return super().get_state() | state

    def set_state(self, state) -> None:
        super().set_state(state)
        self.max_priority, leaves = state["max_priority"], state["priorities"]
        self.tree.set(np.arange(len(leaves)), leaves)


class SumTree:
    """Numbers that can be looked up by a point in their cumulative sum.

    Each level holds the sums of WIDTH neighbours in the level below; a few wide levels
    take fewer NumPy calls than many narrow ones. Sums are always recomputed from their
    parts, so that rounding errors do not accumulate.

    Args:
        size: number of numbers.
    """

    WIDTH = 32

    def __init__(self, size):
        self.levels = []
        while not self.levels or len(self.levels[-1]) > self.WIDTH:
            size = -(-size // self.WIDTH)
            self.levels.append(np.zeros(size * self.WIDTH))

    @property
    def total(self) -> float:
        return float(self.levels[-1].sum())

    def get(self, indices):
        return self.levels[0][indices]

    def set(self, indices, values) -> None:
        """Sets numbers; if an index occurs twice, its last value counts."""
        self.levels[0][indices] = values
        for level, above in zip(self.levels, self.levels[1:]):
            indices = np.unique(indices // self.WIDTH)
            above[indices] = level.reshape(-1, self.WIDTH)[indices].sum(axis=1)

    def find(self, points):
        """Returns the indices of the numbers at points of the cumulative sum."""
        indices = np.zeros(points.shape, int)
        for level in reversed(self.levels):
            children = level.reshape(-1, self.WIDTH)[indices]
            ends = np.cumsum(children, axis=-1)
            # Rounding may move a point outside, but the number has to be above 0.
            last = self.WIDTH - 1 - np.argmax(children[..., ::-1] > 0, axis=-1)
            child = np.minimum((ends <= points[..., None]).sum(axis=-1), last)
            before = np.take_along_axis(ends - children, child[..., None], axis=-1)
            points = np.maximum(points - before[..., 0], 0.0)
            indices = indices * self.WIDTH + child
        return indices
