"""Damaged and forged files end in a correct load or in one line, never otherwise."""

import collections
import json
import os
import signal
import struct

import numpy as np
import pytest
from baselines.common.arguments.checked import NOT_IN_FILE
from baselines.common.saving.json_values import parse_json

import baselines
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.data import replay_buffer
from baselines.common.saving.files import replace_file
from baselines.common.saving.states import (
    DamagedState,
    check_like,
    check_number,
    set_generator,
)
from baselines.common.saving.tensors import load_tensors, save_tensors
from benchmarks import fuzz
from benchmarks.mutations import join_tensors, split_tensors

NEWEST = "000000000400"


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.MonkeyPatch.context() as patch:
        # Both are set for good, as benchmarks/fuzz.py is a program.
        patch.setattr(replay_buffer, "SEGMENT_SIZE", replay_buffer.SEGMENT_SIZE)
        folder = tmp_path_factory.mktemp("fuzz")
        yield dict(zip(fuzz.RUNS, fuzz.make_targets(folder)))
    signal.signal(signal.SIGALRM, handler)


@pytest.fixture
def a2c(targets):
    targets["a2c"].restore_files()
    return targets["a2c"]


@pytest.fixture
def dqn(targets):
    targets["dqn"].restore_files()
    return targets["dqn"]


def test_two_thousand_damaged_files(targets):
    counts = collections.Counter()
    for number in range(2000):
        kind, outcome, said = fuzz.attempt(list(targets.values()), 0, number)
        assert outcome in fuzz.GOOD, f"{number}, {kind}: {outcome}: {said}"
        counts[kind, outcome] += 1
    for kind in fuzz.KINDS:
        assert counts[kind, "refused"] + counts[kind, "loaded the older one"], kind
    assert sum(counts[kind, "loaded"] for kind in fuzz.KINDS) > 200
    assert counts["manifest, bytes", "loaded the older one"] > 20


def test_attempt_notices_what_a_command_raises(targets, monkeypatch):
    monkeypatch.setattr("baselines.runs.list_runs", lambda folder: 1 / 0)
    made = [fuzz.attempt(list(targets.values()), 0, number) for number in range(30)]
    assert ("config.json, values", "raised ZeroDivisionError") in [x[:2] for x in made]


def forge(target, change, name=f"checkpoints/{NEWEST}.safetensors"):
    """Applies a function to the metadata of a file, with right checksums afterwards."""
    path = target.folder / name
    header, rest = split_tensors(path.read_bytes())
    change(header["__metadata__"]["json"])
    path.write_bytes(join_tensors(header, rest))
    target.sign(path)


def restore(target):
    """Returns the agent steps of the checkpoint that is restored, and the log."""
    with target.log():
        steps, _ = target.checkpoints.restore(str(target.folder), fuzz.TOTAL)
    return steps, (target.folder / "log.txt").read_text()


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


# Changes of a checkpoint's metadata, and words of the error.
REFUSED_STATES = {
    "observations as a list": (
        lambda s: s["runner"].update(obs=[s["runner"]["obs"]]),
        "its runner cannot be restored",
    ),
    "another environment's generator": (
        lambda s: s["runner"]["env"]["venv"]["envs"][0][0].update(generator={}),
        "its runner cannot be restored",
    ),
    "a list for weights": (
        lambda s: s["model"].update(variables=list(s["model"]["variables"].values())),
        "its model cannot be restored",
    ),
    "true for a count": (lambda s: s["episodes"].update(count=True), "episodes"),
    "a float for a count": (lambda s: s["episodes"].update(count=1.0), "episodes"),
    "a negative count": (lambda s: s["episodes"].update(count=-1), "episodes"),
    "results without a return": (
        lambda s: s["episodes"].update(results=[{"l": 1}]),
        "episodes cannot be restored .*'r'",
    ),
    "no part": (lambda s: s.pop("clock"), "it has no clock"),
    "the log as a number": (lambda s: s.update(logger=5), "logger"),
    "a size of the log that is true": (
        lambda s: s["logger"].update(log=True),
        "logger cannot be restored",
    ),
}


