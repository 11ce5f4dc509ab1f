"""Logs rows of numbers to the terminal and to files.

Functions of this module act on one current logger, as in OpenAI Baselines:
``configure`` sets it, ``logkv`` adds a number to the row, ``dumpkvs`` writes
the row. Nothing is created before something is written.

With several MPI ranks, ``dumpkvs`` averages each number over the ranks, so that all of
them have to call it; only rank 0 writes.
"""

import contextlib
import datetime
import json
import os
import tempfile
import time
from collections import defaultdict

import numpy as np

from baselines.common import mpi
from baselines.common.errors import UserValueError
from baselines.common.log_outputs import TableOutput, find_output
from baselines.common.saving.files import (
    check_writable,
    replace_file,
    report_full_disk,
)
from baselines.common.saving.log_folder import lock_folder, remove_run_files
from baselines.common.tables import read_table

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50  # levels of text


class Logger:
    """Collects the numbers of a row and writes rows to its outputs.

    Args:
        folder: where files go, or None for none.
        formats: names, as ``find_output`` takes them.
        config: JSON values of a run, written to ``config.json`` before the first
            output; files of an earlier run in the folder are removed.

    Attributes:
        level: text of lower levels is left out; with DISABLED, rows are too.
    """

    def __init__(self, folder, formats, config=None):
        self.folder = folder
        self.formats = formats if mpi.rank == 0 else []
        self.config = config if mpi.rank == 0 else None
        self.outputs = None
        self.descriptor = None  # of the lock
        self.closed_at = None
        self.level = INFO
        self.row = {}
        self.counts = defaultdict(int)

    def open(self, state=None):
        """Creates folder and files, unless that is done.

        Args:
            state: from ``get_state``, if files are truncated to it and continued.
        """
        if self.outputs is not None:
            return
        state = state or self.closed_at
        if self.folder is not None:
            os.makedirs(self.folder, exist_ok=True)
        if self.config is not None:
            if state is None:
                remove_run_files(self.folder)
            self.write_config(self.config)
        self.outputs = {
            name: find_output(name)(self.folder, (state or {}).get(name))
            for name in self.formats
        }

    def describe(self, make_config):
        if self.config is None and self.folder is not None and mpi.rank == 0:
            self.open()
            self.write_config(make_config() | {"log_formats": self.formats})

    def write_config(self, config):
        text = json.dumps(config, indent=2) + "\n"
        replace_file(os.path.join(self.folder, "config.json"), text.encode())

    def logkv(self, key, value):
        self.row[key] = value

    def logkv_mean(self, key, value):
        count, mean = self.counts[key], self.row.get(key, 0.0)
        self.row[key] = (mean * count + value) / (count + 1)
        self.counts[key] = count + 1

    def dumpkvs(self):
        self.open()
        row = mpi.mean_row({key: plain(value) for key, value in self.row.items()})
        if row and self.level < DISABLED:
            with report_full_disk(self.folder):
                for output in self.outputs.values():
                    output.write_row(row)
        self.clear()
        return row

    def clear(self):
        self.row.clear()
        self.counts.clear()

    def hand_on(self, method, *arguments):
        """Calls a method of the outputs that have it."""
        self.open()
        if self.level < DISABLED:
            with report_full_disk(self.folder):
                for output in self.outputs.values():
                    if hasattr(output, method):
                        getattr(output, method)(*arguments)

    def log(self, *words, level=INFO):
        if level < self.level:
            return
        self.open()
        text = " ".join(map(str, words))
        with report_full_disk(self.folder):
            for output in self.outputs.values():
                if isinstance(output, TableOutput):
                    output.write_text(text)

    def lock(self):
        if self.folder is not None and self.descriptor is None and mpi.rank == 0:
            os.makedirs(self.folder, exist_ok=True)
            self.descriptor = lock_folder(self.folder)

    def unlock(self):
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def get_state(self):
        self.open()
        return {name: output.get_state() for name, output in self.outputs.items()}

    def close(self):
        self.unlock()
        if self.outputs is None:
            return
        outputs, self.outputs = self.outputs, None
        # What cannot be written was reported before.
        with contextlib.suppress(OSError):
            self.closed_at = {name: x.get_state() for name, x in outputs.items()}
        for output in outputs.values():
            with contextlib.suppress(OSError):
                output.close()


current = Logger(None, ["stdout"])


