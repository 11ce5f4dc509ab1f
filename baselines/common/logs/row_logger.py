"""The logger behind ``baselines.logger``: writes rows of numbers to several outputs."""

import contextlib
import json
import os
import sys
from collections import defaultdict

from baselines.common.base import mpi
from baselines.common.base.errors import UserTypeError, shown
from baselines.common.base.held_warnings import show_warnings
from baselines.common.logs.outputs import find_output
from baselines.common.saving.files import replace_file, tolerating, writing
from baselines.common.saving.log_folder import (
    check_unused,
    is_lock_of,
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
        config: JSON values of a run, written to ``config.json`` before the first
            output.
        is_new: whether the folder was named for this logger alone, so that a second
            run in it may replace the first.

    Attributes:
        level: text below this level is left out; with DISABLED, rows are as well.
        outputs: by format, without those that failed; None while closed.
        lost: sentences that say which files could not be written, and why.
    """

    def __init__(self, folder, formats, config=None, is_new=False):
        self.folder = folder
        self.formats = formats if mpi.rank == 0 else []
        self.config = config if mpi.rank == 0 else None
        self.config_text = None  # of config.json, once it was written
        self.outputs = None
        # By format, from the last get_state() that worked; None before outputs exist.
        self.states = None
        self.lost = []
        self.descriptor = None  # of the lock
        self.is_new = is_new
        self.claimed = False  # whether files of a run in the folder are this logger's
        self.has_run = False  # whether a run was begun
        self.level = INFO
        self.row = {}
        self.counts = defaultdict(int)

    def open(self, state=None):
        """Creates the folder and the files, unless they are open already.

        Args:
            state: from ``get_state``, to which files are truncated and then continued.

        Raises:
            UserFileError: if the folder belongs to another run, see ``claim``.
        """
        if self.outputs is not None:
            return
        if state is None:
            self.claim()
        else:  # of a run that is resumed
            self.claimed = self.has_run = True
        show_warnings()  # The arguments were accepted, and the run begins.
        state = state or self.states or {}
        states = {name: state.get(name) for name in self.formats}
        if self.folder is not None:
            with writing(self.folder):
                os.makedirs(self.folder, exist_ok=True)
        if self.config is not None:
            self.write_config(self.config)
        outputs = {}
        for name, state in states.items():
            with writing(f"{name} to {self.folder}"):
                outputs[name] = find_output(name)(self.folder, state)
        self.outputs, self.states = outputs, states

    def claim(self, overwrite=False):
        """Locks the folder, and makes sure that it has no files of another run.

        Args:
            overwrite: whether files of an earlier run are removed.

        Raises:
            UserFileError: if there are such files and ``overwrite`` is false, or if
                another process is writing to the folder.
        """
        if self.folder is None or mpi.rank > 0:
            return
        self.lock()
        if self.claimed:
            return
        try:
            (remove_run_files if overwrite else check_unused)(self.folder)
        except BaseException:
            self.unlock()
            raise
        self.claimed = True

    def continue_run(self):
        """Locks the folder of a run that is resumed against others until ``end_run``.

        Raises:
            UserFileError: if another run is writing to it.
        """
        self.lock()

    def begin_run(self, make_config, overwrite):
        """Opens the files of a new run and locks their folder against other runs.

        Args:
            make_config: function without arguments that returns the JSON values for
                ``config.json``; not called if the logger was given them.
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
                self.states = None
        self.claim(overwrite)
        self.has_run = True
        self.describe(make_config)
        self.open()

    def begin_again(self):
        """Restarts the files of a run that has no checkpoint to continue from."""
        self.claimed = self.has_run = True
        if self.folder is not None and mpi.rank == 0:
            remove_monitor_files(self.folder)
        self.open()

    def describe(self, make_config):
        """Writes the ``config.json`` of a run; argument as in ``begin_run``."""
        if self.config is None and self.folder is not None and mpi.rank == 0:
            self.claim()
            # First, as outputs may read it.
            self.write_config(make_config() | {"log_formats": self.formats})
            self.open()

    def write_config(self, config):
        self.config_text = json.dumps(config, indent=2) + "\n"
        replace_file(self.config_path, self.config_text.encode())

    @property
    def config_path(self):
        return os.path.join(self.folder, "config.json")

    def logkv(self, key, value):
        self.row[key] = value

    def logkv_mean(self, key, value):
        count, mean = self.counts[key], self.row.get(key, 0.0)
        self.row[key] = (mean * count + value) / (count + 1)
        self.counts[key] = count + 1

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
        for name, output in list(self.outputs.items()):
            if self.level < DISABLED and hasattr(output, method):
                with self.tolerating(name):
                    getattr(output, method)(*arguments)

    @contextlib.contextmanager
    def tolerating(self, name):
        """Closes an output that fails, and leaves it out from then on."""

        def lose(error):
            if isinstance(error, FileNotFoundError):
                self.states[name] = None  # Nothing is left to continue.
            with contextlib.suppress(OSError):
                self.outputs.pop(name).close()
            self.lose(error)

        with tolerating(f"{name} to {self.folder}", lose):
            yield

    def lose(self, error):
        """Records that a file could not be written; warns on stderr the first time.

        Args:
            error: a UserFileError, or its message.
        """
        if str(error) in self.lost:
            return
        self.lost.append(str(error))
        if len(self.lost) == 1 and mpi.rank == 0:
            # Not through the log, whose outputs may all have failed.
            with contextlib.suppress(OSError):
                print(f"warning: {error}; the run goes on without it", file=sys.stderr)

    def log(self, *words, level=INFO):
        if level >= self.level:
            self.forward("write_text", " ".join(map(str, words)))

    def lock(self):
        if self.folder is not None and self.descriptor is None and mpi.rank == 0:
            with writing(self.folder):
                os.makedirs(self.folder, exist_ok=True)
            self.descriptor = lock_folder(self.folder)

    def end_run(self):
        """Discards the row so far and lets other runs write to the folder.

        If the logger was given a config, the folder stays locked until ``close``.
        """
        self.clear()  # What was added after the last row belongs to no other run.
        if self.config is None:  # Otherwise more files are saved until close().
            self.unlock()

    def unlock(self):
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def get_state(self):
        """Returns the states of the outputs, from which a resumed run continues."""
        self.open()
        self.keep_folder()
        for name, output in list(self.outputs.items()):
            with self.tolerating(name):
                self.states[name] = output.get_state()
        return dict(self.states)

    def keep_folder(self):
        """Recreates the folder of a run if it is gone, so that it can be resumed.

        Raises:
            UserFileError: if that is impossible, or another run has taken its place.
        """
        if self.config_text is None:
            return
        same = is_lock_of(self.folder, self.descriptor)
        if same and os.path.isfile(self.config_path):
            return
        self.unlock()
        self.lock()
        replace_file(self.config_path, self.config_text.encode())

    def close(self):
        self.unlock()
        outputs, self.outputs = self.outputs or {}, None
        # What cannot be written was reported before.
        for name, output in outputs.items():
            with contextlib.suppress(OSError):
                self.states[name] = None
                self.states[name] = output.get_state()
            with contextlib.suppress(OSError):
                output.close()


def plain(name, value):
    """Returns a NumPy or tensor scalar as a Python number.

    Raises:
        UserTypeError: for an array of several numbers, or a name that is not text.
    """
    if not isinstance(name, str):
        raise UserTypeError(f"names of columns are text, received {shown(name)}")
    number = value
    if hasattr(value, "numpy") and not hasattr(value, "item"):  # as in TensorFlow
        number = value.numpy()
    with contextlib.suppress(ValueError, RuntimeError):  # of arrays and tensors
        number = number.item() if hasattr(number, "item") else number
        if not isinstance(number, (list, tuple)):
            return number
    raise UserTypeError(
        f"each column of a row is one number, received {shown(value)} for {name}"
    )
