"""Mistakes on command lines: status 2, one line on stderr, and nothing is written."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import pytest
from toy_logs import write_log

from baselines import __main__ as commands
from baselines import logger
from baselines.common.arguments.declarations import declared_arguments
from baselines.common.arguments.discovery import find_algorithm, import_learn
from baselines.common.networks.networks import mlp
from baselines.common.run.parsing import SHARED, parse
from baselines.common.run.run import Run
from baselines.common.run.settings import OWN
from baselines.common.saving.config import make_config
from baselines.evaluate import evaluate_run
from baselines.play import play_run
from baselines.runs import list_runs

SHORT = {
    name: ["run", f"--alg={name}", "--env=CartPole-v1"]
    for name in ("a2c", "ppo2", "dqn")
}
TYPES = {int, float, bool, str, Literal}
VALUES = {  # where the default is no value to give
    "alg": "a2c",
    "env": "CartPole-v1",
    "env_type": "classic_control",
    "network": "mlp",
}


def split(line):
    """Returns the words of a line of the table, and what its error has to say."""
    words, _, message = line.partition(" => ")
    first, *others = shlex.split(words)
    return [*SHORT.get(first, [first]), *others], message


def written():
    text = Path(__file__).with_name("bad_command_lines.txt").read_text("utf-8")
    lines = [x for x in text.splitlines() if x and not x.startswith("#")]
    return [pytest.param(*split(line), id=line.partition(" => ")[0]) for line in lines]


def mutated():
    """Yields each argument of each command with each of some mistakes."""
    declared = declared_arguments(import_learn(find_algorithm("a2c")))
    of_run = {**OWN, **{k: v for k, v in declared.items() if k not in SHARED}}
    of_run |= declared_arguments(mlp)
    for words, arguments in (
        (["run", "--env=CartPole-v1"], {"alg": of_run.pop("alg")}),
        (["run", "--alg=a2c"], {"env": of_run.pop("env")}),
        (SHORT["a2c"], of_run),
        (["evaluate", "run"], declared_arguments(evaluate_run)),
        (["play", "run"], declared_arguments(play_run)),
        (["runs", "run"], declared_arguments(list_runs)),
    ):
        for name, argument in arguments.items():
            kinds = [choice.kind for choice in argument.choices]
            if name in ("path", "folder") or not TYPES & {*kinds}:
                continue
            value = f"{name}={VALUES.get(name, argument.default or 1)}"
            meant = f"unknown argument {{}}{name}; did you mean '--{name}'?"
            shorter = name[: len(name) // 2] + name[len(name) // 2 + 1 :]
            mistakes = {
                f"-{value}": meant.format("-"),
                value: meant.format(""),
                f"—{value}": meant.format("—"),
                f"--{shorter}=1": f"unknown argument --{shorter}",
                f"--{value} --{value}": f"--{name} is given twice",
                f"--{name}=": "received ''",
            }
            if str not in kinds:
                mistakes[f"--{name}=x"] = "received 'x'"
            for mistake, message in mistakes.items():
                yield pytest.param([*words, *mistake.split()], message)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Current and temporary folder of all cases, as none writes anything."""
    here, temporary = (tmp_path_factory.mktemp(name) for name in ("here", "temporary"))
    (here / "file").write_text("not a folder, not a model")
    (here / "folder").mkdir()
    write_log(here / "run", [1.0, 2.0])
    argv = ["--alg=a2c", "--env=CartPole-v1", "--seed=0"]
    config = make_config(parse(argv), argv) | {"log_formats": []}
    (here / "run" / "config.json").write_text(json.dumps(config))
    return here, temporary


