"""The list of runs: how far each is, its scores, what can be done with it."""

import json
import os
import shlex
from pathlib import Path

import pytest
from conftest import error_of
from toy_logs import write_log, write_monitor

from baselines import runs

pytestmark = pytest.mark.usefixtures("empty_folder")


def listed(capsys, words="logs"):
    """Returns what the command prints."""
    capsys.readouterr()
    runs.main(shlex.split(words))
    return capsys.readouterr().out


def find_json(capsys):
    return json.loads(listed(capsys, "logs --json"))


def write_checkpoint(folder, steps):
    (folder / "checkpoints").mkdir(exist_ok=True)
    (folder / "checkpoints" / f"{steps:012d}.json").write_text("{}")


def test_table_has_a_line_for_each_log_folder(capsys):
    write_log(Path("logs/b"), [1.0, 2.5], num_timesteps=1000, seed=7)
    write_log(Path("logs/a/deep"), [-20.0], env="Breakout", alg="a2c")
    for name in ("progress.csv", "0.0.monitor.csv"):
        os.utime(f"logs/b/{name}", (10**9, 10**9))
    _, *lines = listed(capsys).splitlines()
    deep, b = (line.split() for line in lines)
    assert deep[:7] == ["logs/a/deep", "a2c", "Breakout", "0", "100", "-20", "–"]
    assert b[:8] == ["logs/b", "dqn", "Pong", "7", "200", "of", "1,000", "1.75"]
    assert b[8:11] == ["–", "2", "min"]
    assert b[11].startswith("2001-09-") and b[-1] == "stopped"
    assert lines[0].index("Breakout") == lines[1].index("Pong")


def test_settings_that_differ_between_runs_of_a_task_are_shown(capsys):
    for i, lr in enumerate([0.1, 0.2]):
        write_log(Path(f"logs/{i}"), [1.0], seed=i, lr=lr, gamma=0.9)
    write_log(Path("logs/2"), [1.0], alg="a2c", lr=0.3)
    first, second, third = map(str.rstrip, listed(capsys).splitlines()[1:])
    assert first.endswith(" lr=0.1") and second.endswith(" lr=0.2")
    assert third.endswith("stopped")
    assert [run["settings"]["lr"] for run in find_json(capsys)] == [0.1, 0.2, 0.3]


def test_last_and_best_are_means_of_100_episodes(capsys):
    write_log(Path("logs"), [0.0] * 50 + [10.0] * 100 + [0.0] * 30)
    (found,) = find_json(capsys)
    assert (found["last_return"], found["best_return"]) == pytest.approx((7, 10))


def test_scores_of_rows_where_there_are_no_episodes(capsys):
    Path("logs").mkdir()
    text = "total_timesteps,eprewmean,time_elapsed\n10,nan,1\n20,5,2\n30,4,3.5\n"
    Path("logs/progress.csv").write_text(text)
    (found,) = find_json(capsys)
    assert (found["last_return"], found["best_return"]) == (4, 5)
    assert (found["num_timesteps"], found["seconds"]) == (30, 3.5)
    assert found["alg"] is found["seed"] is found["total_timesteps"] is None


def test_no_row_and_no_episode_is_no_mistake(capsys):
    write_log(Path("logs"), [], num_timesteps=1000)
    assert "0 of 1,000" in listed(capsys)
    (found,) = find_json(capsys)
    assert found["num_timesteps"] is found["last_return"] is found["seconds"] is None


@pytest.mark.parametrize(
    ("checkpoints", "model", "expected"),
    [
        ([], None, "stopped"),
        ([100, 700], None, "resumable"),
        ([700], "old", "resumable"),  # of the run before this one was resumed
        ([700], "new", "finished"),  # by stop_at, or by a callback
        ([970], None, "finished"),  # no update of 40 steps is left
    ],
)
def test_state(checkpoints, model, expected, capsys):
    folder = Path("logs")
    write_log(folder, [1.0, 2.0], num_timesteps=1000)
    config = json.loads((folder / "config.json").read_text()) | {"update_size": 40}
    (folder / "config.json").write_text(json.dumps(config))
    for steps in checkpoints:
        write_checkpoint(folder, steps)
    if model:
        (folder / "model.safetensors").touch()
        before = (folder / "config.json").stat().st_mtime - 10
        os.utime(
            folder / "model.safetensors", (before, before) if model == "old" else None
        )
    (found,) = find_json(capsys)
    assert found["state"] == expected
    assert found["num_timesteps"] == max([200, *checkpoints])


def test_damaged_folders_do_not_hide_the_others(capsys):
    for name in "abc":
        write_log(Path("logs", name), [1.0])
    Path("logs/a/config.json").write_text("{")
    write_monitor(Path("logs/c/0.0.monitor.csv"), ["x"])
    with pytest.raises(SystemExit) as stop:
        runs.main(["logs", "--json"])
    out, err = capsys.readouterr()
    assert stop.value.code == 1
    a, c = err.splitlines()
    assert a.startswith("error: logs/a/config.json is damaged")
    assert c.startswith("error: logs/c/0.0.monitor.csv ")
    assert [run["folder"] for run in json.loads(out)] == ["logs/b"]


@pytest.mark.parametrize("words", ["empty", "nowhere", ""])
def test_mistake_gives_one_line(words, capsys):
    Path("empty").mkdir()
    error_of(capsys, words, runs.main)
