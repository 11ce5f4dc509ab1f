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
    suggest,
)
from baselines.common.base.lazy import import_extra
from baselines.common.base.tables import read_table
from baselines.common.views.results import (
    Result,
    load_results,
    smooth,
    steps_of,
    task_name,
)

FRAMES_OF_A_STEP = 4  # in Atari and retro games
X_UNITS = {
    "steps": "agent steps",
    "frames": "frames",
    "episodes": "episodes",
    "minutes": "minutes",
}
RESAMPLES = 2000  # of the runs, for confidence intervals
# Columns in logs of this library, Stable-Baselines3 and OpenAI Baselines' algorithms.
STEPS = "total_timesteps", "time/total_timesteps", "misc/total_timesteps", "steps"
STEPS += "TimestepsSoFar", "total/steps"
EPISODES = "episodes", "time/episodes", "EpisodesSoFar", "total/episodes"
SECONDS = "time_elapsed", "time/time_elapsed", "misc/time_elapsed", "TimeElapsed"
SECONDS += ("total/duration",)
RETURNS = "eprewmean", "rollout/ep_rew_mean", "mean 100 episode reward"
RETURNS += "mean_episode_reward", "EpRewMean", "rollout/return_history"
# Settings that do not affect what is learned.
NOT_COMPARED = {"seed", "resume", "play", "log_path", "save_path"}
NOT_COMPARED |= {"worker_timeout", "on_worker_failure", "overwrite", "log_interval"}
NOT_COMPARED |= {"print_freq", "checkpoint_interval", "checkpoint_path", "stop_at"}
NOT_COMPARED |= {"eval_interval", "eval_episodes"}
NOT_COMPARED |= {"save_video_interval", "save_video_length"}


def find_scored(logs, y=None) -> list:
    """Returns (label or None, ``Result``) for each run at some ``[LABEL=]PATH``s.

    Runs with nothing to draw yet are left out with a warning, unless all are like that.

    Args:
        logs, y: as in ``plot``.
    """
    runs = {}  # A run that is named twice counts once.
    for log in logs:
        for label, result in read_logs(log):
            runs[label, os.path.realpath(result.dirname)] = label, result
    runs = list(runs.values())
    drawn = [run for run in runs if has_numbers(run[1], y)]
    for _, result in runs:
        if drawn and not has_numbers(result, y):
            warning = f"warning: {result.dirname} has no {y or 'returns'} yet"
            print(warning, file=sys.stderr)
    return drawn or runs


def read_logs(log) -> list:
    """Returns (label or None, ``Result``) for each run at a ``[LABEL=]PATH``."""
    parts = os.fspath(log).split("=")
    for i in range(len(parts)):
        path = os.path.expanduser("=".join(parts[i:]))
        if os.path.exists(path):
            break
    else:
        raise UserFileError(f"there is no log in {log}: no such file or folder")
    label = "=".join(parts[:i]) or None
    if os.path.isdir(path):
        return [(label, result) for result in find_runs(path)]
    if path.endswith(Monitor.EXT):
        return [(label, Result(monitor=read_monitors([path]), dirname=path))]
    return [(label, Result(progress=read_table(path), dirname=path))]


def find_runs(folder) -> list:
    """Returns a ``Result`` for each log folder at or below a folder, at least one.

    Raises:
        UserFileError: if there is no log folder.
        UserValueError: if a file is damaged.
    """
    if results := load_results(folder):
        return results
    raise UserFileError(
        f"there is no log in {folder}: neither progress.csv nor *.{Monitor.EXT} in it "
        "or below"
    )


def has_numbers(result, y) -> bool:
    """Whether a run has numbers to draw; ``y`` as in ``plot``."""
    with contextlib.suppress(UserError):
        return not np.isnan(read_y(result, y)).all()
    return False


def group_curves(runs):
    """Returns each curve's results by label, and the environment they share, or None.

    Args:
        runs: (label or None, ``Result``) pairs.
    """
    settings = [settings_of(result) for _, result in runs]
    unnamed = [x for (label, _), x in zip(runs, settings) if label is None]
    names = iter(name_curves(unnamed))
    curves = {}
    for label, result in runs:
        curves.setdefault(label or next(names), []).append(result)
    envs = {x["env"] for x in settings}
    return curves, envs.pop() if len(envs) == 1 else None


def group_by_env(runs) -> dict:
    """Returns the results of each curve, by its label, for each environment by name."""
    envs = {}
    for run in runs:
        envs.setdefault(settings_of(run[1])["env"] or "–", []).append(run)
    return {env: group_curves(same)[0] for env, same in envs.items()}


def config_of(result) -> dict:
    """Returns the config.json of a run; an empty dict for one of another library."""
    config = result.metadata or {}
    return config if "arguments" in config else {}


def all_settings(config) -> dict:
    """Returns all settings that a run's config.json has, by name."""
    names = "arguments", "settings", "described"
    return {k: v for name in names for k, v in config.get(name, {}).items()}


