"""The report's page: a template, and pictures that are embedded in it."""

import contextlib
import io
import itertools
import os
import re

import numpy as np

from baselines.common.base.errors import UserValueError
from baselines.common.base.lazy import import_extra
from baselines.common.views.curves import (
    X_UNITS,
    group_by_env,
    has_episodes,
    has_numbers,
    read_y,
)
from baselines.common.views.drawing import STYLES, draw_curves, draw_histogram

MARK = "<!-- python -m baselines.report -->"  # in the template, to know a report by
# Columns of progress.csv that have a picture, in logs of other libraries as well.
SHOWN = re.compile("eval_eprewmean|eval/mean_reward|loss|entropy|kl", re.I)
SHARE = 0.02  # of the rows of a column, in each mean that is drawn
SIZE = 5, 3.2  # of a picture, in inches, with text that is readable on a phone


def render(**values) -> str:
    """Returns the page; values that the template does not mark as HTML are escaped."""
    jinja2 = import_extra("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(values)


def is_page(path) -> bool:
    """Whether a file is a page that ``render`` made."""
    if not os.path.isfile(path):
        return False
    with open(path, errors="replace") as file:
        return MARK in file.read(200)


def draw_pictures(results) -> list:
    """Returns name, legend and pictures of each environment of some runs.

    Returns:
        for each environment, its name, (label, line style, color) of each curve, and
        (caption, SVG) of each picture: returns against agent steps and minutes, without
        runs in which no episode has ended; evaluations, losses, entropies and KL
        divergences; of a single run, a histogram of its returns.
    """
    # Text stays text in the SVG, names from files are not read as formulas, and noise
    # does not make large files.
    look = {"svg.fonttype": "none", "text.parse_math": False}
    look["path.simplify_threshold"] = 1.0  # pixels
    envs = group_by_env([(None, result) for result in results])
    pictures = []
    with import_extra("matplotlib").rc_context(look):
        for env, curves in envs.items():
            legend = [
                (f"{label} ({len(runs)} runs)" if len(runs) > 1 else label, *style)
                for (label, runs), style in zip(curves.items(), itertools.cycle(STYLES))
            ]
            drawn = [(caption, svg(figure)) for caption, figure in draw_all(curves)]
            pictures.append((env, legend, drawn))
    return pictures


def draw_all(curves):
    """Yields (caption, figure) of one environment, see ``draw_pictures``."""
    results = list(itertools.chain(*curves.values()))
    tables = [result.progress for result in results if result.progress is not None]
    columns = dict.fromkeys(filter(SHOWN.search, itertools.chain(*tables)))
    columns = sorted(columns, key=lambda name: "eval" not in name)  # They come first.
    for x, y in [("steps", None), ("minutes", None), *(("steps", y) for y in columns)]:
        drawn = {
            label: [run for run in runs if has_numbers(run, y)]
            for label, runs in curves.items()
        }
        runs = itertools.chain(*drawn.values())
        counts = [np.isfinite(read_y(run, y)).sum() for run in runs]
        if not counts:
            continue
        smooth = max(1, int(SHARE * np.median(counts))) if y else None
        with contextlib.suppress(UserValueError):  # Not all logs have times.
            figure = draw_curves(drawn, [x], y, smooth, size=SIZE, legend=False)
            yield f"{y or 'Returns'} against {X_UNITS[x]}", figure
    if len(results) == 1 and has_episodes(results[0]):
        returns = results[0].monitor.r.to_numpy()
        yield "Returns of episodes", draw_histogram(returns, SIZE)


def svg(figure) -> str:
    """Returns a figure as an SVG element for a page."""
    text = io.StringIO()
    nothing = dict.fromkeys(["Creator", "Date", "Format", "Type"])
    figure.savefig(text, format="svg", metadata=nothing)
    text = text.getvalue()
    # Numbered ids would clash with those of other pictures; nothing refers to them.
    return re.sub(r' id="[\w.]*_\d+"', "", text[text.index("<svg") :])
