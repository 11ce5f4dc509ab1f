"""Log folders: whether one has a run in it, and whether a run is writing to it."""

import fcntl
import os
import re
import shlex
import time
from fnmatch import fnmatch
from glob import escape, glob

from baselines.common.base.errors import UserError, UserFileError, UserValueError
from baselines.common.saving.files import check_writable, writing
from baselines.common.saving.json_values import read_json
from baselines.common.views.page import is_report

# The model at the end of a run, and the best one in its evaluations.
MODEL_FILE = "model.safetensors"
BEST_MODEL_FILE = "best_model.safetensors"
SAVED_FILES = (
    MODEL_FILE,
    BEST_MODEL_FILE,
    "checkpoints/*.json",
    "checkpoints/*.safetensors",
)
MONITOR_FILES = "monitor.csv", "*.monitor.csv"
LOG_FILES = (
    "progress.csv",
    "progress.json",
    "log.txt",
    *MONITOR_FILES,
    "tb/events.out.*",
)
# What a run writes; other files in the folder are not its own. (Each run of Weights &
# Biases has its own folder in wandb, and may not have been uploaded yet.)
RUN_FILES = ("config.json", *LOG_FILES, *SAVED_FILES, "videos/video*.mp4")
FOLDERS = "checkpoints", "tb", "videos", "wandb"
REPORT_FILE = "report.html"  # a run's file if ``is_report`` recognises it
# What checkpoints leave behind; a user may keep models under other names beside them.
OWN_FILE = re.compile(
    r"(\w+-)?\d{12,15}\.((\d+\.)?safetensors(\.tmp)?|json\.tmp)", re.ASCII
)
LOCK_SECONDS = 1  # in which a process that only checks a lock has released it


def find_run_files(folder, names=RUN_FILES) -> list:
    """Returns the paths of the files of a run, in the order of ``names``.

    Args:
        folder: path.
        names: patterns of files in the folder.
    """
    folder = escape(os.path.expanduser(folder))
    return [path for name in names for path in sorted(glob(f"{folder}/{name}"))]


def checkpoint_steps(path) -> int:
    """Returns the agent steps of a checkpoint, from the name of one of its files."""
    return int(os.path.basename(path)[:12])


def find_earlier_files(folder) -> list:
    """Returns a run's files; none if there are only monitor files.

    An environment may have begun its monitor file before ``learn()`` is called.
    """
    files = find_run_files(folder)
    begun = find_run_files(folder, MONITOR_FILES)
    return files if set(files) - set(begun) else []


def remove_run_files(folder) -> None:
    """Removes the files of an earlier run, its report included.

    Raises:
        UserFileError: if there is a ``config.json`` that our logger did not write.
    """
    check_config(folder)
    reports = find_run_files(folder, [REPORT_FILE])
    remove([*find_earlier_files(folder), *filter(is_report, reports)])


def is_config(path) -> bool:
    """Whether a ``config.json`` is one that our logger wrote, and not damaged."""
    try:
        found = read_json(path)
    except UserError:
        return False
    return isinstance(found, dict) and "log_formats" in found


def check_may_overwrite(folder, load_path) -> None:
    """Raises UserFileError if the model to start from is in the run to overwrite.

    Args:
        folder: of the run.
        load_path: a saved model, or a log folder; None for no model.
    """
    places = [os.path.expanduser(folder), *find_run_files(folder)]
    if load_path is None or not os.path.exists(places[0]):
        return
    model = os.path.realpath(os.path.expanduser(load_path))
    if model in map(os.path.realpath, places):
        raise UserFileError(
            f"the model to load, {load_path}, is of the run in {folder}, which "
            "overwrite would remove; give another log folder, or copy the model first"
        )


def remove_monitor_files(folder) -> None:
    """Removes the monitor files of a run that starts again from the beginning."""
    remove(find_run_files(folder, MONITOR_FILES))


