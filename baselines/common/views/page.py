"""The report's page: a template, and pictures that are embedded in it."""

import contextlib
import io
import os
import re

from baselines.common.base.errors import UserValueError
from baselines.common.base.lazy import import_extra
from baselines.common.views.curves import (
    X_UNITS,
    group_curves,
    has_episodes,
    has_numbers,
)
from baselines.common.views.drawing import draw_curves, draw_histogram

MARK = "<!-- python -m baselines.report -->"  # in the template, to know a report by
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
    """Returns (caption, SVG) of curves against agent steps and minutes.

    Runs in which no episode has ended are left out. For a single run, there is also a
    histogram of its returns.
    """
    # Text stays text in the SVG, and names from files are not read as formulas.
    style = {"svg.fonttype": "none", "text.parse_math": False}
    with import_extra("matplotlib").rc_context(style):
        return [(caption, svg(figure)) for caption, figure in draw_all(results)]


def draw_all(results):
    """Yields (caption, figure), see ``draw_pictures``."""
    scored = [(None, result) for result in results if has_numbers(result, None)]
    if not scored:
        return
    curves, _ = group_curves(scored)
    with contextlib.suppress(UserValueError):  # Not all logs have times.
        for x in ("steps", "minutes"):
            caption = f"Returns against {X_UNITS[x]}"
            yield caption, draw_curves(curves, [x], size=SIZE)
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
