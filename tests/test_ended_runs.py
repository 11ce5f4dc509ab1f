"""What a run says that ends early: what failed, and how to continue."""

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


class Raises(CartPoleEnv):
    count = 0

    def step(self, action):
        self.count += 1
        if self.count == 20 and not os.path.exists("fixed"):
            self.fail()
        return super().step(action)

    def fail(self):
        raise ValueError("my bug")


class Stops(Raises):
    def fail(self):
        os.kill(os.getpid(), signal.SIGSTOP)


class DiesAtOnce(CartPoleEnv):
    def __init__(self, **kwargs):
        if "worker.py" in sys.argv[0]:
            os._exit(7)


for each in (Raises, Stops, DiesAtOnce):
    gym.register(f"{each.__name__}-v0", entry_point=each, max_episode_steps=15)
"""


@pytest.fixture(autouse=True)
def module(empty_folder, monkeypatch):
    # On one core, environments would run in, and stop, the process of the tests.
    monkeypatch.setattr(mpi, "available_cores", lambda: 2)
    monkeypatch.syspath_prepend(empty_folder)
    Path("mine.py").write_text(MODULE)
    yield
    sys.modules.pop("mine", None)
    for name in [name for name in gym.registry if name.startswith("mine:")]:
        del gym.registry[name]
    for name in ("Raises-v0", "Stops-v0", "DiesAtOnce-v0"):
        gym.registry.pop(name, None)


def train(env, *words):
    words = [f"--env=mine:{env}-v0", *words]
    run.main(
        ["--alg=a2c", "--network=mlp", "--num_timesteps=400", "--nsteps=5", *words]
    )


def line_of(capfd, env, *words):
    """Returns the line on stderr that a run ends with, with status 2."""
    with pytest.raises(SystemExit, match="2"):
        train(env, *words)
    (line,) = capfd.readouterr().err.splitlines()
    return line


def last_sentence(error_name):
    """Returns the steps of the checkpoint, and the command, that the log ends with."""
    last = Path("log", "log.txt").read_text().splitlines()[-1]
    begin = rf"{error_name}: the last good checkpoint is (.*\.json); continue with "
    checkpoint, command = re.fullmatch(f"{begin}(.*)", last).groups()
    return int(Path(checkpoint).stem), command


@pytest.mark.parametrize(
    ("num_env", "kind"), [(1, "ValueError"), (2, "RaisedInWorker")]
)
def test_the_command_that_is_named_continues_the_run(num_env, kind):
    words = f"--num_env={num_env}", f"--checkpoint_interval={5 * num_env}"
    with pytest.raises((SystemExit, ValueError, RuntimeError)):
        train("Raises", *words)
    steps, command = last_sentence(kind)
    assert steps == 15 * num_env
    assert "--env=mine:Raises-v0" in shlex.split(command) or "--trust" in command
    if num_env == 2:
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
    words = "--num_env=2", "--checkpoint_interval=10", "--worker_timeout=3"
    line = line_of(capfd, "Stops", *words, "--on_worker_failure=raise")
    assert "did not respond for 3 s and was ended" in line
    steps, command = last_sentence("WorkerDied")
    assert steps == 30 and "--resume=" in command


def test_a_worker_that_fails_at_its_start_gives_one_line(capfd):
    line = line_of(capfd, "DiesAtOnce", "--num_env=2")
    assert line.startswith("error: the worker process of environment")
    assert line.endswith("died with exit status 7")


def test_a_call_from_python_is_told_how_to_continue():
    def learn(steps, fails_in="nowhere", **given):
        env = DummyVecEnv([lambda: FailingEnv(fails_in)])
        settings = {"nsteps": 1, "checkpoint_interval": 1}
        a2c.learn(env, "mlp", total_timesteps=steps, **settings, **given)

    logger.configure("log")
    with pytest.raises(ValueError, match="gearbox"):
        learn(10, "step")
    steps, call = last_sentence("ValueError")
    assert steps == 2
    assert call == f"learn(..., resume={str(Path('log').resolve())!r})"
    learn(10, resume="log")
    logger.configure("other")  # which does not matter
    learn(11, resume="log")
    assert len(list_manifests("log/checkpoints")) == 2
    assert list(read_table("log/progress.csv").total_timesteps) == [1, 10, 11]
    assert logger.get_dir() == os.path.abspath("other")
    with pytest.raises(UserFileError, match="no run to resume in nowhere: no f"):
        learn(10, resume="nowhere")
    assert not os.path.exists("other")


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
    with pytest.raises(UserValueError, match="mine:Format"):
        learn(9, resume="log")


def test_settings_of_workers_that_there_are_not_are_warned_of():
    words = "--num_timesteps=40", "--worker_timeout=5", "--on_worker_failure=replace"
    run.main(["--alg=a2c", "--env=CartPole-v1", *words])
    lines = Path("log", "log.txt").read_text().splitlines()
    (found,) = (line for line in lines if "no effect" in line)
    assert found.startswith("warning: on_worker_failure and worker_timeout have")
