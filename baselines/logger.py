"""Logs rows of numbers to the terminal and to files.

Functions of this module act on one current logger, as in OpenAI Baselines:
``configure`` sets it, ``logkv`` adds a number to the row, ``dumpkvs`` writes
the row. Nothing is created before something is written.

With several MPI ranks, ``dumpkvs`` averages each number over the ranks, so that all of
them have to call it; only rank 0 writes.
"""

import contextlib
import csv
import datetime
import io
import itertools
import json
import os
import sys
import tempfile
from collections import defaultdict

from baselines.common import mpi
from baselines.common.errors import UserFileError, UserValueError, suggest
from baselines.common.saving.files import (
    check_writable,
    open_text,
    replace_file,
    report_full_disk,
    sync_file,
    synced_size,
)


class TableOutput:
    """Rows as tables of two columns: on the terminal, or in ``log.txt``.

    Every output continues from ``state``, as returned by ``get_state`` of an earlier
    process, or starts a new file if that is None.
    """

    def __init__(self, folder, state=None):
        self.file = open_text(os.path.join(folder, "log.txt"), state)

    def write_row(self, row):
        cells = {key: format_value(value) for key, value in sorted(row.items())}
        key_width = max(map(len, cells))
        value_width = max(map(len, cells.values()))
        line = "-" * (key_width + value_width + 7)
        rows = [
            f"| {key:<{key_width}} | {value:<{value_width}} |"
            for key, value in cells.items()
        ]
        self.write_text("\n".join([line, *rows, line]))

    def write_text(self, text):
        self.file.write(text + "\n")
        self.file.flush()

    def get_state(self):
        return synced_size(self.file)

    def close(self):
        self.file.close()


class TerminalOutput(TableOutput):
    def __init__(self, folder, state=None):
        pass

    @property
    def file(self):
        return sys.stdout  # which may be another while a live line is shown

    def write_text(self, text):
        try:
            super().write_text(text)
        except OSError:
            # Whatever read it is gone, but the run continues. Python would try to flush
            # the rest again when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
            with contextlib.suppress(OSError):
                print("nobody reads standard output any more", file=sys.stderr)

    def get_state(self):
        return None

    def close(self):
        pass  # The terminal stays open.


class CSVOutput:
    """Rows of ``progress.csv``; a new column rewrites the file with it."""

    def __init__(self, folder, state=None):
        self.path = os.path.join(folder, "progress.csv")
        self.columns, self.rows = [], []
        if state is not None:
            self.columns = state["columns"]
            self.rows = self._read_rows(state["rows"])
        self._rewrite()

    def _read_rows(self, count):
        try:
            with open(self.path, newline="") as file:
                rows = list(itertools.islice(csv.DictReader(file), count))
            rows = [{key: row[key] for key in self.columns} for row in rows]
        except (OSError, KeyError):
            rows = []
        if len(rows) < count:
            raise UserFileError(
                f"cannot resume: {self.path} is missing or shorter than at the "
                "checkpoint"
            )
        return rows

    def write_row(self, row):
        self.rows.append(row)
        new = [key for key in row if key not in self.columns]
        if new:
            self.columns += new
            self._rewrite()
        else:
            self.writer.writerow(row)
        self.file.flush()

    def _rewrite(self):
        text = io.StringIO()
        writer = self._make_writer(text)
        if self.columns:
            writer.writeheader()
        writer.writerows(self.rows)
        replace_file(self.path, text.getvalue().encode())
        self.file = open(self.path, "a", newline="")
        self.writer = self._make_writer(self.file)

    def _make_writer(self, file):
        return csv.DictWriter(file, self.columns, restval="", lineterminator="\n")

    def get_state(self):
        sync_file(self.file)
        return {"columns": list(self.columns), "rows": len(self.rows)}

    def close(self):
        self.file.close()


class JSONOutput:
    """Rows of ``progress.json``, one JSON object a line."""

    def __init__(self, folder, state=None):
        self.file = open_text(os.path.join(folder, "progress.json"), state)

    def write_row(self, row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def get_state(self):
        return synced_size(self.file)

    def close(self):
        self.file.close()


OUTPUTS = {
    "stdout": TerminalOutput,
    "log": TableOutput,
    "csv": CSVOutput,
    "json": JSONOutput,
}


class Logger:
    """Collects the numbers of a row and writes rows to its outputs.

    Args:
        folder: where files go, or None for none.
        formats: names out of ``OUTPUTS``.
        config: JSON values, written to ``config.json`` before the first output.
    """

    def __init__(self, folder, formats, config=None):
        self.folder = folder
        self.formats = formats if mpi.rank == 0 else []
        self.config = config if mpi.rank == 0 else None
        self.outputs = None
        self.closed_at = None
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
            text = json.dumps(self.config, indent=2) + "\n"
            replace_file(os.path.join(self.folder, "config.json"), text.encode())
        self.outputs = {
            name: OUTPUTS[name](self.folder, (state or {}).get(name))
            for name in self.formats
        }

    def logkv(self, key, value):
        self.row[key] = value

    def logkv_mean(self, key, value):
        count, mean = self.counts[key], self.row.get(key, 0.0)
        self.row[key] = (mean * count + value) / (count + 1)
        self.counts[key] = count + 1

    def dumpkvs(self):
        self.open()
        row = mpi.mean_row({key: plain(value) for key, value in self.row.items()})
        if row:
            with report_full_disk(self.folder):
                for output in self.outputs.values():
                    output.write_row(row)
        self.row.clear()
        self.counts.clear()
        return row

    def log(self, *words):
        self.open()
        text = " ".join(map(str, words))
        with report_full_disk(self.folder):
            for output in self.outputs.values():
                if isinstance(output, TableOutput):
                    output.write_text(text)

    def get_state(self):
        self.open()
        return {name: output.get_state() for name, output in self.outputs.items()}

    def close(self):
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
        format_strs: names out of stdout, log, csv, json; by default
            ``$OPENAI_LOG_FORMAT`` (comma-separated), or else stdout,log,csv.
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
        if name not in OUTPUTS:
            raise UserValueError(
                f"unknown log format {name!r}{suggest(name, OUTPUTS)} "
                f"(known: {', '.join(OUTPUTS)})"
            )
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


def getkvs():
    """Returns the row so far."""
    return current.row


def log(*words):
    """Writes a line of text to the terminal and to log.txt."""
    current.log(*words)


def show(line):
    """Writes a line to the terminal alone, if rows are written there."""
    current.open()
    if "stdout" in current.outputs:
        current.outputs["stdout"].write_text(line)


def warn(*words):
    """Writes a warning, as ``log`` does."""
    current.log("warning:", *words)


def uses(name):
    """Whether rows are written to the output of that name, such as stdout."""
    return name in current.formats


def get_dir():
    """Returns the folder of the files, or None."""
    return current.folder


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


record_tabular = logkv
dump_tabular = dumpkvs


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


def plain(value):
    """Returns a NumPy or tensor scalar as a Python number."""
    return value.item() if hasattr(value, "item") else value


def format_value(value) -> str:
    """Returns a number as text: integers in full, floats to 4 digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