@pytest.mark.parametrize("kind", REFUSED_STATES)
def test_forged_state_is_refused(kind, a2c):
    change, words = REFUSED_STATES[kind]
    forge(a2c, lambda metadata: change(metadata["states"]))
    with pytest.raises(UserValueError, match=words) as error:
        restore(a2c)
    assert str(a2c.folder) in str(error.value) and "\n" not in str(error.value)


# Changes of a checkpoint's metadata that are seen before a part is restored.
REFUSED_FILES = {
    "true for agent steps": lambda x: x.update(num_timesteps=True),
    "other agent steps than its name": lambda x: x.update(num_timesteps=300),
    "a total that is true": lambda x: x.update(total_timesteps=True),
    "a list nested too deep": lambda x: x["states"].update(x=nested(254)),
    "a tensor that is not there": lambda x: x["states"].update(x={"tensor": "x"}),
    "a tensor that is not used": lambda x: x["states"]["runner"].pop("dones"),
    "a name that is no text": lambda x: x["states"].update(x={"tensor": [1]}),
    "half a surrogate pair": lambda x: x["states"].update(x="\ud800"),
}


@pytest.mark.parametrize("kind", REFUSED_FILES)
def test_older_checkpoint_takes_the_place_of_a_forged_one(kind, a2c):
    forge(a2c, REFUSED_FILES[kind])
    steps, log = restore(a2c)
    assert steps == 300
    assert f"{NEWEST}.json is damaged: " in log
    assert "resumed from the one before it" in log


def test_sparse_file_is_not_read(a2c):
    """It would take an hour."""
    os.truncate(a2c.folder / "checkpoints" / f"{NEWEST}.safetensors", 2**42)
    steps, log = restore(a2c)
    assert steps == 300 and f"{NEWEST}.safetensors is missing, or has another" in log


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "link to a file"])
def test_what_is_no_file_gives_way_to_the_older_checkpoint(kind, suffix, a2c):
    path = a2c.folder / "checkpoints" / f"{NEWEST}.{suffix}"
    put(kind, path)
    steps, log = restore(a2c)
    assert steps == 300
    assert "is damaged" in log and "resumed from the one before it" in log
    # The next checkpoint can be saved, unless a folder is in its place.
    if kind == "folder":
        with pytest.raises(UserFileError, match="Is a directory"):
            a2c.checkpoints.save(400, 400)
    else:
        a2c.checkpoints.save(400, 400)
        assert path.is_file() and not path.is_symlink()


def put(kind, path):
    """Puts something in the place of a file."""
    if kind == "link to a file":
        path.rename(path.with_name("other"))
        path.symlink_to("other")
        return
    path.unlink(missing_ok=True)
    make = {"folder": os.mkdir, "pipe": os.mkfifo}
    make.get(kind, lambda path: os.symlink("nowhere", path))(path)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_temporary_file_that_is_none(kind, tmp_path):
    put(kind, tmp_path / "file.tmp")
    if kind == "folder":
        with pytest.raises(UserFileError, match=r"Is a directory .*file\.tmp"):
            replace_file(str(tmp_path / "file"), b"new")
        assert os.listdir(tmp_path) == ["file.tmp"]
    else:
        replace_file(str(tmp_path / "file"), b"new")
        assert os.listdir(tmp_path) == ["file"]


def test_second_file_of_a_manifest_is_not_taken_for_mpi(a2c):
    for manifest in (a2c.folder / "checkpoints").glob("*.json"):
        content = json.loads(manifest.read_text())
        content["files"][f"{manifest.stem}.1.safetensors"] = "0" * 64
        manifest.write_text(json.dumps(content))
    with pytest.raises(UserValueError, match=r"is damaged: .* of 2 MPI rank\(s\)"):
        restore(a2c)


