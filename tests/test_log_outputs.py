"""Outputs of the log beside text and tables: TensorBoard, W&B, formats of one's own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from test_logger import write

from baselines import logger
from baselines.common.base.errors import MissingDependency, UserValueError
from baselines.common.logs import outputs

pytestmark = pytest.mark.usefixtures("empty_folder")


def grey_frames(*shades):
    return [np.full((20, 30, 3), shade, np.uint8) for shade in shades]


def shades(gif):
    """Returns the shade of each frame of a GIF of grey frames."""
    v3 = pytest.importorskip("imageio.v3")
    return v3.imread(gif, extension=".gif", index=None)[:, 10, 10, 0].tolist()


def read_events(folder):
    """Returns (step, name, value) of all there is, and steps before which some go."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    found, purged = [], []
    for path in sorted(os.listdir(folder)):
        with open(os.path.join(folder, path), "rb") as file:
            data = file.read()
        while data:
            size = int.from_bytes(data[:8], "little")  # then a checksum of 4 bytes
            event = event_pb2.Event.FromString(data[12 : 12 + size])
            data = data[16 + size :]
            if event.session_log.status == event_pb2.SessionLog.START:
                purged.append(event.step)
            for value in event.summary.value:
                kind = value.WhichOneof("value")
                found.append((event.step, value.tag, getattr(value, kind)))
    return found, purged


def test_tensorboard_has_scalars_over_agent_steps():
    logger.configure("log", ["tensorboard"])
    first = {"total_timesteps": 40, "loss": 0.5, "eprewmean": float("nan")}
    write(first, {"total_timesteps": 80, "loss": 0.25, "kind": None})
    state = logger.get_state()
    expected = [
        (40, "total_timesteps", 40),
        (40, "loss", 0.5),
        (80, "total_timesteps", 80),
        (80, "loss", 0.25),
    ]
    assert read_events("log/tb") == (expected, [])  # as if the run was killed here
    logger.configure("log", ["tensorboard"])
    logger.set_state(state)
    write({"total_timesteps": 120, "loss": 0.125})
    expected += [(120, "total_timesteps", 120), (120, "loss", 0.125)]
    assert read_events("log/tb") == (expected, [81])


def test_tensorboard_has_text_histograms_and_videos():
    logger.configure("log", ["tensorboard"])
    write({"total_timesteps": 40, "phase": "warm-up"})
    logger.write_histogram("integers", [3, 5, 3, 3], 40)
    logger.write_histogram("reals", np.array([[0.0, 1.5], [30.0, 1.25]]), 80)
    logger.write_video("game", grey_frames(10, 90, 250), 5, 80)
    (_, text, integers, reals, video), _ = read_events("log/tb")
    assert text[:2] == (40, "phase/text_summary")
    assert text[2].string_val == [b"warm-up"]
    # A bin for each integer, by its upper edge, after an empty one.
    assert integers[:2] == (40, "integers")
    assert list(integers[2].bucket_limit) == [2.5, 3.5, 4.5, 5.5]
    assert list(integers[2].bucket) == [0, 3, 0, 1]
    assert reals[:2] == (80, "reals") and len(reals[2].bucket) == 31
    assert [reals[2].bucket[i] for i in (0, 1, 2, 3, 30)] == [0, 1, 2, 0, 1]
    assert video[:2] == (80, "game")
    assert (video[2].height, video[2].width) == (20, 30)
    assert shades(video[2].encoded_image_string) == [10, 90, 250]


class Last:
    """A format that has no more than it needs."""

    rows = []

    def __init__(self, folder, state=None):
        pass

    def write_row(self, row):
        self.rows.append(row)

    def get_state(self):
        return len(self.rows)

    def close(self):
        pass


def test_format_of_ones_own():
    name = f"{__name__}:Last"
    logger.configure("log", [name])
    write({"a": 1}, {"a": 2})
    assert Last.rows == [{"a": 1}, {"a": 2}]
    assert logger.get_state() == {name: 2}
    assert not logger.takes_videos()
    logger.write_histogram("a", [1, 2], 80)  # It has no method for it.
    for name in f"{__name__}:First", "no_formats:Last":
        with pytest.raises(UserValueError):
            logger.configure("log", [name])


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_package_that_is_missing_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, outputs.PACKAGES[name], None)
    with pytest.raises(MissingDependency, match=rf"needs {name}.*\[{name}\]"):
        logger.configure("log", [name])


WANDB = """
import json
import sys
import numpy as np
from baselines import logger

stdout = sys.stdout
logger.configure("log", ["wandb"])
logger.current.begin_run(lambda: {"seed": 3}, overwrite=False)
logger.logkvs({"total_timesteps": 40, "loss": 0.5})
logger.dumpkvs()
assert sys.stdout is stdout
logger.write_histogram("actions", [3, 5, 3, 3], 40)
frames = [np.full((20, 30, 3), shade, np.uint8) for shade in (10, 90, 250)]
logger.write_video("game", frames, 5, 80)
state = logger.get_state()
run = logger.current.outputs["wandb"].run
found = {key: run.summary[key] for key in ("total_timesteps", "loss")}
found["bins"] = list(run.summary["actions"]["bins"])
found["values"] = list(run.summary["actions"]["values"])
found["seed"], found["gif"] = run.config["seed"], run.summary["game"]["path"]
logger.close()
logger.configure("log", ["wandb"])
logger.set_state(state)
logger.logkvs({"total_timesteps": 80, "loss": 0.25})
logger.dumpkvs()
assert logger.current.outputs["wandb"].run.id == state["wandb"]
logger.close()
import psutil
assert not psutil.Process().children()
print(json.dumps(found))
"""


@pytest.mark.slow
def test_wandb_has_rows_histograms_and_videos(tmp_path):
    """In a process of its own, which it changes for good."""
    pytest.importorskip("wandb")
    variables = {"WANDB_MODE": "offline", "HOME": str(tmp_path)}
    variables = os.environ | variables | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WANDB]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (gif,) = tmp_path.glob(f"log/wandb/offline-*/files/{found.pop('gif')}")
    assert shades(gif) == [10, 90, 250]
    bins = dict(bins=[2.5, 3.5, 4.5, 5.5], values=[3, 0, 1])
    assert found == dict(total_timesteps=80, loss=0.5, seed=3, **bins)
