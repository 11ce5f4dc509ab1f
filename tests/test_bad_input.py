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
from fractions import Fraction
from pathlib import Path

import gymnasium as gym
import numpy as np
import psutil
import pytest
from gymnasium import spaces
from toy_envs import BOX, GOOD, Broken, CounterEnv

from baselines import run
from baselines.common.base.errors import UserError
from baselines.common.envs import as_vec_env, make_vec_env
from baselines.common.networks.policies import Policy
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.vec_env import SubprocVecEnv

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


PARTS = {"a": spaces.Discrete(3), "b": BOX}


class NoSpace(Broken):
    def __init__(self):
        super().__init__()
        del self.observation_space


class NoSeed(Broken):
    def reset(self):
        return GOOD, {}


class SeedlessWrapper(gym.Wrapper):
    def reset(self):
        return self.env.reset()


class GrowingActions(Broken):
    def reset(self, *, seed=None, options=None):
        self.action_space = spaces.Discrete(self.action_space.n + 1)
        return super().reset(seed=seed)


class UnpacksItsOwn(Broken):
    def step(self, action):
        x, y, z, vx, vy = (1, 2, 3, 4)
        return x + y + z + vx + vy


IMAGE = spaces.Box(0, 255, (8, 8, 1), np.uint8)
FLOAT_IMAGE = np.zeros((8, 8, 1))
NUMBERS = np.arange(99, dtype=np.float32)

ENVIRONMENTS = {
    "no observation space": (NoSpace, ["observation_space is None"]),
    "space that is no space": (lambda: Broken([0, 1]), ["observation_space is [0, 1]"]),
    "no seed": (NoSeed, ["unexpected keyword argument 'seed'"]),
    "wrapper without a seed": (
        lambda: SeedlessWrapper(Broken()),
        ["unexpected keyword argument 'seed'"],
    ),
    "old reset": (lambda: Broken(info=None), ["expected (observation, info)"]),
    "old step": (
        lambda: Broken(step=(GOOD, 0.0, False, {})),
        ["step() returned a tuple of 4", "terminated, truncated, info)"],
    ),
    "old step in a wrapper": (
        lambda: gym.wrappers.TimeLimit(Broken(step=(GOOD, 0.0, False, {})), 9),
        ["step() did not return five values", "terminated, truncated, info)"],
    ),
    "no step": (lambda: Broken(step=17), ["step() returned 17"]),
    "first shape": (
        lambda: Broken(first=np.zeros(3, np.float32)),
        ["reset() returned the observation of shape (3,)", "Box", "(2,)"],
    ),
    "shape that would spread": (
        lambda: Broken(step={0: np.zeros(1, np.float32)}),
        ["step() returned the observation of shape (1,)", "(step 1 of an episode)"],
    ),
    "number for a vector": (lambda: Broken(step={0: 0.5}), ["the observation 0.5"]),
    "no observation": (lambda: Broken(step={0: None}), ["the observation None"]),
    "ragged observation": (lambda: Broken(first=[[1.0], 2.0]), ["[[1.0], 2.0]"]),
    "observation of text": (lambda: Broken(first=["1", "2"]), ["['1', '2']"]),
    "NaN in an observation": (
        lambda: Broken(step={0: np.array([0, np.nan], np.float32)}),
        ["observation of shape (2,)", "1 not finite"],
    ),
    "infinite first observation": (
        lambda: Broken(first=np.array([np.inf, np.inf], np.float32)),
        ["reset()", "2 not finite"],
    ),
    "observation too large": (
        lambda: Broken(first=np.array([1e39, 0])),
        ["of shape (2,) and type float64", "finite"],
    ),
    "space of many bounds": (
        lambda: Broken(
            spaces.Box(*np.float32([np.arange(-99, 0), np.arange(1, 100)])), 5
        ),
        ["the observation 5", "Box(", " ... "],
    ),
    "number beyond uint8": (
        lambda: Broken(IMAGE, np.full((8, 8, 1), 300)),
        ["type int64", "uint8"],
    ),
    "complex observation": (lambda: Broken(first=GOOD * 1j), ["type complex64"]),
    "image of floats": (lambda: Broken(IMAGE, FLOAT_IMAGE), ["type float64", "uint8"]),
    "Discrete out of range": (lambda: Broken(spaces.Discrete(3), 3), ["Discrete(3)"]),
    "Discrete as float": (lambda: Broken(spaces.Discrete(3), 1.0), ["observation 1.0"]),
    "MultiDiscrete out of range": (
        lambda: Broken(spaces.MultiDiscrete([2, 3]), np.array([0, 3])),
        ["MultiDiscrete([2 3])"],
    ),
    "part that is missing": (
        lambda: Broken(spaces.Dict(PARTS), {"a": 1}),
        ["the observation {'a': 1}", "Dict("],
    ),
    "part of another shape": (
        lambda: Broken(spaces.Dict(PARTS), {"a": 1, "b": np.zeros(3)}),
        ["reset(), part 'b', returned", "of shape (3,)", "(2,)"],
    ),
    "Tuple too short": (
        lambda: Broken(spaces.Tuple([BOX, BOX]), (GOOD,)),
        ["a tuple of 1", "Tuple("],
    ),
    "space that changes": (
        lambda: Broken(later=spaces.Box(-1, 1, (5,))),
        ["reset() changed its space from Box", "(2,)", "(5,)"],
    ),
    "actions that change": (GrowingActions, ["from Discrete(2) to Discrete(3)"]),
    "NaN reward": (lambda: Broken(step={1: np.nan}), ["the reward nan", "finite"]),
    "infinite reward": (lambda: Broken(step={1: -np.inf}), ["the reward -inf"]),
    "huge reward": (lambda: Broken(step={1: 10**400}), ["the reward 1000", "finite"]),
    "reward beyond float32": (lambda: Broken(step={1: 1e39}), ["the reward 1e+39"]),
    "vector of rewards": (
        lambda: Broken(step={1: np.zeros(3)}),
        ["the reward of shape (3,)", "expected one number"],
    ),
    "reward in a list": (lambda: Broken(step={1: [1.0]}), ["the reward [1.0]"]),
    "no reward": (lambda: Broken(step={1: None}), ["the reward None"]),
    "reward as text": (lambda: Broken(step={1: "1"}), ["the reward '1'"]),
    "complex reward": (lambda: Broken(step={1: 1j}), ["the reward 1j"]),
    "vector of ends": (
        lambda: Broken(step={2: np.array([True, False])}),
        ["terminated of shape (2,)"],
    ),
    "no end": (lambda: Broken(step={3: None}), ["truncated None", "true or false"]),
    "end of another kind": (lambda: Broken(step={2: 0.5}), ["terminated 0.5"]),
    "no information": (
        lambda: Broken(step={4: None}),
        ["returned the info None"],
    ),
    "list of information": (
        lambda: Broken(step={4: []}),
        ["returned the info []"],
    ),
}


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_environment_that_breaks_the_contract(kind):
    make, words = ENVIRONMENTS[kind]
    with one_line_error("cannot be used:", *words):
        env = as_vec_env(make(), seed=0)
        env.reset()
        env.step([0])