@pytest.mark.parametrize("name", ["frames", "rows"])
def test_forged_segment_is_refused(name, dqn):
    (*_, path) = sorted((dqn.folder / "checkpoints").glob("memory-*.safetensors"))
    tensors, metadata = load_tensors(path)
    tensors[name] = tensors[name][::-1] if name == "rows" else tensors[name][1:]
    save_tensors(path, {k: x.copy() for k, x in tensors.items()}, metadata)
    dqn.sign(path)
    with pytest.raises(UserValueError, match="its memory cannot be restored"):
        restore(dqn)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("resume", "."),
        ("total_timesteps", 10**9),
        (NOT_IN_FILE, 5),
    ],
)
def test_forged_arguments_of_a_model_are_refused(name, value, dqn):
    forge(dqn, lambda metadata: metadata["arguments"].update({name: value}), fuzz.MODEL)
    with pytest.raises(UserValueError, match=f"models have no settings.*{name}"):
        baselines.load(dqn.folder / fuzz.MODEL)


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_forged_space_of_a_model_is_refused(name, dqn):
    forge(dqn, lambda metadata: metadata.update({name: {"kind": "x"}}), fuzz.MODEL)
    words = f"{fuzz.MODEL} is damaged: its {name}: .* does not describe a space"
    with pytest.raises(UserValueError, match=words):
        baselines.load(dqn.folder / fuzz.MODEL)


@pytest.mark.parametrize(
    ("state", "example"),
    [
        (True, 1),
        (1, True),
        (1.0, 1),
        (1, 1.0),
        (-1, 1),
        (2**63, 1),
        (float("inf"), 1.0),
        (None, {}),
        ([], {}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": {"b": "x"}}, {"a": {"b": 1}}),
        ([1], [1, 1]),
        ([[1.0]], np.zeros((1, 1))),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2, np.float32), np.zeros(2)),
    ],
)
def test_state_that_is_not_like_the_example(state, example):
    with pytest.raises(DamagedState):
        check_like(state, example)


def test_state_that_is_like_the_example():
    state = {"a": [1, "x"], "b": np.ones(2), "c": [9]}
    check_like(state, {"a": [0, ""], "b": np.zeros(2), "c": ...})
    check_like(np.asarray(2.0), np.float64(0))


@pytest.mark.parametrize("number", [True, None, "1", np.inf, 10**400, np.zeros(1)])
def test_what_is_no_number(number):
    with pytest.raises(DamagedState):
        check_number(number)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937])
def test_generator_takes_only_a_state_of_its_own(kind):
    rng = np.random.Generator(kind(0))
    state = rng.bit_generator.state
    first = rng.integers(1000, size=5)
    set_generator(rng, state)
    np.testing.assert_array_equal(rng.integers(1000, size=5), first)
    wrong = {"inc": True} if "inc" in state["state"] else {"pos": 625}
    for bad in (
        {},
        {**state, "bit_generator": "SFC64"},
        {**state, "state": {**state["state"], **wrong}},
    ):
        with pytest.raises(DamagedState):
            set_generator(rng, bad)


@pytest.mark.parametrize(
    "text", ["[" * 40 + "]" * 40, "[" * 100_000, '{"a": 1, "a": 2}', '"\\ud800"', "9e"]
)
def test_json_beyond_the_limits(text):
    with pytest.raises(ValueError):
        parse_json(text)
    with pytest.raises(ValueError, match="more than 1000000 values"):
        parse_json(f"[{'0,' * 1_000_000}0]")


def test_bytes_of_a_damaged_model_are_said_in_one_line(tmp_path):
    """The library that reads it quotes the names of tensors as they are."""
    tensor = {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}
    header = json.dumps({"bias\u2028\x85": tensor}, ensure_ascii=False).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(UserValueError, match="or is damaged") as error:
        load_tensors(path)
    assert "bias" in str(error.value) and str(error.value).isprintable()
