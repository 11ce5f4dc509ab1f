"""Makes the training runs behind results/: trains missing ones and saves the results.

    python -m benchmarks.study --list                  what is finished, and what not
    python -m benchmarks.study FOLDER                  trains all, one after the other
    python -m benchmarks.study FOLDER 'a2c_envs/*'     only these

``--jobs`` runs train at a time, with the lowest priority and, on Linux, each on its own
share of the cores, which is faster on Pong than one after another on all cores. Each
has a log folder below FOLDER, named as in results/studies.csv. An interrupted run is
resumed. One that has reached its end, or the agent steps or mean return at which it
should stop, is copied to results/, with the returns of all games in ``games.csv.gz``.
``python -m benchmarks.tables write`` then fills in the tables of results/README.md. If
a run fails, no other is started. Finished runs, and those that were cut, are only
trained with ``--again``; results/ keeps what it has of them.
"""

import argparse
import fnmatch
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from baselines.bench.monitor import PACKED, pack_monitors
from baselines.common.arguments import cli
from baselines.common.base.errors import UserValueError
from baselines.common.base.machine import share_of_cores
from benchmarks import tables

POLL_SECONDS = 10
STOPPED = threading.Event()  # set when this program ends, to end its runs


class Study(NamedTuple):
    """One training run.

    Attributes:
        name: path of its folder, both below results/ and below FOLDER.
        arguments: arguments for ``program``.
        last_step: agent steps after which it is stopped, possibly before its schedules
            end; None to train to their end.
        above: mean return of 100 games above which it is stopped; None for never.
        program: the module that trains it.
        cut: why it is not trained, or not to its end; empty if it is.
    """

    name: str
    arguments: str
    last_step: int | None = None
    above: float | None = None
    program: str = "baselines.run"
    cut: str = ""


def read_studies() -> dict:
    """Returns the runs in results/studies.csv by name, in the order of training."""
    runs = {}
    for row in tables.read_rows(tables.RESULTS / "studies.csv"):
        program, arguments = row["command"].split(" ", 1)
        last_step = int(row["last_step"]) if row["last_step"] else None
        above = float(row["above"]) if row["above"] else None
        runs[row["name"]] = Study(
            row["name"], arguments, last_step, above, program, row["cut"]
        )
    return runs


RUNS = read_studies()


def progress(folder) -> tuple:
    """Returns agent steps and mean return of the last row of a log; 0 and NaN if none.

    Args:
        folder: the log folder.
    """
    path = folder / "progress.csv"
    rows = tables.read_rows(path) if path.exists() else []
    if not rows:
        return 0, float("nan")
    return int(rows[-1]["total_timesteps"]), float(rows[-1]["eprewmean"] or "nan")


def is_over(study, folder) -> bool:
    """Whether a run has reached its end, or the point at which it is stopped."""
    steps, mean = progress(folder)
    if study.last_step is not None and steps >= study.last_step:
        return True
    if study.above is not None and mean > study.above:
        return True
    return (folder / "model.safetensors").exists()


def train(study, folder) -> None:
    """Trains a run until it is over; resumes it if it was started before."""
    if is_over(study, folder):
        return
    arguments = [f"--log_path={folder}", *study.arguments.split()]
    if study.program == "baselines.run" and (folder / "config.json").exists():
        arguments = [f"--resume={folder}"]
    command = [sys.executable, "-m", study.program, *arguments]
    print(" ".join(command) + "\n", end="", flush=True)  # whole, beside others
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        os.setpriority(os.PRIO_PROCESS, process.pid, 19)
        while process.poll() is None and not is_over(study, folder):
            if STOPPED.wait(POLL_SECONDS):
                raise UserValueError(f"{study.name} was interrupted")
    finally:
        process.terminate()  # It saves a checkpoint, and ends.
        process.wait()
    if not is_over(study, folder):
        raise UserValueError(
            f"{study.name} ended with exit status {process.returncode}; see "
            f"{folder / 'log.txt'}"
        )


def is_finished(study) -> bool:
    """Whether a run is in results/."""
    return (tables.RESULTS / study.name / PACKED).exists()


def is_kept(study) -> bool:
    """Whether results/ has what it is to have of a run."""
    return is_finished(study) or bool(study.cut)


def finish(study, folder) -> None:
    """Copies a run to results/."""
    if is_kept(study):
        print(f"{study.name} stays in {folder}, as results/ has what it is to have")
        return
    games = pack_monitors(folder)
    tables.add(folder, tables.RESULTS / study.name)
    # Last, because a run with this file counts as finished.
    (tables.RESULTS / study.name / PACKED).write_bytes(games)


def describe(study) -> str:
    """Returns the line of ``--list`` for a run."""
    state = "finished" if is_finished(study) else "missing"
    if study.cut:
        state = f"cut ({study.cut})"
    if (tables.RESULTS / study.name / "progress.csv").exists():
        steps, mean = progress(tables.RESULTS / study.name)
        state += f" at {steps:,} agent steps, mean {mean:.1f}"
    return f"{study.name:<42} {state}"


def choose(patterns, again) -> list:
    """Returns the runs that match the patterns.

    Args:
        patterns: of the names of runs.
        again: whether those are included that results/ has.
    """
    return [
        study
        for study in RUNS.values()
        if any(fnmatch.fnmatch(study.name, pattern) for pattern in patterns)
        and (again or not is_kept(study))
    ]


def train_all(chosen, folder, jobs, finish) -> None:
    """Trains runs, each until it is over.

    Args:
        chosen: a ``Study`` for each run.
        folder: folder of the logs.
        jobs: number of runs at a time.
        finish: called with each run and its log folder, once it is over.
    """
    if not chosen:
        raise UserValueError(
            "nothing to train: no run matches, or all are finished or cut; --again "
            "trains those as well"
        )

    def run(study):
        if STOPPED.is_set():
            return
        try:
            train(study, folder / study.name)
            finish(study, folder / study.name)
        except BaseException:
            STOPPED.set()
            raise

    with ThreadPoolExecutor(jobs, initializer=share_of_cores(jobs)) as pool:
        running = [pool.submit(run, study) for study in chosen]
        try:
            for future in wait(running, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            STOPPED.set()
            pool.shutdown(cancel_futures=True)
            raise


def main(argv=None):
    """Trains or lists the runs that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study", description=__doc__
    )
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the logs")
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of runs")
    parser.add_argument("--list", action="store_true", help="list all runs")
    parser.add_argument(
        "--again", action="store_true", help="train finished and cut runs as well"
    )
    parser.add_argument("--jobs", type=int, default=1, help="number of runs at a time")
    args = parser.parse_args(argv)
    if args.list or args.folder is None:
        print(*map(describe, RUNS.values()), sep="\n")
        return
    # So that the runs end as well, and save a checkpoint.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    train_all(choose(args.patterns, args.again), args.folder, args.jobs, finish)


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