@pytest.fixture
def error_of(folders, monkeypatch, capfd):
    """A function from a command line to the one line that it gives."""
    here, temporary = folders
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for name in ("OPENAI_LOGDIR", "OPENAI_LOG_FORMAT", "DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Run, "begin", lambda run: pytest.fail("a run has begun"))

    def files():
        found = [path for folder in folders for path in folder.rglob("*")]
        return {path: path.is_file() and path.read_bytes() for path in found}

    def find_error(words):
        before = files()
        capfd.readouterr()
        with (
            logger.scoped_configure(str(temporary), []),
            pytest.raises(SystemExit) as stop,
        ):
            commands.main(words)
        out, err = capfd.readouterr()
        assert (stop.value.code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("error: ") and len(err) < 700
        assert files() == before
        return err

    return find_error


@pytest.mark.parametrize(("words", "message"), [*written(), *mutated()])
def test_one_line(error_of, words, message):
    assert message in error_of(words)


PATHS = {
    "a2c --log_path=": "File name too long",
    "a2c --save_path=": "File name too long",
    "a2c --load_path=": "there is no saved model",
    "dqn --checkpoint_path=": "File name too long",
    "run --resume=": "there is no run to resume",
    "evaluate ": "there is no log folder",
    "play run --video=.mp4": "File name too long",
    "plot -o x.png ": "there is no log in",
    "plot run -o x.png --reference=.csv": "File name too long",
    "plot run -o .png": "File name too long",
    "report ": "there is no folder",
    "report run -o .html": "File name too long",
    "runs ": "there is no folder",
}


@pytest.mark.parametrize("line", PATHS)
@pytest.mark.parametrize(
    ("part", "message"),
    [
        (300 * "x", None),
        (5000 * "x", None),
        ("a\0b", "has a null byte in it"),
        ("a\udcffb", "is not text in UTF-8"),
    ],
    ids=["long", "endless", "null byte", "bytes"],
)
def test_paths_that_cannot_be(error_of, line, part, message):
    *words, word = split(line)[0] if line[-1] != " " else [*split(line)[0], ""]
    name, dot, suffix = word.partition(".")
    word = f"{name}{part}{dot}{suffix}"
    assert (message or PATHS[line]) in error_of([*words, word])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("OPENAI_LOG_FORMAT", "nonsense", "unknown log format 'nonsense'"),
        ("OPENAI_LOG_FORMAT", "stdout,cvs", "'cvs'; did you mean 'csv'?"),
        ("OPENAI_LOG_FORMAT", "stdout;csv", "unknown log format 'stdout;csv'"),
        ("OPENAI_LOG_FORMAT", ":x", "'' is not the name of a module"),
        ("OPENAI_LOG_FORMAT", "json:x", "'json' has no 'x'"),
        ("OPENAI_LOGDIR", "file", "file: Not a directory"),
        ("OPENAI_LOGDIR", "run", "run has a run already"),
        ("OPENAI_LOGDIR", 300 * "x", "File name too long"),
        ("OPENAI_LOGDIR", "a\udcffb", "surrogates not allowed"),
    ],
)
def test_environment_variables(error_of, monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    assert message in error_of(SHORT["a2c"])


def error_of_process(words, **environ):
    """The one line on stderr of a program of its own, in the current folder."""
    before = sorted(os.listdir())
    command = [sys.executable, "-m", "baselines", *words]
    search_path = str(Path(commands.__file__).parents[1])
    environ = os.environ | {"PYTHONPATH": search_path} | environ
    ended = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert ended.stderr.count("\n") == 1
    assert sorted(os.listdir()) == before
    return ended.stderr


def test_an_unknown_backend_of_keras(empty_folder):
    error = error_of_process(SHORT["a2c"], KERAS_BACKEND="nonsense")
    assert "KERAS_BACKEND is nonsense" in error


def test_an_unknown_backend_of_matplotlib(empty_folder):
    error = error_of_process(["plot", ".", "-o", "x.png"], MPLBACKEND="nonsense")
    assert "MPLBACKEND is nonsense" in error


NOISY = """
import warnings
import ale_py
import gymnasium as gym
import numpy as np
class Noisy(gym.Env):
    action_space = gym.spaces.Discrete(2)
    def __init__(self):
        ale_py.ALEInterface()
        gym.logger.warn("gymnasium's")
        warnings.warn("the environment's")
        self.zero = np.ones(1) / np.zeros(1) * 0
        self.observation_space = gym.spaces.Box(-1, 1, (2,))
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}
    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, False, {}
gym.register("Noisy-v0", Noisy)
"""


def test_nothing_stands_beside_an_error(empty_folder):
    """No banner and no warning, of two workers either, once TensorFlow was used."""
    Path("noisy_envs.py").write_text(NOISY)
    words = ["run", "--alg=a2c", "--env=noisy_envs:Noisy-v0", "--num_env=2"]
    error = error_of_process(
        [*words, "--load_path=nowhere"], PYTHONDONTWRITEBYTECODE="1"
    )
    path = os.path.abspath("nowhere")
    assert error == f"error: there is no saved model at {path}\n"


def test_warnings_are_shown_once_a_run_begins(empty_folder, monkeypatch, recwarn):
    Path("noisy_envs.py").write_text(NOISY)
    monkeypatch.syspath_prepend(str(empty_folder))
    run = ["run", "--alg=a2c", "--env=noisy_envs:Noisy-v0"]
    commands.main([*run, "--num_timesteps=5"])
    shown = " ".join(str(warning.message) for warning in recwarn)
    for words in ("gymnasium's", "the environment's", "divide by zero"):
        assert words in shown
