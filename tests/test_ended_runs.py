"""What a run says that ends early: what failed, where, and how to continue."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from toy_envs import FailingEnv

from baselines import a2c, logger, run
from baselines.common.base import mpi
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.base.tables import read_table
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.vec_env import DummyVecEnv

MODULE = """
import os
import signal
import sys

import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

IN_WORKER = "worker.py" in sys.argv[0]


class Mine(CartPoleEnv):
    count = 0

    def step(self, action):
        self.count += 1
        if self.count == 20 and not os.path.exists("fixed"):
            self.fail()
        return super().step(action)


class Raises(Mine):
    def fail(self):
        raise ValueError("my bug")


class Exits(Mine):
    def fail(self):
        sys.exit(3)


class Stops(Mine):
    def fail(self):
        os.kill(os.getpid(), signal.SIGSTOP)


class DiesAtOnce(Mine):
    def __init__(self, **kwargs):
        if IN_WORKER:
            os._exit(7)


class StopsAtOnce(Mine):
    def __init__(self, **kwargs):
        if IN_WORKER:
            os.kill(os.getpid(), signal.SIGSTOP)


for each in (Raises, Exits, Stops, DiesAtOnce, StopsAtOnce):
    gym.register(f"{each.__name__}-v0", entry_point=each, max_episode_steps=15)
"""
NETWORK = """
from baselines.common.networks.networks import mlp


def network():
    return mlp(num_hidden=4)
