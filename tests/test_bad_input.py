"""Wrong environments and damaged files: one line each, and no files are written.

Command lines are in test_bad_command_lines.py, wrong arguments where they are used.
"""

import contextlib
import json
import os
import pickle
import random
import resource
import shutil
import sys
from pathlib import Path

import psutil
import pytest

from baselines import run
from baselines.common.base.errors import UserError
from baselines.common.envs import make_vec_env
from baselines.common.networks.policies import Policy
from baselines.common.saving.checkpoints import list_manifests, load_checkpoint
from baselines.common.saving.tensors import take_arrays

pytestmark = pytest.mark.usefixtures("empty_folder")


def files_here():
    files = (path for path in Path().rglob("*") if not path.is_dir())
    return {str(x): x.read_bytes() if x.is_file() else None for x in files}


@contextlib.contextmanager
def one_line_error(*words, unchanged=True):
    """Asserts that the block raises a UserError of one line with all words.

    Args:
        words: of the message.
        unchanged: whether no file may change; if false, only none may be new or gone.
    """
    before = files_here()
    with pytest.raises(UserError) as error:
        yield
    message = str(error.value)
    assert "\n" not in message and len(message) < 500
    for word in words:
        assert word in message
    assert files_here() == before if unchanged else files_here().keys() == before.keys()


class Exploit:
    def __reduce__(self):
        return os.mkdir, ("exploited",)


def write(path, content):
    """Writes bytes, text or JSON in place of a file."""
    if not isinstance(content, (bytes, str)):
        content = json.dumps(content)
    Path(path).write_bytes(content.encode() if isinstance(content, str) else content)


def edited(path, **changes):
    """Changes keys of a JSON file, in its first two levels."""
    config = json.loads(Path(path).read_text())
    for level in (config, *(v for v in config.values() if isinstance(v, dict))):
        level.update({k: v for k, v in changes.items() if k in level})
    write(path, config)


def added(path, **settings):
    config = json.loads(Path(path).read_text())
    config["settings"].update(settings)
    write(path, config)


def both(change, pattern):
    """Applies a change to the files of both checkpoints."""
    for path in list(Path("cut/checkpoints").glob(pattern)):
        change(path)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def outside(path):
    """Makes a manifest name a file that is not in its folder."""
    files = json.loads(path.read_text())["files"]
    write(path, {"files": {f"../../{k}": v for k, v in files.items()}, "segments": {}})


CONFIG = "cut/config.json"
HOSTILE_RUNS = {
    "no config": (lambda: os.unlink(CONFIG), ["there is no run to resume in cut"]),
    "config half written": (lambda: write(CONFIG, '{"format": 1'), ["is damaged"]),
    "config that is a list": (lambda: write(CONFIG, [1, 2]), ["is damaged"]),
    "config nested too deep": (lambda: write(CONFIG, "[" * 100_000), ["is damaged"]),
    "config of bytes": (lambda: write(CONFIG, b"\xff\xfe\x00"), ["is damaged"]),
    "pickle as config": (
        lambda: write(CONFIG, pickle.dumps(Exploit())),
        ["is damaged"],
    ),
    "config of another version": (
        lambda: edited(CONFIG, format=1),
        ["the format of its config.json is 1, not 6"],
    ),
    "config of another kind": (lambda: edited(CONFIG, ranks="x"), ["is damaged"]),
    "config with another type of env": (lambda: edited(CONFIG, env=5), ["is damaged"]),
    "config with an unknown setting": (lambda: added(CONFIG, env="x"), ["is damaged"]),
    "config that is a pipe": (
        lambda: (os.unlink(CONFIG), os.mkfifo(CONFIG)),
        ["there is no run to resume in cut"],
    ),
    "config of no algorithm": (
        lambda: edited(CONFIG, alg="../../evil"),
        ["its alg is ../../evil, which is code outside this package"],
    ),
    "config of other settings": (
        lambda: edited(CONFIG, gamma=0.5),
        ["its gamma is 0.99, this run's is 0.5"],
    ),
    "manifest of another place": (
        lambda: both(outside, "*.json"),
        ["checkpoint", "is damaged"],
    ),
    "manifest that is a pickle": (
        lambda: both(lambda path: write(path, pickle.dumps(Exploit())), "*.json"),
        ["checkpoint", "is damaged"],
    ),
    "manifest nested too deep": (
        lambda: both(lambda path: write(path, "[" * 100_000), "*.json"),
        ["checkpoint", "is damaged"],
    ),
    "data with a flipped bit": (lambda: both(flip, "*.safetensors"), ["is damaged"]),
    "data cut short": (
        lambda: both(lambda path: os.truncate(path, 99), "*.safetensors"),
        ["is damaged"],
    ),
    "data that is a pickle": (
        lambda: both(
            lambda path: write(path, pickle.dumps(Exploit())), "*.safetensors"
        ),
        ["is damaged"],
    ),
    "log that is gone": (
        lambda: os.unlink("cut/progress.csv"),
        ["progress.csv is missing or shorter"],
    ),
    "monitor file cut short": (
        lambda: os.truncate("cut/0.1.monitor.csv", 3),
        ["0.1.monitor.csv is missing or shorter"],
    ),
}