def check_config(folder) -> None:
    """Raises UserFileError for the ``config.json`` of another library."""
    path = os.path.join(os.path.expanduser(folder), "config.json")
    if os.path.isfile(path) and not is_config(path):
        raise UserFileError(
            f"{path} is not of a run here, so nothing in {folder} is replaced: give "
            "another folder, or remove the file"
        )


def is_log_file(folder, path) -> bool:
    """Whether ``path`` is where a run in that folder writes its config or log."""
    name = os.path.relpath(path, os.path.abspath(os.path.expanduser(folder)))
    return any(fnmatch(name, pattern) for pattern in ("config.json", *LOG_FILES))


def check_save_path(path, folder=None) -> None:
    """Raises a UserError unless a model can be saved to a path.

    Args:
        path: the value of ``--save_path``.
        folder: of the run's log, whose files it must not replace; None for no log.
    """
    place = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(place) or path.endswith("/"):
        raise UserValueError(f"--save_path has to name a file; {place} is a folder")
    if folder is not None and is_log_file(folder, place):
        raise UserValueError(
            f"--save_path is {path}, which the log has for itself; give another path"
        )
    check_writable(*os.path.split(place))


def remove(paths) -> None:
    for path in paths:
        with writing(path):
            os.unlink(path)


def check_links(folder) -> None:
    """Raises UserFileError if a run's files or folders are links to other places."""
    folder = os.path.expanduser(folder)
    places = [os.path.join(folder, name) for name in FOLDERS]
    files = find_run_files(folder)
    for path in [*places, *files, *(f"{file}.tmp" for file in files)]:
        if os.path.islink(path):
            raise UserFileError(
                f"cannot write to {folder}: {path} is a link to another place"
            )


def check_unused(folder) -> None:
    """Raises UserFileError if there are files of an earlier run in a folder."""
    folder = os.path.expanduser(folder)
    if files := find_earlier_files(folder):
        named = ", ".join(os.path.relpath(path, folder) for path in files[:2])
        path = os.path.join(folder, "config.json")
        resume = ""  # It may be another program's.
        if is_config(path):
            call = shlex.quote(f"--resume={folder}")
            if read_json(path).get("command") is None:  # It was started from Python.
                call = f"learn(..., resume={folder!r})"
            resume = f"continue it with {call}, "
        raise UserFileError(
            f"{folder} has a run already ({named}{', ...' if files[2:] else ''}): "
            f"{resume}replace it with --overwrite (in Python, learn(overwrite=True), "
            "before anything is logged), or give another folder"
        )


def check_no_run(folder) -> None:
    """Raises UserFileError if a folder has a run, whose episodes would be lost.

    Args:
        folder: that of a monitor file that this process did not begin.
    """
    if os.path.exists(os.path.join(folder, "config.json")):
        raise UserFileError(
            f"{folder} has a run already, and a reset of the environment would begin "
            "its monitor files anew: call learn() first, with resume or "
            "overwrite=True, or give another folder"
        )


def lock_folder(folder) -> int | None:
    """Locks a folder until this process closes the lock or ends, however it ends.

    Returns:
        the file descriptor to close; None where the file system has no locks.

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


def is_lock_of(folder, lock) -> bool:
    """Whether a lock still belongs to the folder that is now at that path.

    Args:
        folder: path.
        lock: what ``lock_folder`` returned for the folder that was there then.
    """
    try:
        return lock is None or os.path.samestat(os.stat(folder), os.fstat(lock))
    except OSError:
        return False


def is_locked(folder) -> bool:
    """Whether a run is writing to a folder."""
    lock = try_lock(folder, fcntl.LOCK_SH)
    if lock is False:
        return True
    if lock is not None:
        os.close(lock)
    return False


def try_lock(path, kind):
    """Returns a file descriptor; False if others hold a lock, None without locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # A pipe would wait.
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:  # such as on some network file systems
        os.close(descriptor)
        return False if isinstance(error, BlockingIOError) else None
    return descriptor
