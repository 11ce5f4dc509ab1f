"""Pictures of learning curves, drawn with matplotlib."""

import itertools
import textwrap

import numpy as np

from baselines.common.base.lazy import import_extra
from baselines.common.views.curves import (
    X_UNITS,
    common_range,
    find_interval,
    has_episodes,
    read_points,
)
from baselines.common.views.results import COLORS

GREYS = "black", "0.5", "0.7"  # for references
BANDS = {
    "range": "lowest to highest",
    "std": "standard deviation",
    "ci95": "95 % confidence",
}
STYLES = list(itertools.product(["-", "--", ":"], COLORS))  # of curves, in order
LEGEND_WIDTH = 90  # characters, for a picture of seven inches


def draw_curves(
    curves,
    x,
    y=None,
    smooth=None,
    references=(),
    title=None,
    band="range",
    size=(7, 4),
    legend=True,
):
    """Returns a figure with a panel of curves for each x axis.

    Args:
        curves: ``Result``s of the seeds of each curve, by its label; a curve without
            any keeps its colour from the others.
        x: list of keys of ``X_UNITS``.
        y, smooth, title, band: as in ``plot``.
        references: list of (label, x, y), with None as the x of a horizontal line.
        size: width, and height without the legend, in inches.
        legend: whether there is one.
    """
    figure = import_extra("matplotlib.figure").Figure(size, layout="constrained")
    short_numbers = import_extra("matplotlib.ticker").EngFormatter(sep="")
    axes = figure.subplots(1, len(x), sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, x):
        for i, (label, results) in enumerate(curves.items()):
            line, color = STYLES[i % len(STYLES)]
            seeds = [read_points(result, name, y, smooth) for result in results]
            if seeds:
                has_raw = len(curves) <= len(COLORS)  # More would hide the curves.
                draw_curve(axis, label, seeds, band, has_raw, color=color, ls=line)
        axis.set_xlim(left=0)
        right = axis.get_xlim()[1]  # of the runs, not of the references
        for (label, xs, ys), color in zip(references, itertools.cycle(GREYS)):
            style = {"color": color, "lw": 1.2, "label": label or None}
            if xs is None:
                axis.axhline(ys, ls=":", **style)
            elif axis is axes[0]:
                axis.plot(xs[xs <= right], ys[xs <= right], ls="--", **style)
        axis.set(xlabel=X_UNITS[name], xlim=(0, right))
        if name != "minutes":  # 0.5 would be 500m.
            axis.xaxis.set_major_formatter(short_numbers)
        axis.grid(alpha=0.3)
    axes[0].set(ylabel=name_y(curves, y, smooth))
    if title:
        figure.suptitle(textwrap.fill(title, 70))
    if not legend:
        return figure
    handles, labels = axes[0].get_legend_handles_labels()
    labels = [textwrap.fill(label, LEGEND_WIDTH - 10) for label in labels]
    columns = max(1, LEGEND_WIDTH // (10 + max(map(len, labels), default=1)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    figure.set_figheight(size[1] + 0.2 * np.ceil(len(labels) / columns))
    return figure


def name_y(curves, y=None, smooth=None) -> str:
    """Returns the label of the y axis."""
    if y is None and all(map(has_episodes, itertools.chain(*curves.values()))):
        return f"mean return of {smooth or 100} episodes"
    name = y or "mean return"
    return f"{name}, mean of {smooth} rows" if (smooth or 1) > 1 else name


def draw_curve(axis, label, seeds, band, has_raw, **style) -> None:
    """Draws a single run, or the mean and the band of several where all have begun.

    Args:
        seeds: what ``read_points`` returned for each.
        has_raw: whether a single run has its unsmoothed values behind it.
    """
    first, last = common_range(seeds)
    if len(seeds) == 1 or first > last:  # There is nothing to average.
        for xs, raw, smoothed in seeds:
            if has_raw and not np.array_equal(raw, smoothed):
                axis.plot(xs, raw, lw=0.5, alpha=0.3, color=style["color"])
            marker = "o" if len(xs) == 1 else None  # A line of one point is invisible.
            axis.plot(xs, smoothed, label=label, marker=marker, **style)
            label = None
        return
    xs = np.linspace(first, last, 500)
    ys = np.array([np.interp(xs, old, smoothed) for old, _, smoothed in seeds])
    low, high = find_band(ys, band)
    label = f"{label} ({len(seeds)} runs, {BANDS[band]})"
    axis.fill_between(xs, low, high, color=style["color"], alpha=0.2, lw=0)
    marker = "o" if first == last else None
    axis.plot(xs, np.mean(ys, axis=0), label=label, marker=marker, **style)


def find_band(ys, band):
    """Returns the lower and the upper end of a band for the curves of runs.

    Args:
        ys: [runs, points]
        band: as in ``plot``.
    """
    if band == "range":
        return np.min(ys, axis=0), np.max(ys, axis=0)
    if band == "std":
        mean, deviation = np.mean(ys, axis=0), np.std(ys, axis=0, ddof=1)
        return mean - deviation, mean + deviation
    return find_interval(ys)


def draw_histogram(returns, size):
    """Returns a figure with histograms of the returns of all and the last 100 episodes.

    Args:
        returns: of the episodes in the order in which they ended, [n].
        size: width and height in inches.
    """
    figure = import_extra("matplotlib.figure").Figure(size, layout="constrained")
    axis = figure.subplots()
    edges = np.histogram_bin_edges(returns, 30)
    if np.all(returns == np.round(returns)) and np.ptp(returns) < 60:
        # One bar per score: if bars cover uneven numbers of scores, it looks like gaps.
        edges = np.arange(returns.min() - 0.5, returns.max() + 1)
    shown = {f"all {len(returns):,}": (returns, "0.7")}
    if len(returns) > 100:
        shown["last 100"] = returns[-100:], COLORS[0]
    for label, (values, color) in shown.items():
        weights = np.full(len(values), 100 / len(values))
        axis.hist(values, edges, weights=weights, label=label, color=color, alpha=0.6)
    axis.set(xlabel="return", ylabel="% of the episodes")
    axis.legend()
    axis.grid(alpha=0.3)
    return figure
