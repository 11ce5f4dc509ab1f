"""Where the log goes: terminal, ``log.txt``, CSV, JSON, TensorBoard, W&B.

An output has the methods of ``JSONOutput``. It may also have ``write_text(text)`` and,
to receive histograms and videos, ``write_histogram(name, values, step)`` and
``write_video(name, frames, frames_per_second, step)``, as ``TensorBoardOutput`` has;
``logger`` describes their arguments.
"""

import contextlib
import csv
import io
import itertools
import json
import os
import time
from pathlib import Path

import numpy as np

from baselines.common.base.errors import UserFileError, UserValueError, suggest
from baselines.common.base.lazy import import_extra, import_module
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


class JSONOutput:
    """Rows of ``progress.json``, one JSON object per line.

    Every output continues from ``state``, which ``get_state`` returned in an earlier
    process, or starts a new file if that is None.
    """

    file_name = "progress.json"

    def __init__(self, folder, state=None):
        self.file = open_text(os.path.join(folder, self.file_name), state)

    def write_row(self, row):
        self._write_line(json.dumps(row))

    def _write_line(self, line):
        self.file.write(line + "\n")
        flush(self.file)

    def get_state(self):
        return synced_size(self.file)

    def close(self):
        self.file.close()


class TextOutput(JSONOutput):
    """Rows of ``log.txt`` as tables of two columns, as in OpenAI Baselines."""

    file_name = "log.txt"

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
        self._write_line(text)


class TerminalOutput(TextOutput):
    def __init__(self, folder, state=None):
        pass

    def write_text(self, text):
        with contextlib.suppress(OSError):  # The terminal may be closed.
            print(text, flush=True)

    def get_state(self):
        return None

    def close(self):
        pass


class CSVOutput:
    """Rows of ``progress.csv``; the file is rewritten when a column is added."""

    def __init__(self, folder, state=None):
        self.path = os.path.join(folder, "progress.csv")
        self.columns, self.rows = [], []
        if state is not None:
            self.columns = list(state["columns"])
            self.rows = self._read_rows(state["rows"])
        self._rewrite()

    def _read_rows(self, count):
        rows = []
        with contextlib.suppress(OSError), open(self.path, newline="") as file:
            rows = list(itertools.islice(csv.DictReader(file), count))
        if len(rows) < count:
            raise UserFileError(
                f"cannot resume: {self.path} is missing or shorter than at the "
                "checkpoint"
            )
        return rows

    def write_row(self, row):
        self.rows.append(row)
        if row.keys() <= set(self.columns):
            self._make_writer(self.file).writerow(row)
            flush(self.file)
        else:
            self.columns += [key for key in row if key not in self.columns]
            self.file.close()
            self._rewrite()

    def _rewrite(self):
        text = io.StringIO()
        writer = self._make_writer(text)
        if self.columns:
            writer.writeheader()
        writer.writerows(self.rows)
        replace_file(self.path, text.getvalue().encode())
        self.file = open(self.path, "a", newline="")

    def _make_writer(self, file):
        # Rows of a resumed run may have columns that were new after its checkpoint.
        return csv.DictWriter(
            file, self.columns, extrasaction="ignore", lineterminator="\n"
        )

    def get_state(self):
        sync_file(self.file)
        return {"columns": list(self.columns), "rows": len(self.rows)}

    def close(self):
        self.file.close()


