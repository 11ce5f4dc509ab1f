"""Reads and smooths logs of runs for your own plots, under OpenAI Baselines' names.

``python -m baselines.plot`` uses these functions as well.
"""

import os
import re
from typing import Any, NamedTuple

import numpy as np

from baselines.bench import Monitor
from baselines.bench import load_results as load_episodes
from baselines.bench.monitor import PACKED
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.base.lazy import import_extra
from baselines.common.base.tables import read_table
from baselines.common.saving.files import read_json

COLORS = (  # six of Okabe and Ito, and two more
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#6A3D9A", "#7F4F24"),
)


class Result(NamedTuple):
    """The content of a log folder; None for what is missing or was not asked for.

    Attributes:
        monitor: the episodes, a DataFrame from ``baselines.bench.load_results``.
        progress: the rows of ``progress.csv``, a DataFrame.
        dirname: the folder.
        metadata: the content of ``config.json``, or of ``metadata.json``.
    """

    monitor: Any = None
    progress: Any = None
    dirname: str | None = None
    metadata: dict | None = None


def load_results(
    root_dir_or_dirs, enable_progress=True, enable_monitor=True, verbose=False
) -> list:
    """Returns a ``Result`` for each log folder at or below the given folders.

    Args:
        root_dir_or_dirs: a folder or several.
        enable_progress: whether to read ``progress.csv``.
        enable_monitor: whether to read monitor files.
        verbose: whether to print the folders that were read.

    Raises:
        UserFileError: if one of the folders does not exist.
        UserValueError: if a file is not in its format.
        MissingDependency: if pandas is not installed.
    """
    if isinstance(root_dir_or_dirs, (str, os.PathLike)):
        root_dir_or_dirs = [root_dir_or_dirs]
    results = []
    for root in root_dir_or_dirs:
        for folder in find_logs(root):
            results.append(load_result(folder, enable_progress, enable_monitor))
            if verbose:
                print(f"read {folder}")
    return results


def find_logs(root) -> list:
    """Returns the paths of the log folders at or below a folder, sorted.

    Raises:
        UserFileError: if there is no such folder.
    """
    root = os.path.expanduser(root)
    if not os.path.isdir(root):
        raise UserFileError(f"there is no folder {root}")
    logs = "progress.csv", PACKED, Monitor.EXT
    walk = os.walk(root)
    return sorted({x for x, _, names in walk for name in names if name.endswith(logs)})


def load_result(folder, enable_progress=True, enable_monitor=True):
    """Returns the ``Result`` of one log folder; for arguments, see ``load_results``."""
    names = os.listdir(folder)
    path = os.path.join(folder, "progress.csv")
    has_episodes = PACKED in names or any(x.endswith(Monitor.EXT) for x in names)
    # Until a run writes its first row, the file is empty.
    has_rows = os.path.exists(path) and os.path.getsize(path) > 0
    monitor = load_episodes(folder) if enable_monitor and has_episodes else None
    progress = read_table(path) if enable_progress and has_rows else None
    described = [x for x in ("config.json", "metadata.json") if x in names]
    metadata = read_json(os.path.join(folder, described[0])) if described else None
    return Result(monitor, progress, folder, metadata)


