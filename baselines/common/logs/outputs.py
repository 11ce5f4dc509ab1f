"""Where the log goes: terminal, ``log.txt``, CSV, JSON, TensorBoard, W&B.

An output has the methods of ``JSONOutput``. It may also have ``write_text(text)`` and,
to receive histograms and videos, ``write_histogram(name, values, step)`` and
``write_video(name, frames, frames_per_second, step)``, as ``TensorBoardOutput`` has;
``logger`` describes their arguments. If an output raises an OSError, other than for a
full disk, the run continues without it.
"""

import contextlib
import csv
import glob
import importlib
import importlib.util
import io
import itertools
import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

import numpy as np

from baselines.common.base.errors import (
    MissingDependency,
    UserFileError,
    UserValueError,
    first_line,
    install_command,
    suggest,
)
from baselines.common.base.user_code import import_named
from baselines.common.saving.files import (
    flush,
    open_text,
    replace_file,
    sync_file,
    synced_size,
)
from baselines.common.saving.video import encode_gif

NUM_BINS = 30  # of a histogram of real numbers
MAX_BINS = 256  # of a histogram of integers


class TableOutput:
    """Rows as tables of two columns: on the terminal, or in ``log.txt``.

    Every output continues from ``state``, which ``get_state`` returned in an earlier
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
        flush(self.file)

    def get_state(self):
        return synced_size(self.file)

    def close(self):
        self.file.close()


class TerminalOutput(TableOutput):
    def __init__(self, folder, state=None):
        pass

    @property
    def file(self):
        return sys.stdout  # which may be replaced while a live line is shown

    def write_text(self, text):
        try:
            try:
                self.file.write(text + "\n")
            except UnicodeEncodeError as error:
                encoded = text.encode(error.encoding, "backslashreplace")
                self.file.write(encoded.decode(error.encoding) + "\n")
            self.file.flush()
        except OSError:
            # The reader of stdout is gone, but the run continues. Without the redirect,
            # Python would try to flush the rest again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
            with contextlib.suppress(OSError):
                print("nobody reads standard output any more", file=sys.stderr)

    def get_state(self):
        return None

    def close(self):
        pass  # The terminal stays open.


class CSVOutput:
    """Rows of ``progress.csv``; the file is rewritten when a column is added."""

    def __init__(self, folder, state=None):
        self.path = os.path.join(folder, "progress.csv")
        self.columns, self.rows = [], []
        self.file = None
        if state is not None:
            self.columns = list(state["columns"])
            self.rows = self._read_rows(state["rows"])
        self._rewrite()

    def _read_rows(self, count):
        try:
            if not os.path.isfile(self.path):
                raise FileNotFoundError(self.path)
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
        flush(self.file)

    def _rewrite(self):
        text = io.StringIO()
        writer = self._make_writer(text)
        if self.columns:
            writer.writeheader()
        writer.writerows(self.rows)
        replace_file(self.path, text.getvalue().encode())
        if self.file is not None:
            self.file.close()
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
    """Rows of ``progress.json``, one JSON object per line."""

    def __init__(self, folder, state=None):
        self.file = open_text(os.path.join(folder, "progress.json"), state)

    def write_row(self, row):
        self.file.write(json.dumps(row) + "\n")
        flush(self.file)

    def get_state(self):
        return synced_size(self.file)

    def close(self):
        self.file.close()


class TensorBoardOutput:
    """Scalars, histograms and videos over agent steps, in the folder ``tb``."""

    def __init__(self, folder, state=None):
        # Imported only here, because it is an optional dependency.
        from tensorboardX.proto.event_pb2 import SessionLog

        folder = os.path.join(folder, "tb")
        os.makedirs(folder, exist_ok=True)
        if state is None:  # Another run may have been logged here.
            for path in glob.glob(os.path.join(glob.escape(folder), "events.out.*")):
                os.unlink(path)
        self.step = state or 0
        # The step is in the name because two files may begin in the same second.
        place = f"{int(time.time())}.{socket.gethostname()}.{self.step}"
        self.file = open(os.path.join(folder, f"events.out.tfevents.{place}"), "wb")
        self._write(0, file_version="brain.Event:2")
        if state is not None:
            # TensorBoard then hides what a run wrote after its checkpoint.
            log = SessionLog(status=SessionLog.START)
            self._write(state + 1, session_log=log)

    def _write(self, step, **content):
        """Writes an event. (tensorboardX would use a thread, which errors end.)"""
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.record_writer import masked_crc32c

        event = Event(wall_time=time.time(), step=step, **content).SerializeToString()
        for part in struct.pack("<Q", len(event)), event:
            self.file.write(part + struct.pack("<I", masked_crc32c(part)))
        flush(self.file)

    def write_row(self, row):
        from tensorboardX.summary import Summary, scalar, text

        self.step = row.get("total_timesteps", self.step + 1)
        summary = Summary()
        for key, value in row.items():
            if isinstance(value, str):
                summary.MergeFrom(text(key, value))
            # NaN are, for example, mean returns before an episode has ended.
            elif value is not None and not np.isnan(value):
                summary.MergeFrom(scalar(key, value))
        self._write(self.step, summary=summary)

    def write_histogram(self, name, values, step):
        from tensorboardX.summary import histogram

        self._write(step, summary=histogram(name, values, bin_edges(values)))

    def write_video(self, name, frames, frames_per_second, step):
        from tensorboardX.proto.summary_pb2 import Summary

        # tensorboardX's own video() needs moviepy.
        height, width, channels = frames[0].shape
        image = Summary.Image(
            height=height,
            width=width,
            colorspace=channels,
            encoded_image_string=encode_gif(frames, frames_per_second),
        )
        value = Summary.Value(tag=name, image=image)
        self._write(step, summary=Summary(value=[value]))

    def get_state(self):
        sync_file(self.file)
        return int(self.step)

    def close(self):
        self.file.close()


class WandbOutput:
    """Rows, histograms and videos over agent steps, at Weights & Biases.

    A resumed run keeps the id of the run that it continues. What that run logged after
    its checkpoint stays there, and is logged a second time.

    Raises:
        UserValueError: if there is no account to log to.
    """

    def __init__(self, folder, state=None):
        # Imported only here, because it is optional and slow to import.
        import wandb

        config = {}
        with contextlib.suppress(FileNotFoundError):
            config = json.loads(Path(folder, "config.json").read_text())
        try:
            self.run = wandb.init(
                dir=folder,
                config=config,
                id=state,
                resume=None if state is None else "allow",
                # The caller may have a run of their own.
                reinit="create_new",
                settings=wandb.Settings(console="off"),
            )
        except wandb.Error as error:
            raise UserValueError(
                f"cannot log to Weights & Biases: {first_line(error)} "
                "(WANDB_MODE=offline logs to the folder alone)"
            ) from None
        self.run.define_metric("*", step_metric="total_timesteps")

    def write_row(self, row):
        self.run.log(row)

    def write_histogram(self, name, values, step):
        from wandb import Histogram

        counts = np.histogram(values, bins=bin_edges(values))
        self.run.log({name: Histogram(np_histogram=counts), "total_timesteps": step})

    def write_video(self, name, frames, frames_per_second, step):
        from wandb import Video

        # Encoded here, because wandb would need moviepy.
        gif = io.BytesIO(encode_gif(frames, frames_per_second))
        self.run.log({name: Video(gif, format="gif"), "total_timesteps": step})

    def get_state(self):
        return self.run.id

    def close(self):
        import wandb

        self.run.finish()
        if wandb.run is None:  # The caller has no run of their own.
            wandb.teardown()  # ends its service process


OUTPUTS = {
    "stdout": TerminalOutput,
    "log": TableOutput,
    "csv": CSVOutput,
    "json": JSONOutput,
    "tensorboard": TensorBoardOutput,
    "wandb": WandbOutput,
}
PACKAGES = {"tensorboard": "tensorboardX", "wandb": "wandb"}


def find_output(name):
    """Returns the class of a log format.

    Args:
        name: a key of ``OUTPUTS``, or ``module:Class`` for one of the caller's own.

    Raises:
        UserValueError: if there is no format of that name.
        MissingDependency: if its package is not installed.
    """
    module, colon, attribute = name.partition(":")
    package = PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        raise MissingDependency(
            f"the log format {name} needs {package}, which is not installed: "
            f"{install_command(name)}"
        )
    if name in OUTPUTS:
        return OUTPUTS[name]
    if not colon:
        raise UserValueError(
            f"unknown log format {name!r}{suggest(name, OUTPUTS)} "
            f"(known: {', '.join(OUTPUTS)}; one of your own: module:Class)"
        )
    home = import_named(module, f"log format {name!r}")
    if not hasattr(home, attribute):
        raise UserValueError(f"log format {name!r}: {module!r} has no {attribute!r}")
    return getattr(home, attribute)


def bin_edges(values) -> np.ndarray:
    """Returns the bin edges of a histogram: one bin per integer, if they are few."""
    low, high = values.min(), values.max()
    if np.issubdtype(values.dtype, np.integer) and high - low < MAX_BINS:
        return np.arange(int(low), int(high) + 2) - 0.5
    return np.histogram_bin_edges(values, NUM_BINS)


def format_value(value) -> str:
    """Returns a number as text: integers in full, floats to 4 significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