@pytest.fixture(scope="module")
def undamaged_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undamaged")
    arguments = "--alg=a2c --env=CartPole-v1 --num_env=2 --num_timesteps=400 --seed=0"
    arguments += f" --checkpoint_interval=200 --log_interval=5 --log_path={folder}"
    run.main(arguments.split())
    assert len(list_manifests(folder / "checkpoints")) == 2
    return folder


@pytest.mark.parametrize("kind", HOSTILE_RUNS)
def test_damaged_run_is_refused(kind, undamaged_run):
    damage, words = HOSTILE_RUNS[kind]
    shutil.copytree(undamaged_run, "cut")
    damage()
    # The log is restored last, after the environments have truncated their files.
    with one_line_error(*words, unchanged="missing or shorter" not in words[0]):
        run.run(["--resume=cut", "--num_timesteps=500"])


def some_policy():
    env = make_vec_env("CartPole-v1", seed=0)
    return Policy(env.observation_space, env.action_space, "mlp", seed=0)


def mutated(good, rng):
    """Returns a file's bytes with one kind of damage, drawn at random."""
    data = bytearray(good)
    kind = rng.randrange(6)
    if kind == 0:  # flipped bits
        for _ in range(rng.choice([1, 1, 1, 10])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:  # cut short
        del data[rng.randrange(len(data)) :]
    elif kind == 2:  # another length of the header
        data[:8] = rng.randrange(2 ** rng.choice([8, 16, 32, 63])).to_bytes(8, "little")
    elif kind == 3:  # bytes of another place
        start, end = sorted(rng.randrange(len(data)) for _ in range(2))
        data[start : start + 64] = data[end : end + 64]
    elif kind == 4:  # more at its end
        data += rng.randbytes(rng.choice([1, 8, 1000]))
    else:  # another number or word in the header
        size = int.from_bytes(data[:8], "little")
        header = data[8 : 8 + size].decode()
        old = rng.choice(
            ["F32", "F32", "[", "0", "4", ":", "pi", "kernel", "json", "sha256"]
        )
        new = rng.choice(
            ["F64", "F8_E4M3", "I8", "99999999999", "-1", "null", "../x", "[", "NaN"]
        )
        header = header.replace(old, new, rng.choice([1, -1])).encode()
        data = len(header).to_bytes(8, "little") + header + data[8 + size :]
    return bytes(data)


def test_a_thousand_damaged_models_are_refused():
    policy = some_policy()
    policy.save("good")
    good = Path("good").read_bytes()
    before = [variable.numpy().tobytes() for variable in policy.variables]
    rng, tried = random.Random(0), 0
    with little_more_memory(300e6):
        while tried < 1000:
            bad = mutated(good, rng)
            if bad == good:
                continue
            tried += 1
            Path("bad").write_bytes(bad)
            with pytest.raises(UserError) as error:
                policy.load("bad")
            assert "\n" not in str(error.value)
    assert [variable.numpy().tobytes() for variable in policy.variables] == before
    assert files_here().keys() == {"bad", "good"}


@contextlib.contextmanager
def little_more_memory(size):
    """Raises MemoryError in a block that needs so many bytes more at once, on Linux."""
    if sys.platform != "linux":
        yield
        return
    limits = resource.getrlimit(resource.RLIMIT_AS)
    now = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (int(now + size), limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def contents(manifest):
    """Returns what a checkpoint holds, in a form that can be compared."""
    states, metadata = load_checkpoint(manifest)
    tensors = {}
    states = take_arrays(states, tensors)
    return {k: v.tobytes() for k, v in tensors.items()}, states, metadata


def test_damaged_checkpoints_are_refused_or_read_correctly(undamaged_run):
    shutil.copytree(undamaged_run, "cut")
    (*_, manifest) = list_manifests("cut/checkpoints")
    data = Path(manifest.replace(".json", ".safetensors"))
    right = contents(manifest)
    rng = random.Random(0)
    for path in (Path(manifest), data):
        good, refused = path.read_bytes(), 0
        for _ in range(200):
            bad = bytearray(good)
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            path.write_bytes(bad)
            try:
                found = contents(manifest)
            except UserError:
                refused += 1
            else:
                assert found == right
        # Only one checksum of the manifest is of the file that is read here.
        assert refused == 200 if path == data else refused > 50
        path.write_bytes(good)


@pytest.mark.parametrize("kind", ["folder", "device", "link to none", "link to text"])
def test_other_files_than_models_are_refused(kind):
    os.mkdir("folder")
    Path("text").write_text("root:x:0:0")
    os.symlink("gone", "link to none")
    os.symlink("text", "link to text")
    path = "/dev/zero" if kind == "device" else kind
    words = "not a saved model" if kind == "link to text" else "no saved model at"
    with one_line_error(words):
        some_policy().load(path)
