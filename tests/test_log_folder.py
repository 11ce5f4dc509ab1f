"""Log folders: no run is lost to another, and no file outside them to a resumed one."""

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from conftest import error_of

from baselines import logger, run, runs
from baselines.a2c import learn
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.envs import make_env, make_vec_env

SHORT = "--alg=a2c --env=CartPole-v1 --num_timesteps=200 --num_env=1 --seed=0"


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_LOGDIR", raising=False)
    with logger.scoped_configure(None, []):
        yield


def train(words):
    run.main([*SHORT.split(), *words.split()])


def contents(folder):
    paths = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in paths}


def test_used_folder_is_refused_and_replaced_when_asked(capsys, monkeypatch):
    run.main([*SHORT.replace("num_env=1", "num_env=2").split(), "--log_path=log"])
    Path("log/notes.txt").write_text("mine")
    Path("log/wandb").mkdir()
    Path("log/wandb/offline").write_text("not uploaded yet")
    kept = contents("log")
    error = error_of(capsys, f"{SHORT} --log_path=log")
    assert "log has a run already (config.json)" in error
    assert "--resume=" in error and "--overwrite" in error
    monkeypatch.setenv("OPENAI_LOGDIR", "log")
    assert "log has a run already" in error_of(capsys, SHORT)
    monkeypatch.delenv("OPENAI_LOGDIR")
    # Neither a mistake nor a look at the model costs anything.
    error_of(capsys, f"{SHORT} --log_path=log --overwrite --lr=much")
    run.main([*SHORT.split()[:2], "--num_timesteps=0", "--load_path=log"])
    assert contents("log") == kept
    train("--log_path=log --overwrite")
    assert Path("log/notes.txt").read_text() == "mine"
    assert Path("log/wandb/offline").exists()
    # The second environment's file was of the run before.
    assert [path.name for path in Path("log").glob("*.monitor.csv")] == [
        "0.0.monitor.csv"
    ]


def test_model_to_start_from_is_not_overwritten(capsys):
    train("--log_path=log")
    kept = contents("log")
    for path in ("log", "log/model.safetensors"):
        words = f"{SHORT} --log_path=log --overwrite --load_path={path}"
        assert f"{path}, is of the run" in error_of(capsys, words)
        with pytest.raises(UserFileError, match="the model to load"):
            given = dict(value_network="copy", load_path=path, overwrite=True)
            learn_in("log", **given)
    assert contents("log") == kept


def test_second_run_of_a_log_is_refused_unless_it_replaces_the_first():
    with logger.scoped_configure("log", ["csv"]):
        given = dict(env=gym.make("CartPole-v1"), network="mlp", total_timesteps=100)
        learn(**given).save("log/model.safetensors")
        old = [*Path("log/checkpoints").iterdir(), Path("log/model.safetensors")]
        notes = Path("log/checkpoints/notes.txt")
        notes.write_text("mine")
        before, given["total_timesteps"] = contents("log"), 50
        with pytest.raises(UserFileError, match="log has a run already") as error:
            learn(**given)
        call = f"learn(..., resume={str(Path('log').resolve())!r})"
        assert call in str(error.value)
        assert contents("log") == before
        learn(**given, overwrite=True)
        assert len(old) == 3 and not any(path.exists() for path in old)
        assert notes.read_text() == "mine"
        rows = csv.DictReader(Path("log/progress.csv").open())
        # of the first update and the last
        assert [row["total_timesteps"] for row in rows] == ["5", "50"]


