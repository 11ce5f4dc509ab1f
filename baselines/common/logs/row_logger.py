"""The logger behind ``baselines.logger``: writes rows of numbers to several outputs."""

import contextlib
import json
import os
from collections import defaultdict

import numpy as np

from baselines.common.base import mpi
from baselines.common.base.errors import UserTypeError, shown
from baselines.common.logs.outputs import find_output
from baselines.common.saving.files import replace_file, writing
from baselines.common.saving.log_folder import (
    check_unused,
    lock_folder,
    remove_monitor_files,
    remove_run_files,
)

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50  # levels of text


class Logger:
    """Collects the numbers of a row and writes rows to its outputs.

    Args:
        folder: where files are written; None for no files.
        formats: names of outputs, see ``find_output``.
        is_new: whether the folder was named for this logger alone, so that a second
            run in it may replace the first.

    Attributes:
        level: text below this level is left out; with DISABLED, rows are as well.
        outputs: by format; None while closed.
    """

    def __init__(self, folder, formats, is_new=False):
        self.folder = folder
        self.has_files = folder is not None and mpi.rank == 0
        self.formats = formats if mpi.rank == 0 else []
        self.outputs = None
        self.states = {}  # by format, from which files are continued when opened
        self.descriptor = None  # of the lock
        self.is_new = is_new
        self.claimed = False  # whether files of a run in the folder are this logger's
        self.has_run = False  # whether a run was begun
        self.level = INFO
        self.row = {}
        self.counts = defaultdict(int)

    def open(self):
        """Creates the folder and the files, unless they are open already.

        Raises:
            UserFileError: if the folder belongs to another run, see ``claim``.
        """
        if self.outputs is not None:
            return
        self.claim()
        outputs = {}
        for name in self.formats:
            with writing(f"{name} to {self.folder}"):
                outputs[name] = find_output(name)(self.folder, self.states.get(name))
        self.outputs = outputs

    def claim(self, overwrite=False):
        """Locks the folder, and makes sure that it has no files of another run.

        Args:
            overwrite: whether files of an earlier run are removed.

        Raises:
            UserFileError: if there are such files and ``overwrite`` is false, or if
                another process is writing to the folder.
        """
        self.lock()
        if self.has_files and not self.claimed:
            (remove_run_files if overwrite else check_unused)(self.folder)
            self.claimed = True

    def begin_run(self, make_config, overwrite):
        """Opens the files of a new run and locks their folder against other runs.

        Args:
            make_config: function without arguments that returns the JSON values for
                ``config.json``.
            overwrite: whether to remove the files of an earlier run.

        Raises:
            UserFileError: if there was such a run and ``overwrite`` is false, or if
                another process is writing to the folder.
        """
        if self.has_run:  # whose files this run would replace
            self.claimed = False
            overwrite = overwrite or self.is_new
            if overwrite:
                self.close()
                self.states = {}
        self.claim(overwrite)
        self.has_run = True
        self.describe(make_config)

    def begin_again(self):
        """Restarts the files of a run that has no checkpoint to continue from."""
        self.claimed = self.has_run = True
        if self.has_files:
            remove_monitor_files(self.folder)

    def continue_from(self, states):
        """Opens the files of a run that is resumed, as they were at ``get_state``."""
        self.claimed = self.has_run = True
        self.states = states
        self.open()

    def describe(self, make_config):
        """Writes ``config.json`` and opens the files; argument as in ``begin_run``."""
        if self.has_files:
            # First, as outputs may read it.
            text = json.dumps(make_config() | {"log_formats": self.formats}, indent=2)
            replace_file(os.path.join(self.folder, "config.json"), f"{text}\n".encode())
        self.open()

    def dumpkvs(self):
        row = mpi.mean_row({key: plain(key, value) for key, value in self.row.items()})
        if row:
            self.forward("write_row", row)
        self.clear()
        return row

    def clear(self):
        self.row.clear()
        self.counts.clear()

    def forward(self, method, *arguments):
        """Calls a method on every output that has it."""
        self.open()
        for name, output in self.outputs.items():
            if self.level < DISABLED and hasattr(output, method):
                with writing(f"{name} to {self.folder}"):
                    getattr(output, method)(*arguments)

    def lock(self):
        """Locks the folder against other runs; raises UserFileError if one has it."""
        if self.has_files and self.descriptor is None:
            with writing(self.folder):
                os.makedirs(self.folder, exist_ok=True)
            self.descriptor = lock_folder(self.folder)

    def end_run(self):
        """Discards the row so far and lets other runs write to the folder."""
        self.clear()  # What was added after the last row belongs to no other run.
        self.unlock()

    def unlock(self):
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def get_state(self):
        """Returns the states of the outputs, from which a resumed run continues."""
        self.open()
        return {name: output.get_state() for name, output in self.outputs.items()}

    def close(self):
        self.unlock()
        outputs, self.outputs = self.outputs or {}, None
        for name, output in outputs.items():
            with contextlib.suppress(OSError):  # An error of writing was raised before.
                self.states[name] = output.get_state()
            with contextlib.suppress(OSError):
                output.close()


def plain(name, value):
    """Returns a NumPy or tensor scalar as a Python number; raises UserTypeError."""
    array = np.asarray(value)
    if array.size != 1:
        raise UserTypeError(
            f"each column of a row is one number, received {shown(value)} for {name}"
        )
    return array.item()
