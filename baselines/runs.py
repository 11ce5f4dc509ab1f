"""Lists runs and their progress: ``python -m baselines.runs DIR``."""

import json as json_text
from typing import Annotated

from baselines.common.arguments import cli
from baselines.common.base import mpi
from baselines.common.base.errors import one_line, shortened
from baselines.common.views.curves import find_differences, settings_of, try_runs
from baselines.common.views.run_folder import describe_run

NUMBERS = "seed", "agent steps", "last", "best"  # columns aligned to the right


def list_runs(
    folder: Annotated[str, "folder that contains log folders, or a log folder"],
    json: Annotated[bool, "whether to print a JSON list of objects"] = False,
):
    """Prints one line for each log folder at or below a folder.

    Last and best are mean returns of 100 episodes. Settings are those in which runs of
    the same algorithm in the same environment differ. A run is running while a process
    writes to its folder. Otherwise it is finished if it has its model, resumable if it
    has checkpoints for --resume, and stopped if it has neither. Damaged log folders are
    named on stderr after the others, and the exit status is then 1.
    """
    results, errors = try_runs(folder)
    if not results:
        raise errors[0]
    runs = [describe_run(result) for result in results]
    settings = [settings_of(result) for result in results]
    if json:
        changes = [{"changed": run.changed.isoformat("T", "seconds")} for run in runs]
        found = [
            run._asdict() | change | {"settings": own}
            for run, change, own in zip(runs, changes, settings)
        ]
        print(json_text.dumps(found, indent=2))
    else:
        rows = [
            {
                "folder": run.folder,
                **run.cells(),
                "last change": f"{run.changed:%Y-%m-%d %H:%M}",
                "state": run.state,
                "settings": shortened(", ".join(differences)),
            }
            for run, differences in zip(runs, find_differences(settings))
        ]
        if not any(row["settings"] for row in rows):
            for row in rows:
                del row["settings"]
        print(align(rows))
    if errors:
        mpi.end(1, "\n".join(f"error: {one_line(error)}" for error in errors))
    return runs


def align(rows) -> str:
    """Returns rows, which are dicts of text, as a table under the columns' names."""
    columns = []
    for name in rows[0]:
        cells = [name, *(one_line(row[name]) for row in rows)]
        width = max(map(len, cells))
        side = ">" if name in NUMBERS else "<"
        columns.append([f"{cell:{side}{width}}" for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns))


def main(argv=None):
    """Runs the command line."""
    return cli.command(list_runs, argv)


if __name__ == "__main__":
    main()
