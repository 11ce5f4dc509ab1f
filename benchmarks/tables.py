"""Adds runs to results/, and makes the tables of its README.md from them.

    python -m benchmarks.tables add LOG_FOLDER results/a2c_pong/seed_2
    python -m benchmarks.tables write

``add`` copies a run's progress.csv and config.json, whether it is finished or not, and
then does what ``write`` does: fill in the tables of results/README.md. A table is
between lines such as

    <!-- table: a2c_pong/* above 0 18 -->
    <!-- end -->

It has a row for each run whose folder matches one of the patterns, and a column for the
first mean return above each of the numbers. With ``beside trpo_mpi`` in place of
``above`` and the numbers, it has a row for each task of the runs, with all their seeds
and with what others have published for that algorithm (``published_mujoco1m.csv``). A
pattern that ends in .csv names a file of single games (columns system and return)
instead of folders; one that ends in .txt names the outputs of ``benchmarks.faults``.
"""

import argparse
import csv
import json
import re
import shutil
import statistics
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import NamedTuple

from baselines.bench import load_results
from baselines.common.arguments import cli
from baselines.common.base.errors import UserValueError
from benchmarks.faults import make_table, markdown

RESULTS = Path(__file__).parents[1] / "results"
MARKED = re.compile(
    r"(<!-- table: (?P<patterns>.+?)"
    r"(?: above (?P<limits>[-\d. ]+)| beside (?P<published>\w+))? -->\n)"
    r"(?:(?!<!-- table:).)*?(?P<end><!-- end -->)",
    re.DOTALL,
)


class Record(NamedTuple):
    """What is known of a run, apart from its rows."""

    seed: int
    commits: list  # of its start and of each resume, without repetitions
    num_timesteps: int  # that were asked for
    resumed: object  # true if it was
    command: str


def read_json(path):
    return json.loads(path.read_text())


def read_record(folder) -> Record:
    """Reads a run's config.json, or its record.json if it has no config.json."""
    if not (folder / "config.json").exists():
        kept = read_json(folder / "record.json")
        kept["commits"] = [kept.pop("commit")]
        return Record(*(kept.get(name) for name in Record._fields))
    config = read_json(folder / "config.json")
    arguments = config["arguments"]
    starts = [config, *config["resumed"]]
    commits = [short(start["versions"].get("commit")) for start in starts]
    return Record(
        arguments["seed"],
        list(dict.fromkeys(commits)),
        # By its earlier name in files of a format below 7.
        arguments.get("total_timesteps") or arguments["num_timesteps"],
        config["resumed"],
        config["command"],
    )


def short(commit) -> str:
    """Returns a commit as ``versions()`` gives it, with 7 instead of 40 digits."""
    return re.sub(r"([0-9a-f]{7})[0-9a-f]{33}", r"\1", commit or "unknown")


def read_lines(path) -> list:
    """Returns the lines of a file, without one that is still being written."""
    return path.read_text().rpartition("\n")[0].splitlines()


def read_rows(path) -> list:
    """Returns the rows of a CSV file, as dicts of text."""
    return list(csv.DictReader(read_lines(path)))


def rounded(number) -> str:
    """Returns a Decimal rounded to one decimal place; 0.05 becomes 0.1."""
    return str(number.quantize(Decimal("0.1"), ROUND_HALF_UP))


def describe_run(folder, limits) -> list:
    """Returns the cells of a run's row in a table.

    Args:
        folder: the run's folder.
        limits: numbers that its mean return may exceed.
    """
    record, rows = read_record(folder), read_rows(folder / "progress.csv")
    means = [Decimal(row["eprewmean"] or "nan") for row in rows]
    cells = [
        folder.name,
        str(record.seed),
        ", ".join(record.commits),
        f"{int(rows[-1]['total_timesteps']):,}",
        f"{record.num_timesteps:,}",
        "" if means[-1].is_nan() else rounded(means[-1]),
    ]
    for limit in limits:
        above = (
            row
            for row, mean in zip(rows, means)
            if not mean.is_nan() and mean > Decimal(limit)
        )
        cells.append(describe_moment(next(above, None), record.resumed))
    return cells


def describe_moment(row, resumed) -> str:
    """Returns the agent steps of a row, and its minutes unless the run was resumed."""
    if row is None:
        return ""
    steps = int(row["total_timesteps"])
    # After a resume, fps does not cover the time before it.
    if resumed:
        return f"{steps:,}"
    return f"{steps:,} ({steps / float(row['fps']) / 60:.0f} min)"


def table_of_runs(patterns, limits, results) -> str:
    """Returns a table with a row for each run whose folder matches a pattern."""
    header = ["Run", "Seed", "Commit", "Agent steps", "Asked for"]
    header += ["Last mean of 100 games", *(f"First above {limit}" for limit in limits)]
    rows = []
    for pattern in patterns:
        files = sorted(results.glob(f"{pattern}/progress.csv"))
        if not files:
            raise UserValueError(f"no run in {results} matches {pattern!r}")
        rows += [describe_run(file.parent, limits) for file in files]
    return markdown(header, rows)


