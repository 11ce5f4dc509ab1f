"""Writes a page about runs: ``python -m baselines.report LOGDIR... [-o report.html]``.

The page is one self-contained HTML file with pictures. A single run is shown with its
scores, settings, versions, and the commands to continue; several runs are shown side by
side, with only the settings in which they differ.
"""

import contextlib
import importlib.util
import os
import re
import shlex
import sys
from html import escape

import numpy as np

from baselines import plot
from baselines.common.arguments import cli
from baselines.common.base.amounts import duration
from baselines.common.base.errors import UserValueError, printable
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.config import CODE_OF_MODEL, foreign_code, resume_flags
from baselines.common.saving.files import check_output_file, replace_file
from baselines.common.saving.log_folder import MODEL_FILE, REPORT_FILE, find_run_files
from baselines.common.views import results as plot_util
from baselines.common.views.curves import (
    X_UNITS,
    commits_of,
    find_runs,
    group_curves,
    has_episodes,
    settings_of,
)
from baselines.common.views.drawing import drawing_errors, import_matplotlib
from baselines.common.views.page import (
    heading,
    is_report,
    make_page,
    paragraph,
    svg,
    table,
)
from baselines.common.views.run_folder import (
    config_of,
    describe_run,
    has_update_left,
    known,
    read_scores,
    to_text,
)

LOG_BYTES = 2**24  # to read from the end of log.txt
SIZE = 5, 3.2  # of a picture, in inches, with text that is readable on a phone


def report(folders, output=None) -> str:
    """Writes a page about runs and returns its path.

    Args:
        folders: paths of log folders, or of folders above them, or a single one.
        output: path of an HTML file; None for ``report.html``, in the folder of a
            single run, else in the current one. It replaces an earlier report, but no
            other file.

    Raises:
        UserFileError: if there is no log, or a file cannot be read or written.
        UserValueError: for another suffix, a file that is no report, or a damaged log.
        MissingDependency: if matplotlib is not installed.
    """
    folders = [folders] if isinstance(folders, (str, os.PathLike)) else folders
    found = [result for folder in folders for result in find_runs(folder)]
    results = list({os.path.realpath(x.dirname): x for x in found}.values())
    if output is None:
        place = results[0].dirname if len(results) == 1 else ""
        output = os.path.join(place, REPORT_FILE)
    return write_page(results, os.path.expanduser(output))


def report_run(folder) -> None:
    """Writes the page about a run into its folder, if it has a log and matplotlib.

    Args:
        folder: its path; other runs below it are left out.

    Raises:
        UserFileError, UserValueError: as ``report``.
    """
    drawn = importlib.util.find_spec("matplotlib") is not None
    if not (drawn and os.path.isdir(folder)):
        return
    result = plot_util.load_result(folder, os.listdir(folder))
    if result is not None:
        write_page([result], os.path.join(folder, REPORT_FILE))


def write_page(results, output) -> str:
    """Writes the page about runs and returns its path.

    Args:
        results: a list of ``Result``.
        output: as in ``report``.
    """
    matplotlib = import_matplotlib()
    check_output(output)
    # Text stays text in the SVG, and names from files are not read as formulas.
    style = {"svg.fonttype": "none", "text.parse_math": False}
    with matplotlib.rc_context(style), drawing_errors():
        page = (one_run if len(results) == 1 else several_runs)(results)
    replace_file(os.path.abspath(output), page.encode(errors="replace"))
    return output


def check_output(path) -> None:
    """Raises an error unless a report can be written to ``path``."""
    if os.path.splitext(path)[1] != ".html":
        raise UserValueError(f"cannot write {path}: its name has to end in .html")
    check_output_file(path)
    if os.path.lexists(path) and not is_report(path):
        raise UserValueError(
            f"cannot write {path}: it exists and is not a report; give another -o"
        )


def one_run(results) -> str:
    """Returns the page about one run, given a list of one ``Result``."""
    (result,) = results
    run, config = describe_run(result), config_of(result)
    seed = "" if run.seed is None else f", seed {run.seed}"
    title = f"{run.alg or 'run'} on {to_text(run.env)}{seed}"
    pictures = draw_curves(results)
    if has_episodes(result):
        pictures.append(("Returns of episodes", draw_histogram(result.monitor.r)))
    parts = [
        paragraph(" · ".join(facts(run, result))),
        paragraph(run.folder),
        show_pictures(pictures),
        *show_settings(config),
        *show_versions(config, result.dirname),
        heading("Commands"),
    ]
    for purpose, words in commands(run, config):
        parts.append(f"{escape(purpose)}\n<pre>{escape(shlex.join(words))}</pre>")
    return make_page(title, parts)


