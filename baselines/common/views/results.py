"""Reads and smooths logs of runs for your own plots, under OpenAI Baselines' names.

``python -m baselines.plot`` uses these functions as well.
"""

import os
import re
from typing import NamedTuple

import numpy as np

from baselines import logger
from baselines.bench import Monitor
from baselines.bench import load_results as load_episodes
from baselines.bench.monitor import PACKED
from baselines.common.base.errors import (
    UserError,
    UserFileError,
    UserValueError,
    printable,
)
from baselines.common.base.tables import read_table
from baselines.common.run.settings import OWN
from baselines.common.saving.config import check_config
from baselines.common.saving.files import read_json
from baselines.common.views.drawing import import_matplotlib

COLORS = (  # six of Okabe and Ito, and two more
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#6A3D9A", "#7F4F24"),
)


class Result(NamedTuple):
    """The content of a log folder; None for what is missing or was not asked for.

    Where OpenAI Baselines has data frames, there are record arrays of numbers here:
    ``result.monitor.r`` and ``result.progress["time/fps"]`` are columns.

    Attributes:
        monitor: the episodes, from ``baselines.bench.load_results``.
        progress: the rows of ``progress.csv``.
        dirname: the folder.
        metadata: the content of ``config.json``, or of ``metadata.json``.
    """

    monitor: np.recarray | None = None
    progress: np.recarray | None = None
    dirname: str | None = None
    metadata: dict | None = None


def load_results(
    root_dir_or_dirs,
    enable_progress=True,
    enable_monitor=True,
    verbose=False,
    lose=None,
) -> list:
    """Returns a ``Result`` for each log folder at or below the given folders.

    Args:
        root_dir_or_dirs: a folder or several.
        enable_progress: whether to read ``progress.csv``.
        enable_monitor: whether to read monitor files.
        verbose: whether to print the folders that were read.
        lose: called with the UserError of a log folder that cannot be read; None to
            raise it.

    Raises:
        UserFileError: if one of the folders does not exist.
        UserValueError: if a file is not in its format.
    """
    if isinstance(root_dir_or_dirs, (str, os.PathLike)):
        root_dir_or_dirs = [root_dir_or_dirs]
    results = []
    for root in map(os.path.expanduser, root_dir_or_dirs):
        if not os.path.isdir(root):
            raise UserFileError(f"there is no folder {root}")
        for dirname, folders, files in os.walk(root):
            folders.sort()
            try:
                result = load_result(dirname, files, enable_progress, enable_monitor)
            except UserError as error:
                if lose is None:
                    raise
                lose(error)
                continue
            if result is not None:
                results.append(result)
                if verbose:
                    print(printable(f"read {dirname}"))
    return results


def load_result(folder, files, enable_progress=True, enable_monitor=True):
    """Returns the ``Result`` of one log folder; None if it has no log.

    Args:
        folder: its path.
        files: names of the files in it.
        enable_progress, enable_monitor: as in ``load_results``.

    Raises:
        UserFileError, UserValueError: if a file cannot be read, or is damaged.
    """
    has_episodes = PACKED in files
    has_episodes |= any(name.endswith(Monitor.EXT) for name in files)
    has_episodes &= enable_monitor
    has_rows = enable_progress and "progress.csv" in files
    if not (has_episodes or has_rows):
        return None
    monitor = load_episodes(folder) if has_episodes else None
    progress = read_table(os.path.join(folder, "progress.csv")) if has_rows else None
    return Result(monitor, progress, folder, read_metadata(folder))


