"""Numbers of a run: a row at a time to the terminal and to files.

Functions of this module act on one current logger, as in OpenAI Baselines:
``configure`` sets it, ``logkv`` adds a number to the row, ``dumpkvs`` writes
the row. Nothing is created before something is written.
"""

import contextlib
import csv
import datetime
import json
import os
import sys
import tempfile
from collections import defaultdict

from baselines.common.errors import UserFileError, UserValueError, suggest


class HumanOutput:
    """Rows as a table of two columns."""

    def __init__(self, file):
        self.file = file

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

    def close(self):
        if self.file is not sys.stdout:
            self.file.close()


class CSVOutput:
    """Rows of ``progress.csv``; a new column rewrites the file with it."""

    def __init__(self, path):
        self.path = path
        self.columns = []
        self.rows = []
        self.file = open(path, "w", newline="")

    def write_row(self, row):
        self.rows.append(row)
        new = sorted(row.keys() - set(self.columns))
        if new:
            self.columns += new
            self._rewrite()
        else:
            self._writer(self.file).writerow(row)
        self.file.flush()

    def _writer(self, file):
        return csv.DictWriter(file, self.columns, restval="", lineterminator="\n")

    def _rewrite(self):
        temporary = f"{self.path}.new"
        file = open(temporary, "w", newline="")
        writer = self._writer(file)
        writer.writeheader()
        writer.writerows(self.rows)
        file.flush()
        os.replace(temporary, self.path)
        self.file.close()
        self.file = file

    def close(self):
        self.file.close()


class JSONOutput:
    """Rows of ``progress.json``, one JSON object a line."""

    def __init__(self, path):
        self.file = open(path, "w")

    def write_row(self, row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def close(self):
        self.file.close()


OUTPUTS = {
    "stdout": lambda folder: HumanOutput(sys.stdout),
    "log": lambda folder: HumanOutput(open(os.path.join(folder, "log.txt"), "w")),
    "csv": lambda folder: CSVOutput(os.path.join(folder, "progress.csv")),
    "json": lambda folder: JSONOutput(os.path.join(folder, "progress.json")),
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
        self.formats = formats
        self.config = config
        self.outputs = None
        self.row = {}
        self.counts = defaultdict(int)

    def open(self):
        """Creates folder and files, unless it is done already."""
        if self.outputs is not None:
            return
        if self.folder is not None:
            os.makedirs(self.folder, exist_ok=True)
        if self.config is not None:
            with open(os.path.join(self.folder, "config.json"), "w") as file:
                json.dump(self.config, file, indent=2)
                file.write("\n")
        self.outputs = [OUTPUTS[name](self.folder) for name in self.formats]

    def logkv(self, key, value):
        self.row[key] = value

    def logkv_mean(self, key, value):
        count, mean = self.counts[key], self.row.get(key, 0.0)
        self.row[key] = (mean * count + value) / (count + 1)
        self.counts[key] = count + 1

    def dumpkvs(self):
        self.open()
        row = {key: plain(value) for key, value in self.row.items()}
        if row:
            for output in self.outputs:
                output.write_row(row)
        self.row.clear()
        self.counts.clear()
        return row

    def log(self, *words):
        self.open()
        text = " ".join(map(str, words))
        for output in self.outputs:
            if isinstance(output, HumanOutput):
                output.write_text(text)

    def close(self):
        for output in self.outputs or []:
            output.close()
        self.outputs = None


current = Logger(None, ["stdout"])


def configure(dir=None, format_strs=None, config=None) -> None:
    """Sets where rows go from here on.

    Args:
        dir: folder of the files; by default ``$OPENAI_LOGDIR``, or else a new
            one below the system's temporary folder.
        format_strs: names out of stdout, log, csv, json; by default
            ``$OPENAI_LOG_FORMAT`` (comma-separated), or else stdout,log,csv.
        config: JSON values to keep in ``config.json``.

    Raises:
        UserFileError: if the folder cannot be written.
        UserValueError: for a format that does not exist.
    """
    global current
    if dir is None:
        dir = os.environ.get("OPENAI_LOGDIR")
    if dir is None:
        name = datetime.datetime.now().strftime("openai-%Y-%m-%d-%H-%M-%S-%f")
        dir = os.path.join(tempfile.gettempdir(), name)
    if format_strs is None:
        format_strs = os.environ.get("OPENAI_LOG_FORMAT", "stdout,log,csv").split(",")
    for name in format_strs:
        if name not in OUTPUTS:
            raise UserValueError(
                f"unknown log format {name!r}{suggest(name, OUTPUTS)} "
                f"(known: {', '.join(OUTPUTS)})"
            )
    dir = os.path.abspath(os.path.expanduser(dir))
    check_writable(dir)
    current.close()
    current = Logger(dir, list(format_strs), config)


def check_writable(folder) -> None:
    """Raises UserFileError if no file could be made in ``folder``, there or not."""
    existing = folder
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise UserFileError(f"cannot write to {folder}: {error.strerror}") from None


def logkv(key, value):
    """Adds a number to the row."""
    current.logkv(key, value)


def logkv_mean(key, value):
    """Adds a number to the row as the mean of all given for it since the last row."""
    current.logkv_mean(key, value)


def logkvs(row):
    """Adds a dict of numbers to the row."""
    for key, value in row.items():
        current.logkv(key, value)


def dumpkvs():
    """Writes the row and starts the next; returns what was written."""
    return current.dumpkvs()


def getkvs():
    """Returns the row so far."""
    return current.row


def log(*words):
    """Writes a line of text to the terminal and to log.txt."""
    current.log(*words)


def get_dir():
    """Returns the folder of the files, or None."""
    return current.folder


def close():
    """Closes the files; what is written next opens them anew."""
    current.close()


record_tabular = logkv
dump_tabular = dumpkvs


@contextlib.contextmanager
def scoped_configure(dir=None, format_strs=None):
    """Logs to another place inside a ``with`` block."""
    global current
    outer, current = current, Logger(None, [])
    configure(dir, format_strs)
    try:
        yield
    finally:
        current.close()
        current = outer


def plain(value):
    """Returns a NumPy or tensor scalar as a Python number."""
    return value.item() if hasattr(value, "item") else value


def format_value(value) -> str:
    """Returns a number as the table shows it: integers whole, floats to 4 digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
