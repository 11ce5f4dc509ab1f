"""What this machine offers: free memory, cores and processor instructions."""

import contextlib
import math
import os
import platform
from pathlib import Path

import numpy as np
from rich.filesize import decimal

from baselines.common.base.errors import UserValueError

# The kernel's names for them, on x86 and on ARM.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
CPUINFO = "/proc/cpuinfo"
CONTAINER = Path("/sys/fs/cgroup")


def check_memory(what, needed, argument) -> None:
    """Raises UserValueError if something does not fit into the memory that is left.

    Call it before the allocation; ``needed`` does not include earlier allocations.

    Args:
        what: its name, for the message.
        needed: the least number of bytes that it takes.
        argument: name of the argument to reduce.
    """
    available = available_memory()
    if needed > available:
        raise UserValueError(
            f"{what} needs {decimal(needed)}, but this machine has "
            f"{decimal(available)} left; give a smaller {argument}"
        )


def array_bytes(shape, dtype) -> int:
    """Returns how many bytes an array takes."""
    return math.prod(shape) * np.dtype(dtype).itemsize


def available_memory(container=CONTAINER) -> int:
    """Returns how many bytes this process can still allocate, approximately.

    Args:
        container: folder with the kernel's files on a container (cgroup v2).
    """
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):  # not on Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError, KeyError):  # There may be no limit.
        limit, used, statistics = (
            (container / f"memory.{name}").read_text()
            for name in ("max", "current", "stat")
        )
        statistics = dict(line.split() for line in statistics.splitlines())
        # The kernel drops cached files, such as checkpoints, when memory is needed.
        files = int(statistics["active_file"]) + int(statistics["inactive_file"])
        available = min(available, int(limit) - (int(used) - files))
    return available


def container_cores(container=CONTAINER) -> float:
    """Returns how many cores' time a container may use, inf without a limit.

    Args:
        container: folder with the kernel's files on a container (cgroup v2).
    """
    with contextlib.suppress(OSError, ValueError):  # There may be no limit.
        quota, period = (container / "cpu.max").read_text().split()
        return int(quota) / int(period)
    return math.inf


def share_of_cores(jobs):
    """Returns an initializer of ``jobs`` threads that keeps each on cores of its own.

    All processes that a thread starts stay there as well. (Not on macOS.)
    """
    cores = sorted(getattr(os, "sched_getaffinity", lambda pid: [])(0))
    shares = iter([cores[i::jobs] or cores for i in range(jobs)])

    def stay_on_share():
        if cores:
            os.sched_setaffinity(0, next(shares))

    return stay_on_share


def bfloat16_flags(cpuinfo=CPUINFO) -> list:
    """Returns the kernel's names of instructions that make bfloat16 fast.

    Args:
        cpuinfo: the kernel's file about the processor; none are known without it.
    """
    with contextlib.suppress(OSError):
        words = set(Path(cpuinfo).read_text().split())
        # Where Intel's have no AMX, bfloat16 is slower than float32.
        slow = {"avx512_bf16"} if "GenuineIntel" in words else set()
        return sorted(BFLOAT16_FLAGS & words - slow)
    return []


def processor(cpuinfo=CPUINFO) -> str:
    """Returns the processor's name, and what ``bfloat16_flags`` returns.

    Args:
        cpuinfo: the kernel's file about the processor.
    """
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(cpuinfo).read_text().splitlines()
        name = next(line for line in lines if line.startswith("model name"))
        name = name.partition(":")[2].strip()
    return " ".join([name, *bfloat16_flags(cpuinfo)])
