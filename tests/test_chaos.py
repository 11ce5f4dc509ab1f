"""The chaos benchmark: what it kills, and that it finds what differs."""

import contextlib
import io
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from conftest import long, slow
from toy_envs import CounterEnv

from baselines.common.arguments.discovery import list_algorithms
from baselines.common.saving.tensors import save_tensors
from baselines.common.vec_env import SubprocVecEnv
from benchmarks import chaos, faults, leaks

pytestmark = pytest.mark.usefixtures("empty_folder")

ROWS = "total_timesteps,fps\n100,1\n200,2\n"
GAMES = '# {"t_start": 0} \nr,l,t\n-21.0,80,1.0\n'


def finished_run(name, rows=ROWS, games=GAMES, weight=1.0, log="", steps=200):
    folder = Path(name)
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / f"{steps:012d}.json").write_text("{}")
    (folder / "progress.csv").write_text(rows)
    (folder / "0.0.monitor.csv").write_text(games)
    (folder / "log.txt").write_text(log)
    save_tensors(folder / "model.safetensors", {"w": np.full(2, weight)}, {})
    return chaos.Run([], folder)


@pytest.mark.parametrize(
    ("changes", "differing"),
    [
        (dict(rows=ROWS.replace("200,2", "200,3")), []),
        (dict(games=GAMES.replace(",1.0", ",2.0")), []),
        (dict(rows=ROWS.replace("100,", "101,")), ["rows"]),
        (dict(rows=ROWS + "300,3\n"), ["rows"]),
        (dict(games=GAMES.replace("-21", "-20")), ["games"]),
        (dict(weight=np.nextafter(1.0, 2.0)), ["weights"]),
        (dict(rows="total_timesteps\n", weight=0.0), ["rows", "weights"]),
    ],
)
def test_what_differs_is_found(changes, differing):
    reference, killed = finished_run("reference"), finished_run("killed", **changes)
    assert chaos.compare(reference, killed) == differing


def warn_of_a_killed_worker(num_env):
    """Returns the warning about a worker that was killed with its environments."""
    out = io.StringIO()
    with (
        contextlib.redirect_stderr(out),
        SubprocVecEnv([CounterEnv] * num_env, num_workers=1) as env,
    ):
        env.reset()
        env.step([0] * num_env)
        psutil.Process(env.worker_pids[0]).kill()
        env.step([0] * num_env)
    return out.getvalue()


def test_replacements_of_hung_workers_are_counted():
    log = (
        "the worker process of environments 4 to 7 did not respond for 10 s and was "
        "ended; another takes over, and their episodes count as truncated"
    )
    assert finished_run("log", log=log).replacements() == [4]


@pytest.mark.parametrize("num_env", [1, 2])
def test_environments_of_replaced_workers_are_counted(num_env):
    log = warn_of_a_killed_worker(num_env)
    assert finished_run("log", log=log).replacements() == [num_env]


@pytest.mark.parametrize(("times", "steps"), [(1, 200), (3, 200), (2, 199)])
def test_replacements_that_do_not_add_up_are_a_failure(times, steps, capsys):
    warning = warn_of_a_killed_worker(2)
    reference = finished_run("reference")
    chaos.check_replacements(reference, finished_run("good", log=warning * 2), kills=2)
    assert "episodes cut short by that: 4" in capsys.readouterr().out
    bad = finished_run("bad", log=warning * times, steps=steps)
    with pytest.raises(chaos.Failure):
        chaos.check_replacements(reference, bad, kills=2)


@pytest.mark.parametrize("count", [1, 20])
def test_moments_are_spread_over_the_run(count):
    moments = chaos.draw_moments(count, 1000, random.Random(0))
    parts = [1000 * 0.8 * i / count for i in range(count + 1)]
    for moment, first, last in zip(moments, parts, parts[1:]):
        assert int(first) <= moment <= last


