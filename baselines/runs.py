"""Lists runs and their progress: ``python -m baselines.runs DIR``."""

import json as json_text
from typing import Annotated

from baselines.common.arguments import cli
from baselines.common.base import mpi
from baselines.common.base.errors import UserError
from baselines.common.base.lazy import import_extra
from baselines.common.views.curves import find_differences, find_runs, settings_of
from baselines.common.views.results import find_logs, load_result
from baselines.common.views.run_folder import cells_of, describe_run

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
    results, errors = [], []
    for log in find_logs(folder):
        try:
            results.append(load_result(log))
        except UserError as error:
            errors.append(error)
    if not results:
        find_runs(folder)  # It raises the first error, or says that there is no log.
    runs = [describe_run(result) for result in results]
    settings = [settings_of(result) for result in results]
    if json:
        rows = [run | {"settings": x} for run, x in zip(runs, settings)]
        print(json_text.dumps(rows, indent=2))
    else:
        rows = [
            cells_of(run) | {"settings": ", ".join(differences)}
            for run, differences in zip(runs, find_differences(settings))
        ]
        print(align(rows))
    if errors:
        mpi.end(1, "\n".join(f"error: {error}" for error in errors))
    return runs


def align(rows) -> str:
    """Returns rows, which are dicts of text, as a table without empty columns."""
    table = import_extra("pandas").DataFrame(rows).map(str)
    table = table.loc[:, (table != "").any()]
    for name in table.columns.difference(NUMBERS):
        table[name] = table[name].str.ljust(table[name].str.len().max())
    return table.to_string(index=False, justify="left")


def main(argv=None):
    """Runs the command line."""
    return cli.command(list_runs, argv)


if __name__ == "__main__":
    main()
