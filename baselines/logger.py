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

import numpy as np

from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.base.tables import read_table
from baselines.common.logs.outputs import find_output
from baselines.common.logs.row_logger import DEBUG, ERROR, INFO, WARN, Logger
from baselines.common.logs.row_logger import DISABLED as DISABLED
from baselines.common.saving.files import check_writable

current = Logger(None, ["stdout"])


def configure(dir=None, format_strs=None, config=None) -> None:
    """Sets where rows are written from now on.

    Args:
        dir: folder for the files; by default ``$OPENAI_LOGDIR``, or else a new one in
            the system's temporary folder.
        format_strs: any of stdout, log, csv, json, tensorboard and wandb, or
            ``module:Class`` for one of your own, in a list or separated by commas; by
            default those of ``$OPENAI_LOG_FORMAT``, or else stdout,log,csv.
        config: JSON values to store in ``config.json``.

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
    if config is not None:
        config = {**config, "log_formats": list(format_strs)}
    current.close()
    current = Logger(dir, list(format_strs), config, is_new)


def logkv(key, value):
    """Adds a number to the row."""
    current.logkv(key, value)


def logkv_mean(key, value):
    """Adds a number to a mean in the row, over all calls since the last row."""
    current.logkv_mean(key, value)


def logkvs(row):
    """Adds a dict of numbers to the row."""
    current.row.update(row)


def dumpkvs():
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


def getkvs():
    """Returns the row so far."""
    return current.row


def log(*words, level=INFO):
    """Writes a line of text to the terminal and to log.txt."""
    current.log(*words, level=level)


def debug(*words):
    """Writes text that appears only after ``set_level(DEBUG)``."""
    current.log(*words, level=DEBUG)


def show(line):
    """Writes a line only to the terminal, and only if rows are written there."""
    current.open()
    if "stdout" in current.outputs and current.level <= INFO:
        current.outputs["stdout"].write_text(line)


def warn(*words):
    """Writes a warning, as ``log`` does."""
    current.log("warning:", *words, level=WARN)


def error(*words):
    """Writes an error, as ``log`` does."""
    current.log("error:", *words, level=ERROR)


def set_level(level):
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


def uses(name):
    """Whether rows are written to the output with that name, such as stdout."""
    return name in current.formats


def get_dir():
    """Returns the folder of the files, or None."""
    return current.folder


def get_config():
    """Returns the JSON values of ``config.json`` that ``configure`` was given."""
    return current.config


def lose(error):
    """Records that a file of the run could not be written; warns the first time.

    Args:
        error: a UserFileError, or its message.
    """
    current.lose(error)


def get_lost():
    """Returns which files of the log could not be written and why, as sentences.

    Training goes on without them, except on a full disk, which ends it.
    """
    return current.lost


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
    current.open(state)


def close():
    """Closes the files; if more is written later, it is appended."""
    current.close()


# Names from OpenAI Baselines.
record_tabular = logkv
dump_tabular = dumpkvs
info = log
read_csv = read_table
profile = profile_kv  # A context manager of contextlib can decorate functions, too.


@contextlib.contextmanager
def scoped_configure(dir=None, format_strs=None):
    """Logs to another place inside a ``with`` block."""
    global current
    outer, current = current, Logger(None, [])
    try:
        configure(dir, format_strs)
        yield
    finally:
        current.close()
        current = outer


def read_json(path) -> np.recarray:
    """Returns the rows of a ``progress.json``, as ``read_csv`` does of a CSV file."""
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    names = dict.fromkeys(name for row in rows for name in row)
    table = [tuple(row.get(name, np.nan) for name in names) for row in rows]
    return np.array(table, [(name, float) for name in names]).view(np.recarray)