def configure(dir=None, format_strs=None, config=None) -> None:
    """Sets where rows are written from now on.

    Args:
        dir: folder of the files; by default ``$OPENAI_LOGDIR``, or else a new
            one below the system's temporary folder.
        format_strs: names out of stdout, log, csv, json, tensorboard, wandb, or
            ``module:Class`` for one of your own; by default ``$OPENAI_LOG_FORMAT``
            (comma-separated), or else stdout,log,csv.
        config: JSON values to store in ``config.json``.

    Raises:
        UserFileError: if the folder cannot be written.
        UserValueError: for a format that does not exist.
    """
    global current
    if dir is None:
        dir = os.environ.get("OPENAI_LOGDIR")
    if dir is None:
        name = datetime.datetime.now().strftime("openai-%Y-%m-%d-%H-%M-%S-%f")
        dir = mpi.broadcast(os.path.join(tempfile.gettempdir(), name))
    if format_strs is None:
        names = os.environ.get("OPENAI_LOG_FORMAT", "stdout,log,csv")
        format_strs = [name.strip() for name in names.split(",") if name.strip()]
    for name in format_strs:
        find_output(name)
    dir = os.path.abspath(os.path.expanduser(dir))
    check_writable(dir)
    if config is not None:
        config = {**config, "log_formats": list(format_strs)}
    current.close()
    current = Logger(dir, list(format_strs), config)


def logkv(key, value):
    """Adds a number to the row."""
    current.logkv(key, value)


def logkv_mean(key, value):
    """Adds a number to a mean of the row, over all calls since the last row."""
    current.logkv_mean(key, value)


def logkvs(row):
    """Adds a dict of numbers to the row."""
    current.row.update(row)


def dumpkvs():
    """Writes the row and starts the next; returns what was written."""
    return current.dumpkvs()


def describe(make_config):
    """Stores what a run is in ``config.json``, if ``configure`` was not given that.

    Args:
        make_config: function without arguments that returns JSON values.
    """
    current.describe(make_config)


def clear():
    """Forgets the row so far."""
    current.clear()


def write_histogram(name, values, step):
    """Writes a histogram to the outputs that take them.

    Args:
        name: of the histogram.
        values: array of numbers.
        step: agent steps so far.
    """
    current.hand_on("write_histogram", name, np.asarray(values), step)


def write_video(name, frames, frames_per_second, step):
    """Writes a video to the outputs that take them.

    Args:
        name: of the video.
        frames: at least one, [height, width, 3] uint8.
        frames_per_second: at which it is shown.
        step: agent steps so far.
    """
    current.hand_on("write_video", name, frames, frames_per_second, step)


def takes_videos():
    """Whether an output takes videos, so that some have to be made."""
    return any(hasattr(find_output(name), "write_video") for name in current.formats)


def getkvs():
    """Returns the row so far."""
    return current.row


def log(*words, level=INFO):
    """Writes a line of text to the terminal and to log.txt."""
    current.log(*words, level=level)


def debug(*words):
    """Writes text that is left out unless ``set_level(DEBUG)`` was called."""
    current.log(*words, level=DEBUG)


def show(line):
    """Writes a line to the terminal alone, if rows are written there."""
    current.open()
    if "stdout" in current.outputs:
        current.outputs["stdout"].write_text(line)


def warn(*words):
    """Writes a warning, as ``log`` does."""
    current.log("warning:", *words, level=WARN)


def error(*words):
    """Writes an error, as ``log`` does."""
    current.log("error:", *words, level=ERROR)


def set_level(level):
    """Leaves out text below a level, and rows too if it is DISABLED.

    ``configure`` goes back to INFO.
    """
    current.level = level


@contextlib.contextmanager
def profile_kv(name):
    """Adds the seconds of a ``with`` block to ``wait_<name>`` of the row."""
    key, start = f"wait_{name}", time.perf_counter()
    try:
        yield
    finally:
        logkv(key, getkvs().get(key, 0.0) + time.perf_counter() - start)


def uses(name):
    """Whether rows are written to the output of that name, such as stdout."""
    return name in current.formats


def get_dir():
    """Returns the folder of the files, or None."""
    return current.folder


def lock():
    """Refuses other runs in the folder, until ``unlock`` or the end of this process.

    Raises:
        UserFileError: if there is such a run.
    """
    current.lock()


def unlock():
    """Lets other runs write to the folder."""
    current.unlock()


def open_files():
    """Creates the folder and its files now, not with the first row."""
    current.open()


def get_state():
    """Returns how much has been written to each file."""
    return current.get_state()


def set_state(state):
    """Continues the files of an earlier process, truncated to its ``get_state``.

    Raises:
        UserValueError: if something was written already.
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


# By OpenAI Baselines' names.
record_tabular = logkv
dump_tabular = dumpkvs
info = log
read_csv = read_table
profile = profile_kv  # As what contextlib makes decorates functions, too.


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


def plain(value):
    """Returns a NumPy or tensor scalar as a Python number."""
    return value.item() if hasattr(value, "item") else value
