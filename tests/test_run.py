"""A run of the command line: its files, saving and playing, forks, videos."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import baselines
from baselines import logger, run
from baselines.a2c import learn
from baselines.common.base import mpi
from baselines.common.run import loading
from baselines.common.run.loading import TrainedEnv, find_env
from baselines.common.saving import config
from baselines.common.saving.checkpoints import list_manifests
from baselines.play import play

CARTPOLE = ["--alg=a2c", "--env=CartPole-v1"]

pytestmark = pytest.mark.usefixtures("empty_folder")


def test_a_run_writes_its_files_and_says_where(capfd, empty_folder):
    words = [*CARTPOLE, "--num_timesteps=200", "--num_env=2", "--seed=4"]
    run.main(words)
    log = empty_folder / "log"
    assert sorted(os.listdir(log)) == [
        "0.0.monitor.csv",
        "0.1.monitor.csv",
        "checkpoints",
        "config.json",
        "log.txt",
        "model.safetensors",
        "progress.csv",
    ]
    config = json.loads((log / "config.json").read_text())
    arguments = config["arguments"]
    expected = dict(seed=4, total_timesteps=200, nsteps=5, num_hidden=64, alg="a2c")
    assert expected.items() <= arguments.items()
    assert config["command"].endswith(" ".join(words))
    assert "tensorflow" in config["versions"]
    out = capfd.readouterr().out
    assert "| total_timesteps " in out and f"--resume={log}" in out
    assert f"baselines.evaluate {log}" in out and f"baselines.play {log}" in out
    assert (log / "log.txt").read_text().splitlines()[0] == out.splitlines()[0]


def test_train_save_load_and_play(capfd, monkeypatch):
    run.main([*CARTPOLE, "--num_timesteps=200", "--save_path=deep/model"])
    capfd.readouterr()
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    played = play
    monkeypatch.setattr(run, "play", lambda *args, **more: played(*args, 2))
    before = sorted(os.listdir("log"))
    run.main([*CARTPOLE, "--num_timesteps=0", "--load_path=deep/model", "--play"])
    lines = capfd.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["game 1", "game 2"]
    assert sorted(os.listdir("log")) == before


def test_an_environment_made_with_other_arguments_is_made_so_again():
    env = gym.make("CartPole-v1", max_episode_steps=9, render_mode="rgb_array")
    with logger.scoped_configure("log", []):
        learn(env=env, network="mlp", total_timesteps=10)
    found = find_env("log")
    assert found.spec.id == "CartPole-v1"
    assert found.env_kwargs == {"max_episode_steps": 9}
    with found.make() as again:
        again.reset()
        dones = [again.step(np.array([t % 2]))[2][0] for t in range(9)]
    assert dones[-1]


def test_a_run_of_python_is_resumed_in_python():
    env = gym.make("CartPole-v1")
    arguments = dict(env=env, network="mlp", lr=lambda done: 1e-3, seed=2)
    with logger.scoped_configure("log", []):
        learn(**arguments, total_timesteps=50)
    stored = json.loads(Path("log/config.json").read_text())
    assert stored["command"] is None and "lr" not in stored["arguments"]
    with pytest.raises(SystemExit):
        run.main(["--resume=log", "--num_timesteps=100"])
    model = learn(**arguments, total_timesteps=100, resume="log")
    assert model.num_timesteps == 100


def write_fork(name, line, other):
    """Writes a fork of a2c with one line replaced to the current folder."""
    text = (Path(baselines.__file__).parent / "a2c" / "a2c.py").read_text()
    assert text.count(line) == 1
    folder = Path("my_pkg") / name
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(text.replace(line, other))


@pytest.mark.parametrize(
    ("name", "line", "other", "message"),
    [
        ("plain", "@algorithm()\n", "", "decorator"),
        ("fresh", "    run.load(policy)\n", "", "run.load(model)"),
        ("empty", "    return policy\n", "", "return its model"),
        ("bare", "Step(loss, ", "Step(lambda *x: loss(*x)[0], ", "(loss, metrics)"),
    ],
)
def test_what_a_fork_forgets(capfd, monkeypatch, name, line, other, message):
    write_fork(name, line, other)
    monkeypatch.syspath_prepend(os.getcwd())
    words = [f"--alg=my_pkg.{name}", "--env=CartPole-v1", "--num_timesteps=100"]
    with pytest.raises(SystemExit):
        run.main([*words, "--num_env=1", "--log_path=other"])
    error = capfd.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_commit_of_code_of_your_own():
    Path("mine.py").touch()
    person = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    for words in (["init"], ["add", "mine.py"], ["commit", "-m", "Add it"]):
        subprocess.run(["git", *person, *words], check=True, capture_output=True)
    commit = config.commit_of_file("mine.py")
    assert re.fullmatch("[0-9a-f]{40}", commit)
    Path("mine.py").write_text("changed = True")
    assert config.commit_of_file("mine.py") == f"{commit}-dirty"
    Path("other.py").touch()
    assert config.commit_of_file("other.py") is None


def test_videos_of_training(empty_folder):
    imageio = pytest.importorskip("imageio.v2")
    arguments = [*CARTPOLE, "--num_env=2", "--num_timesteps=120", "--seed=0"]
    videos = ["--save_video_interval=25", "--save_video_length=10"]
    run.main([*arguments, *videos, "--checkpoint_interval=60"])
    assert list_manifests("log/checkpoints")
    assert sorted(os.listdir("log/videos")) == [
        "video00000000.mp4",
        "video00000025.mp4",
        "video00000050.mp4",
    ]
    with imageio.get_reader("log/videos/video00000025.mp4") as reader:
        frames = list(reader.iter_data())
    assert len(frames) == 10
    assert frames[0].shape == (800, 600, 3)  # two environments, 400 x 600 each


def test_retro_games_that_are_drawn_have_a_worker_each(monkeypatch):
    monkeypatch.setattr(mpi, "available_cores", lambda: 2)
    monkeypatch.setattr(loading, "build_env", lambda *_, **settings: settings)
    for env_type, num_workers in ("retro", 4), ("atari", 2):
        env = TrainedEnv(None, env_type, None, {})
        assert env.make(4, 0, "rgb_array")["num_workers"] == num_workers
