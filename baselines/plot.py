"""Draws learning curves of runs: ``python -m baselines.plot LOGDIR... -o curve.png``.

Runs that differ only in their seed become one curve: their mean, up to where the
shortest ends, with a band around it. A single run is one line, with its episodes behind
it. Logs of OpenAI Baselines and of Stable-Baselines3 can be drawn as well.
"""

import contextlib
import csv
import itertools
import math
import os
import re
import sys
import textwrap

import numpy as np

from baselines.common.arguments import cli
from baselines.common.base.errors import UserFileError, UserValueError, suggest
from baselines.common.base.tables import read_text, to_number
from baselines.common.saving.files import check_output_file
from baselines.common.views import results as plot_util
from baselines.common.views.curves import (
    X_UNITS,
    find_curves,
    has_episodes,
    read_points,
)
from baselines.common.views.drawing import drawing_errors, import_matplotlib

SUFFIXES = ".png", ".svg", ".pdf"
GREYS = "black", "0.5", "0.7"  # for references
BANDS = {
    "range": "lowest to highest",
    "std": "standard deviation",
    "ci95": "95 % confidence",
}
RESAMPLES = 2000  # of the runs, for confidence intervals


def plot(
    logs,
    output,
    x="steps",
    y=None,
    smooth=None,
    references=(),
    title=None,
    band="range",
):
    """Draws learning curves into a file, and returns matplotlib's figure.

    Args:
        logs: paths of log folders, of folders above them, or of their CSV files, or a
            single one. Those that begin with the same ``LABEL=`` are seeds of one curve
            with that label.
        output: path of a PNG, SVG or PDF file.
        x: the x axis: ``steps`` (agent steps), ``frames`` (4 per step, in Atari and
            retro games), ``episodes``, ``minutes`` of training, or several of these
            separated by commas, for one panel each.
        y: a column of ``progress.csv``; None for the returns of the episodes in monitor
            files, or the column of mean returns if there are none.
        smooth: number of episodes, or of rows, over which each point is averaged; None
            for 100 episodes, or for unsmoothed rows.
        references: numbers, for horizontal lines, and paths of CSV files with an x (in
            agent steps, frames, episodes or minutes) and a y in each row, for dashed
            lines in the first panel; or a single one. ``FILE.csv:Pong:a2c`` takes only
            the rows ``Pong,a2c,x,y`` of a file with more columns. All may begin with
            ``LABEL=``.
        title: of the picture; None for the environment, if it is the same in all logs.
        band: around the mean of several runs: ``range``, from the lowest to the
            highest; ``std``, one standard deviation (divided by n - 1) below and above;
            ``ci95``, a 95 % confidence interval of the mean, by bootstrap over runs
            (Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the
            Statistical Precipice").

    Raises:
        UserFileError: if there is no log, or a file cannot be read or written.
        UserValueError: for an unknown column, suffix, x or band, or for a damaged file.
        MissingDependency: if matplotlib is not installed.
    """
    import_matplotlib()
    output = os.path.expanduser(output)
    check_output(output)
    names = str(x).split(",")
    for name in names:
        if name not in X_UNITS:
            raise UserValueError(
                f"unknown x {name!r}{suggest(name, X_UNITS)}; expected "
                f"{', '.join(X_UNITS)}, or several with commas"
            )
    if band not in BANDS:
        raise UserValueError(
            f"unknown band {band!r}{suggest(band, BANDS)}; expected {', '.join(BANDS)}"
        )
    if smooth is not None and smooth < 1:
        raise UserValueError(f"--smooth has to be at least 1, received {smooth}")
    logs = [logs] if isinstance(logs, (str, os.PathLike)) else logs
    if isinstance(references, (str, int, float)):
        references = [references]
    curves, env = find_curves(logs, y)
    references = [read_reference(text) for text in references]
    panels = [read_panel(curves, name, y, smooth) for name in names]
    title = env if title is None else title
    try:
        with drawing_errors():
            y_name = name_y(curves, y, smooth)
            figure = draw(panels, names, y_name, references, title, band=band)
            figure.savefig(output, dpi=110)
    except OSError as error:
        raise UserFileError(f"cannot write {output}: {error.strerror}") from None
    return figure


