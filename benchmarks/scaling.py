"""Measures how speed grows with environments, worker processes and MPI ranks.

``python -m benchmarks.scaling --alg=a2c --json=figures.json`` measures

    num_env   the rates of ``throughput``, for each number of environments
    workers   16 environments alone, for each number of worker processes
    ranks     ``learn()`` with 8 environments shared by the ranks, and the exchange of
              their gradients, timed once all ranks are ready for it

and prints a table of each. ``num_env`` and ``ranks`` are measured in new processes for
each number. Other arguments are those of ``baselines.run``. Ranks need mpi4py and an
``mpiexec``.
"""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from typing import Annotated

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base import mpi
from baselines.common.base.errors import MissingDependency, UserValueError
from baselines.common.run.parsing import parse
from baselines.common.saving.config import versions
from baselines.common.saving.files import check_writable
from benchmarks.options import parse_options
from benchmarks.rates import Clock, rate_of_env
from benchmarks.tables import markdown
from benchmarks.throughput import TOTAL_TIMESTEPS, make_env, replaced

NUM_ENV = 1, 2, 4, 8, 16, 32, 64, 128, 256
WORKERS = 1, 2, 4, 8, 16
RANKS = 1, 2, 4
NUM_ENV_OF_RANKS = 8  # shared by all of them
LATENCY_SECONDS = 20e-6  # of a message between machines
# To compute the exchange with more ranks: ranks, and bits a second between them.
NETWORKS = [(r, gbit * 1e9) for r in (8, 32, 128) for gbit in (10, 100)]


@dataclasses.dataclass
class Options:
    """The arguments of this benchmark; all others are for ``baselines.run``."""

    alg: Annotated[str, "algorithm (required)"]
    env: Annotated[str, "environment id"] = "PongNoFrameskip-v4"
    num_env: Annotated[list[arg.Count], "numbers of environments"] = NUM_ENV
    workers: Annotated[list[arg.Count], "numbers of workers for 16 environments"] = (
        WORKERS
    )
    ranks: Annotated[list[arg.Count], "numbers of ranks that share 8 environments"] = (
        RANKS
    )
    seconds: Annotated[arg.Positive, "seconds per measurement"] = 5.0
    json: Annotated[str | None, "JSON file for all figures"] = None


def rates_with(num_env, options, others) -> dict:
    """Returns the rates of ``throughput`` in agent steps a second, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        command = [
            *(sys.executable, "-m", "benchmarks.throughput", "--repeats=1"),
            *(f"--alg={options.alg}", f"--env={options.env}", f"--num_env={num_env}"),
            *(f"--seconds={options.seconds}", f"--json={path}", *others),
        ]
        run(command)
        with open(path) as file:
            figures = json.load(file)
    rates = {k: v[0] for k, v in figures["agent_steps_per_second"].items()}
    return rates | {"serial limit": figures["serial_limit"][0]}


def rate_with_workers(num_workers, options, others) -> float:
    """Returns agent steps/s of 16 environments alone."""
    settings = parse([f"--alg={options.alg}", f"--env={options.env}", *others])
    with make_env(settings, num_env=16, seed=0, num_workers=num_workers) as env:
        return rate_of_env(env, options.seconds)


def rates_with_ranks(ranks, options, others) -> dict:
    """Returns the result of ``measure_rank`` on rank 0."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--rank"]
    if ranks > 1:
        command = ["mpiexec", "-n", str(ranks), *command]
    argv = [f"--alg={options.alg}", f"--env={options.env}", *others]
    argv += [f"--num_env={NUM_ENV_OF_RANKS // ranks}", str(options.seconds)]
    return json.loads(run([*command, *argv]).splitlines()[-1])


def run(command) -> str:
    """Returns what a command prints.

    Raises:
        MissingDependency: if there is no such program.
        UserValueError: if the command fails; the reason is on its stderr.
    """
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise MissingDependency(
            f"there is no {command[0]}: pip install -e '.[mpi]', or leave ranks out "
            "(--ranks=[1])"
        ) from None
    if done.returncode:
        raise UserValueError(
            f"{shlex.join(command)} ended with exit status {done.returncode}"
        )
    return done.stdout