def several_runs(results) -> str:
    """Returns the page about several runs, given their ``Result``s."""
    runs = [describe_run(result) for result in results]
    rows = [
        {"run": run.folder, **run.cells(), "time": time_of(run), "state": run.state}
        for run in runs
    ]
    parts = [
        show_pictures(draw_curves(results)),
        heading("Runs"),
        paragraph("Last and best are mean returns of 100 episodes."),
        table(list(rows[0]), [list(row.values()) for row in rows]),
        heading("Settings that differ"),
    ]
    settings = [settings_of(result) | commits_of(result) for result in results]
    names = sorted(set().union(*settings) - {"alg", "env"})
    rows = [[name, *(str(own.get(name, "–")) for own in settings)] for name in names]
    rows = [row for row in rows if len(set(row[1:])) > 1]
    if rows:
        parts.append(table(["setting", *(run.folder for run in runs)], rows))
    else:
        parts.append(paragraph("None of those that change what is learned."))
    return make_page(f"{len(runs)} runs", parts)


def facts(run, result) -> list:
    """Returns phrases about the progress, speed and scores of a run."""
    words = [f"{run.steps} agent steps"]
    if run.seconds:
        words.append(time_of(run))
        words.append(f"{(run.num_timesteps or 0) / run.seconds:,.0f} agent steps/s")
    count = min(len(known(result.monitor.r)), 100) if has_episodes(result) else 100
    words.append(f"mean return of the last {count} episodes {to_text(run.last_return)}")
    if run.best_return is not None:
        words.append(f"best {to_text(run.best_return)}")
    if shares := find_in_log(result.dirname, "time: "):
        words.append(f"time: {shares}")
    return [*words, run.state]


def time_of(run) -> str:
    return to_text(run.seconds if run.seconds is None else duration(run.seconds))


def draw_curves(results) -> list:
    """Returns (caption, figure) of learning curves against agent steps and minutes.

    Runs in which no episode has ended are left out.
    """
    scored = [x for x in results if read_scores(x)[0] is not None]
    if not scored:
        return []
    curves, _ = group_curves([(None, result) for result in scored])
    label = plot.name_y(curves)

    def draw(x):
        caption = f"{label} against {X_UNITS[x]}".capitalize()
        panel = plot.read_panel(curves, x)
        return caption, plot.draw([panel], [x], label, size=SIZE)

    pictures = [draw("steps")]
    with contextlib.suppress(UserValueError):  # Not all logs have times.
        pictures.append(draw("minutes"))
    return pictures


def draw_histogram(returns):
    """Returns a figure with histograms of the returns of all and the last 100 episodes.

    Args:
        returns: of the episodes in the order in which they ended, [n].
    """
    from matplotlib.figure import Figure

    returns = known(returns)
    figure = Figure(SIZE, layout="constrained")
    axis = figure.subplots()
    edges = np.histogram_bin_edges(returns, 30)
    whole = np.all(returns == np.round(returns))
    if len(returns) and whole and np.ptp(returns) < 60:
        # One bar per score: if bars cover uneven numbers of scores, it looks like gaps.
        edges = np.arange(returns.min() - 0.5, returns.max() + 1)
    shown = {f"all {len(returns):,}": (returns, "0.7")}
    if len(returns) > 100:
        shown["last 100"] = returns[-100:], plot_util.COLORS[0]
    for name, (values, color) in shown.items():
        weights = np.full(len(values), 100 / max(len(values), 1))
        style = {"label": name, "color": color, "alpha": 0.6}
        axis.hist(values, edges, weights=weights, **style)
    axis.set(xlabel="return", ylabel="% of the episodes")
    axis.locator_params(axis="x", nbins=7, steps=[1, 2, 5, 10], integer=whole)
    axis.legend()
    axis.grid(alpha=0.3)
    return figure


