"""What a run says that ends early: what failed, and how to continue."""

import os
import re
import shlex
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from toy_envs import FailingEnv

from baselines import a2c, logger, run
from baselines.common.base import mpi
from baselines.common.base.tables import read_table
from baselines.common.vec_env import DummyVecEnv

MODULE = """
import os
import signal

import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv


class Fails(CartPoleEnv):
    count = 0

    def step(self, action):
        self.count += 1
        if self.count == 20 and os.path.exists("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.count == 20 and not os.path.exists("fixed"):
            raise ValueError("my bug")
        return super().step(action)


gym.register("Fails-v0", entry_point=Fails, max_episode_steps=15)
"""


@pytest.fixture(autouse=True)
def module(empty_folder, monkeypatch):
    # On one core, environments would run in, and stop, the process of the tests.
    monkeypatch.setattr(mpi, "available_cores", lambda: 2)
    monkeypatch.syspath_prepend(empty_folder)
    Path("mine.py").write_text(MODULE)
    yield
    forget()


def forget():
    """Lets the module be imported again, as another process would."""
    sys.modules.pop("mine", None)
    for name in "Fails-v0", "mine:Fails-v0":
        gym.registry.pop(name, None)


def train(*words):
    """Trains in an environment that fails in its 20th step."""
    run.main(["--alg=a2c", "--env=mine:Fails-v0", "--num_timesteps=400", *words])


def last_sentence(error_name):
    """Returns the steps of the checkpoint, and the command, that the log ends with."""
    last = Path("log", "log.txt").read_text().splitlines()[-1]
    begin = rf"{error_name}: the last good checkpoint is (.*\.json); continue with "
    checkpoint, command = re.fullmatch(f"{begin}(.*)", last).groups()
    return int(Path(checkpoint).stem), command


@pytest.mark.parametrize(
    ("num_env", "kind"), [(1, "ValueError"), (2, "RaisedInWorker")]
)
def test_the_command_that_is_named_continues_the_run(num_env, kind, capsys):
    words = f"--num_env={num_env}", f"--checkpoint_interval={5 * num_env}"
    with pytest.raises((SystemExit, ValueError, RuntimeError)):
        train(*words)
    steps, command = last_sentence(kind)
    assert steps == 15 * num_env
    assert "--env=mine:Fails-v0" in shlex.split(command) or "--trust" in command
    if num_env == 2:
        Path("fixed").touch()
        forget()
        python, *module, resume, trust = shlex.split(command)
        assert [python, *module] == [sys.executable, "-m", "baselines.run"]
        run.main([resume, trust])
        assert "at 30 of 400 agent steps" in capsys.readouterr().out


def test_a_mistake_before_any_checkpoint_is_not_to_be_continued(capfd):
    small = "--num_env=1 --learning_starts=10 --nb_rollout_steps=10 --batch_size=8"
    words = f"--alg=ddpg --env=Pendulum-v1 --clip_return --log_path=log {small}"
    with pytest.raises(SystemExit, match="2"):
        run.main([*words.split(), "--num_timesteps=400"])
    assert "clip_return needs rewards from -1 to 0" in capfd.readouterr().err
    assert "continue with" not in Path("log", "log.txt").read_text()


def test_a_killed_worker_ends_the_run_with_one_line(capfd):
    Path("dies").touch()
    words = "--num_env=2", "--checkpoint_interval=10", "--on_worker_failure=raise"
    with pytest.raises(SystemExit, match="2"):
        train(*words)
    (line,) = capfd.readouterr().err.splitlines()
    assert "died with exit status -9" in line
    steps, command = last_sentence("WorkerDied")
    assert steps == 30 and "--resume=" in command


def learn(steps, fails_in="nowhere", **given):
    """Trains with a checkpoint after each step."""
    env = DummyVecEnv([lambda: FailingEnv(fails_in)])
    settings = {"nsteps": 1, "checkpoint_interval": 1}
    a2c.learn(env, "mlp", total_timesteps=steps, **settings, **given)


def test_a_call_from_python_is_told_how_to_continue():
    logger.configure("log")
    with pytest.raises(ValueError, match="gearbox"):
        learn(10, "step")
    steps, call = last_sentence("ValueError")
    assert steps == 2
    assert call == f"learn(..., resume={str(Path('log').resolve())!r})"
    learn(10, resume="log")
    assert list(read_table("log/progress.csv").total_timesteps) == [1, 10]


def test_a_run_resumed_from_python_keeps_its_log_formats(capsys):
    with logger.scoped_configure("log", ["json"]):
        learn(3, log_interval=1)
    logger.configure("other", ["stdout"])
    learn(6, log_interval=1, resume="log")
    assert list(logger.read_json("log/progress.json").total_timesteps) == [*range(1, 7)]
    assert sorted(os.listdir("log")) == ["checkpoints", "config.json", "progress.json"]
    assert not capsys.readouterr().out
