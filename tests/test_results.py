"""Studies and the tables of results/: what they train, keep and show."""

import csv
import fnmatch
import gzip
import io
import json
import os
import re
import shlex
import threading

import gymnasium as gym
import pytest
from test_readme import skip_without_packages

from baselines import evaluate
from baselines.common.base.errors import UserValueError
from baselines.common.run.command_line import read_arguments
from benchmarks import plot_speed, solved, study, tables
from benchmarks.study import RUNS, Study

PAGE = tables.RESULTS / "README.md"
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.M | re.S)
LINES = [
    shlex.split(line.replace("SEED", "0"), comments=True)
    for line in "".join(BLOCKS).splitlines()
]
ROWS = """eprewmean,fps,total_timesteps
nan,10,600
-0.5,10,1200
0.25,10,2400
18.5,10,3000
17.95,10,3600
18,10,42"""  # The last row is still being written.
CONFIG = {
    "arguments": {"seed": 7, "num_timesteps": 6000, "env": "Hopper-v4"},
    "command": "python -m baselines.run --alg=a2c",
    "resumed": [],
    "versions": {"commit": "0123456789abcdef0123456789abcdef01234567"},
}

pytestmark = pytest.mark.benchmarks


def words_of(module):
    """Returns the arguments of all commands in results/ that run a module."""
    lines = [words[3:] for words in LINES if words[1:3] == ["-m", module]]
    assert lines
    return lines


def test_command_lines_of_results_are_understood(empty_folder):
    for words in words_of("baselines.run"):
        skip_without_packages(" ".join(words))
        read_arguments(words)


def test_runs_of_results_are_in_the_study():
    for words in words_of("benchmarks.study"):
        names = [word for word in words[1:] if not word.startswith("--")]
        assert names and all(fnmatch.filter(RUNS, name) for name in names)


@pytest.mark.parametrize("folder", sorted({name.split("/")[0] for name in RUNS}))
def test_commands_of_studies_are_understood(folder):
    for run in RUNS.values():
        if run.name.startswith(f"{folder}/"):
            skip_without_packages(run.arguments)
            arguments = read_arguments(run.arguments.split())
            assert (run.last_step or 0) <= arguments["total_timesteps"]


def test_tables_of_results_are_those_of_the_records():
    assert tables.fill_in(PAGE.read_text(), tables.RESULTS) == PAGE.read_text()