def settings_of(result) -> dict:
    """Returns the settings that runs of one curve share, with ``alg`` and ``env``."""
    if config := config_of(result):
        settings = {"ranks": config.get("ranks"), **all_settings(config)}
        settings |= {name: config["arguments"].get(name) for name in ("alg", "env")}
        return {k: v for k, v in settings.items() if k not in NOT_COMPARED}
    header = {} if result.monitor is None else result.monitor.attrs["headers"][0]
    return {"alg": task_name(result.dirname), "env": header.get("env_id")}


def name_curves(settings) -> list:
    """Returns a label for each run that distinguishes it from all but its other seeds.

    Args:
        settings: settings of each run.
    """
    several = len({x["env"] for x in settings}) > 1
    return [
        ", ".join(filter(None, [x["alg"], several and x["env"], *others]))
        for x, others in zip(settings, find_differences(settings))
    ]


def find_differences(settings) -> list:
    """Returns a list of ``name=value`` for each run: where runs of one task differ.

    Args:
        settings: settings of each run; only those of the same algorithm and environment
            are compared.
    """
    tasks = {}
    for x in settings:
        tasks.setdefault((x["alg"], x["env"]), []).append(x)

    def differences(run):
        others = tasks[run["alg"], run["env"]]
        names = [k for k in run if any(x.get(k) != run[k] for x in others)]
        return [f"{name}={run[name]}" for name in sorted(names)]

    return list(map(differences, settings))


def read_points(result, x, y, window):
    """Returns x, y and smoothed y of a run, [n] each; for arguments, see ``plot``."""
    of_episodes = y is None and has_episodes(result)
    xs, ys = read_x(result, x, of_episodes), read_y(result, y)
    known = ~np.isnan(xs) & ~np.isnan(ys)
    xs, ys = xs[known], ys[known]
    if not len(xs):
        raise UserValueError(f"{result.dirname} has no numbers to draw yet")
    if x != "minutes" and np.any(np.diff(xs) < 0):  # Minutes may be estimates.
        raise UserValueError(
            f"{result.dirname} has rows of several runs, as its {x} fall; draw files "
            "that have one run each"
        )
    window = window or (100 if of_episodes else 1)
    return xs, ys, smooth(ys, window, mode="causal")


def common_range(seeds):
    """Returns the first and the last x that all runs have; the first may be larger.

    Args:
        seeds: what ``read_points`` returned for each.
    """
    return max(xs[0] for xs, *_ in seeds), min(xs[-1] for xs, *_ in seeds)


def find_interval(ys, cut=0) -> np.ndarray:
    """Returns the ends of a 95 % confidence interval of a mean over runs, [2, ...].

    It is made by bootstrap over runs, with the percentiles of their resamples (Agarwal
    et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical
    Precipice").

    Args:
        ys: [runs, ...]
        cut: number of the lowest, and of the highest, that the mean leaves out.
    """
    n = len(ys)
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    # How often each resample has each run, the lowest first, and how often of that
    # between its `cut` lowest and highest.
    last = np.clip(np.cumsum(counts, axis=1), cut, n - cut)
    kept = np.diff(last, axis=1, prepend=cut)
    means = kept @ np.sort(ys, axis=0) / (n - 2 * cut)
    return np.quantile(means, [0.025, 0.975], axis=0)


def read_y(result, y) -> np.ndarray:
    """Returns a column of a run's rows, or if ``y`` is None, its returns."""
    if y is None and has_episodes(result):
        return result.monitor.r.to_numpy()
    return find_column(result, RETURNS if y is None else [y])


def has_episodes(result) -> bool:
    return result.monitor is not None and len(result.monitor) > 0


def read_x(result, x, of_episodes) -> np.ndarray:
    """Returns where a run's episodes, or its rows, are on the x axis."""
    if x == "episodes":
        if of_episodes:
            return np.arange(1.0, len(result.monitor) + 1)
        return find_column(result, EPISODES)
    if x == "minutes" and of_episodes:
        return result.monitor.t.to_numpy() / 60
    if x == "minutes":
        with contextlib.suppress(UserValueError):
            return find_column(result, SECONDS) / 60
        fps = find_column(result, ["fps", "time/fps"])
        return find_column(result, STEPS) / fps / 60
    steps = steps_of(result.monitor) if of_episodes else find_column(result, STEPS)
    env_type = settings_of(result).get("env_type")
    if x == "frames" and env_type not in (None, "atari", "retro"):
        raise UserValueError(
            f"--x=frames is for Atari and retro games; {result.dirname} is of "
            f"{env_type}: take --x=steps"
        )
    return steps * FRAMES_OF_A_STEP if x == "frames" else steps


def find_column(result, names) -> np.ndarray:
    """Returns the first of the named columns that the rows of a run have.

    Cells that are not numbers become NaN.
    """
    if result.progress is None:
        raise UserFileError(f"{result.dirname} has no rows yet")
    known = list(result.progress.columns)
    for name in names:
        if name in known:
            column = result.progress[name]
            numbers = import_extra("pandas").to_numeric(column, errors="coerce")
            return numbers.to_numpy(float)
    raise UserValueError(
        f"the rows of {result.dirname} have no column {names[0]!r}"
        f"{suggest(names[0], known)}; they have {', '.join(known)}"
    )