def task_name(path) -> str:
    """Returns the name of a log folder, or file, without what distinguishes seeds.

    ``pong/seed_0`` and ``pong/1`` are ``pong``; ``fast_seed_0`` and ``fast-1`` are
    ``fast``.
    """
    path = re.sub(r"(/progress)?\.csv$", "", os.path.abspath(path))
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
    centred = mode == "two_sided"
    window = 2 * radius + 1 if centred else radius
    least = window if valid_only else 1
    numbers = import_extra("pandas").Series(np.asarray(y, float))
    return numbers.rolling(window, least, center=centred).mean().to_numpy()


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
    xolds, yolds = np.asarray(xolds, float), np.asarray(yolds, float)
    low = xolds[0] if low is None else low
    high = xolds[-1] if high is None else high
    if not xolds[0] <= low < high <= xolds[-1]:
        raise UserValueError(
            f"cannot resample from {low} to {high}: the curve goes from {xolds[0]} to "
            f"{xolds[-1]}"
        )
    xs = np.linspace(low, high, n)
    xolds, yolds = xolds[xolds <= high], yolds[xolds <= high]
    # Each number counts from the first point that is not before it.
    points = np.searchsorted(xs, xolds)
    weights = np.exp((xolds - xs[points]) / ((xs[1] - xs[0]) * decay_steps))
    sums = np.bincount(points, weights * yolds, n)
    counts = np.bincount(points, weights, n)
    decay = np.exp(-1 / decay_steps)
    for i in range(1, n):
        sums[i] += decay * sums[i - 1]
        counts[i] += decay * counts[i - 1]
    return xs, np.where(counts > low_counts_threshold, sums / counts, np.nan), counts


def symmetric_ema(
    xolds, yolds, low=None, high=None, n=512, decay_steps=1.0, low_counts_threshold=1e-8
):
    """Resamples a curve as ``one_sided_ema`` does, from earlier and later points."""
    xolds, yolds = np.asarray(xolds), np.asarray(yolds)
    xs, ys, counts = one_sided_ema(xolds, yolds, low, high, n, decay_steps, 0)
    backwards = -xolds[::-1], yolds[::-1], -xs[-1], -xs[0]
    _, later, later_counts = one_sided_ema(*backwards, n, decay_steps, 0)
    total = counts + later_counts[::-1]
    ys = (ys * counts + later[::-1] * later_counts[::-1]) / total
    return xs, np.where(total > low_counts_threshold, ys, np.nan), total


def default_xy_fn(result):
    """Returns agent steps and smoothed returns of a run's episodes."""
    return steps_of(result.monitor), smooth(result.monitor.r, radius=10)


def steps_of(monitor) -> np.ndarray:
    """Returns the agent steps over all environments at the end of each episode.

    Args:
        monitor: episodes as ``read_monitors`` returns them, or any with lengths ``l``,
            whose sums are taken then.
    """
    return monitor.get("agent_steps", monitor.l.cumsum()).to_numpy()


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
    pyplot = import_extra("matplotlib.pyplot")
    panels = {}
    for result in allresults:
        title, group = (fn(result) if fn else "" for fn in (split_fn, group_fn))
        x, y = xy_fn(result)
        curve = np.arange(len(y)) if x is None else np.asarray(x), np.asarray(y)
        if len(y):
            panels.setdefault(title, {}).setdefault(group, []).append(curve)
    if not panels:
        raise UserValueError("there is no result to plot")
    groups = sorted({group for curves in panels.values() for group in curves}, key=str)
    style = {"figsize": figsize or (6, 6 * len(panels)), "layout": "constrained"}
    figure, axes = pyplot.subplots(len(panels), squeeze=False, **style)
    for panel, title in zip(axes[:, 0], sorted(panels, key=str)):
        for group, curves in panels[title].items():
            style = {"color": COLORS[groups.index(group) % len(COLORS)], "label": group}
            if average_group:
                shaded, n = (shaded_std, shaded_err), resample or 512
                _draw_average(panel, curves, n, smooth_step, shaded, style)
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


def _draw_average(panel, curves, n, smooth_step, shaded, style):
    """Draws the mean of curves where all of them have points, and bands around it.

    Args:
        shaded: whether to draw the standard deviation, and the standard error.
    """
    low, high = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    averages = [symmetric_ema(x, y, low, high, n, smooth_step) for x, y in curves]
    xs, ys = averages[0][0], [y for _, y, _ in averages]
    mean, std = np.mean(ys, axis=0), np.std(ys, axis=0)
    panel.plot(xs, mean, **style)
    widths = (std, 0.2), (std / np.sqrt(len(ys)), 0.4)
    for (width, alpha), is_drawn in zip(widths, shaded):
        if is_drawn:
            band = {"color": style["color"], "alpha": alpha, "lw": 0}
            panel.fill_between(xs, mean - width, mean + width, **band)
