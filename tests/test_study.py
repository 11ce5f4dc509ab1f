"""The runner of training runs: what it trains, resumes, stops and keeps."""

import csv
import gzip
import io
import json
import os
import threading

import pytest

from baselines.common.base.errors import UserValueError
from baselines.common.run.parsing import parse
from benchmarks import study, tables
from benchmarks.study import RUNS, Study

CARTPOLE = "--alg=a2c --env=CartPole-v1 --num_env=1 --num_timesteps=4000 --seed=0 "
CARTPOLE += "--log_interval=20"


linux_only = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="processes have no cores of their own"
)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(study, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(study, "STOPPED", threading.Event())
    return tmp_path / "results"


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_run_has_a_command_that_is_accepted(run):
    if run.name.startswith(("mujoco", "continuous")):
        pytest.importorskip("mujoco")
    if run.name.startswith("robotics"):
        pytest.importorskip("gymnasium_robotics")
    settings = parse(run.arguments.split())
    assert run.last_step is None or run.last_step <= settings.num_timesteps


@pytest.mark.slow
def test_a_run_is_trained_resumed_and_kept(results, tmp_path, monkeypatch, capsys):
    first = Study("cartpole/seed_0", CARTPOLE, last_step=1000)
    monkeypatch.setattr(study, "RUNS", {first.name: first})
    monkeypatch.setattr(os, "setpriority", lambda *_: None)  # Other tests run, too.
    folder = tmp_path / "logs" / first.name
    study.train(first, folder)
    steps, _ = study.progress(folder)
    assert steps >= 1000
    # Until its end this time.
    longer = first._replace(last_step=None)
    monkeypatch.setattr(study, "RUNS", {longer.name: longer})
    study.main([str(tmp_path / "logs")])
    kept = results / first.name
    assert study.progress(kept)[0] == 4000
    assert len(json.loads((kept / "config.json").read_text())["resumed"]) == 1
    text = gzip.decompress((kept / "games.csv.gz").read_bytes()).decode()
    games = list(csv.DictReader(io.StringIO(text)))
    lines = (folder / "0.0.monitor.csv").read_text().splitlines()
    assert len(games) == len(lines) - 2
    assert games[0]["r"] == lines[2].split(",")[0]
    study.main(["--list"])
    assert "cartpole/seed_0" in capsys.readouterr().out
    assert "finished at 4,000 agent steps" in study.describe(longer)
    with pytest.raises(SystemExit):
        study.main([str(tmp_path / "logs")])
    assert "nothing to train" in capsys.readouterr().err


def test_what_is_over(tmp_path):
    rows = "eprewmean,total_timesteps\nnan,100\n15.0,200\n15.1,300\n"
    (tmp_path / "progress.csv").write_text(rows)
    assert study.progress(tmp_path) == (300, 15.1)
    assert study.is_over(Study("x", "", last_step=300), tmp_path)
    assert not study.is_over(Study("x", "", last_step=301), tmp_path)
    assert study.is_over(Study("x", "", above=15.0), tmp_path)
    assert not study.is_over(Study("x", "", above=15.1), tmp_path)
    (tmp_path / "model.safetensors").touch()
    assert study.is_over(Study("x", ""), tmp_path)


def test_a_run_that_was_kept_before_its_end_says_so(results, monkeypatch):
    (results / "x").mkdir(parents=True)
    (results / "x" / "progress.csv").write_text("eprewmean,total_timesteps\n15.1,300\n")
    line = study.describe(Study("x", ""))
    assert line.endswith("stopped early at 300 agent steps, mean 15.1")
    monkeypatch.setattr(study, "CUT", {"x": "no time", "y": "no machine"})
    line = study.describe(Study("x", ""))
    assert line.endswith("stopped early at 300 agent steps, mean 15.1 (no time)")
    assert study.describe(Study("y", "")).endswith("cut (no machine)")


def test_a_run_that_was_cut_exists_and_is_trained_only_again(
    results, tmp_path, capsys, monkeypatch
):
    assert set(study.CUT) <= set(RUNS)
    with pytest.raises(SystemExit):
        study.main([str(tmp_path / "logs"), "acer_*"])
    assert "nothing to train" in capsys.readouterr().err
    trained = []
    monkeypatch.setattr(study, "train", lambda run, folder: trained.append(run.name))
    study.main([str(tmp_path / "logs"), "acer_*", "--again"])
    assert trained == ["acer_pong/seed_0"] and not results.exists()


@linux_only
def test_runs_at_the_same_time_share_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5})
    assert study.shares_of_cores(1) == [{0, 1, 2, 5}]
    assert study.shares_of_cores(2) == [{0, 2}, {1, 5}]
    assert study.shares_of_cores(3) == [{0, 5}, {1}, {2}]
    assert study.shares_of_cores(6) == [{0}, {1}, {2}, {5}, {0, 1, 2, 5}, {0, 1, 2, 5}]


@linux_only
def test_a_run_stays_on_its_cores(results, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "says_cores.py").write_text(
        "import os, sys, time\n"
        "time.sleep(0.5)\n"
        "print(os.sched_getaffinity(0), os.getpriority(0, 0), file=sys.stderr)\n"
    )
    own = max(os.sched_getaffinity(0))
    monkeypatch.setattr(study, "shares_of_cores", lambda jobs: [{own}] * jobs)
    monkeypatch.setattr(study, "RUNS", {"x": Study("x", "", program="says_cores")})
    with pytest.raises(SystemExit):
        study.main([str(tmp_path / "logs")])
    assert f"{{{own}}} 19\n" in capfd.readouterr().err


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_run_is_started_after_one_failed(
    results, tmp_path, capsys, monkeypatch, jobs
):
    trained = []

    def train(run, folder):
        trained.append(run.name)
        if run.name == "b":
            raise UserValueError("b has failed")
        if run.name == "a" and jobs == 2:
            assert study.STOPPED.wait(10)

    runs = {name: Study(name, "") for name in "abcd"}
    monkeypatch.setattr(study, "RUNS", runs)
    monkeypatch.setattr(study, "train", train)
    monkeypatch.setattr(study, "finish", lambda *_: None)
    with pytest.raises(SystemExit):
        study.main([str(tmp_path), f"--jobs={jobs}"])
    assert "b has failed" in capsys.readouterr().err
    assert sorted(trained) == ["a", "b"]


def test_a_failed_run_is_named(results, tmp_path):
    failing = Study("x", "--alg=a2c --env=NoSuchGame-v0")
    with pytest.raises(UserValueError, match="x ended with exit status 2"):
        study.train(failing, tmp_path / "x")


def test_list_says_what_is_begun_and_missing(results, tmp_path):
    assert study.describe(Study("x", "")).endswith("missing")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").touch()
    found = study.describe(Study("x", ""), tmp_path)
    assert found.endswith("begun at 0 agent steps, mean NaN")


def test_another_program_continues_with_the_same_arguments(results, tmp_path, capfd):
    (tmp_path / "config.json").touch()
    with pytest.raises(UserValueError, match="x ended with exit status 1"):
        study.train(Study("x", "--seed=0", program="no_such_module"), tmp_path)
    command = capfd.readouterr().out
    assert command.endswith(f"-m no_such_module --log_path={tmp_path} --seed=0\n")