def test_run_that_cannot_begin_is_reported_with_its_reason(capsys):
    with pytest.raises(SystemExit):
        chaos.main(["--alg=a2c", "--env=CartPole-v1", "--nstep=3"])
    err = capsys.readouterr().err
    assert "status is 2" in err and "did you mean '--nsteps'" in err


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--resume=x", "are set by the benchmark"),
        ("--log_path=x", "are set by the benchmark"),
        ("--save_path=x", "are set by the benchmark"),
        ("--kills=0", "kills has to be at least 1"),
        ("--num_timesteps=50", "too few for 20 kills"),
        ("--fork --ranks=2", "leave out --ranks"),
    ],
)
def test_mistake_gives_one_line(argument, words, capfd):
    with pytest.raises(SystemExit) as stop:
        chaos.main(["--alg=a2c", *argument.split()])
    err = capfd.readouterr().err
    assert stop.value.code == 2 and words in err and err.count("\n") == 1


def test_table_of_faults_has_what_was_done(tmp_path):
    text = (
        "rows of progress.csv: 600, differing: 0\nmonitor files: 2, games: 7, equal: "
        "True\n5 faults (kill 3, kill a worker 2): nothing differs\n"
    )
    (tmp_path / "a2c.0.txt").write_text(text)
    (tmp_path / "a2c.1.txt").write_text(text.replace("5", "7").replace("3", "5"))
    (tmp_path / "dqn.0.txt").write_text("error: a run that was killed differs\n")
    table = faults.make_table(tmp_path.glob("*.txt"))
    rows = [line.split(" | ") for line in table.splitlines()]
    kinds = ["kill", "kill a worker", "rows", "games"]
    assert rows[0] == ["| case", "runs", *kinds, "runs that differ |"]
    assert rows[2] == ["| a2c", "2", "8", "4", "1,200", "14", "none |"]
    assert rows[3] == ["| dqn", "1", "0", "0", "0", "0", "dqn.0 |"]
    assert rows[4][:-1] == ["| all", "3", "8", "4", "1,200", "14"]


def test_faults_are_done_to_all_algorithms():
    done = {re.search(r"--alg=(\w+)", case)[1] for case in faults.CASES.values()}
    assert done == set(list_algorithms())


def test_leaks_of_two_calls(monkeypatch, capsys):
    monkeypatch.setattr(leaks, "ALLOWED", 2)
    leaks.measure(algs="a2c", calls=2, num_timesteps=80)
    out = capsys.readouterr().out
    assert out.startswith("memory: ")
    for name in ("file descriptors", "threads", "processes", "temporary files"):
        counts = re.search(rf"^{name}: (\d+) before, (\d+) after$", out, re.M)
        assert int(counts[2]) <= int(counts[1])


@pytest.mark.slow
def test_runs_are_resumed_in_forks():
    # TensorFlow has run in this process, which no fork survives.
    command = [sys.executable, "-m", "benchmarks.chaos", "--alg=a2c", "--fork"]
    command += ["--env=CartPole-v1", "--num_env=1", "--num_timesteps=6000"]
    command += ["--log_interval=10", "--kills=6", "--faults=all", "--seed=3"]
    root = Path(chaos.__file__).parents[1]
    out = subprocess.check_output(command, text=True, cwd=root)
    resumed, forks = re.search(
        r"resumed (\d+) times, (\d+) of them in forks", out
    ).groups()
    assert 0 < int(forks) <= int(resumed)
    assert "differing: 0" in out and "6 faults (" in out


@pytest.mark.parametrize(
    "arguments",
    [
        long("--alg=a2c --num_env=2 --num_timesteps=4000 --log_interval=5"),
        slow("--alg=dqn --env=CartPole-v1 --num_timesteps=3000 --print_freq=1"),
        long(
            "--alg=ppo2 --env=CartPole-v1 --ranks=2 --num_env=2 --num_timesteps=6000 "
            "--nsteps=64"
        ),
    ],
)
def test_chaos(arguments, capsys):
    chaos.main([*arguments.split(), "--kills=2"])
    out = capsys.readouterr().out
    assert out.count("kill 2: ") == (2 if arguments.startswith("--alg=a2c") else 1)
    assert "differing: 0" in out and "final weights equal: True" in out
