"""Several processes, called ranks, that train one model over MPI.

``mpiexec -n 4 python ...`` starts the same program four times. Without it, or with
``-n 1``, there is one rank: it gathers or averages only its own values, and mpi4py is
not imported.

Every function that communicates blocks until all ranks have called it, so all ranks
have to make the same calls in the same order; a call that only some make never returns.

Attributes:
    size, rank: number of ranks, and the rank of this process, from 0.
    local_size, local_rank: the same for the ranks on this machine.
"""

import os
import sys
import time
import traceback

import numpy as np

from baselines.common.base.errors import (
    MissingDependency,
    UserValueError,
    install_command,
)
from baselines.common.base.machine import container_cores

VARIABLES = (  # of the environment: size, rank, local size and local rank
    # MPICH and Intel MPI
    ("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"),
    # Open MPI
    (
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
    ),
)
PREFIXES = "MPI_LOCAL", "OMPI_", "PMI_", "PMIX_"  # of all that a launcher sets
EXIT_TIMEOUT_SECONDS = 2.0  # for which an exiting rank waits for the others to exit
SEED_STEP = 10_000  # between the seeds of two ranks, as in OpenAI Baselines


def read_environment(environ):
    """Returns size, rank, local size and local rank, as the launcher set them."""
    for names in VARIABLES:
        if int(environ.get(names[0], 1)) > 1:
            defaults = 1, 0, 1, 0
            return tuple(int(environ.get(*pair)) for pair in zip(names, defaults))
    return 1, 0, 1, 0


size, rank, local_size, local_rank = read_environment(os.environ)
world = None  # the communicator of all ranks, once they are connected
exit_world = None  # another one, for the ranks that exit


def connect() -> None:
    """Connects the ranks, unless they are connected or there is only one.

    From then on, an uncaught exception ends all ranks.

    Raises:
        MissingDependency: if mpi4py cannot be used.
        UserValueError: if the launcher belongs to a different MPI than mpi4py.
    """
    global world, exit_world
    if size == 1 or world is not None:
        return
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # no mpi4py; no MPI for it
        raise MissingDependency(
            f"mpiexec started {size} processes, but mpi4py cannot be imported "
            f"({str(error).splitlines()[0]}): {install_command('mpi')}, or start "
            "without mpiexec"
        ) from None
    if (MPI.COMM_WORLD.size, MPI.COMM_WORLD.rank) != (size, rank):
        library = " ".join(MPI.Get_library_version().split(",")[0].split()[:3])
        raise UserValueError(
            f"mpiexec started {size} processes, but MPI finds {MPI.COMM_WORLD.size}: "
            f"mpi4py uses another MPI ({library}); start with the mpiexec of that one"
        )
    world, exit_world = MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Dup()
    sys.excepthook = end_by_exception


def gather(value) -> list:
    """Returns the ``value`` of every rank, in order, on every rank."""
    if size == 1:
        return [value]
    connect()
    return world.allgather(value)


def broadcast(value):
    """Returns the ``value`` of rank 0."""
    if size == 1:
        return value
    connect()
    return world.bcast(value)


def mean(array, out=None) -> np.ndarray:
    """Returns the mean over the ranks of arrays with the same shape and type.

    Args:
        array: this rank's.
        out: of floats, where the mean is written, for speed: new memory takes as long
            as the mean.
    """
    array = np.asarray(array, order="C")  # ascontiguousarray would add an axis to 0-d
    if size == 1:
        return array.copy()
    connect()
    total = np.empty_like(array) if out is None else out
    world.Allreduce(array, total)
    return np.asarray(np.divide(total, array.dtype.type(size), out=out))


def check_same(settings) -> None:
    """Raises UserValueError on a rank whose dict differs from that of rank 0."""
    for key, expected in broadcast(settings).items():
        if settings.get(key) != expected:
            raise UserValueError(
                f"the MPI ranks need the same settings, but {key} is {expected} on "
                f"rank 0 and {settings.get(key)} on rank {rank}"
            )


def wait() -> None:
    """Blocks until every rank has called this."""
    gather(None)


def mean_row(row) -> dict:
    """Returns the means over the ranks of a dict of numbers.

    Numbers that are equal on all ranks are returned unchanged: counts stay integers.
    """
    if size == 1:
        return row
    rows = gather(row)
    means = {}
    for key in row:
        values = [other[key] for other in rows if key in other]
        same = all(value == values[0] for value in values)
        means[key] = values[0] if same else float(np.mean(values))
    return means


def seed_of_rank(seed):
    """Returns this rank's seed, for what has to differ between ranks; None for None."""
    return None if seed is None else seed + SEED_STEP * rank


def child_environment() -> dict:
    """Returns ``os.environ`` without what would make a child process a rank."""
    return {k: v for k, v in os.environ.items() if not k.startswith(PREFIXES)}


def end(status, message=None) -> None:
    """Ends the program with an exit status, on every rank.

    If all ranks exit within seconds, for example after the same mistake, rank 0 prints
    the message for all of them. Otherwise the others would wait for this rank forever,
    so they are aborted.

    Args:
        status: exit status.
        message: text for stderr, or None.

    Raises:
        SystemExit: with that status, unless the ranks are aborted.
    """
    together = world is None or all_exit()
    # Ranks that could not be connected have probably failed for the same reason.
    prints = local_rank == 0 if world is None else rank == 0
    if message is not None and (prints or not together):
        print(message, file=sys.stderr, flush=True)
    if not together:
        world.Abort(status)
    raise SystemExit(status)


def all_exit() -> bool:
    """Whether every rank calls this within ``EXIT_TIMEOUT_SECONDS``."""
    request = exit_world.Ibarrier()
    deadline = time.monotonic() + EXIT_TIMEOUT_SECONDS
    while not request.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def end_by_exception(*exc_info) -> None:
    """A ``sys.excepthook`` that ends all ranks."""
    end(1, "".join(traceback.format_exception(*exc_info)).rstrip())


def available_cores() -> int:
    """Returns how many cores this process may use: its share of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, int(min(cores, container_cores())) // local_size)