def read_panel(curves, x, y=None, smooth=None) -> dict:
    """Returns the points of each seed by the curve's label, see ``read_points``."""
    return {
        label: [read_points(result, x, y, smooth) for result in results]
        for label, results in curves.items()
    }


def name_y(curves, y=None, smooth=None) -> str:
    """Returns the label of the y axis for what ``read_panel`` returns."""
    if y is None and all(map(has_episodes, itertools.chain(*curves.values()))):
        return f"mean return of {smooth or 100} episodes"
    name = y or "mean return"
    return f"{name}, mean of {smooth} rows" if smooth else name


def check_output(path) -> None:
    """Raises an error unless a picture can be written to ``path``."""
    suffix = os.path.splitext(path)[1]
    if suffix not in SUFFIXES:
        raise UserValueError(
            f"cannot draw {path}: its name has to end in {', '.join(SUFFIXES)}"
        )
    check_output_file(path)


def read_reference(text):
    """Returns label, x and y of a ``[LABEL=]NUMBER`` or ``[LABEL=]FILE.csv[:CELL...]``.

    x is None for a number.
    """
    label, _, rest = str(text).rpartition("=")
    with contextlib.suppress(ValueError):
        return label, None, cli.parse_number(rest)
    match = re.fullmatch(r"(.*\.csv)((?::[^:]*)*)", rest)
    if not match:
        raise UserValueError(
            f"--reference takes a number or a path that ends in .csv, received {rest!r}"
        )
    path, cells = match[1], match[2].split(":")[1:]
    rows = list(csv.reader(read_text(os.path.expanduser(path)).splitlines()))
    points = [tuple(map(to_number, row[-2:])) for row in rows if row[:-2] == cells]
    points = sorted(point for point in points if np.isfinite(point).sum() == 2)
    if not points:
        name, known = ":".join(cells), {":".join(row[:-2]) for row in rows[1:]}
        raise UserValueError(
            f"{path} has no curve {name!r} of x and y{suggest(name, known)}"
        )
    xs, ys = np.array(points).T
    name = os.path.splitext(os.path.basename(path))[0]
    return label or " ".join([name, *cells]), xs, ys


def draw(panels, x, y, references=(), title=None, size=(7, 4), band="range"):
    """Returns a figure with panels of curves.

    Args:
        panels: for each name in ``x``, a dict from label to the curves of its seeds.
        x: the x axis of each panel, a key of ``X_UNITS``.
        y: label of the y axis.
        references: from ``read_reference``.
        title: of the picture, or None.
        size: width, and height without the legend, in inches.
        band: as in ``plot``.
    """
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    styles = list(itertools.product(["-", "--", ":"], plot_util.COLORS))
    for axis, name, curves in zip(axes, x, panels):
        # Several runs are drawn up to where the shortest ends.
        longest = max(end_of(seeds) for seeds in curves.values())
        right = 1.02 * longest
        scale = 1e6 if longest >= 1e6 and name in ("steps", "frames") else 1
        for i, (label, seeds) in enumerate(curves.items()):
            line, color = styles[i % len(styles)]
            draw_curve(axis, in_legend(label), seeds, scale, band, color=color, ls=line)
        for (label, xs, ys), color in zip(references, itertools.cycle(GREYS)):
            style = {"color": color, "lw": 1.2, "label": in_legend(label) or None}
            if xs is None:
                axis.axhline(ys, ls=":", **style)
            elif axis is axes[0]:
                xs, ys = cut(xs, ys, right)
                axis.plot(xs / scale, ys, ls="--", **style)
        axis.set(xlabel="million " * (scale > 1) + X_UNITS[name])
        axis.set_xlim(0, right / scale)
        axis.grid(alpha=0.3)
        axis.locator_params(axis="x", nbins=int(1.3 * size[0] / len(panels)))
        if scale == 1 and name != "minutes":
            axis.xaxis.set_major_formatter("{x:,.0f}")
    axes[0].set(ylabel=y)
    if title:
        figure.suptitle(textwrap.fill(title, 70))
    rows = add_legend(figure, *axes[0].get_legend_handles_labels())
    figure.set_figheight(size[1] + 0.2 * rows)
    return figure


def cut(xs, ys, right):
    """Returns the points of a curve up to x = ``right``, which the y axis is for."""
    if xs[-1] <= right:
        return xs, ys
    shown = xs < right
    return np.append(xs[shown], right), np.append(ys[shown], np.interp(right, xs, ys))