def table_of_tasks(patterns, published, results) -> str:
    """Returns a table with a row for each task of the runs that match a pattern.

    Args:
        patterns: patterns of folders that contain ``games.csv.gz``.
        published: the algorithm in ``published_mujoco1m.csv`` whose results are shown
            as well, in a column for each source.
        results: the folder that patterns are relative to.
    """
    sources = {}
    for row in read_rows(results / "published_mujoco1m.csv"):
        if row["alg"] == published:
            sources.setdefault(row["source"], {})[row["env"]] = row["mean"]
    if not sources:
        raise UserValueError(f"published_mujoco1m.csv has no results of {published}")
    runs = {}
    for pattern in patterns:
        for path in sorted(results.glob(f"{pattern}/games.csv.gz")):
            env = read_json(path.parent / "config.json")["arguments"]["env"]
            runs.setdefault(env, []).append(path.parent)
    if not runs:
        raise UserValueError(f"no run in {results} matches {' or '.join(patterns)}")
    rows = []
    for env, folders in sorted(runs.items()):
        returns = [last_returns(folder) for folder in folders]
        deviation = statistics.pstdev(sum(returns, []))
        means = [mean(x) for x in returns]
        row = [env, str(len(folders)), f"{mean(means):.1f} ± {deviation:.1f}"]
        row.append(", ".join(f"{x:.1f}" for x in means))
        row.append(", ".join(filter(None, map(last_evaluation, folders))))
        task = env.rpartition("-")[0]
        rows.append([*row, *(means.get(task, "") for means in sources.values())])
    header = ["Task", "Seeds", "Mean ± std of episodes", "Of each seed"]
    header.append("Deterministic")
    if not any(row[4] for row in rows):
        for row in [header, *rows]:
            del row[4]
    return markdown([*header, *sources], rows)


def last_returns(folder, count=100) -> list:
    """Returns the returns of a run's last episodes, sorted by when they ended."""
    return load_results(folder).r[-count:].tolist()


def last_evaluation(folder) -> str:
    """Returns the mean return of a run's last evaluation; empty if there is none."""
    rows = read_rows(folder / "progress.csv")
    found = [mean for row in rows if (mean := row.get("eval_eprewmean"))]
    return f"{float(found[-1]):.1f}" if found else ""


def table_of_games(path) -> str:
    """Returns a table of single games, with a row for each system that played."""
    returns = {}
    for row in read_rows(path):
        returns.setdefault(row["system"], []).append(Decimal(row["return"]))
    rows = [
        [name, str(len(games)), *(rounded(mean(games[-n:])) for n in (100, 20))]
        for name, games in returns.items()
    ]
    return markdown(["", "Games", "Mean of the last 100", "Of the last 20"], rows)


def mean(numbers):
    return sum(numbers) / len(numbers)


def fill_in(text, results) -> str:
    """Returns the text with all marked tables replaced by current ones.

    Args:
        text: the text of README.md.
        results: the folder that patterns are relative to.
    """

    def table(match):
        patterns = match["patterns"].split()
        if patterns[0].endswith(".csv"):
            body = table_of_games(results / patterns[0])
        elif patterns[0].endswith(".txt"):
            outputs = list(results.glob(patterns[0]))
            if not outputs:
                raise UserValueError(f"nothing in {results} matches {patterns[0]!r}")
            body = make_table(outputs)
        elif match["published"]:
            body = table_of_tasks(patterns, match["published"], results)
        else:
            limits = (match["limits"] or "").split()
            body = table_of_runs(patterns, limits, results)
        return f"{match[1]}\n{body}\n{match['end']}"

    filled, count = MARKED.subn(table, text)
    if count != text.count("<!-- table:"):
        raise UserValueError("a line '<!-- table: ... -->' has no '<!-- end -->'")
    return filled


def write() -> str:
    """Fills in the tables of results/README.md; returns its text."""
    path = RESULTS / "README.md"
    text = fill_in(path.read_text(), RESULTS)
    path.write_text(text)
    print(f"wrote the tables of {path}")
    return text


def add(log_folder, folder) -> None:
    """Copies a run's config.json and rows, over those of an earlier state of the run.

    Raises:
        UserError: if there is no run in ``log_folder``, or another one in ``folder``.
    """
    record = read_record(log_folder)
    describe_run(log_folder, limits=[])  # Raises if the run cannot be in a table.
    if (folder / "progress.csv").exists():
        there = read_record(folder)
        if (there.command, there.seed) != (record.command, record.seed):
            raise UserValueError(
                f"{folder} has another run: {there.command} (seed {there.seed}); give "
                "another folder"
            )
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(log_folder / "config.json", folder / "config.json")
    lines = read_lines(log_folder / "progress.csv")
    (folder / "progress.csv").write_text("\n".join([*lines, ""]))
    print(f"added {folder}")


def main(argv=None):
    """Adds a run or writes the tables, as the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables", description=__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="add a run, then write the tables")
    adding.add_argument("log_folder", type=Path, help="the run's --log_path")
    adding.add_argument("folder", type=Path, help="where to keep it, below results/")
    commands.add_parser("write", help="write the tables of results/README.md")
    args = parser.parse_args(argv)
    if args.command == "add":
        add(args.log_folder, args.folder)
    text = write()
    if args.command == "add" and f"| {args.folder.name} |" not in text:
        print(
            f"no table lists {args.folder.name}: README.md needs lines such as "
            f"'<!-- table: {args.folder.parent.name}/* -->' and '<!-- end -->'"
        )


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