def test_an_environment_that_unpacks_too_few_values_itself_keeps_its_error():
    env = as_vec_env(gym.wrappers.TimeLimit(UnpacksItsOwn(), 9), seed=0)
    env.reset()
    with pytest.raises(ValueError, match="expected 5, got 4") as error:
        env.step([0])
    assert not isinstance(error.value, UserError)


@pytest.mark.parametrize("kind", ["vector of rewards", "shape that would spread"])
def test_broken_environment_among_others_in_workers(kind):
    make, words = ENVIRONMENTS[kind]
    with (
        one_line_error("cannot be used:", *words),
        SubprocVecEnv([Broken, make], num_workers=2) as env,
    ):
        env.reset()
        env.step([0, 0])


def test_broken_environment_by_its_name(capfd, monkeypatch):
    monkeypatch.syspath_prepend(os.getcwd())
    Path("bad_envs.py").write_text(
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "class Bad(CartPoleEnv):\n"
        "    def step(self, action):\n"
        "        obs, reward, *rest = super().step(action)\n"
        "        return obs, [reward], *rest\n"
        "gym.register('Bad-v0', entry_point=Bad)\n"
    )
    with pytest.raises(SystemExit) as stop:
        run.main(["--alg=a2c", "--env=bad_envs:Bad-v0", "--log_path=log"])
    assert stop.value.code == 2
    err = capfd.readouterr().err
    assert err.startswith("error: environment Bad-v0 cannot be used: step()")
    assert err.count("\n") == 1


def test_what_gymnasium_allows_is_accepted():
    """Types similar to the space's, values outside bounds, NumPy flags and rewards."""
    results = {0: [7, 8], 1: np.int64(1), 2: np.bool_(False), 3: np.array(0)}
    for env in (
        Broken(spaces.Box(-1, 1, (2,)), step=results),
        Broken(spaces.Discrete(3, start=2), np.int32(4), step={1: np.array(2.0)}),
        Broken(spaces.Dict(PARTS), {"b": GOOD, "a": 0}, step={1: True}),
        Broken(spaces.Tuple([BOX, BOX]), [GOOD, GOOD], step={1: Fraction(1, 2)}),
        Broken(
            spaces.Box(0, 255, (2,), np.uint8), step={0: [7, 8], 1: 1}, first=[1, 2]
        ),
    ):
        venv = as_vec_env(env, seed=0)
        venv.reset()
        obs, rewards, dones, _ = venv.step([0])
        assert np.isfinite(obs).all() and rewards[0] > 0 and not dones[0]


@pytest.mark.parametrize(("place", "name"), [(0, "observation"), (1, "reward")])
def test_numbers_of_a_gymnasium_vector_env(place, name):
    class Bad(CounterEnv):
        def step(self, action):
            results = list(super().step(action))
            results[place] = results[place] * np.float32("nan")
            return tuple(results)

    same_step = gym.vector.AutoresetMode.SAME_STEP
    env = as_vec_env(
        gym.vector.SyncVectorEnv([CounterEnv, Bad], autoreset_mode=same_step)
    )
    env.reset()
    with one_line_error(f"environment 1 cannot be used: its {name} is not finite"):
        env.step([0, 0])


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
