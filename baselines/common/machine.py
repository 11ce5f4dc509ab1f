"""What this machine has: free memory, instructions of its processor."""

import contextlib
import os
from pathlib import Path

from baselines.common.errors import UserValueError

# As the kernel calls them: of x86 and of ARM.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}


def check_memory(what, argument, count, size) -> None:
    """Raises UserValueError if something does not fit into this machine's memory.

    Args:
        what: name of it, for the message.
        argument: name of the argument to make smaller.
        count: how many items it has.
        size: bytes of each.
    """
    needed, available = count * size, available_memory()
    if needed > available:
        raise UserValueError(
            f"{what} takes {needed / 2**30:.1f} GiB, but this machine has "
            f"{available / 2**30:.1f} GiB left; give a smaller {argument}"
        )


def available_memory(container=Path("/sys/fs/cgroup")) -> int:
    """Returns how many bytes this process can still allocate, approximately.

    Args:
        container: folder of the kernel's files about a container's memory (cgroup v2).
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


def cpu_has_bfloat16(cpuinfo="/proc/cpuinfo") -> bool:
    """Whether the processor multiplies numbers of bfloat16; False if that is unknown.

    Args:
        cpuinfo: the kernel's file about the processor.
    """
    with contextlib.suppress(OSError), open(cpuinfo) as file:
        return not BFLOAT16_FLAGS.isdisjoint(file.read().split())
    return False