"""


@pytest.fixture(autouse=True)
def module(empty_folder, monkeypatch):
    # On one core, environments would run in, and stop, the process of the tests.
    monkeypatch.setattr(mpi, "available_cores", lambda: 2)
    monkeypatch.syspath_prepend(empty_folder)
    Path("mine.py").write_text(MODULE)
    Path("my_network.py").write_text(NETWORK)
    yield
    for name in ("mine", "my_network"):
        sys.modules.pop(name, None)
    for name in [name for name, x in gym.registry.items() if is_mine(x)]:
        del gym.registry[name]


def is_mine(spec):
    return getattr(spec.entry_point, "__module__", None) == "mine"


def line_of(text):
    return MODULE[: MODULE.index(text)].count("\n") + 1


def started(env, *words):
    """Returns the exit status of a command line, which ends the program."""
    words = [f"--env=mine:{env}-v0", "--network=my_network:network", *words]
    with pytest.raises(SystemExit) as ended:
        run.main(["--alg=a2c", "--num_timesteps=400", "--nsteps=5", *words])
    return ended.value.code


def last_sentence(error_name):
    """Returns the steps of the checkpoint, and the command, that the log ends with."""
    last = Path("log", "log.txt").read_text().splitlines()[-1]
    begin = rf"{error_name}: the last good checkpoint is (.*\.json); continue with "
    checkpoint, command = re.fullmatch(f"{begin}(.*)", last).groups()
    return int(Path(checkpoint).stem), command


@pytest.mark.parametrize("num_env", [1, 4])
@pytest.mark.parametrize(
    ("env", "expected", "last"),
    [
        ("Raises", 'raise ValueError("my bug")', "ValueError: my bug"),
        ("Exits", "sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_an_environment_that_raises_shows_its_own_lines(
    capfd, num_env, env, expected, last
):
    words = f"--num_env={num_env}", f"--checkpoint_interval={5 * num_env}"
    assert started(env, *words) == 1
    err = capfd.readouterr().err
    assert f'mine.py", line {line_of(expected)}, in fail' in err
    assert last in err.splitlines()
    assert "baselines" not in err and "gymnasium" not in err
    assert err.endswith("\n(BASELINES_TRACEBACK=1 shows all of the traceback)\n")
    if num_env > 1:
        assert re.match(r"error: environment [0-3] raised\nTraceback", err)
    kinds = {"Raises": "ValueError", "Exits": "RuntimeError"}
    kind = kinds[env] if num_env == 1 else "RaisedInWorker"
    assert last_sentence(kind)[0] == 15 * num_env


def test_all_of_the_traceback_is_shown_when_asked_for(monkeypatch):
    monkeypatch.setenv("BASELINES_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match=r"baselines/common/vec_env/worker.py"):
        run.main(["--alg=a2c", "--env=mine:Raises-v0", "--num_env=2"])
    with pytest.raises(ValueError, match="my bug"):
        run.main(["--alg=a2c", "--env=mine:Raises-v0", "--overwrite", "--log_path=log"])


def test_the_command_that_is_named_continues_the_run(capfd):
    assert started("Raises", "--num_env=2", "--checkpoint_interval=10") == 1
    _, command = last_sentence("RaisedInWorker")
    words = shlex.split(command)
    assert {"--env=mine:Raises-v0", "--network=my_network:network"} < set(words)
    Path("fixed").touch()
    ended = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "at 30 of 400 agent steps" in ended.stdout


def test_a_mistake_before_any_checkpoint_is_not_to_be_continued(capfd):
    small = "--num_env=1 --learning_starts=10 --nb_rollout_steps=10 --batch_size=8"
    words = f"--alg=ddpg --env=Pendulum-v1 --clip_return --log_path=log {small}"
    with pytest.raises(SystemExit, match="2"):
        run.main([*words.split(), "--num_timesteps=400"])
    assert "clip_return needs rewards from -1 to 0" in capfd.readouterr().err
    assert "continue with" not in Path("log", "log.txt").read_text()


def test_a_stopped_worker_ends_the_run_with_one_line(capfd):
    limits = "--worker_timeout=5", "--on_worker_failure=raise"
    assert started("Stops", "--num_env=2", "--checkpoint_interval=10", *limits) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        r"error: the worker process of environment \d did not respond for 5 s "
        "and was ended",
        line,
    )
    steps, command = last_sentence("WorkerDied")
    assert steps == 30 and "--resume=" in command


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ("DiesAtOnce", "died with exit status 7"),
        ("StopsAtOnce", "did not respond for 3 s and was ended"),
    ],
)
def test_a_worker_that_fails_at_its_start_gives_one_line(capfd, env, expected):
    assert started(env, "--num_env=2", "--worker_timeout=3") == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: the worker process of environment")
    assert line.endswith(expected)


def test_a_call_from_python_is_told_how_to_continue(monkeypatch):
    logger.configure("log")
    settings = {"total_timesteps": 10, "nsteps": 1, "checkpoint_interval": 1}
    env = DummyVecEnv([lambda: FailingEnv("step")])
    with pytest.raises(ValueError, match="gearbox"):
        a2c.learn(env, "mlp", **settings)
    steps, call = last_sentence("ValueError")
    assert steps == 2
    folder = repr(str(Path("log").resolve()))
    assert call == f"learn(..., resume={folder})"
    env = DummyVecEnv([lambda: FailingEnv("nowhere")])
    a2c.learn(env, "mlp", **settings, resume="log")
    monkeypatch.setattr(logger, "current", logger.Logger(None, ["stdout"]))
    a2c.learn(env, "mlp", **settings | {"total_timesteps": 11}, resume="log")
    assert len(list_manifests("log/checkpoints")) == 2
    assert list(read_table("log/progress.csv").total_timesteps) == [1, 10, 11]
    assert logger.get_dir() is None
    os.mkdir("empty")
    logger.configure("other")  # which does not matter
    a2c.learn(env, "mlp", **settings | {"total_timesteps": 12}, resume="log")
    assert list(read_table("log/progress.csv").total_timesteps) == [1, 10, 11, 12]
    for folder in ("nowhere", "empty"):
        with pytest.raises(UserFileError, match=f"no run to resume in {folder}: no f"):
            a2c.learn(env, "mlp", **settings, resume=folder)
    assert not os.listdir("empty") and not os.path.exists("other")


def test_a_run_resumed_from_python_keeps_its_log_formats(capsys):
    def learn(steps, **given):
        env = DummyVecEnv([lambda: FailingEnv("nowhere")])
        settings = {"nsteps": 1, "log_interval": 1, "checkpoint_interval": 1}
        a2c.learn(env, "mlp", total_timesteps=steps, **settings, **given)

    with logger.scoped_configure("log", ["json"]):
        learn(3)
    logger.configure("other", ["stdout"])
    learn(6, resume="log")
    assert list(logger.read_json("log/progress.json").total_timesteps) == [*range(1, 7)]
    assert sorted(os.listdir("log")) == ["checkpoints", "config.json", "progress.json"]
    assert not capsys.readouterr().out
    config = Path("log/config.json")
    config.write_text(config.read_text().replace('"json"', '"mine:Format"'))
    with pytest.raises(UserValueError, match="logged by mine:Format, which is code"):
        learn(9, resume="log")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--worker_timeout=5"], ["worker_timeout"]),
        (["--on_worker_failure=raise", "--num_env=2"], ["on_worker_failure"]),
        (["--worker_timeout=600", "--on_worker_failure=replace"], []),
    ],
)
def test_settings_of_workers_that_there_are_not_are_warned_of(words, names):
    run.main(["--alg=a2c", "--env=CartPole-v1", "--num_timesteps=40", *words])
    text = Path("log", "log.txt").read_text()
    lines = [line for line in text.splitlines() if "no effect" in line]
    why = "has no effect: the environments run in this process, without workers"
    assert lines == [f"warning: {name} {why}" for name in names]


def test_an_error_of_this_package_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr("baselines.run.check_log", [].pop)
    with pytest.raises(IndexError):
        run.main(["--alg=a2c", "--env=CartPole-v1", "--num_timesteps=0"])