class TensorBoardOutput:
    """Scalars, histograms and videos over agent steps, in the folder ``tb``.

    It writes in the calling thread: a checkpoint could not wait for the queue of
    tensorboardX's ``SummaryWriter``, and an error in its thread would hang the run.
    """

    def __init__(self, folder, state=None):
        # Imported only here, because it is an optional dependency.
        from tensorboardX import event_file_writer, summary
        from tensorboardX.proto import event_pb2

        os.makedirs(os.path.join(folder, "tb"), exist_ok=True)
        self.summary, self.protocol = summary, event_pb2
        self.step = state or 0
        # The step is in the name because two files may begin in the same second.
        prefix, suffix = os.path.join(folder, "tb", "events"), f".{self.step}"
        self.writer = event_file_writer.EventsWriter(prefix, suffix)
        if state is not None:
            # TensorBoard then hides what a run wrote after its checkpoint.
            self._write(state + 1, session_log={"status": "START"})

    def _write(self, step, **content):
        event = self.protocol.Event(wall_time=time.time(), step=step, **content)
        self.writer.write_event(event)
        self.writer.flush()

    def write_row(self, row):
        self.step = row.get("total_timesteps", self.step + 1)
        summary = self.summary.Summary()
        for key, value in row.items():
            if isinstance(value, str):
                summary.MergeFrom(self.summary.text(key, value))
            # NaN are, for example, mean returns before an episode has ended.
            elif value is not None and not np.isnan(value):
                summary.MergeFrom(self.summary.scalar(key, value))
        self._write(self.step, summary=summary)

    def write_histogram(self, name, values, step):
        summary = self.summary.histogram(name, values, bins_of(values))
        self._write(step, summary=summary)

    def write_video(self, name, frames, frames_per_second, step):
        # tensorboardX's own video() needs moviepy.
        gif = encode_gif(frames, frames_per_second)
        height, width, channels = frames[0].shape
        image = {"height": height, "width": width, "colorspace": channels}
        image["encoded_image_string"] = gif
        self._write(step, summary={"value": [{"tag": name, "image": image}]})

    def get_state(self):
        return int(self.step)

    def close(self):
        self.writer.close()


class WandbOutput:
    """Rows, histograms and videos over agent steps, at Weights & Biases.

    A resumed run keeps the id of the run that it continues. What that run logged after
    its checkpoint stays there, and is logged a second time.
    """

    def __init__(self, folder, state=None):
        # Imported only here, because it is optional and slow to import.
        import wandb

        config = Path(folder, "config.json")
        self.run = wandb.init(
            dir=folder,
            config=json.loads(config.read_text()) if config.is_file() else {},
            id=state,
            resume=None if state is None else "allow",
            # The caller may have a run of their own.
            reinit="create_new",
            settings=wandb.Settings(console="off"),
        )
        self.wandb = wandb
        self.run.define_metric("*", step_metric="total_timesteps")

    def write_row(self, row):
        self.run.log(row)

    def write_histogram(self, name, values, step):
        counts = np.histogram(values, bins_of(values))
        histogram = self.wandb.Histogram(np_histogram=counts)
        self.run.log({name: histogram, "total_timesteps": step})

    def write_video(self, name, frames, frames_per_second, step):
        # Encoded here, because wandb would need moviepy.
        gif = io.BytesIO(encode_gif(frames, frames_per_second))
        video = self.wandb.Video(gif, format="gif")
        self.run.log({name: video, "total_timesteps": step})

    def get_state(self):
        return self.run.id

    def close(self):
        self.run.finish()
        if self.wandb.run is None:  # The caller has no run of their own.
            self.wandb.teardown()  # ends its service process


OUTPUTS = {
    "stdout": TerminalOutput,
    "log": TextOutput,
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
    if name in PACKAGES:
        import_extra(PACKAGES[name], name)
    module, colon, kind = name.rpartition(":")
    known = vars(import_module(module)) if colon else OUTPUTS
    if kind not in known:
        raise UserValueError(
            f"unknown log format {name!r}{suggest(kind, known)} "
            f"(known: {', '.join(OUTPUTS)}; one of your own: module:Class)"
        )
    return known[kind]


def bins_of(values):
    """Returns the bins of a histogram: one per integer, if they are few."""
    low, high = values.min(), values.max()
    if np.issubdtype(values.dtype, np.integer) and high - low < MAX_BINS:
        return np.arange(int(low), int(high) + 2) - 0.5
    return NUM_BINS


def format_value(value) -> str:
    """Returns a number as text: integers in full, floats to 4 significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
