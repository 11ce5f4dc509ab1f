"""Measures how speed grows with environments, worker processes and MPI ranks.

``python -m benchmarks.scaling --alg=a2c --json=figures.json`` measures

    num_env   the rates of ``throughput``, for each number of environments
    workers   16 environments alone, for each number of worker processes
    ranks     ``learn()`` with 8 environments shared by the ranks, and the exchange of
              their gradients, timed once all ranks are ready for it

and prints a table of each. Every number is measured in new processes. Other arguments
are those of ``baselines.run``. Ranks need mpi4py and an ``mpiexec``.
"""

import argparse
import ast
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.base import mpi
from baselines.common.run.command_line import read_arguments
from baselines.common.saving.config import versions
from benchmarks.faults import markdown
from benchmarks.rates import rate_of_env
from benchmarks.throughput import Bench, make_env

NUM_ENV_OF_RANKS = 8  # shared by all of them


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments that ``baselines.run`` lacks."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--alg", required=True, help="algorithm")
    parser.add_argument("--env", default="PongNoFrameskip-v4", help="environment id")
    for name, numbers in (
        ("num_env", [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        ("workers", [1, 2, 4, 8, 16]),
        ("ranks", [1, 2, 4]),
    ):
        parser.add_argument(
            f"--{name}", type=ast.literal_eval, default=numbers, help=str(numbers)
        )
    parser.add_argument("--seconds", type=float, default=5.0, help="per measurement")
    parser.add_argument("--json", help="JSON file for all figures")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    return parser


def rates_with_num_env(num_env, words, seconds) -> dict:
    """Returns the rates of ``throughput`` in agent steps a second, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.json")
        command = [sys.executable, "-m", "benchmarks.throughput", "--repeats=1", *words]
        command += [f"--num_env={num_env}", f"--seconds={seconds}", f"--json={path}"]
        subprocess.run(command, stdout=subprocess.PIPE, check=True)
        figures = json.loads(path.read_text())
    rates = {k: v[0] for k, v in figures["agent_steps_per_second"].items()}
    return rates | {"serial limit": figures["serial_limit"][0]}


def rates_with_workers(num_workers, words, seconds) -> dict:
    """Returns agent steps/s of 16 environments alone."""
    changes = dict(num_env=16, seed=0, num_workers=num_workers)
    with make_env(read_arguments(words), **changes) as env:
        return {"env": rate_of_env(env, seconds)}


def rates_with_ranks(ranks, words, seconds) -> dict:
    """Returns the result of ``measure_rank`` on rank 0."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--rank", *words]
    command += [f"--num_env={NUM_ENV_OF_RANKS // ranks}", f"--seconds={seconds}"]
    if ranks > 1:
        command = ["mpiexec", "-n", str(ranks), *command]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def measure_rank(words, seconds) -> dict:
    """Returns agent steps/s of all ranks, and the cost of exchanging gradients."""
    mpi.connect()
    exchanges = [(0.0, 0)]

    def mean(array, out=None, original=mpi.mean):
        mpi.wait()  # So that waiting for slower ranks does not count.
        start = time.perf_counter()
        result = original(array, out)
        exchanges.append((time.perf_counter() - start, result.nbytes))
        return result

    with (
        tempfile.TemporaryDirectory() as folder,
        logger.scoped_configure(folder, []),
        contextlib.closing(Bench(words, seconds)) as bench,
        mock.patch.object(mpi, "mean", mean),
    ):
        rate = bench.loop_rate()
    took, size = statistics.median_high(exchanges)
    return {"loop": rate, "exchange ms": 1e3 * took, "exchange bytes": size}


def report(kind, figures) -> str:
    """Returns figures, by their numbers of ``kind``, as a table."""
    header = [kind, *next(iter(figures.values()))]
    rows = [
        [str(n), *(f"{x:,.1f}" if x < 100 else f"{x:,.0f}" for x in rates.values())]
        for n, rates in figures.items()
    ]
    return markdown(header, rows)


def main(argv=None):
    """Measures what the command line asks for, and prints the tables."""
    parser = make_parser()
    options, others = parser.parse_known_args(argv)
    words = [f"--alg={options.alg}", f"--env={options.env}", *others]
    if options.rank:
        words.append(f"--num_env={options.num_env}")
        figures = measure_rank(words, options.seconds)
        if mpi.rank == 0:
            print(json.dumps(figures))
        return
    figures = {"options": vars(options), "versions": versions()}
    # Ranks first, as they fail without MPI; each figure is saved once it is known.
    for kind, measure in (
        ("ranks", rates_with_ranks),
        ("workers", rates_with_workers),
        ("num_env", rates_with_num_env),
    ):
        figures[kind] = {}
        for n in getattr(options, kind):
            figures[kind][n] = measure(n, words, options.seconds)
            if options.json:
                Path(options.json).write_text(json.dumps(figures, indent=2))
        if figures[kind]:
            print(report(kind, figures[kind]), flush=True)


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
