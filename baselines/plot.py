"""Draws learning curves of runs: ``python -m baselines.plot LOGDIR... -o curve.png``.

With ``--table``, it prints or writes a table of their final scores instead.

Runs that differ only in their seed become one curve: their mean, up to where the
shortest ends, with a band around it. A single run is one line, with its episodes behind
it. Logs of OpenAI Baselines and of Stable-Baselines3 can be drawn as well.
"""

import contextlib
import functools
import io
import os
import re
from typing import Annotated, Literal

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base.errors import UserValueError, suggest
from baselines.common.base.lazy import import_extra
from baselines.common.base.tables import read_table
from baselines.common.saving.files import check_writable, replace_file, writing
from baselines.common.views.curves import X_UNITS, find_scored, group_curves
from baselines.common.views.drawing import draw_curves
from baselines.common.views.table import make_table

SUFFIXES = ".png", ".svg", ".pdf"
TABLES = ".md", ".tex"
DPI = 110


def plot(
    logs: Annotated[
        list[str],
        "log folders, folders above several, or CSV files out of them; those with the "
        "same LABEL= are one curve",
    ],
    output: Annotated[
        str | None,
        "file to write, as -o FILE: PNG, SVG or PDF; of a table, which is printed "
        "without it, .md or .tex",
    ] = None,
    x: Annotated[str, f"{', '.join(X_UNITS)}, or several with commas"] = "steps",
    y: Annotated[
        str | None, "column of progress.csv (default: return of episodes)"
    ] = None,
    smooth: Annotated[
        arg.Count | None, "episodes (default: 100), or rows, of each mean"
    ] = None,
    references: Annotated[
        list[str],
        "--reference [LABEL=]NUMBER for a line, or [LABEL=]FILE.csv of rows x,y for a "
        "curve (FILE.csv:a:b for its rows a,b,x,y); may be repeated",
    ] = (),
    title: Annotated[
        str | None, "default: the environment, if all have the same"
    ] = None,
    band: Annotated[Literal["range", "std", "ci95"], "around the mean"] = "range",
    table: Annotated[bool, "whether to make a table of final scores instead"] = False,
):
    """Draws learning curves into a file, and returns matplotlib's figure.

    Jupyter shows it as the last value of a cell. Or makes a table of final scores, and
    returns its text.

    Args:
        logs: paths of log folders, of folders above them, or of their CSV files, or a
            single one. Those that begin with the same ``LABEL=`` are seeds of one curve
            with that label.
        output: path of a PNG, SVG or PDF file; with ``table``, of a file ``.md`` or
            ``.tex``, or None to print it.
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
        table: whether to make a table with a row for each environment instead, and a
            column for each curve: the mean of the runs where the curve ends, with its
            ``ci95`` and the number of runs. Of four or more, there is also the
            interquartile mean, as in the same paper. ``x`` is where seeds that differ
            in length are compared.

    Raises:
        UserFileError: if there is no log, or a file cannot be read or written.
        UserValueError: for an unknown column, suffix, x or band, for what a table does
            not have, or for a damaged file.
        MissingDependency: if matplotlib or pandas is not installed.
    """
    if output is None and not table:
        raise UserValueError("output is missing: -o FILE, or --table to print a table")
    if output is not None:
        output = os.path.abspath(os.path.expanduser(output))
        suffixes = TABLES if table else SUFFIXES
        check_choice("suffix", os.path.splitext(output)[1], suffixes)
        check_writable(*os.path.split(output))
    names = str(x).split(",")
    for name in names:
        check_choice("x", name, X_UNITS)
    logs = [logs] if isinstance(logs, (str, os.PathLike)) else logs
    if isinstance(references, (str, int, float)):
        references = [references]
    if table and (len(names) > 1 or references or title or band != "range"):
        raise UserValueError("--table has one --x, and no --reference, --title, --band")
    runs = find_scored(logs, y)
    if table:
        text = make_table(runs, x, y, smooth, latex=str(output).endswith(".tex"))
        write_text(text, output)
        return text
    curves, env = group_curves(runs)
    references = [read_reference(text) for text in references]
    title = env if title is None else title
    figure = draw_curves(curves, names, y, smooth, references, title, band=band)
    with writing(output):
        os.makedirs(os.path.dirname(output), exist_ok=True)
        figure.savefig(output, dpi=DPI)
    print(f"wrote {output}")
    # Otherwise, Jupyter shows only the figures of pyplot.
    figure._repr_png_ = functools.partial(make_png, figure)
    return figure


def write_text(text, path) -> None:
    """Writes a file, or prints the text if the path is None."""
    if path is None:
        print(text, end="")
    else:
        replace_file(path, text.encode())
        print(f"wrote {path}")


def make_png(figure) -> bytes:
    """Returns the content of a PNG file of a figure."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()


def check_choice(what, value, known) -> None:
    if value not in known:
        raise UserValueError(
            f"unknown {what} {value!r}{suggest(value, known)}; expected "
            f"{', '.join(known)}"
        )


def read_reference(text):
    """Returns label, x and y of a ``[LABEL=]NUMBER`` or ``[LABEL=]FILE.csv[:CELL...]``.

    x is None for a number.
    """
    label, _, place = str(text).rpartition("=")
    with contextlib.suppress(ValueError):
        return label, None, float(place)
    match = re.fullmatch(r"(.*\.csv)((?::[^:]*)*)", place)
    if not match:
        raise UserValueError(
            "--reference takes a number or a path that ends in .csv, received "
            f"{place!r}"
        )
    path, cells = match[1], match[2].split(":")[1:]
    rows = read_table(os.path.expanduser(path), header=None, dtype=str)
    names = rows.iloc[:, :-2].agg(":".join, axis=1)
    numbers = rows.iloc[:, -2:].apply(
        import_extra("pandas").to_numeric,
        errors="coerce",  # A header is no number.
    )
    points = numbers[names == ":".join(cells)].dropna().sort_values([*numbers])
    if points.empty:
        name = ":".join(cells)
        raise UserValueError(
            f"{path} has no curve {name!r} of x and y{suggest(name, set(names[1:]))}"
        )
    xs, ys = points.to_numpy().T
    name = os.path.splitext(os.path.basename(path))[0]
    return label or " ".join([name, *cells]), xs, ys


def main(argv=None):
    """Runs the command line."""
    cli.command(plot, argv, {"-o": "--output", "--reference": "--references"})


if __name__ == "__main__":
    main()
