"""What a log folder says about its run: its progress, its scores and its state."""

import os
from datetime import datetime

import numpy as np

from baselines.common.base.amounts import duration, four_digits
from baselines.common.base.errors import UserError
from baselines.common.saving import log_folder
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.progress import has_update_left, planned_timesteps
from baselines.common.views import curves
from baselines.common.views.results import smooth, steps_of


def describe_run(result) -> dict:
    """Returns what is known about a run; None for what is unknown.

    Args:
        result: a ``Result`` of ``find_runs``.

    Returns:
        a dict of JSON values. ``num_timesteps`` are the agent steps so far,
        ``total_timesteps`` those that it is to have in the end, ``seconds`` those of
        training so far. ``last_return`` is the mean return of the last 100 episodes, or
        of all if there are fewer, and ``best_return`` the best mean return of 100
        episodes in a row. For ``state``, see ``find_state``.
    """
    config = curves.config_of(result)
    arguments = config.get("arguments", {})
    last_return, best_return = read_scores(result)
    steps = count_steps(result)
    return {
        "folder": result.dirname,
        "alg": arguments.get("alg"),
        "env": curves.settings_of(result)["env"],
        "seed": arguments.get("seed"),
        "num_timesteps": steps,
        "total_timesteps": planned_timesteps(config),
        "seconds": count_seconds(result),
        "last_return": last_return,
        "best_return": best_return,
        "changed": find_change(result.dirname).isoformat("T", "seconds"),
        "state": find_state(result.dirname, config, steps),
    }


def cells_of(run) -> dict:
    """Returns the cells of a run of ``describe_run`` in a table, by column."""

    def text(value):
        if value is None:
            return "–"
        return four_digits(value) if isinstance(value, float) else str(value)

    total = run["total_timesteps"]
    return {
        "folder": run["folder"],
        "algorithm": text(run["alg"]),
        "environment": text(run["env"]),
        "seed": text(run["seed"]),
        "agent steps": f"{run['num_timesteps'] or 0:,}"
        + (f" of {total:,}" if total else ""),
        "last": text(run["last_return"]),
        "best": text(run["best_return"]),
        "time": text(run["seconds"] and duration(run["seconds"])),
        "last change": run["changed"][:16].replace("T", " "),
        "state": run["state"],
    }


def read_scores(result):
    """Returns the last and the best mean return of 100 episodes, None if unknown."""
    if curves.has_episodes(result):
        means = smooth(result.monitor.r, 100, mode="causal")
        best = means[99:]
    else:
        best = means = read_known(result, curves.RETURNS)
    return (
        float(means[-1]) if len(means) else None,
        float(best.max()) if len(best) else None,
    )


def count_steps(result):
    """Returns the number of agent steps of a run, None if it is unknown."""
    counts = [int(steps) for steps in read_known(result, curves.STEPS)[-1:]]
    for path in list_manifests(os.path.join(result.dirname, "checkpoints")):
        counts.append(log_folder.checkpoint_steps(path))
    if not counts and curves.has_episodes(result):
        counts.append(int(steps_of(result.monitor)[-1]))
    return max(counts, default=None)


def count_seconds(result):
    """Returns how many seconds a run was trained for, None if that is unknown."""
    seconds = list(read_known(result, curves.SECONDS)[-1:])
    if curves.has_episodes(result):
        seconds.append(result.monitor.t.iloc[-1])
    return float(max(seconds)) if seconds else None


def read_known(result, names) -> np.ndarray:
    """Returns the numbers in the first of some columns that the rows have."""
    try:
        numbers = curves.find_column(result, names)
    except UserError:  # no such column
        return np.zeros(0)
    return numbers[np.isfinite(numbers)]


def find_change(folder) -> datetime:
    """Returns when a run last wrote to its log, in local time."""
    logs = log_folder.find_run_files(folder, log_folder.LOG_FILES) or [folder]
    return datetime.fromtimestamp(max(map(os.path.getmtime, logs))).astimezone()


def find_state(folder, config, steps) -> str:
    """Returns whether a run is running, finished, resumable or stopped.

    It is running while a process writes to its folder. Otherwise it is finished if no
    update is left or its model was saved, resumable if it has checkpoints, and stopped
    if it has neither.

    Args:
        folder: its path.
        config: of ``config_of``.
        steps: agent steps so far, or None.
    """
    if log_folder.is_locked(folder):
        return "running"
    if not has_update_left(config, steps):
        return "finished"
    save_path = config.get("arguments", {}).get("save_path")
    model = os.path.expanduser(save_path or os.path.join(folder, log_folder.MODEL_FILE))
    if config and os.path.isfile(model):
        # Every start writes config.json, and every end, even by stop_at, the model.
        started = os.path.getmtime(os.path.join(folder, "config.json"))
        if os.path.getmtime(model) >= started:
            return "finished"
    has_checkpoints = list_manifests(os.path.join(folder, "checkpoints"))
    return "resumable" if has_checkpoints else "stopped"