def show_pictures(pictures) -> str:
    """Returns the HTML of (caption, figure) pairs."""
    parts = [
        f'<figure role="img" aria-label="{escape(caption)}">{svg(figure)}</figure>'
        for caption, figure in pictures
    ]
    return "\n".join(['<div class="pictures">', *parts, "</div>"])


def show_settings(config) -> list:
    """Returns the HTML of a run's settings, those of its command line first."""
    names = "arguments", "settings", "described"
    settings = {k: v for name in names for k, v in config.get(name, {}).items()}
    settings.pop("total_timesteps", None)  # the same as num_timesteps
    named = re.findall(r"(?<!\S)'?--(\w+)", config.get("command") or "")
    given = [(name, value) for name, value in settings.items() if name in named]
    others = [(name, value) for name, value in settings.items() if name not in named]
    parts = []
    if given:
        parts += [heading("Settings of the command line"), table(None, given)]
    if others:
        parts.append(heading("Other settings"))
        parts.append(
            f"<details><summary>{len(others)} settings</summary>\n"
            f"{table(None, others)}</details>"
        )
    return parts


def show_versions(config, folder) -> list:
    """Returns the HTML of a run's versions, machine and number of resumes."""
    rows = list(config.get("versions", {}).items())
    if begun := find_in_log(folder, "training "):
        device = begun.partition("; log folder: ")[0].rpartition(" on ")[2]
        rows.append(("trained on", device))
    if config.get("resumed"):
        rows.append(("times resumed", len(config["resumed"])))
    return [heading("Versions and machine"), table(None, rows)] if rows else []


def find_in_log(folder, start):
    """Returns the rest of the last log.txt line that begins with ``start``, or None."""
    path = os.path.join(folder, "log.txt")
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - LOG_BYTES))
        text = "\n" + file.read(LOG_BYTES).decode(errors="replace")
    _, found, rest = text.rpartition(f"\n{start}")
    return rest.partition("\n")[0] if found else None


def commands(run, config) -> list:
    """Returns (purpose, words) of the commands that can be run next."""
    folder, python = os.path.abspath(run.folder), ["python", "-m"]
    plot_it = "Plot", [*python, "baselines.plot", folder, "-o", "curve.png"]
    if run.total_timesteps is None:  # a run of another library
        return [plot_it]
    ranks = config.get("ranks", 1)
    launcher = ["mpiexec", "-n", str(ranks)] if ranks > 1 else []
    resume = [*launcher, *python, "baselines.run", *resume_flags(folder, config)]
    checkpoints = list_manifests(os.path.join(folder, "checkpoints"))
    by_command = config.get("command", "") is not None
    if run.state == "stopped":
        interval = config.get("settings", {}).get("checkpoint_interval", True)
        again = by_command and interval
        return [*([("Start again", resume)] if again else []), plot_it]
    resumed = [("Resume", resume)] if run.state == "resumable" else []
    # If it was ended by stop_at, it would end again at once.
    ended = not has_update_left(config, run.num_timesteps)
    if run.state == "finished" and checkpoints and ended:
        steps = f"--num_timesteps={2 * run.total_timesteps}"
        resumed = [("Train longer", [*resume, steps])]
    own = foreign_code(config, CODE_OF_MODEL)
    watched = [
        ("Evaluate", [*python, "baselines.evaluate", folder, *own]),
        ("Play", [*python, "baselines.play", folder, *own]),
    ]
    if not checkpoints and not find_run_files(folder, [MODEL_FILE]):
        watched = []  # The model was saved to another place.
    return [*(resumed if by_command else []), *watched, plot_it]


def main(argv=None):
    """Runs the command line."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.report", description=__doc__
    )
    add = parser.add_argument
    add(
        "folders",
        type=cli.parser_of(str),
        nargs="+",
        metavar="LOGDIR",
        help="a log folder, or one above several",
    )
    add(
        "-o",
        dest="output",
        type=cli.parser_of(str),
        metavar="FILE",
        help="an HTML file (default: report.html, in the folder of a single run, "
        "else in the current one)",
    )
    with cli.one_line_errors():
        given = parser.parse_args(sys.argv[1:] if argv is None else argv)
        print(f"wrote {printable(report(**vars(given)))}")


if __name__ == "__main__":
    main()
