"""Checks that the arrays of a replay memory do not contradict each other."""

import numpy as np

from baselines.common.data.hindsight_replay import HindsightReplayBuffer
from baselines.common.data.prioritized_replay import PrioritizedReplayBuffer


def check_memory(memory) -> None:
    """Raises AssertionError if a replay memory is inconsistent."""
    stored = range(max(0, memory.count - memory.num_rows + 1), memory.count)
    slots = [row % memory.num_rows for row in stored]
    assert len(memory) <= (memory.num_rows - memory.frame_stack) * memory.num_envs
    assert not memory.truncated[slots][~memory.dones[slots]].any()
    for slot in slots:
        following = (slot + 1) % memory.num_rows
        assert (memory.starts[following] == memory.dones[slot]).all()
    newest = memory.count % memory.num_rows
    found = {(row, env) for row, env in memory.last_frames if row != newest}
    assert found == {(s, e) for s in slots for e in np.flatnonzero(memory.truncated[s])}
    if isinstance(memory, PrioritizedReplayBuffer):
        check_tree(memory.tree)
        stored = np.zeros((memory.num_rows, memory.num_envs), bool)
        stored[np.arange(memory.first_row, memory.count) % memory.num_rows] = True
        leaves = memory.tree.levels[0][: stored.size]
        assert ((leaves > 0) == stored.ravel()).all()
    if isinstance(memory, HindsightReplayBuffer):
        check_goals(memory)


def check_tree(tree) -> None:
    """Raises AssertionError if a sum is not the sum of its parts."""
    for level, above in zip(tree.levels, tree.levels[1:]):
        sums = level.reshape(-1, tree.WIDTH).sum(axis=1)
        assert (above[: len(sums)] == sums).all() and not above[len(sums) :].any()


def check_goals(memory) -> None:
    """Checks the achieved goals that are stored, and where episodes stop."""
    rows = np.arange(memory.oldest_row, memory.count)
    slots, following = rows % memory.num_rows, (rows + 1) % memory.num_rows
    achieved = memory.frames[following][..., memory.goals.achieved]
    goes_on = ~memory.dones[slots]
    assert (memory.achieved[slots] == achieved)[goes_on].all()
    for at, frame in memory.last_frames.items():
        assert at[0] == memory.count % memory.num_rows or (
            (memory.achieved[at] == frame[memory.goals.achieved]).all()
        )
    stops, _ = memory.episodes
    del memory.episodes  # to be computed again
    assert (stops[slots] == memory.episodes[0][slots]).all()
