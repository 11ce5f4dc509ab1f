"""The tables of results/: made from records of runs, and as README.md has them."""

import gzip
import json

import pytest

from baselines.common.base.errors import UserValueError
from benchmarks import tables

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = """eprewmean,fps,total_timesteps
nan,10,600
-0.5,10,1200
0.0,10,1800
0.25,10,2400
18.5,10,3000
17.95,10,3600
18,10,42"""  # The last row is still being written.


def config(**changes):
    return {
        "arguments": {"seed": 7, "num_timesteps": 6000},
        "command": "python -m baselines.run --alg=a2c",
        "resumed": [],
        "versions": {"commit": COMMIT},
        **changes,
    }


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    text = (
        "# Results\n\n<!-- table: pong/* above 0 18 -->\nold\n<!-- end -->\n\nthe end\n"
    )
    (tmp_path / "results" / "README.md").write_text(text)
    return tmp_path / "results"


def make_log(folder, **changes):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config(**changes)))
    (folder / "progress.csv").write_text(ROWS)
    return folder


def test_tables_of_readme_are_those_of_the_records():
    text = (tables.RESULTS / "README.md").read_text()
    assert tables.fill_in(text, tables.RESULTS) == text


def test_table_of_faults(results):
    text = "<!-- table: faults/*.txt -->\n<!-- end -->\n"
    with pytest.raises(UserValueError, match="matches 'faults/"):
        tables.fill_in(text, results)
    (results / "faults").mkdir()
    output = "2 faults (kill 2): nothing differs\n"
    (results / "faults" / "a2c.0.txt").write_text(output)
    assert "| a2c | 1 | 2 |" in tables.fill_in(text, results)


def test_run_is_added(results, tmp_path):
    log = make_log(tmp_path / "log")
    tables.main(["add", str(log), str(results / "pong" / "seed_7")])
    header, _, row = table_lines(results)
    assert header.endswith(
        "| Last mean of 100 games | First above 0 | First above 18 |"
    )
    assert row.startswith("| seed_7 | 7 | 0123456 | 3,600 | 6,000 | 18.0 |")
    assert row.endswith("| 2,400 (4 min) | 3,000 (5 min) |")
    kept = results / "pong" / "seed_7"
    assert (kept / "config.json").read_bytes() == (log / "config.json").read_bytes()
    assert (kept / "progress.csv").read_text() + "18,10,42" == ROWS
    text = (results / "README.md").read_text()
    assert text.startswith("# Results\n\n<!-- table: pong/* above 0 18 -->\n\n| Run |")
    assert text.endswith("|\n\n<!-- end -->\n\nthe end\n") and "old" not in text


def test_run_that_no_table_lists_is_reported(results, tmp_path, capsys):
    (results / "README.md").write_text("# Results\n")
    log = make_log(tmp_path / "log")
    tables.main(["add", str(log), str(results / "pong" / "seed_7")])
    assert "'<!-- table: pong/* -->' and '<!-- end -->'" in capsys.readouterr().out


def test_later_state_of_a_run_replaces_an_earlier_one(results, tmp_path):
    folder = str(results / "pong" / "seed_7")
    tables.main(["add", str(make_log(tmp_path / "log")), folder])
    resumed = [{"command": "", "versions": {"commit": f"{'f' * 40}-dirty"}}]
    again = make_log(tmp_path / "again", resumed=resumed)
    tables.main(["add", str(again), folder])
    assert table_lines(results)[2] == (
        "| seed_7 | 7 | 0123456, fffffff-dirty | 3,600 | 6,000 | 18.0 | 2,400 | 3,000 |"
    )


def test_record_stands_in_for_a_config_that_was_not_kept(results):
    folder = results / "pong" / "old"
    folder.mkdir(parents=True)
    (folder / "progress.csv").write_text(ROWS)
    record = dict(command="", seed=1, commit="abc1234", num_timesteps=6000)
    (folder / "record.json").write_text(json.dumps(record))
    tables.main(["write"])
    assert table_lines(results)[2].startswith("| old | 1 | abc1234 | 3,600 | 6,000 |")