def in_legend(label) -> str:
    """Returns a label that matplotlib shows, as it leaves out those with a first _."""
    return f" {label}" if label.startswith("_") else label


def add_legend(figure, handles, labels) -> int:
    """Adds a legend below the panels and returns its number of rows."""
    labels = [textwrap.fill(label, 80) for label in labels]
    for columns in range(len(labels), 0, -1):
        place = {"loc": "outside lower center", "ncols": columns}
        legend = figure.legend(handles, labels, **place)
        if legend.get_window_extent().width < figure.bbox.width:
            break
        legend.remove()
    return math.ceil(len(labels) / columns)


def draw_curve(axis, label, seeds, scale, band, **style) -> None:
    """Draws a single run, or the mean and the band of several where all have begun."""
    first, last = common_range(seeds)
    if len(seeds) == 1 or first > last:  # There is nothing to average.
        for xs, raw, smoothed in seeds:
            if not np.array_equal(raw, smoothed):
                axis.plot(xs / scale, raw, lw=0.5, alpha=0.3, color=style["color"])
            marker = "o" if len(xs) == 1 else None  # A line of one point is invisible.
            axis.plot(xs / scale, smoothed, label=label, marker=marker, **style)
            label = None
        return
    grid = np.linspace(first, last, 500)
    ys = np.array([np.interp(grid, xs, smoothed) for xs, _, smoothed in seeds])
    with np.errstate(all="ignore"):  # Numbers of runs that diverged may be infinite.
        mean, (low, high) = np.mean(ys, axis=0), find_band(ys, band)
    label = f"{label} ({len(seeds)} runs, {BANDS[band]})"
    axis.fill_between(grid / scale, low, high, color=style["color"], alpha=0.2, lw=0)
    marker = "o" if first == last else None
    axis.plot(grid / scale, mean, label=label, marker=marker, **style)


def common_range(seeds) -> tuple:
    """Returns the first and the last x that all curves have; a larger first if none."""
    return max(xs[0] for xs, *_ in seeds), min(xs[-1] for xs, *_ in seeds)


def end_of(seeds) -> float:
    """Returns the x at which the drawing of the curves of several seeds ends."""
    first, last = common_range(seeds)
    return last if first <= last else max(xs[-1] for xs, *_ in seeds)


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
    # How often each resample has each run.
    counts = np.random.default_rng(0).multinomial(
        len(ys), np.full(len(ys), 1 / len(ys)), RESAMPLES
    )
    return np.quantile(counts @ ys / len(ys), [0.025, 0.975], axis=0)


def main(argv=None):
    """Runs the command line."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.plot", description=__doc__
    )
    add = parser.add_argument
    add(
        "logs",
        type=cli.parser_of(str),
        nargs="+",
        metavar="[LABEL=]LOG",
        help="a log folder, a folder above several, or a CSV file out of one; those "
        "with the same LABEL are one curve",
    )
    add(
        "-o",
        dest="output",
        type=cli.parser_of(str),
        metavar="FILE",
        required=True,
        help="PNG, SVG or PDF",
    )
    add(
        "--x",
        default="steps",
        help="steps (agent steps; the default), frames (4 a step), episodes, minutes, "
        "or several with commas, for a panel each",
    )
    add(
        "--y",
        type=cli.parser_of(str),
        metavar="COLUMN",
        help="of progress.csv (default: return of episodes)",
    )
    add(
        "--smooth",
        metavar="N",
        type=cli.parser_of(int),
        help="episodes (default: 100), or rows for --y, that each point is the mean of",
    )
    add(
        "--reference",
        dest="references",
        action="append",
        default=[],
        metavar="[LABEL=]REFERENCE",
        help="a number for a horizontal line, or a FILE.csv of rows x,y for a dashed "
        "curve (FILE.csv:a:b for its rows a,b,x,y); may be repeated",
    )
    add(
        "--band",
        default="range",
        help="around the mean of several runs: range (lowest to highest; the default), "
        "std (standard deviation) or ci95 (95%% confidence interval of the mean)",
    )
    add("--title", help="default: the environment, if all have the same")
    with cli.one_line_errors():
        given = parser.parse_args(sys.argv[1:] if argv is None else argv)
        plot(**vars(given))
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
