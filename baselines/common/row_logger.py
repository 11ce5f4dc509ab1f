"""The logger behind ``baselines.logger``: one row of numbers to several outputs."""

import contextlib
import json
import os
import time
from collections import defaultdict

from baselines.common import mpi
from baselines.common.log_outputs import TableOutput, find_output
from baselines.common.saving.files import replace_file, report_full_disk
from baselines.common.saving.log_folder import (
    check_unused,
    lock_folder,
    remove_run_files,
)

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50  # levels of text


class Logger:
    """Collects the numbers of a row and writes rows to its outputs.

    Args:
        folder: where files go, or None for none.
        formats: names, as ``find_output`` takes them.
        config: JSON values of a run, written to ``config.json`` before the first
            output.

    Attributes:
        level: text of lower levels is left out; with DISABLED, rows are too.
    """

    def __init__(self, folder, formats, config=None):
        self.folder = folder
        self.formats = formats if mpi.rank == 0 else []
        self.config = config if mpi.rank == 0 else None
        self.outputs = None
        self.descriptor = None  # of the lock
        # Older files are of an earlier run. (Their times are coarse.)
        self.configured_at = time.time() - 0.05
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
            self.write_config(self.config)
        self.outputs = {
            name: find_output(name)(self.folder, (state or {}).get(name))
            for name in self.formats
        }

    def begin_run(self, make_config, overwrite):
        if self.folder is not None and mpi.rank == 0:
            self.lock()
            if self.outputs is None and self.closed_at is None:
                (remove_run_files if overwrite else check_unused)(
                    self.folder, self.configured_at
                )
        self.describe(make_config)
        self.open()

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

    def forward(self, method, *arguments):
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

    def end_run(self):
        self.clear()  # What was added after the last row belongs to no other run.
        if self.config is None:  # Otherwise more is saved, until close().
            self.unlock()

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


def plain(value):
    """Returns a NumPy or tensor scalar as a Python number."""
    return value.item() if hasattr(value, "item") else value