def test_second_run_in_a_folder_made_for_the_first_replaces_it(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    given = dict(env=gym.make("CartPole-v1"), network="mlp", total_timesteps=100)
    with logger.scoped_configure(format_strs=["csv"]):
        learn(**given)
        folder = logger.get_dir()
        learn(**given | {"total_timesteps": 50})
    assert [path.name for path in Path(folder, "checkpoints").glob("*.json")] == [
        "000000000050.json"
    ]


@pytest.fixture
def live():
    """A process that trains in the folder log until it is killed."""
    words = f"{SHORT} --log_path=log --checkpoint_interval=100 --log_interval=1"
    words = words.replace("200", "100_000_000")
    command = [sys.executable, "-m", "baselines.run", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if "total_timesteps" in line and line.split()[3] == "200":
                break
        os.kill(process.pid, signal.SIGSTOP)
        yield process
        process.kill()


def test_folder_of_a_live_run_is_refused(live, capsys):
    error = error_of(capsys, "--resume=log")
    assert "another run is writing to" in error
    assert "another run is writing" in error_of(
        capsys, f"{SHORT} --log_path=log --overwrite"
    )
    with logger.scoped_configure("log", ["csv"]):
        given = dict(env=gym.make("CartPole-v1"), network="mlp", total_timesteps=100)
        with pytest.raises(UserFileError, match="another run is writing to"):
            learn(**given)
        with pytest.raises(UserFileError, match="another run is writing to"):
            learn(**given, resume="log")
    (found,) = runs.list_runs("log")
    assert found["state"] == "running"
    live.kill()
    live.wait()
    (found,) = runs.list_runs("log")
    assert found["state"] == "resumable"
    steps = found["num_timesteps"] + 50
    run.main(["--resume=log", f"--num_timesteps={steps}"])
    (found,) = runs.list_runs("log")
    assert found["state"] == "finished"


def learn_in(folder, steps=0, **given):
    with logger.scoped_configure(folder, ["csv"]):
        env = make_vec_env(
            "CartPole-v1", num_env=given.pop("num_env", 1), log_dir=folder
        )
        env.reset()
        for _ in range(steps):
            env.step([0] * env.num_envs)  # begins monitor files
        return learn(env=env, network="mlp", total_timesteps=100, **given)


def test_environment_in_a_monitor_can_be_overwritten_and_resumed():
    def learn_again(**given):
        with logger.scoped_configure("log", ["csv"]):
            env = make_env("CartPole-v1", monitor_file=os.path.join("log", "0.0"))
            learn(env=env, network="mlp", seed=0, log_interval=1, **given)
            with pytest.raises(UserFileError, match="log has a run already"):
                learn(gym.make("CartPole-v1"), "mlp", total_timesteps=50)
        return contents("log")["log/0.0.monitor.csv"].splitlines()[1:]

    first = learn_again(total_timesteps=200)
    again = learn_again(total_timesteps=100, overwrite=True)
    assert 1 < len(again) < len(first)
    resumed = learn_again(total_timesteps=200, resume="log")
    assert len(resumed) > len(again) and resumed[: len(again)] == again


def test_used_folder_is_refused_in_python_too():
    learn_in("log", num_env=2)
    kept = contents("log")
    with pytest.raises(UserFileError, match="log has a run already"):
        learn_in("log")
    for given in {"overwrite": True}, {"resume": "log"}:
        with pytest.raises(UserFileError, match="log has a run already, and a step"):
            learn_in("log", steps=1, **given)
    with logger.scoped_configure("log", ["csv", "log"]):
        for _ in range(2):
            with pytest.raises(UserFileError, match="log has a run already"):
                logger.log("beginning")
            logger.logkv("number", 1)
            with pytest.raises(UserFileError, match="log has a run already"):
                logger.dumpkvs()
    assert contents("log") == kept
    learn_in("log", overwrite=True)
    assert not Path("log/0.1.monitor.csv").exists()
    assert len(Path("log/0.0.monitor.csv").read_text().splitlines()) > 2
    (found,) = runs.list_runs("log")
    assert found["state"] == "finished"


def test_words_before_a_run_stay_in_its_log():
    with logger.scoped_configure("log", ["log"]):
        logger.log("beginning")
        learn(gym.make("CartPole-v1"), "mlp", total_timesteps=100, log_interval=1)
        logger.log("the end")
    lines = Path("log/log.txt").read_text().splitlines()
    assert lines[0] == "beginning" and lines[-1] == "the end" and len(lines) > 10


def test_failed_learn_lets_others_in():
    learn_in("log", checkpoint_interval=50)
    with logger.scoped_configure("log", ["csv"]):
        env = gym.make("CartPole-v1")
        with pytest.raises(UserValueError, match="nsteps is 5, this run's is 7"):
            learn(env=env, network="mlp", total_timesteps=200, nsteps=7, resume="log")
        (found,) = runs.list_runs("log")
        assert found["state"] == "finished"


def test_model_that_was_saved_before_is_replaced_when_asked(capsys):
    train("--save_path=model")
    before = Path("model").read_bytes()
    words = f"{SHORT} --save_path=model --lr=0.1"
    assert "there is a file" in error_of(capsys, words)
    assert "--overwrite" in error_of(capsys, words)
    assert Path("model").read_bytes() == before
    run.main([*words.split(), "--overwrite"])
    assert Path("model").read_bytes() != before


def test_folder_of_another_library_is_not_replaced(capsys):
    Path("log").mkdir()
    Path("log/config.json").write_text('{"model_type": "bert"}')
    Path("log/model.safetensors").write_text("precious")
    kept = contents("log")
    assert "has a run already" in error_of(capsys, f"{SHORT} --log_path=log")
    error = error_of(capsys, f"{SHORT} --log_path=log --overwrite")
    assert "config.json is not of a run here" in error and contents("log") == kept


def test_open_environments_begin_their_files_anew_in_a_run_that_replaces_one():
    path = Path("log/0.0.monitor.csv")
    given = dict(network="mlp", total_timesteps=400, overwrite=True)
    with (
        logger.scoped_configure("log", ["csv"]),
        make_vec_env("CartPole-v1", num_env=2, num_workers=2, log_dir="log") as env,
    ):
        env.reset()  # which begins the files, here before there is a run
        learn(env, **given)
        first = path.read_text().splitlines()
        learn(env, **given)
        header, names, *episodes = path.read_text().splitlines()
    assert [header, names] == first[:2] and len(episodes) > 1
    assert not {*episodes} & {*first}
