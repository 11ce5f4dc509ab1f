"""Progress of a run: a live line on a terminal, an occasional plain one elsewhere."""

import contextlib
import sys
import time

import keras
from rich.live import Live
from rich.text import Text

from baselines import logger
from baselines.common.base import mpi
from baselines.common.base.amounts import duration

LIVE_SECONDS = 0.5  # between changes of the live line
PLAIN_SECONDS = 60  # without output, after which a plain line is shown


class Status:
    """Shows the progress of a run on standard output, unless nothing is logged there.

    Args:
        name: of what is trained.
        first_timestep, total_timesteps: agent steps at the start and at the end.
    """

    def __init__(self, name, first_timestep, total_timesteps):
        self.name = name
        self.first_timestep = first_timestep
        self.total_timesteps = total_timesteps
        self.start = self.last = time.perf_counter()
        self.live = None
        if mpi.rank == 0 and logger.uses("stdout") and sys.stdout.isatty():
            self.live = Live(auto_refresh=False, transient=True)
            self.live.start()

    def update(self, num_timesteps, episodes, wrote_row) -> None:
        """Shows the progress of training, if it is time to.

        Args:
            num_timesteps: agent steps so far.
            episodes: ``EpisodeResults``.
            wrote_row: whether a row was logged, which shows the progress as well.
        """
        now = time.perf_counter()
        if self.live is None and wrote_row:
            self.last = now
        if now - self.last < (PLAIN_SECONDS if self.live is None else LIVE_SECONDS):
            return
        self.last = now
        line = self.line(num_timesteps, episodes)
        if self.live is None:
            logger.show(line)
            return
        with contextlib.suppress(OSError):  # The terminal may be closed.
            line = Text(line, no_wrap=True, overflow="ellipsis")
            self.live.update(line, refresh=True)

    def line(self, num_timesteps, episodes) -> str:
        """Returns name, agent steps, their rate, the time left, and the mean return."""
        seconds = time.perf_counter() - self.start
        rate = (num_timesteps - self.first_timestep) / seconds
        left = (self.total_timesteps - num_timesteps) / rate
        return (
            f"{self.name} {num_timesteps:,}/{self.total_timesteps:,} "
            f"{num_timesteps / self.total_timesteps:.0%} · {rate:,.0f} steps/s · "
            f"{duration(left)} left · {self.score(episodes)}"
        )

    def score(self, episodes) -> str:
        """Returns the mean return of the last 100 episodes, as text."""
        if not episodes.count:
            return "no episode has ended"
        return f"mean {episodes.mean('r'):.4g}"

    def close(self) -> None:
        if self.live is not None:
            with contextlib.suppress(OSError):
                self.live.stop()


def begin_status(name, env, first_timestep, total_timesteps) -> Status:
    """Logs what is trained, where and on which device; returns its ``Status``.

    Args:
        name: of the algorithm.
        env: the VecEnv.
        first_timestep, total_timesteps: as in ``Status``.
    """
    spec = getattr(env, "spec", None)
    inner = getattr(env, "envs", [env])[0].unwrapped
    where = type(inner).__name__ if spec is None else spec.id
    on_gpu = keras.distribution.list_devices("gpu")
    count = env.num_envs if mpi.size == 1 else f"{mpi.size} x {env.num_envs}"
    cores = mpi.available_cores()
    device = "a GPU" if on_gpu else f"{cores} CPU core{'s' if cores > 1 else ''}"
    folder = logger.get_dir() or "none (logger.configure(FOLDER) sets one)"
    logger.log(
        f"training {name} for {total_timesteps:,} agent steps in {count} {where} "
        f"on {device}; log folder: {folder}"
    )
    name = f"{name} {where.removesuffix('NoFrameskip-v4')}"
    return Status(name, first_timestep, total_timesteps)
