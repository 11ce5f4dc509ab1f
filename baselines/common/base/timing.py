"""Where the time of a run goes: environments, acting, updates and the rest."""

import contextlib
import time
from collections import Counter

spent = Counter()  # seconds of this process's run, by part


@contextlib.contextmanager
def timed(part):
    """Adds the time of a block, or of each call of a function, to that of a part.

    A GPU computes while Python goes on; its time counts for the part that waits for it.
    """
    start = time.perf_counter()
    try:
        yield
    finally:
        spent[part] += time.perf_counter() - start


class Clock:
    """Seconds of training, including those before the run was resumed."""

    def __init__(self):
        self.before, self.start = 0.0, time.perf_counter()

    def begin(self) -> None:
        """Starts counting from 0, for a run that begins."""
        self.set_state({"seconds": 0.0, "parts": {}})

    @property
    def seconds(self) -> float:
        return self.before + time.perf_counter() - self.start

    def shares(self) -> str:
        """Returns each part's share of the time as text: largest first, rest last."""
        parts = dict(spent.most_common())
        parts["other"] = max(0.0, self.seconds - sum(parts.values()))
        return ", ".join(f"{k} {v / self.seconds:.0%}" for k, v in parts.items())

    def get_state(self) -> dict:
        return {"seconds": self.seconds, "parts": dict(spent)}

    def set_state(self, state) -> None:
        self.before = float(state["seconds"])
        self.start = time.perf_counter()
        spent.clear()
        spent.update(state["parts"])