def measure_rank(argv, seconds) -> dict:
    """Returns agent steps/s of all ranks, and the cost of exchanging gradients."""
    mpi.connect()
    settings = parse(argv)
    exchanges = []

    def mean(array, original=mpi.mean):
        mpi.wait()  # So that waiting for slower ranks does not count.
        start = time.perf_counter()
        result = original(array)
        exchanges.append((time.perf_counter() - start, result.nbytes))
        return result

    clock = Clock(seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        logger.scoped_configure(folder, []),
        replaced(mpi, "mean", mean),
        make_env(settings, seed=0) as env,
    ):
        arguments = settings.learn_arguments | {"total_timesteps": TOTAL_TIMESTEPS}
        settings.learn(
            env=env,
            seed=0,
            callback=lambda names, _: clock.is_over(names["num_timesteps"]),
            **arguments | {"checkpoint_interval": 0},
        )
    exchanges.sort()
    took, size = exchanges[len(exchanges) // 2] if exchanges else (0.0, 0)
    return {"loop": clock.rate, "exchange_seconds": took, "exchange_bytes": size}


def exchange_seconds(ranks, size, bandwidth) -> float:
    """Returns the seconds that a ring allreduce of ``size`` bytes takes.

    Each rank sends and receives 2 (R - 1) parts of size / R bytes, one after the other
    (Patarasuk and Yuan 2009).

    Args:
        ranks: R.
        size: bytes.
        bandwidth: bits a second between two ranks, each way.
    """
    return 2 * (ranks - 1) * (LATENCY_SECONDS + 8 * size / ranks / bandwidth)


def report(figures) -> str:
    """Returns the figures as tables."""
    tables = []
    if by_num_env := figures["num_env"]:
        names = list(next(iter(by_num_env.values())))
        rows = [
            [str(n), *(f"{x:,.0f}" for x in rates.values())]
            for n, rates in by_num_env.items()
        ]
        tables.append(markdown(["num_env", *names], rows))
    if by_workers := figures["workers"]:
        rows = [[str(n), f"{rate:,.0f}"] for n, rate in by_workers.items()]
        tables.append(markdown(["workers", "env"], rows))
    if by_ranks := figures["ranks"]:
        rows = [
            [
                str(n),
                f"{x['loop']:,.0f}",
                f"{x['exchange_bytes']:,}",
                f"{1e3 * x['exchange_seconds']:.1f}",
            ]
            for n, x in by_ranks.items()
        ]
        header = ["ranks", "loop", "bytes per exchange", "ms per exchange"]
        tables.append(markdown(header, rows))
        size = max(x["exchange_bytes"] for x in by_ranks.values())
        rows = [
            [
                str(r),
                f"{bits / 1e9:.0f}",
                f"{1e3 * exchange_seconds(r, size, bits):.1f}",
            ]
            for r, bits in NETWORKS
        ]
        header = ["ranks", "Gbit/s", "ms per exchange, by the formula"]
        tables.append(markdown(header, rows))
    return "\n".join(tables)


def main(argv=None):
    """Measures what the command line asks for, and prints the tables."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["--rank"]:
        figures = measure_rank(argv[1:-1], float(argv[-1]))
        if mpi.rank == 0:
            print(json.dumps(figures))
        return
    with cli.one_line_errors():
        options, others = parse_options(
            Options, argv, "python -m benchmarks.scaling", __doc__
        )
        for ranks in options.ranks:
            if NUM_ENV_OF_RANKS % ranks:
                raise UserValueError(
                    f"each of ranks has to divide {NUM_ENV_OF_RANKS}, received {ranks}"
                )
        if options.json:
            check_writable(os.path.dirname(os.path.abspath(options.json)))
        parse([f"--alg={options.alg}", f"--env={options.env}", *others])
        figures = {"options": dataclasses.asdict(options), "versions": versions()}
        figures |= {"num_env": {}, "workers": {}, "ranks": {}}
        # Ranks first, as they fail without MPI; each figure is saved once it is known.
        for kind, measure, numbers in (
            ("ranks", rates_with_ranks, options.ranks),
            ("workers", rate_with_workers, options.workers),
            ("num_env", rates_with, options.num_env),
        ):
            for n in numbers:
                figures[kind][n] = measure(n, options, others)
                if options.json:
                    with open(options.json, "w") as file:
                        json.dump(figures, file, indent=2)
        print(report(figures))


if __name__ == "__main__":
    main()
