"""Learning curves from the logs of runs."""

import contextlib
import os
import sys

import numpy as np

from baselines.bench.monitor import Monitor, read_monitors
from baselines.common.base.errors import (
    UserError,
    UserFileError,
    UserValueError,
    printable,
    shortened,
    suggest,
)
from baselines.common.base.tables import read_table
from baselines.common.views import results as plot_util

FRAMES_OF_A_STEP = 4  # in Atari and retro games
X_UNITS = {
    "steps": "agent steps",
    "frames": "frames",
    "episodes": "episodes",
    "minutes": "minutes",
}
# Columns in logs of this library, Stable-Baselines3 and OpenAI Baselines' algorithms.
STEPS = "total_timesteps", "time/total_timesteps", "misc/total_timesteps", "steps"
STEPS += "TimestepsSoFar", "total/steps"
EPISODES = "episodes", "time/episodes", "EpisodesSoFar", "total/episodes"
SECONDS = "time_elapsed", "time/time_elapsed", "misc/time_elapsed", "TimeElapsed"
SECONDS += ("total/duration",)
RETURNS = "eprewmean", "rollout/ep_rew_mean", "mean 100 episode reward"
RETURNS += "mean_episode_reward", "EpRewMean", "rollout/return_history"
# Settings that do not affect what is learned, and total_timesteps, as num_timesteps is
# compared.
NOT_COMPARED = {"seed", "total_timesteps", "resume", "play", "log_path"}
NOT_COMPARED |= {"worker_timeout", "overwrite"}
NOT_COMPARED |= {"save_path", "on_worker_failure", "log_interval", "print_freq"}
NOT_COMPARED |= {"checkpoint_interval", "checkpoint_path"}
NOT_COMPARED |= {"eval_interval", "eval_episodes", "stop_at"}
NOT_COMPARED |= {"save_video_interval", "save_video_length"}


def find_curves(logs, y=None):
    """Returns each curve's results by label, and the environment they share, or None.

    Runs with nothing to draw yet are left out with a warning, unless all are like that.

    Args:
        logs, y: as in ``plot``.
    """
    found = {}
    for log in logs:
        for label, place, result in find_results(log):
            # A run that is given twice counts once.
            found.setdefault((label, os.path.realpath(place)), (label, result))
    found = list(found.values())
    drawn = [pair for pair in found if has_numbers(pair[1], y)]
    for _, result in found:
        if drawn and not has_numbers(result, y):
            what = f"numbers of {y}" if y else "returns"
            warning = f"warning: {result.dirname} has no {what} yet"
            print(printable(warning), file=sys.stderr)
    curves, env = group_curves(drawn or found)
    chosen = {label for label, _ in found}
    for label, results in curves.items():
        warn_of_others(label, results, label in chosen)
    return curves, env


def has_numbers(result, y) -> bool:
    """Whether a run has numbers in the column ``y``, or returns if that is None."""
    if y is None and has_episodes(result):
        return True
    with contextlib.suppress(UserError):
        column = find_column(result, RETURNS if y is None else [y])
        return not np.isnan(column).all()
    return False


def group_curves(found):
    """Returns what ``find_curves`` does, for (label or None, ``Result``) pairs."""
    settings = [settings_of(result) for _, result in found]
    unnamed = [own for (label, _), own in zip(found, settings) if label is None]
    names = iter(name_curves(unnamed))
    curves = {}
    for label, result in found:
        curves.setdefault(label or next(names), []).append(result)
    envs = {own["env"] for own in settings}
    return curves, envs.pop() if len(envs) == 1 else None


def warn_of_others(label, results, chosen) -> None:
    """Warns if runs of one curve may differ in more than their seeds.

    Those whose label was ``chosen`` may, but not in their environment.
    """
    envs = {settings_of(result)["env"] for result in results} - {None}
    configs = [x.metadata for x in results if "arguments" in (x.metadata or {})]
    seeds = [config["arguments"].get("seed") for config in configs]
    repeated = [seed for seed in set(seeds) - {None} if seeds.count(seed) > 1]
    commits = list(map(commits_of, results))
    if len(envs) > 1:
        why = f"in {' and '.join(sorted(envs))}"
    elif chosen:
        return
    elif repeated:
        why = f"several have seed {repeated[0]}"
    elif names := sorted(
        name
        for name in set().union(*commits)
        if any(x.get(name) != commits[0].get(name) for x in commits)
    ):
        why = f"they differ in {', '.join(names)}"
    else:
        return
    warning = f"warning: {len(results)} runs are one curve, {label}, but {why}"
    print(printable(f"{warning}; LABEL=LOG separates them"), file=sys.stderr)


def commits_of(result) -> dict:
    """Returns the Git commits that a run began with, as config.json names them."""
    config = result.metadata or {}
    versions = config.get("versions", {}) if "arguments" in config else {}
    return {k: v for k, v in versions.items() if k.startswith("commit") and v}


def find_results(log) -> list:
    """Returns (label or None, place, ``Result``) for each run at a ``[LABEL=]PATH``.

    The place is the path of its folder or file.
    """
    parts = os.fspath(log).split("=")
    for i in range(len(parts)):
        path = os.path.expanduser("=".join(parts[i:]))
        if os.path.exists(path):
            break
    else:
        raise UserFileError(f"there is no log in {log}: no such file or folder")
    label = "=".join(parts[:i]) or None
    if os.path.isdir(path):
        return [(label, result.dirname, result) for result in find_runs(path)]
    if path.endswith(Monitor.EXT):
        result = plot_util.Result(monitor=read_monitors([path]), dirname=path)
    else:
        name = path.removesuffix("/progress.csv").removesuffix(".csv")
        result = plot_util.Result(progress=read_table(path), dirname=name)
    return [(label, path, result)]


