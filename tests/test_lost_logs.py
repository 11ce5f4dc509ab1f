"""What cannot be written in mid-run: logs are left out and named, models are errors."""

import contextlib
import csv
import os
import resource
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from conftest import slow
from toy_envs import CounterEnv

from baselines import logger, run
from baselines.bench import Monitor, load_results
from baselines.common.base.errors import FullDiskError, UserFileError
from baselines.common.data.episodes import EpisodeResults
from baselines.common.envs.recorder import Recorder
from baselines.common.run.run import Run
from baselines.common.saving.tensors import load_tensors
from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv
from baselines.common.vec_env.vec_video_recorder import VecVideoRecorder

A2C = "--alg=a2c --env=CartPole-v1 --num_env=2 --seed=1 --log_interval=5 "
A2C += "--num_timesteps=600 --checkpoint_interval=200 --log_path="
DQN = "--alg=dqn --env=CartPole-v1 --num_env=2 --seed=1 --print_freq=2 "
DQN += "--learning_starts=50 --buffer_size=200 --checkpoint_interval=100 "
DQN += "--num_timesteps=600 --log_path="


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_LOG_FORMAT", raising=False)
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 32)
    with logger.scoped_configure(str(tmp_path / "unused"), []):
        yield


@contextlib.contextmanager
def in_mid_run(action, num_timesteps=300):
    """Does something once a run has made so many agent steps."""
    original = Run.end_update

    def end_update(self):
        original(self)
        if self.num_timesteps == num_timesteps:
            action()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "end_update", end_update)
        yield


@contextlib.contextmanager
def small_files(size):
    """Lets no file grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def end_of(capsys, words):
    """Returns the status of a run, and the lines that it wrote on stderr."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        run.main(words.split())
    return ended.value.code, capsys.readouterr().err.splitlines()


def weights(folder):
    tensors, _ = load_tensors(f"{folder}/model.safetensors")
    return {name: array.tobytes() for name, array in tensors.items()}


def csv_rows(path="log/progress.csv"):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("words", [A2C, slow(DQN)], ids=["a2c", "dqn"])
def test_a_run_outlives_its_folder_and_can_be_resumed(words, capsys):
    run.main(f"{words}whole".split())

    def remove():
        shutil.rmtree("log")
        os.kill(os.getpid(), signal.SIGTERM)

    with in_mid_run(remove):
        status, lines = end_of(capsys, f"{words}log")
    assert status == 143
    (line,) = lines
    assert line.startswith("warning: cannot write ") and "it was removed" in line
    run.main(["--resume=log"])
    assert weights("log") == weights("whole")
    steps = [row["total_timesteps"] for row in csv_rows()]
    assert (
        steps
        == [row["total_timesteps"] for row in csv_rows("whole/progress.csv")][
            -len(steps) :
        ]
    )
    assert steps and len(load_results("log")) > 0


def test_a_run_without_checkpoints_outlives_its_folder(capsys):
    with in_mid_run(lambda: shutil.rmtree("log")):
        status, lines = end_of(
            capsys, f"{A2C}log".replace("interval=200", "interval=0")
        )
    assert status == 1
    warning, error = lines
    assert warning.startswith("warning: cannot write ")
    assert error.startswith("error: the log is not complete: cannot write ")
    assert error.count(": it was removed") == 3 and error.endswith("; and 1 more")
    assert os.listdir("log") == ["model.safetensors"]
    out = capsys.readouterr().out
    assert "--resume" not in out and "baselines.evaluate" not in out


def test_moved_folder_is_made_anew(capsys):
    with in_mid_run(lambda: os.rename("log", "moved")):
        status, _ = end_of(capsys, f"{A2C}log")
    assert status == 1
    run.main(["--resume=log", "--num_timesteps=800"])
    assert csv_rows()[-1]["total_timesteps"] == "800"


def test_folder_that_another_run_has_taken_is_left_to_it(capsys):
    def replace():
        os.rename("log", "moved")
        other = logger.Logger(os.path.abspath("log"), [])
        other.lock()
        Path("log/config.json").write_text("of another run")
        others.append(other)

    others = []
    with in_mid_run(replace):
        status, lines = end_of(capsys, f"{A2C}log")
    others[0].close()
    assert status == 2 and "another run is writing to" in lines[-1]
    assert Path("log/config.json").read_text() == "of another run"


def test_what_is_in_the_way_of_a_new_run_is_named(capsys):
    for name in "log.txt", "progress.csv.tmp", "checkpoints":
        Path("log").mkdir()
        if name == "checkpoints":
            Path("log", name).write_text("")
        else:
            Path("log", name).mkdir()
        with pytest.raises(SystemExit) as ended:
            run.main(f"{A2C}log --overwrite".split())
        (line,) = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2 and f"/log/{name}" in line
        shutil.rmtree("log")


def block_checkpoints():
    shutil.rmtree("log/checkpoints")
    Path("log/checkpoints").write_text("")


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (
            block_checkpoints,
            "/log/checkpoints/000000000400.safetensors: File exists (",
        ),
        (
            lambda: os.mkdir("log/model.safetensors"),
            "/log/model.safetensors: Is a directory",
        ),
    ],
)
def test_a_checkpoint_or_model_that_cannot_be_written_ends_the_run(
    action, words, capsys
):
    with in_mid_run(action):
        status, (line,) = end_of(capsys, f"{A2C}log")
    assert status == 2 and line.startswith("error: ") and words in line
    if action is block_checkpoints:
        assert line.endswith("; there is no checkpoint")