def test_games_are_counted_by_what_played_them(results):
    games = [f"a,1,{i % 2},9" for i in range(110)] + ["b,1,-21,9"]
    (results / "games.csv").write_text(
        "\n".join(["system,seconds,return,length", *games, ""])
    )
    text = "<!-- table: games.csv -->\n<!-- end -->"
    assert tables.fill_in(text, results).splitlines()[4:6] == [
        "| a | 110 | 0.5 | 0.5 |",
        "| b | 1 | -21.0 | -21.0 |",
    ]


def test_runs_of_a_task_are_one_row_beside_what_was_published(results):
    published = "A,ppo2,Hopper,9.5", "A,trpo_mpi,Hopper,8.5", "B,trpo_mpi,Swimmer,1"
    (results / "published_mujoco1m.csv").write_text(
        "\n".join(["source,alg,env,mean", *published, ""])
    )
    for seed, last in ((0, 1), (1, 4)):
        folder = make_log(results / f"hopper_{seed}")
        arguments = {"env": "Hopper-v4", "seed": seed}
        (folder / "config.json").write_text(json.dumps(config(arguments=arguments)))
        games = ["env,r,l,t", "0.1,7,1,3"]  # which ended before the next
        games += [f"0.0,{last},1,{10 + i}" for i in range(50)]
        games += [f"0.1,{last + 2},1,{10 + i}" for i in range(50)]
        (folder / "games.csv.gz").write_bytes(gzip.compress("\n".join(games).encode()))
    text = "<!-- table: hopper_* beside trpo_mpi -->\n<!-- end -->"
    # Returns of 1, 3, 4 and 6, each 50 times.
    assert tables.fill_in(text, results).splitlines()[2:5] == [
        "| Task | Seeds | Mean ± std of episodes | Of each seed | A | B |",
        "| --- | --- | --- | --- | --- | --- |",
        "| Hopper-v4 | 2 | 3.5 ± 1.8 | 2.0, 5.0 | 8.5 |  |",
    ]
    rows = "total_timesteps,eval_eprewmean\n1,5\n2,\n3,8.25\n4,\n"
    (results / "hopper_1" / "progress.csv").write_text(rows)
    assert tables.fill_in(text, results).splitlines()[4] == (
        "| Hopper-v4 | 2 | 3.5 ± 1.8 | 2.0, 5.0 | 8.2 | 8.5 |  |"
    )
    with pytest.raises(UserValueError, match="has no results of sac"):
        tables.fill_in(text.replace("trpo_mpi", "sac"), results)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda log: (log / "config.json").unlink(), "config.json: No such file"),
        (lambda log: (log / "config.json").write_text("{"), "is not JSON"),
        (lambda log: (log / "config.json").write_text("{}"), "not describe a run"),
        (lambda log: (log / "progress.csv").unlink(), "there is no file"),
        (lambda log: (log / "progress.csv").write_text("eprewmean"), "has no row"),
        (
            lambda log: (log / "config.json").write_text(
                json.dumps(config(command="python -m baselines.run --alg=ppo2"))
            ),
            "has another run",
        ),
    ],
)
def test_what_cannot_be_added_is_refused_in_one_line(
    results, tmp_path, spoil, words, capsys
):
    folder = str(results / "pong" / "seed_7")
    tables.main(["add", str(make_log(tmp_path / "log")), folder])
    capsys.readouterr()
    spoil(tmp_path / "log")
    with pytest.raises(SystemExit) as stop:
        tables.main(["add", str(tmp_path / "log"), folder])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and words in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<!-- table: nothing/* -->\n<!-- end -->", "no run in .* matches"),
        ("<!-- table: pong/* -->\ntext", "has no '<!-- end -->'"),
    ],
)
def test_table_that_cannot_be_made_is_refused(results, text, words):
    with pytest.raises(ValueError, match=words):
        tables.fill_in(text, results)


def table_lines(results):
    text = (results / "README.md").read_text()
    return [line for line in text.splitlines() if line.startswith("|")]
