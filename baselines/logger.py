"""Logs rows of numbers to the terminal and to files.

Functions of this module act on one current logger, as in OpenAI Baselines:
``configure`` sets it, ``logkv`` adds a number to the row, ``dumpkvs`` writes
the row. No file is created before something is written.

With several MPI ranks, ``dumpkvs`` averages each number over the ranks, so all of them
have to call it; only rank 0 writes.
"""

import contextlib
import datetime
import json
import os
import tempfile
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.base.lazy import import_extra
from baselines.common.base.tables import read_table
from baselines.common.logs.outputs import find_output
from baselines.common.logs.row_logger import DEBUG, ERROR, INFO, WARN, Logger
from baselines.common.logs.row_logger import DISABLED as DISABLED
from baselines.common.saving.files import check_writable

current = Logger(None, ["stdout"])


def configure(
    dir: str | os.PathLike | None = None, format_strs: Iterable[str] | str | None = None
) -> None:
    """Sets where rows are written from now on.

    Args:
        dir: folder for the files; by default ``$OPENAI_LOGDIR``, or else a new one in
            the system's temporary folder.
        format_strs: any of stdout, log, csv, json, tensorboard and wandb, or
            ``module:Class`` for one of your own, in a list or separated by commas; by
            default those of ``$OPENAI_LOG_FORMAT``, or else stdout,log,csv.

    Raises:
        UserFileError: if the folder cannot be written.
        UserValueError: for a format that does not exist.
    """
    global current
    if dir is None:
        dir = os.environ.get("OPENAI_LOGDIR") or None
    is_new = dir is None
    if is_new:
        name = datetime.datetime.now().strftime("openai-%Y-%m-%d-%H-%M-%S-%f")
        dir = mpi.broadcast(os.path.join(tempfile.gettempdir(), name))
    if format_strs is None:
        format_strs = os.environ.get("OPENAI_LOG_FORMAT", "stdout,log,csv")
    if isinstance(format_strs, str):
        names = map(str.strip, format_strs.split(","))
        format_strs = [name for name in names if name]
    for name in format_strs:
        find_output(name)
    dir = os.path.abspath(os.path.expanduser(dir))
    check_writable(dir)
    current.close()
    current = Logger(dir, list(format_strs), is_new)


def logkv(key: str, value: Any) -> None:
    """Adds a number to the row."""
    current.row[key] = value


def logkv_mean(key: str, value: Any) -> None:
    """Adds a number to a mean in the row, over all calls since the last row."""
    count, mean = current.counts[key], current.row.get(key, 0.0)
    current.row[key] = (mean * count + value) / (count + 1)
    current.counts[key] = count + 1


def logkvs(row: dict) -> None:
    """Adds a dict of numbers to the row."""
    current.row.update(row)


def dumpkvs() -> dict:
    """Writes the row and starts the next; returns what was written."""
    return current.dumpkvs()


def write_histogram(name, values, step):
    """Writes a histogram to the outputs that support histograms.

    Args:
        name: of the histogram.
        values: array of numbers.
        step: agent steps so far.
    """
    current.forward("write_histogram", name, np.asarray(values), step)


def write_video(name, frames, frames_per_second, step):
    """Writes a video to the outputs that support videos.

    Args:
        name: of the video.
        frames: at least one frame, [height, width, 3] uint8.
        frames_per_second: rate at which the video is shown.
        step: agent steps so far.
    """
    current.forward("write_video", name, frames, frames_per_second, step)


def takes_videos():
    """Whether an output supports videos, so that they have to be made."""
    return any(hasattr(find_output(name), "write_video") for name in current.formats)


def getkvs() -> dict:
    """Returns the row so far."""
    return current.row


def log(*words, level: int = INFO) -> None:
    """Writes a line of text to the terminal and to log.txt."""
    if level >= current.level:
        current.forward("write_text", " ".join(map(str, words)))


def debug(*words) -> None:
    """Writes text that appears only after ``set_level(DEBUG)``."""
    log(*words, level=DEBUG)


def show(line):
    """Writes a line only to the terminal, and only if rows are written there."""
    current.open()
    if "stdout" in current.outputs and current.level <= INFO:
        current.outputs["stdout"].write_text(line)


def warn(*words) -> None:
    """Writes a warning, as ``log`` does."""
    log("warning:", *words, level=WARN)


def error(*words) -> None:
    """Writes an error, as ``log`` does."""
    log("error:", *words, level=ERROR)


def set_level(level: int) -> None:
    """Hides text below a level, and rows as well if the level is DISABLED.

    ``configure`` resets it to INFO.
    """
    current.level = level


@contextlib.contextmanager
def profile_kv(name):
    """Adds the seconds that a ``with`` block takes to ``wait_<name>`` in the row."""
    key, start = f"wait_{name}", time.perf_counter()
    try:
        yield
    finally:
        logkv(key, getkvs().get(key, 0.0) + time.perf_counter() - start)


def uses(name: str) -> bool:
    """Whether rows are written to the output with that name, such as stdout."""
    return name in current.formats


def get_dir() -> str | None:
    """Returns the folder of the files, or None."""
    return current.folder


def get_state():
    """Returns how much has been written to each file."""
    return current.get_state()


def set_state(state):
    """Continues an earlier process's files, truncated to the sizes of ``get_state``.

    Raises:
        UserValueError: if something has been written already.
    """
    if current.outputs is not None:
        raise UserValueError(
            f"cannot resume: something was logged to {current.folder} already; "
            "configure the logger and resume before that"
        )
    current.continue_from(state)


def close() -> None:
    """Closes the files; if more is written later, it is appended."""
    current.close()


# Names from OpenAI Baselines.
record_tabular = logkv
dump_tabular = dumpkvs
info = log
read_csv = read_table
profile = profile_kv  # A context manager of contextlib can decorate functions, too.


@contextlib.contextmanager
def scoped(new):
    """Logs by another ``Logger`` inside a ``with`` block, and closes it."""
    global current
    outer, current = current, new
    try:
        yield
    finally:
        current.close()
        current = outer


@contextlib.contextmanager
def scoped_configure(dir=None, format_strs=None):
    """Logs to another place inside a ``with`` block."""
    with scoped(Logger(None, [])):
        configure(dir, format_strs)
        yield


def read_json(path):
    """Returns the rows of a ``progress.json``, as ``read_csv`` does of a CSV file."""
    with open(path) as file:
        return import_extra("pandas").DataFrame(map(json.loads, file))