def write(*rows):
    for row in rows:
        logger.logkvs(row)
        logger.dumpkvs()


@pytest.mark.parametrize("name", ["log", "csv", "json", "tensorboard"])
def test_output_that_fails_is_left_out_and_continues_from_the_last_checkpoint(
    name, capsys
):
    if name == "tensorboard":
        pytest.importorskip("tensorboardX")
    logger.configure("log", ["stdout", name])
    write({"total_timesteps": 1})
    state = logger.get_state()
    with small_files(30):
        write(*({"total_timesteps": step} for step in range(2, 20)))
    write({"total_timesteps": 20})
    assert logger.get_state() == state
    (sentence,) = logger.get_lost()
    assert sentence.startswith("cannot write ") and sentence.endswith("File too large")
    out, err = capsys.readouterr()
    assert err == f"warning: {sentence}; the run goes on without it\n"
    assert "| total_timesteps | 20 |" in out
    logger.configure("log", [name])
    logger.set_state(state)
    write({"total_timesteps": 21})
    assert logger.get_lost() == []
    logger.close()
    if name == "csv":
        assert [row["total_timesteps"] for row in csv_rows()] == ["1", "21"]


def test_new_column_of_a_file_that_cannot_be_replaced(capsys):
    logger.configure("log", ["csv", "json"])
    write({"a": 1})
    Path("log/progress.csv.tmp").mkdir()
    write({"b": 2}, {"b": 3})
    (sentence,) = logger.get_lost()
    assert "/log/progress.csv: Is a directory (" in sentence
    assert Path("log/progress.csv").read_text() == "a\n1\n"
    assert len(Path("log/progress.json").read_text().splitlines()) == 3


def test_full_disk_is_no_lost_log(monkeypatch):
    logger.configure("log", ["log"])
    write({"a": 1})
    full = open("/dev/full", "w")
    with monkeypatch.context() as patch:
        patch.setattr(logger.current.outputs["log"], "file", full)
        with pytest.raises(FullDiskError, match="no space left to write"):
            write({"a": 2})
    with contextlib.suppress(OSError):
        full.close()
    assert logger.get_lost() == []


def counters(folder):
    """Returns functions that make environments whose episodes take two steps."""

    def make(i):
        env = Recorder(CounterEnv(terminate_after=2))
        return Monitor(env, f"{folder}/0.{i}")

    return [lambda: make(0), lambda: make(1)]


@pytest.mark.parametrize("vec_env", [DummyVecEnv, SubprocVecEnv])
def test_a_monitor_outlives_its_file(vec_env, tmp_path):
    def step(venv):
        return venv.step([0, 0])[3]

    folder = tmp_path / "log"
    with vec_env(counters(folder)) as venv:
        venv.reset()
        step(venv)
        (folder / "0.1.monitor.csv").unlink()
        first, second = step(venv)
        assert "lost" not in first["episode"]
        lost = f"cannot write {folder}/0.1.monitor.csv: it was removed"
        assert second["episode"]["lost"] == lost
        assert second["episode"]["r"] == 3 and second["episode"]["l"] == 2
        state = venv.get_state()
        step(venv)
        assert step(venv)[1]["episode"]["lost"] == lost
    with vec_env(counters(folder)) as venv:
        venv.set_state(state)
        step(venv)
        assert "lost" not in step(venv)[1]["episode"]
    assert load_results(folder).l.tolist() == [2, 2, 2]


def test_a_monitor_that_may_not_grow_continues_from_the_last_checkpoint(tmp_path):
    def play(episodes):
        for _ in range(episodes):
            env.reset()
            env.step(0)
            env.step(0)

    env = Monitor(CounterEnv(terminate_after=2), str(tmp_path / "0.0"))
    play(2)
    state = env.get_state()
    with small_files(130):
        play(20)
    assert env.get_state()["file"] == state["file"]
    env.set_state(state)
    play(1)
    env.close()
    assert len(load_results(tmp_path)) == 3


def test_a_monitor_that_cannot_begin_is_an_error(tmp_path):
    (tmp_path / "0.0.monitor.csv").mkdir()
    env = Monitor(CounterEnv(), str(tmp_path / "0.0"))
    with pytest.raises(UserFileError, match="0.0.monitor.csv: Is a directory"):
        env.reset()


def test_lost_files_of_worker_processes_end_with_status_1(capsys, monkeypatch):
    sentence = "cannot write log/0.0.monitor.csv: it was removed"
    episodes = EpisodeResults()

    def train(argv):
        logger.configure("log", [])
        episodes.extend([{"r": 1.0, "l": 1}, {"r": 2.0, "l": 1, "lost": sentence}] * 2)

    monkeypatch.setattr(run, "run", train)
    status, lines = end_of(capsys, "")
    assert status == 1 and lines == [
        f"warning: {sentence}; the run goes on without it",
        f"error: the log is not complete: {sentence}",
    ]
    assert list(episodes.results)[1] == {"r": 2.0, "l": 1}


@pytest.mark.filterwarnings("ignore")
def test_a_video_that_is_lost_ends_no_training(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    folder = tmp_path / "videos"
    with VecVideoRecorder(
        DummyVecEnv([CounterEnv]), folder, lambda i: i == 0, 3
    ) as env:
        env.reset()
        shutil.rmtree(folder)
        for _ in range(5):
            env.step(np.zeros(1, int))
    (sentence,) = logger.get_lost()
    assert sentence.startswith(f"cannot write {folder}/video00000000.mp4: ")
