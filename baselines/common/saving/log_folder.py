"""Log folders: whether there is a run in one, and whether one is writing to it."""

import fcntl
import os
import time
from glob import escape, glob

from baselines.common.errors import UserFileError

# What a run writes, and no other file in the folder is.
RUN_FILES = (
    "config.json",
    "progress.csv",
    "progress.json",
    "log.txt",
    "*.monitor.csv",
    "model.safetensors",
    "best_model.safetensors",
    "checkpoints/*.json",
    "checkpoints/*.safetensors",
    "tb/events.out.*",
    "videos/video*.mp4",
)
LOCK_SECONDS = 1  # in which somebody who only looks has let go


def find_run_files(folder) -> list:
    """Returns the paths of the files of a run, in the order of ``RUN_FILES``."""
    folder = escape(os.path.expanduser(folder))
    return [path for name in RUN_FILES for path in sorted(glob(f"{folder}/{name}"))]


def remove_run_files(folder) -> None:
    """Removes the files of an earlier run."""
    for path in find_run_files(folder):
        os.unlink(path)


def check_unused(folder) -> None:
    """Raises UserFileError if a run has written to a folder already."""
    if files := find_run_files(folder):
        named = ", ".join(os.path.relpath(path, folder) for path in files[:2])
        raise UserFileError(
            f"{folder} has a run already ({named}{', ...' if files[2:] else ''}): "
            f"continue it with --resume={folder}, replace it with --overwrite, or give "
            "another --log_path"
        )


def lock_folder(folder) -> int | None:
    """Locks a folder until this process closes the lock, or ends in whatever way.

    Returns:
        a file descriptor to close; None where the file system has no locks.

    Raises:
        UserFileError: if another process has locked it.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    while (lock := try_lock(folder, fcntl.LOCK_EX)) is False:
        if time.monotonic() > deadline:
            raise UserFileError(
                f"another run is writing to {folder}: wait until it has ended, or give "
                "another folder"
            )
        time.sleep(0.05)
    return lock


def is_locked(folder) -> bool:
    """Whether a run is writing to a folder."""
    lock = try_lock(folder, fcntl.LOCK_SH)
    if lock:
        os.close(lock)
    return lock is False


def try_lock(folder, kind):
    """Returns a file descriptor; False for a lock of others, None for no locks."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:  # such as on some network file systems
        os.close(descriptor)
        return False if isinstance(error, BlockingIOError) else None
    return descriptor
