"""What a log folder says about its run: its progress, its scores and its state."""

import contextlib
import os
from datetime import datetime
from typing import NamedTuple

import numpy as np

from baselines.common.base.errors import UserError, UserValueError
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.files import read_json
from baselines.common.saving.log_folder import (
    LOG_FILES,
    MODEL_FILE,
    SAVED_FILES,
    checkpoint_steps,
    find_run_files,
    is_locked,
)
from baselines.common.views import results as plot_util
from baselines.common.views.curves import (
    RETURNS,
    SECONDS,
    STEPS,
    find_column,
    has_episodes,
    settings_of,
    try_runs,
)


class RunFolder(NamedTuple):
    """A run, as described by its log folder; None for what is unknown.

    Attributes:
        folder: its path.
        alg, env, seed: the algorithm, the environment and the seed.
        num_timesteps: agent steps so far.
        total_timesteps: agent steps that it is to have in the end.
        seconds: of training so far.
        last_return: mean return of the last 100 episodes, or of all if there are fewer.
        best_return: the best mean return of 100 episodes in a row.
        changed: when it last wrote one of its files.
        state: ``running`` (a process is writing to the folder), ``finished`` (training
            has ended, see ``find_state``), ``resumable`` (there are checkpoints) or
            ``stopped`` (none of these).
    """

    folder: str
    alg: str | None
    env: str | None
    seed: int | None
    num_timesteps: int | None
    total_timesteps: int | None
    seconds: float | None
    last_return: float | None
    best_return: float | None
    changed: datetime
    state: str

    @property
    def steps(self) -> str:
        """Agent steps so far, and the total if it is known, as text."""
        total = "" if self.total_timesteps is None else f" of {self.total_timesteps:,}"
        return f"{self.num_timesteps or 0:,}{total}"

    def cells(self) -> dict:
        """Returns the cells of a run in a table, as text by column."""
        return {
            "algorithm": to_text(self.alg),
            "environment": to_text(self.env),
            "seed": to_text(self.seed),
            "agent steps": self.steps,
            "last": to_text(self.last_return),
            "best": to_text(self.best_return),
        }


def to_text(value) -> str:
    """Returns a number or name as text for a table, a dash for None."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def describe_run(result) -> RunFolder:
    """Returns what is known about a run.

    Args:
        result: a ``Result`` of ``find_runs``.
    """
    config = config_of(result)
    arguments = config.get("arguments", {})
    last_return, best_return = read_scores(result)
    steps = count_steps(result)
    return RunFolder(
        folder=result.dirname,
        alg=arguments.get("alg"),
        env=settings_of(result)["env"],
        seed=arguments.get("seed"),
        num_timesteps=steps,
        total_timesteps=arguments.get("num_timesteps"),
        seconds=count_seconds(result),
        last_return=last_return,
        best_return=best_return,
        changed=find_change(result.dirname),
        state=find_state(result.dirname, config, steps),
    )


def config_of(result) -> dict:
    """Returns the config.json of a run; an empty dict for one of another library."""
    config = result.metadata or {}
    return config if "arguments" in config else {}


def read_scores(result):
    """Returns the last and the best mean return of 100 episodes, None if unknown."""
    if has_episodes(result):
        means = plot_util.smooth(known(result.monitor.r), 100, mode="causal")
        best = means[99:]
    else:
        best = means = read_known(result, RETURNS)
    return (
        float(means[-1]) if len(means) else None,
        float(best.max()) if len(best) else None,
    )


def count_steps(result):
    """Returns the number of agent steps of a run, None if it is unknown."""
    counts = [int(steps) for steps in read_known(result, STEPS)[-1:]]
    for path in list_manifests(os.path.join(result.dirname, "checkpoints")):
        counts.append(checkpoint_steps(path))
    if not counts and has_episodes(result):
        counts.append(int(known(plot_util.steps_of(result.monitor)).max(initial=0)))
    return max(counts, default=None)


def count_seconds(result):
    """Returns how many seconds a run was trained for, None if that is unknown."""
    seconds = list(read_known(result, SECONDS)[-1:])
    if has_episodes(result):
        seconds += list(known(result.monitor.t)[-1:])
    return float(max(seconds)) if seconds else None


def read_known(result, names) -> np.ndarray:
    """Returns the finite numbers in the first of some columns that the rows have."""
    try:
        return known(find_column(result, names))
    except UserError:  # no such column
        return np.zeros(0)


def known(numbers) -> np.ndarray:
    """Returns numbers without those that are infinite or NaN."""
    return numbers[np.isfinite(numbers)]


def check_may_begin_again(folder, checkpoint_interval, update_size) -> None:
    """Raises UserValueError if a run that has no checkpoint would lose much by that.

    Args:
        folder: its log folder.
        checkpoint_interval: agent steps between its checkpoints, for a config.json that
            does not say it; 0 for none.
        update_size: agent steps of an update.
    """
    with contextlib.suppress(UserError, KeyError, TypeError):  # the run's own interval
        stored = read_json(os.path.join(folder, "config.json"))["settings"]
        checkpoint_interval = int(stored["checkpoint_interval"])
    if not checkpoint_interval:
        raise UserValueError(
            f"cannot resume {folder}: it was run without checkpoints "
            "(checkpoint_interval=0)"
        )
    steps = 0
    with contextlib.suppress(UserError):  # There may be no row and no episode yet.
        results, _ = try_runs(folder)
        own = [x for x in results if os.path.samefile(x.dirname, folder)]
        steps = max((count_steps(result) or 0 for result in own), default=0)
    # The newest row may be of the update whose checkpoint was not written any more.
    first_lost = checkpoint_interval + update_size
    if steps >= first_lost or find_run_files(folder, [MODEL_FILE]):
        raise UserValueError(
            f"cannot resume {folder}: its checkpoints are gone, and a start from its "
            "beginning would replace its log; that needs its first command with "
            "--overwrite"
        )


def find_change(folder) -> datetime:
    """Returns when a run last wrote one of its files, in local time."""
    # Other files in its folder, such as pictures, do not count.
    paths = find_run_files(folder, names=(*LOG_FILES, *SAVED_FILES))
    times = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # Old checkpoints are removed.
            times.append(os.lstat(path).st_mtime)
    newest = max(times) if times else os.lstat(folder).st_mtime
    return datetime.fromtimestamp(newest).astimezone()


def find_state(folder, config, steps) -> str:
    """Returns the ``state`` of a run.

    Args:
        folder: its path.
        config: of ``config_of``.
        steps: agent steps so far, or None.
    """
    if is_locked(folder):
        return "running"
    # A run that was resumed may not have written to its first save_path any more.
    paths = config.get("arguments", {}).get("save_path"), f"{folder}/{MODEL_FILE}"
    for path in map(os.path.expanduser, filter(None, paths)):
        if not config or not os.path.isfile(path):
            continue
        # Every start writes config.json, and every end, even by stop_at, the model. But
        # a copy of a folder may have lost these times.
        started = os.path.getmtime(os.path.join(folder, "config.json"))
        if os.path.getmtime(path) >= started or not has_update_left(config, steps):
            return "finished"
    # Callers in Python save models where they like; folders are copied without them.
    ended = not has_update_left(config, steps)
    if ended and config.get("command", "") is None:
        return "finished"
    if list_manifests(os.path.join(folder, "checkpoints")):
        return "resumable"
    return "finished" if ended else "stopped"


def has_update_left(config, steps) -> bool:
    """Whether a whole update fits into the agent steps that a run has left."""
    try:
        return steps + config["update_size"] <= config["arguments"]["num_timesteps"]
    except (KeyError, TypeError):
        return True
