"""Collects the results of episodes; counts what is due between two agent steps."""

from collections import deque

import numpy as np

from baselines.common.base.errors import UserValueError


def result_of(info) -> dict:
    """Returns the result (``info["episode"]``) of an episode from its last info.

    It includes ``success``, 0 or 1, if the info reports it.
    """
    # In gymnasium-robotics, robots report the first and mazes the second.
    success = info.get("is_success", info.get("success"))
    known = {"success": float(success)} if success in (0, 1) else {}
    return info["episode"] | known


def results_of(infos) -> list:
    """Returns the results (see ``result_of``) of the episodes that a step has ended."""
    return [result_of(info) for info in infos if "episode" in info]


class EpisodeResults:
    """The results of the last 100 episodes (``info["episode"]``), newest last."""

    def __init__(self):
        self.results = deque(maxlen=100)
        self.count = 0  # all episodes so far
        self.previous = 0  # those before the last update

    def extend(self, results) -> None:
        self.results.extend(results)
        self.count += len(results)

    def mean(self, key) -> float:
        """Returns the mean of ``r`` (return), ``l`` (length) or ``success``, or NaN."""
        values = [result[key] for result in self.results if key in result]
        return float(np.mean(values or [np.nan]))

    def columns(self) -> dict:
        """Returns columns for a row of the log: means of return, length and success."""
        columns = {"eprewmean": self.mean("r"), "eplenmean": self.mean("l")}
        if any("success" in result for result in self.results):
            columns["success_rate"] = self.mean("success")
        return columns

    def get_state(self) -> dict:
        return {
            "results": list(self.results),
            "count": self.count,
            "previous": self.previous,
        }

    def set_state(self, state) -> None:
        self.results = deque(state["results"], maxlen=100)
        self.count, self.previous = state["count"], state["previous"]


def count_due(before, now, every, after=0) -> int:
    """Returns how many multiples of ``every``, above ``after``, are in (before, now].

    So none is missed where several environments step at once.
    """
    return max(now // every - max(before, after) // every, 0)


def count_updates(total_timesteps, batch_size) -> int:
    """Returns how many updates of ``batch_size`` agent steps fit.

    Raises:
        UserValueError: if none fits, unless ``total_timesteps`` is 0.
    """
    if 0 < total_timesteps < batch_size:
        raise UserValueError(
            f"total_timesteps (num_timesteps) is {total_timesteps}, but one update "
            f"takes {batch_size} agent steps over all environments; give at least that "
            "many, or 0 for none"
        )
    return total_timesteps // batch_size