def read_metadata(folder):
    """Returns the dict in which a run described itself; None if there is none.

    Raises:
        UserFileError, UserValueError: if it cannot be read, or is damaged.
    """
    for name in ("config.json", "metadata.json"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            metadata = read_json(path)
            try:
                if not isinstance(metadata, dict):
                    raise UserValueError("it is not a JSON object")
                if "arguments" in metadata:  # of this library
                    check_config(metadata, OWN)
            except UserValueError as error:
                raise UserValueError(f"{path} is damaged: {error}") from None
            return metadata
    return None


def task_name(dirname) -> str:
    """Returns the name of a log folder without the part that distinguishes seeds.

    ``pong/seed_0`` and ``pong/1`` are ``pong``; ``fast_seed_0`` and ``fast-1`` are
    ``fast``.
    """
    path = os.path.abspath(dirname)
    return os.path.basename(re.sub(r"([-_/]seed[-_]?\d+|[-/]\d+)$", "", path))


def smooth(y, radius, mode="two_sided", valid_only=False) -> np.ndarray:
    """Returns means over a moving window, which is shorter at the ends.

    Args:
        y: numbers, [n].
        radius: of the window.
        mode: ``two_sided`` for a window of ``radius`` numbers before and after each
            number, ``causal`` for one of the last ``radius`` numbers.
        valid_only: whether to put NaN where the window is shorter.
    """
    if mode not in ("two_sided", "causal"):
        raise UserValueError(f"mode is two_sided or causal, received {mode!r}")
    least = 1 if mode == "causal" else 0
    if radius < least:
        raise UserValueError(f"radius has to be at least {least}, received {radius}")
    if len(y) == 0:
        return np.zeros(0)
    # A wider window has the same numbers in it, or fewer than it is wide.
    reach = min(radius, len(y) + 1)
    start, window = (0, reach) if mode == "causal" else (reach, 2 * reach + 1)

    def sums(values):
        return np.convolve(values, np.ones(window))[start : start + len(y)]

    counts = sums(np.ones(len(y)))
    means = sums(y) / counts
    if valid_only:
        means[counts < window] = np.nan
    return means


def one_sided_ema(
    xolds, yolds, low=None, high=None, n=512, decay_steps=1.0, low_counts_threshold=1e-8
):
    """Resamples a curve as an exponential moving average of its earlier points.

    Args:
        xolds: ascending numbers, [m].
        yolds: numbers, [m].
        low: first x of the result, at least ``xolds[0]``, which is the default.
        high: last x of the result, at most ``xolds[-1]``, which is the default.
        n: number of points of the result.
        decay_steps: time constant of the average, in points of the result.
        low_counts_threshold: total weight up to which a point is NaN.

    Returns:
        xs, ys and total weights, [n] each.

    Raises:
        UserValueError: if the range is empty or goes beyond the curve.
    """
    xs, sums, counts = _ema_sums(xolds, yolds, low, high, n, decay_steps)
    return xs, _divide(sums, counts, low_counts_threshold), counts


def symmetric_ema(
    xolds, yolds, low=None, high=None, n=512, decay_steps=1.0, low_counts_threshold=1e-8
):
    """Resamples a curve as ``one_sided_ema`` does, from earlier and later points."""
    xs, sums, counts = _ema_sums(xolds, yolds, low, high, n, decay_steps)
    _, later_sums, later_counts = _ema_sums(
        -np.asarray(xolds)[::-1],
        np.asarray(yolds)[::-1],
        -xs[-1],
        -xs[0],
        n,
        decay_steps,
    )
    sums, counts = sums + later_sums[::-1], counts + later_counts[::-1]
    return xs, _divide(sums, counts, low_counts_threshold), counts


def _ema_sums(xolds, yolds, low, high, n, decay_steps):
    """Returns the x of an average's points, the sums of weighted y, and of weights."""
    xolds, yolds = np.asarray(xolds, float), np.asarray(yolds, float)
    low = xolds[0] if low is None else low
    high = xolds[-1] if high is None else high
    if not xolds[0] <= low < high <= xolds[-1]:
        raise UserValueError(
            f"cannot resample from {low} to {high}: the curve goes from {xolds[0]} to "
            f"{xolds[-1]}"
        )
    xs = np.linspace(low, high, n)
    # Each number counts from the first point that is not before it.
    points = np.searchsorted(xs, xolds)
    xolds, yolds, points = (x[points < n] for x in (xolds, yolds, points))
    weights = np.exp((xolds - xs[points]) / ((xs[1] - xs[0]) * decay_steps))
    sums = np.bincount(points, weights * yolds, n)
    counts = np.bincount(points, weights, n)
    decay = np.exp(-1 / decay_steps)
    for i in range(1, n):
        sums[i] += decay * sums[i - 1]
        counts[i] += decay * counts[i - 1]
    return xs, sums, counts


def _divide(sums, counts, threshold):
    nothing = np.full_like(sums, np.nan)
    return np.divide(sums, counts, out=nothing, where=counts > threshold)


def default_xy_fn(result):
    """Returns agent steps and smoothed returns of a run's episodes.

    Raises:
        UserValueError: if the run has no episodes that a Monitor reported.
    """
    if result.monitor is None:
        raise UserValueError(
            f"{result.dirname} has no monitor files, which Monitor and VecMonitor "
            "write; give an xy_fn that returns two columns of its progress"
        )
    return steps_of(result.monitor), smooth(result.monitor.r, radius=10)


def steps_of(monitor) -> np.ndarray:
    """Returns the agent steps over all environments at the end of each episode.

    Args:
        monitor: episodes as ``read_monitors`` returns them, or any with lengths ``l``,
            whose sums are taken then.
    """
    found = getattr(monitor, "agent_steps", None)
    return np.cumsum(monitor.l) if found is None else found


def default_split_fn(result) -> str:
    """Returns the name of a run's folder without its seed, as ``task_name`` does."""
    return task_name(result.dirname)


def plot_results(
    allresults,
    *,
    xy_fn=default_xy_fn,
    split_fn=default_split_fn,
    group_fn=default_split_fn,
    average_group=False,
    shaded_std=True,
    shaded_err=True,
    figsize=None,
    legend_outside=False,
    resample=0,
    smooth_step=1.0,
    xlabel=None,
    ylabel=None,
):
    """Draws runs in one panel for each task, in pyplot's current session.

    Args:
        allresults: list of ``Result``.
        xy_fn: function from a result to its x and y; x can be None, for 0, 1, 2, ...
        split_fn: function from a result to the title of its panel; None for one panel.
        group_fn: the same for its label, which sets its colour; None for one group.
        average_group: whether to draw the mean of each group instead of its curves.
        shaded_std: whether to shade one standard deviation around these means.
        shaded_err: whether to shade one standard error around these means.
        figsize: width and height in inches; None for 6 by 6 for each panel.
        legend_outside: whether the legend is to the right of the panel.
        resample: number of points of a ``symmetric_ema``; 0 for the original points,
            or for 512 where groups are averaged.
        smooth_step: ``decay_steps`` of the ``symmetric_ema``.
        xlabel: label of the x axes.
        ylabel: label of the y axes.

    Returns:
        the figure, and its axes, [panels, 1].
    """
    import_matplotlib()
    from matplotlib import pyplot

    panels = {}
    for result in allresults:
        title = split_fn(result) if split_fn else ""
        group = group_fn(result) if group_fn else ""
        x, y = xy_fn(result)
        if not len(y):
            logger.warn(f"{result.dirname} is left out: it has no points yet")
            continue
        x = np.arange(len(y)) if x is None else x
        panels.setdefault(title, {}).setdefault(group, []).append((x, y))
    if not panels:
        raise UserValueError("there is no result to plot")
    groups = sorted({group for curves in panels.values() for group in curves}, key=str)
    figure, axes = pyplot.subplots(
        len(panels),
        1,
        squeeze=False,
        figsize=figsize or (6, 6 * len(panels)),
        layout="constrained",
    )
    for panel, title in zip(axes[:, 0], sorted(panels, key=str)):
        for group, curves in panels[title].items():
            style = {"color": COLORS[groups.index(group) % len(COLORS)], "label": group}
            if average_group:
                n = resample or 512
                _draw_average(
                    panel, curves, n, smooth_step, shaded_std, shaded_err, style
                )
                continue
            for x, y in curves:
                if resample:
                    x, y, _ = symmetric_ema(x, y, n=resample, decay_steps=smooth_step)
                panel.plot(x, y, **style)
                style = {**style, "label": None}
        panel.set(title=title, xlabel=xlabel, ylabel=ylabel)
        if group_fn:
            outside = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
            panel.legend(**(outside if legend_outside else {}))
    return figure, axes


def _draw_average(panel, curves, n, smooth_step, shaded_std, shaded_err, style):
    """Draws the mean of curves where all of them have points, and bands around it."""
    low = max(x[0] for x, _ in curves)
    high = min(x[-1] for x, _ in curves)
    averages = [symmetric_ema(x, y, low, high, n, smooth_step) for x, y in curves]
    xs, ys = averages[0][0], [y for _, y, _ in averages]
    mean, std = np.mean(ys, axis=0), np.std(ys, axis=0)
    panel.plot(xs, mean, **style)
    for shaded, width, alpha in (
        (shaded_err, std / np.sqrt(len(ys)), 0.4),
        (shaded_std, std, 0.2),
    ):
        if shaded:
            panel.fill_between(
                xs, mean - width, mean + width, color=style["color"], alpha=alpha, lw=0
            )