def find_runs(folder) -> list:
    """Returns a ``Result`` for each log folder at or below a folder, at least one.

    Raises:
        UserFileError: if there is no log folder.
        UserValueError: if a file is damaged.
    """
    results, errors = try_runs(folder)
    if errors:
        raise errors[0]
    return results


def try_runs(folder):
    """Returns what ``find_runs`` does, and a UserError for each damaged log folder.

    Raises:
        UserFileError: if there is no log folder.
    """
    errors = []
    results = plot_util.load_results(folder, lose=errors.append)
    if not results and not errors:
        raise UserFileError(
            f"there is no log in {folder}: neither progress.csv nor *.{Monitor.EXT} in "
            "it or below"
        )
    return results, errors


def settings_of(result) -> dict:
    """Returns the settings that runs of one curve share, with ``alg`` and ``env``."""
    config = result.metadata
    try:
        arguments = config["arguments"]
        found = {"ranks": config["ranks"], **arguments, **config["settings"]}
        found |= config.get("described", {})
        found |= {"alg": arguments["alg"], "env": arguments["env"]}
    except (TypeError, KeyError):  # from another library, or not stored
        headers = getattr(result.monitor, "headers", [{}])
        name, env = plot_util.task_name(result.dirname), headers[0].get("env_id")
        return {"alg": name, "env": env if isinstance(env, str) else None}
    return {k: v for k, v in found.items() if k not in NOT_COMPARED}


def name_curves(settings) -> list:
    """Returns a label for each run that distinguishes it from all but its other seeds.

    Args:
        settings: settings of each run.
    """
    several = len({own["env"] for own in settings}) > 1
    names = [
        [own["alg"], *[own["env"]] * (several and bool(own["env"]))] for own in settings
    ]
    return [
        shortened(", ".join(name + differences))
        for name, differences in zip(names, find_differences(settings))
    ]


def find_differences(settings) -> list:
    """Returns ``name=value`` for the settings in which runs of one task differ.

    Args:
        settings: settings of each run; only those of the same algorithm and environment
            are compared.

    Returns:
        a list for each run.
    """
    tasks = {}
    for own in settings:
        tasks.setdefault((own["alg"], own["env"]), []).append(own)
    differing = {
        task: sorted(
            key
            for key in set().union(*runs)
            if any(own.get(key) != runs[0].get(key) for own in runs)
        )
        for task, runs in tasks.items()
    }
    return [
        [f"{key}={own[key]}" for key in differing[own["alg"], own["env"]] if key in own]
        for own in settings
    ]


def read_points(result, x, y, window):
    """Returns x, y and smoothed y of a run, [n] each; for arguments, see ``plot``."""
    if y is None and has_episodes(result):
        xs, ys = x_of_episodes(result.monitor, x), result.monitor.r
        window = window or 100
    elif y is None and result.progress is None:
        raise UserValueError(f"{result.dirname} has no episode yet")
    else:
        ys = find_column(result, RETURNS if y is None else [y])
        xs = x_of_rows(result, x)
    if x == "frames":
        env_type = settings_of(result).get("env_type")
        if env_type not in (None, "atari", "retro"):
            raise UserValueError(
                f"--x=frames is for Atari and retro games; {result.dirname} is of "
                f"{env_type}: take --x=steps"
            )
        xs = xs * FRAMES_OF_A_STEP
    known = ~np.isnan(xs) & ~np.isnan(ys)
    if not known.any():
        raise UserValueError(f"{result.dirname} has no numbers to draw yet")
    xs, ys = xs[known], ys[known]
    falls = np.flatnonzero(np.diff(xs) < 0)
    if falls.size and x != "minutes":  # which may be estimates, from rounded fps
        before, after = xs[falls[0] : falls[0] + 2]
        raise UserValueError(
            f"{result.dirname} has rows of several runs: {x} fall from {before:g} to "
            f"{after:g}; draw files that have one run each"
        )
    return xs, ys, plot_util.smooth(ys, window or 1, mode="causal")


def has_episodes(result) -> bool:
    return result.monitor is not None and len(result.monitor) > 0


def x_of_episodes(monitor, x):
    if x == "minutes":
        return monitor.t / 60
    if x == "episodes":
        return np.arange(1.0, len(monitor) + 1)
    return plot_util.steps_of(monitor)


def x_of_rows(result, x):
    if x == "minutes":
        return minutes_of_rows(result)
    return find_column(result, EPISODES if x == "episodes" else STEPS)


def minutes_of_rows(result):
    """Returns the minutes of training after which a run's rows were written."""
    for name in SECONDS:
        if name in result.progress.dtype.names:
            return result.progress[name] / 60
    steps = find_column(result, STEPS)
    if not (result.metadata or {}).get("resumed"):
        return steps / find_column(result, ["fps", "time/fps"]) / 60
    # In a resumed run, fps counts only from its latest start.
    if not has_episodes(result):
        raise UserValueError(
            f"{result.dirname} was resumed, and without monitor files nothing says "
            "when its rows were written: take --x=steps"
        )
    monitor = result.monitor
    return np.interp(steps, plot_util.steps_of(monitor), monitor.t) / 60


def find_column(result, names):
    """Returns the first of the named columns that the rows of a run have."""
    if result.progress is None:
        raise UserFileError(f"there is no progress.csv in {result.dirname}")
    known = result.progress.dtype.names
    for name in names:
        if name in known:
            return result.progress[name]
    raise UserValueError(
        f"the rows of {result.dirname} have no column {names[0]!r}"
        f"{suggest(names[0], known)}; they have {', '.join(known) or 'none yet'}"
    )
