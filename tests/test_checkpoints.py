"""Checkpoints on disk: intact at every moment, and what is damaged is noticed."""

import contextlib
import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Killed
from gymnasium import spaces

from baselines.common.base.errors import UserValueError
from baselines.common.data import replay_buffer
from baselines.common.saving.checkpoints import Checkpoints, list_manifests
from baselines.common.saving.states import check_like
from baselines.common.saving.tensors import load_tensors, save_tensors

NUM_ENVS, ROWS = 2, 10  # of a segment
FOLDER = Path("log/checkpoints")
NEWEST = f"{37:012d}"


@pytest.fixture(autouse=True)
def small_segments(empty_folder, monkeypatch):
    monkeypatch.setattr(replay_buffer, "SEGMENT_SIZE", ROWS * NUM_ENVS)


class Numbers:
    """A part whose state is a nest."""

    value = np.zeros(3)

    def get_state(self):
        return {"value": self.value, "more": ["text", 1, None, {"x": np.int64(5)}]}

    def set_state(self, state):
        check_like(state["value"], self.value, "value")
        self.value = state["value"]
        assert state["more"] == ["text", 1, None, {"x": 5}]


class Trained:
    """A run whose memory has room for 30 rows, of three to four segments."""

    def __init__(self, seed=0):
        observations = spaces.Box(-np.inf, np.inf, (2,))
        self.memory = replay_buffer.ReplayBuffer(
            observations, spaces.Discrete(9), 60, NUM_ENVS, n_step=3, seed=seed
        )
        self.memory.start(np.zeros((NUM_ENVS, 2)))
        self.numbers = Numbers()
        parts = {"numbers": self.numbers, "memory": self.memory}
        self.checkpoints = Checkpoints(str(FOLDER), {"alg": "x"}, parts)

    def train(self, until):
        """Adds rows up to a count, which depend on nothing but their number."""
        for row in range(self.memory.count, until):
            rng = np.random.default_rng(row)
            obs, last_obs = rng.normal(size=(2, NUM_ENVS, 2))
            dones = rng.random(NUM_ENVS) < 0.3
            truncated = np.flatnonzero(dones & (rng.random(NUM_ENVS) < 0.5))
            actions, rewards = rng.integers(9, size=NUM_ENVS), rng.normal(size=NUM_ENVS)
            self.memory.add(actions, rewards, dones, obs, last_obs, truncated)
            self.numbers.value = rng.normal(size=3)
            self.checkpoints.write_segments()
        return self

    def save(self):
        self.checkpoints.save(self.memory.count, 1000)
        return self

    def restore(self, damaged="None"):
        """Returns the row that it is restored at."""
        done, total, error = self.checkpoints.restore("log", 500)
        assert done == self.memory.count and total == 1000 and damaged in str(error)
        return done

    def contents(self):
        drawn = np.concatenate([np.ravel(x) for x in self.memory.sample(4, 50)])
        return [*self.numbers.value, *drawn]


def test_restored_run_goes_on_as_the_saved_one():
    for steps in 5, 20, 33, 77:  # In later ones, older rows have been overwritten.
        saved, restored = Trained().train(steps).save(), Trained(seed=1)
        assert restored.restore() == steps
        for run in saved, restored:
            run.train(steps + 14)
        assert restored.contents() == saved.contents()
        shutil.rmtree("log")


def test_arrays_are_saved_whatever_their_strides():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    save_tensors("saved", {"turned": array.T, "scalar": np.float32(1)}, {})
    loaded, _ = load_tensors("saved")
    np.testing.assert_array_equal(loaded["turned"], array.T)
    assert loaded["scalar"].shape == ()


def test_segments_are_written_once_and_stay_while_a_manifest_names_them():
    run = Trained()
    times, named = {}, []
    for steps in range(8, 90, 7):
        run.train(steps).save()
        segments = sorted(path.name for path in FOLDER.glob("memory-*"))
        for name in segments:
            time = (FOLDER / name).stat().st_mtime_ns
            assert times.setdefault(name, time) == time
        named.append({f"memory-{n:012d}.safetensors" for n in run.memory.segments()})
        assert set(segments) == named[-1] | named[-2:][0]
    assert len(times) == 8 and len(named[-1]) == 3


def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(monkeypatch):
    before, after = Trained().train(37).contents(), Trained().train(57).contents()
    for moment in itertools.count():
        shutil.rmtree("log", ignore_errors=True)
        run = Trained().train(24).save().train(37).save()
        left = [moment]

        def dying(function, left=left):
            def call(*args):
                left[0] -= 1
                if left[0] < 0:  # Nothing is done any more, not even cleaning up.
                    raise Killed
                return function(*args)

            return call

        with monkeypatch.context() as patch:
            for name in "fsync", "replace", "unlink":
                patch.setattr(os, name, dying(getattr(os, name)))
            with contextlib.suppress(Killed):
                run.train(57).save()
        restored = Trained()
        steps = restored.restore()
        assert restored.contents() == {37: before, 57: after}[steps]
        restored.train(60).save()
        assert not [*FOLDER.glob("*.tmp")] and len(list_manifests(FOLDER)) == 2
        if left[0] >= 0:
            break
    assert moment > 12 and steps == 57


@pytest.mark.parametrize(
    "name",
    [f"{NEWEST}.safetensors", f"{NEWEST}.json", "memory-000000000002.safetensors"],
)
def test_damaged_checkpoint_gives_way_to_the_one_before_it(name):
    Trained().train(24).save().train(37).save()
    path = FOLDER / name
    good, rng = path.read_bytes(), np.random.default_rng(0)
    for place in [0, len(good) - 3, *rng.integers(len(good), size=20)]:
        bad = bytearray(good)
        bad[place] ^= 1 << rng.integers(7)
        path.write_bytes(bad)
        assert Trained().restore("damaged") == 24
    path.unlink()
    assert path.suffix == ".json" or Trained().restore("missing") == 24
    (FOLDER / "000000000024.safetensors").write_bytes(b"damaged")
    with pytest.raises(UserValueError, match="damaged"):
        Trained().restore()


def test_only_files_of_checkpoints_are_removed():
    run = Trained().train(5).save().train(8).save()
    own = "best.safetensors", "step_500.safetensors", "notes.json"
    old = "000000000001.1.safetensors", "memory-000000000007.safetensors"
    for name in own + old:
        (FOLDER / name).touch()
    run.train(12).save()
    names = [f"{n:012d}.{end}" for n in (8, 12) for end in ("json", "safetensors")]
    memory = ["memory-000000000000.safetensors"]
    assert sorted(os.listdir(FOLDER)) == sorted([*names, *own, *memory])


@pytest.mark.parametrize(
    "state",
    [
        {"a": np.zeros(2)},
        {"a": np.zeros(2), "b": [0], "c": 1},
        {"a": np.zeros(3), "b": [0]},
        {"a": np.zeros(2, int), "b": [0]},
        {"a": np.zeros(2), "b": [0, 0]},
        None,
    ],
)
def test_state_of_another_structure_is_refused(state):
    with pytest.raises(ValueError, match="^state"):
        check_like(state, {"a": np.ones(2), "b": [5]}, "state")
