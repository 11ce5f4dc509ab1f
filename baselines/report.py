"""Writes a page about runs: ``python -m baselines.report LOGDIR... [-o report.html]``.

The page is one self-contained HTML file with pictures. A single run is shown with its
scores, last video, settings, versions, and the commands to continue; several runs have
a row each, with only the settings in which they differ.
"""

import base64
import glob
import os
import re
import shlex
from typing import Annotated

from baselines.common.arguments import cli
from baselines.common.base.errors import UserValueError
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.config import resume_command, trust_flag
from baselines.common.saving.files import check_writable, replace_file
from baselines.common.saving.log_folder import MODEL_FILE
from baselines.common.views.curves import (
    all_settings,
    config_of,
    find_runs,
    settings_of,
)
from baselines.common.views.page import draw_pictures, is_page, render
from baselines.common.views.run_folder import cells_of, describe_run


def report(
    folders: Annotated[list[str], "log folders, or folders above several"],
    output: Annotated[str | None, "an HTML file (default: report.html)"] = None,
) -> str:
    """Writes a page about runs and returns its path.

    Args:
        folders: paths of log folders, or of folders above them, or a single one.
        output: path of an HTML file; None for ``report.html``, in the folder of a
            single run, else in the current one. It replaces an earlier report, but no
            other file.

    Raises:
        UserFileError: if there is no log, or a file cannot be read or written.
        UserValueError: for another suffix, a file that is no report, or a damaged log.
        MissingDependency: if a package of the extra ``plot`` is not installed.
    """
    folders = [folders] if isinstance(folders, (str, os.PathLike)) else folders
    results = [result for folder in folders for result in find_runs(folder)]
    results = list({os.path.realpath(x.dirname): x for x in results}.values())
    if output is None:
        place = results[0].dirname if len(results) == 1 else ""
        output = os.path.join(place, "report.html")
    output = os.path.expanduser(output)
    if os.path.splitext(output)[1] != ".html":
        raise UserValueError(f"cannot write {output}: its name has to end in .html")
    check_writable(*os.path.split(os.path.abspath(output)))
    if os.path.exists(output) and not is_page(output):
        raise UserValueError(
            f"cannot write {output}: it exists and is not a report; give another -o"
        )
    runs = [describe_run(result) for result in results]
    more = describe_one(results[0], runs[0]) if len(runs) == 1 else compare(results)
    page = render(
        pictures=draw_pictures(results), runs=list(map(cells_of, runs)), **more
    )
    replace_file(os.path.abspath(output), page.encode())
    return output


def describe_one(result, run) -> dict:
    """Returns title, facts, video, tables and commands of the page about one run."""
    config = config_of(result)
    facts = []
    if run["seconds"]:
        speed = (run["num_timesteps"] or 0) / run["seconds"]
        facts.append(f"{speed:,.0f} agent steps/s")
    facts += [f"time: {shares}" for shares in find_last("time: (.*)", run["folder"])]
    facts += find_last("training .* on (.*?)(?:; log folder: .*)?", run["folder"])
    return {
        "title": f"{run['alg'] or 'run'} on {run['env'] or 'an environment'}",
        "facts": facts,
        "video": read_video(run["folder"]),
        "tables": [
            ("Settings", all_settings(config).items()),
            ("Versions and machine", config.get("versions", {}).items()),
        ],
        "commands": list_commands(run, config),
    }


def compare(results) -> dict:
    """Returns title and tables of the page about several runs."""
    settings = [settings_of(result) for result in results]
    settings = [{name: str(value) for name, value in x.items()} for x in settings]
    names = sorted(set().union(*settings))
    names = [name for name in names if len({x.get(name) for x in settings}) > 1]
    rows = [
        [result.dirname, *(x.get(name, "–") for name in names)]
        for result, x in zip(results, settings)
    ]
    tables = [("Settings that differ", [["folder", *names], *rows])] if names else []
    return {"title": f"{len(results)} runs", "tables": tables}


def read_video(folder):
    """Returns the name of a run's last video and its content as base64, or None."""
    for path in sorted(glob.glob("videos/*.mp4", root_dir=folder), reverse=True):
        with open(os.path.join(folder, path), "rb") as file:
            content = file.read()
        if b"moov" in content:  # A video that is not complete has no such index.
            return path, base64.b64encode(content).decode()
    return None


def find_last(pattern, folder) -> list:
    """Returns the last line of a run's ``log.txt`` that fits, as at most one match."""
    path = os.path.join(folder, "log.txt")
    if not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return re.findall(f"^{pattern}$", file.read(), re.M)[-1:]


def list_commands(run, config) -> list:
    """Returns (purpose, command) pairs: how a run was begun, and what can be run."""
    folder, commands = os.path.abspath(run["folder"]), []
    if config.get("command"):
        commands.append(("Begun with", config["command"]))
        if run["state"] == "resumable":
            commands.append(("Resume", resume_command(folder, config)))
    checkpoints = list_manifests(os.path.join(folder, "checkpoints"))
    if checkpoints or os.path.isfile(os.path.join(folder, MODEL_FILE)):
        place = shlex.join([folder, *trust_flag(config)])
        commands.append(("Evaluate", f"python -m baselines.evaluate {place}"))
        commands.append(("Play", f"python -m baselines.play {place}"))
    plot = f"python -m baselines.plot {shlex.quote(folder)} -o curve.png"
    return [*commands, ("Plot", plot)]


def main(argv=None):
    """Runs the command line."""
    print(f"wrote {cli.command(report, argv, {'-o': '--output'})}")


if __name__ == "__main__":
    main()
