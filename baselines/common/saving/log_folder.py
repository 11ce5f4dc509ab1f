"""Log folders: whether one has a run in it, and whether a run is writing to it."""

import fcntl
import os
import shlex
from glob import escape, glob

from baselines.common.base.errors import UserError, UserFileError, UserValueError
from baselines.common.saving.files import check_writable, read_json, writing

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
ROW_FILES = "progress.csv", "progress.json", "log.txt", "tb/events.out.*"
LOG_FILES = *ROW_FILES, *MONITOR_FILES
# What shows that a folder has a run. An environment may have begun its monitor files
# before ``learn()`` is called.
MARKS = "config.json", *ROW_FILES, *SAVED_FILES
# What a run writes; other files in the folder are not its own. (Each run of Weights &
# Biases has its own folder in wandb, and may not have been uploaded yet.)
RUN_FILES = *MARKS, *MONITOR_FILES, "videos/video*.mp4"


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


def remove_run_files(folder) -> None:
    """Removes the files of an earlier run.

    Raises:
        UserFileError: if there is a ``config.json`` that our logger did not write.
    """
    path = os.path.join(os.path.expanduser(folder), "config.json")
    if os.path.isfile(path) and not is_config(path):
        raise UserFileError(
            f"{path} is not of a run here, so nothing in {folder} is replaced: give "
            "another folder, or remove the file"
        )
    remove(find_run_files(folder))


def remove_monitor_files(folder) -> None:
    """Removes what a run that starts again from the beginning would not replace."""
    remove(find_run_files(folder, [*MONITOR_FILES, "tb/events.out.*"]))


def remove(paths) -> None:
    for path in paths:
        with writing(path):
            os.unlink(path)


def is_config(path) -> bool:
    """Whether a ``config.json`` is one that our logger wrote, and not damaged."""
    try:
        config = read_json(path)
    except UserError:
        return False
    return isinstance(config, dict) and "log_formats" in config


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


def check_save_path(path, folder=None) -> None:
    """Raises a UserError unless a model can be saved to a path, that of --save_path.

    Args:
        path: the path.
        folder: the log folder, which must not be at or below it; None for no log.
    """
    place = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(place) or f"{folder}/".startswith(f"{place}/"):
        raise UserValueError(f"--save_path has to name a file; {place} is a folder")
    check_writable(*os.path.split(place))


def check_unused(folder) -> None:
    """Raises UserFileError if there are files of an earlier run in a folder."""
    if files := find_run_files(folder, MARKS):
        raise UserFileError(
            f"{folder} has a run already ({os.path.basename(files[0])}): continue it, "
            f"{shlex.quote(f'--resume={folder}')}, replace it, --overwrite, or give "
            f"another folder (in Python, learn(..., resume={folder!r}), or overwrite="
            "True before anything is logged)"
        )


def check_no_run(folder) -> None:
    """Raises UserFileError if a folder has a run, whose episodes would be lost.

    Args:
        folder: that of a monitor file that this process did not begin.
    """
    if os.path.exists(os.path.join(folder, "config.json")):
        raise UserFileError(
            f"{folder} has a run already, and a step of the environment would begin "
            "its monitor files anew: call learn() first, with resume or "
            "overwrite=True, or give another folder"
        )


def lock_folder(folder, kind=fcntl.LOCK_EX) -> int | None:
    """Locks a folder until this process closes the lock or ends, however it ends.

    Args:
        folder: its path.
        kind: a lock that no other process has, or one that others may share.

    Returns:
        the file descriptor to close; None where the file system has no locks.

    Raises:
        UserFileError: if another process has locked it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if not isinstance(error, BlockingIOError):  # some network file systems
            return None
        raise UserFileError(
            f"another run is writing to {folder}: wait until it has ended, or give "
            "another folder"
        ) from None
    return descriptor


def is_locked(folder) -> bool:
    """Whether a run is writing to a folder."""
    try:
        lock = lock_folder(folder, fcntl.LOCK_SH)
    except UserFileError:
        return True
    if lock is not None:
        os.close(lock)
    return False