def test_picture_of_speed_is_drawn_from_what_is_committed(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for name in "a2c", "ppo2", "dqn", "num_env":
        text = (plot_speed.FOLDER / f"{name}.json").read_text()
        (tmp_path / f"{name}.json").write_text(text)
    monkeypatch.setattr(plot_speed, "FOLDER", tmp_path)
    plot_speed.main()
    assert (tmp_path / "speed.png").stat().st_size > 1000


@pytest.fixture
def results(tmp_path, monkeypatch):
    folder = tmp_path / "results"
    folder.mkdir()
    text = "# Results\n\n<!-- table: pong/* above 0 18 -->\nold\n<!-- end -->\n\nend\n"
    (folder / "README.md").write_text(text)
    monkeypatch.setattr(tables, "RESULTS", folder)
    monkeypatch.setattr(study, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(study, "STOPPED", threading.Event())
    return folder


def make_log(folder, **changes):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    (folder / "progress.csv").write_text(ROWS)
    return folder


def test_run_is_added_and_a_later_state_replaces_it(results, tmp_path):
    kept = results / "pong" / "seed_7"
    tables.main(["add", str(make_log(tmp_path / "log")), str(kept)])
    text = (results / "README.md").read_text()
    assert text.startswith("# Results\n\n<!-- table: pong/* above 0 18 -->\n\n| Run |")
    assert text.endswith("|\n\n<!-- end -->\n\nend\n") and "old" not in text
    row = (
        "| seed_7 | 7 | 0123456 | 3,600 | 6,000 | 18.0 | 2,400 (4 min) | 3,000 (5 min)"
    )
    assert row in text
    assert (kept / "progress.csv").read_text() + "18,10,42" == ROWS
    resumed = [{"command": "", "versions": {"commit": f"{'f' * 40}-dirty"}}]
    again = make_log(tmp_path / "again", resumed=resumed)
    tables.main(["add", str(again), str(kept)])
    row = "| seed_7 | 7 | 0123456, fffffff-dirty | 3,600 | 6,000 | 18.0 | 2,400 | 3,000"
    assert row in (results / "README.md").read_text()
    other = make_log(tmp_path / "other", command="python -m baselines.run --alg=ppo2")
    with pytest.raises(UserValueError, match="has another run"):
        tables.add(other, kept)


def test_runs_of_a_task_are_one_row_beside_what_was_published(results):
    published = "A,ppo2,Hopper,9.5", "A,trpo_mpi,Hopper,8.5", "B,trpo_mpi,Swimmer,1"
    text = "\n".join(["source,alg,env,mean", *published, ""])
    (results / "published_mujoco1m.csv").write_text(text)
    for seed, last in ((0, 1), (1, 4)):
        folder = make_log(results / f"hopper_{seed}")
        games = ["env,r,l,t", "0.1,7,1,3"]  # which ended before the next
        games += [f"0.0,{last},1,{10 + i}" for i in range(50)]
        games += [f"0.1,{last + 2},1,{10 + i}" for i in range(50)]
        (folder / "games.csv.gz").write_bytes(gzip.compress("\n".join(games).encode()))
    rows = "total_timesteps,eval_eprewmean\n1,5\n2,\n3,8.25\n4,\n"
    (results / "hopper_1" / "progress.csv").write_text(rows)
    text = "<!-- table: hopper_* beside trpo_mpi -->\n<!-- end -->"
    # Returns of 1, 3, 4 and 6, each 50 times.
    row = "| Hopper-v4 | 2 | 3.5 ± 1.8 | 2.0, 5.0 | 8.2 | 8.5 |  |"
    assert tables.fill_in(text, results).splitlines()[4] == row


def test_run_is_trained_resumed_and_kept(results, tmp_path, monkeypatch):
    words = "--alg=a2c --env=CartPole-v1 --num_env=1 --num_timesteps=4000 --seed=0"
    first = Study("cartpole/seed_0", f"{words} --log_interval=20", last_step=1000)
    monkeypatch.setattr(os, "setpriority", lambda *_: None)  # Other tests run, too.
    folder = tmp_path / "logs" / first.name
    study.train(first, folder)
    assert study.progress(folder)[0] >= 1000
    longer = first._replace(last_step=None)
    monkeypatch.setattr(study, "RUNS", {longer.name: longer})
    study.main([str(tmp_path / "logs")])
    kept = results / first.name
    assert study.progress(kept)[0] == 4000
    assert len(json.loads((kept / "config.json").read_text())["resumed"]) == 1
    text = gzip.decompress((kept / "games.csv.gz").read_bytes()).decode()
    lines = (folder / "0.0.monitor.csv").read_text().splitlines()
    assert len(list(csv.DictReader(io.StringIO(text)))) == len(lines) - 2
    assert "finished at 4,000 agent steps" in study.describe(longer)
    with pytest.raises(UserValueError, match="nothing to train"):
        study.main([str(tmp_path / "logs")])


def test_page_of_solved_tasks(results, tmp_path, monkeypatch):
    words = "--alg=a2c --env=CartPole-v1 --num_timesteps=1000 --seed=0"
    runs = [Study("a2c/CartPole-v1/0", words)]
    monkeypatch.setattr(solved, "list_runs", lambda: runs)
    monkeypatch.setattr(solved, "TASKS", {"CartPole-v1": "a2c ppo2"})
    monkeypatch.setattr(solved, "GAMES", {"CartPole-v1": 2})
    solved.main([str(tmp_path / "logs"), "--write"])
    (row,) = solved.read().values()
    assert row["steps"] == 1000
    assert row["deterministic"]
    assert row["curve"][-1][0] == 1000
    page = (results / "solved.md").read_text()
    missing = f"{475 - row['mean']:.3g} below"
    assert f"| a2c | {row['mean']:.4g} | 1,000 |" in page
    assert f"| {missing} |\n\nNot run: ppo2.\n" in page
    assert "0 of 1 tasks" in page
    row |= {"mean": 475, "name": "ppo2/CartPole-v1/0"}
    (results / "solved.jsonl").write_text(f"{json.dumps(row)}\n")
    solved.main(["--write"])
    assert "1 of 1 tasks" in (results / "solved.md").read_text()


def test_readme_says_how_many_tasks_are_solved():
    page = (tables.RESULTS / "solved.md").read_text()
    count = re.search(r"\*\*(\d+ of \d+) tasks are solved", page)[1]
    readme = " ".join((tables.RESULTS.parent / "README.md").read_text().split())
    assert f"[{count} standard tasks](results/solved.md)" in readme


@pytest.mark.parametrize("task", sorted(os.listdir(tables.RESULTS / "agents")))
def test_kept_agents_play_as_the_table_says(task, capsys):
    kind = gym.spec(task).entry_point.split(".")[2]
    pytest.importorskip(dict(box2d="Box2D", mujoco="mujoco").get(kind, "gymnasium"))
    agent = tables.RESULTS / "agents" / task
    evaluate.main([str(agent), "--episodes=30", "--seed=1000", "--json"])
    found = json.loads(capsys.readouterr().out)
    runs = [x for x in solved.read().values() if x["name"].split("/")[1] == task]
    best = max(runs, key=lambda run: run["mean"])
    assert found["mean"] > best["mean"] - 3 * best["std"] / 30**0.5 - 1e-6
