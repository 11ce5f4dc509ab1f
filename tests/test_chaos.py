"""The chaos bench: what it kills, and that it sees what differs."""

from pathlib import Path

import numpy as np
import pytest

from baselines.bench import chaos
from baselines.common.tensors import save_tensors

ROWS = "total_timesteps,fps\n100,1\n200,2\n"
GAMES = '# {"t_start": 0} \nr,l,t\n-21.0,80,1.0\n'
DIED = "warning: the worker process of environments {} died with exit status -9; "
DIED += "another takes over, and their episodes count as truncated\n"


def finished_run(name, rows=ROWS, games=GAMES, weight=1.0, log=""):
    folder = Path(name)
    folder.mkdir()
    (folder / "progress.csv").write_text(rows)
    (folder / "0.0.monitor.csv").write_text(games)
    (folder / "log.txt").write_text(log)
    save_tensors(folder / "model.safetensors", {"w": np.full(2, weight)}, {})
    return chaos.Run([], folder)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
def test_what_differs_is_seen(changes, differing):
    whole, cut = finished_run("whole"), finished_run("cut", **changes)
    assert chaos.compare(whole, cut) == differing


@pytest.mark.parametrize(
    "changes",
    [
        dict(log=DIED.format("0 to 7")),
        dict(log=DIED.format("0 to 7") * 3),
        dict(rows=ROWS.replace("200", "199")),
        dict(games=GAMES.replace("80", "201")),
    ],
)
def test_replacements_that_do_not_add_up_are_a_failure(changes, capsys):
    log = DIED.format("0 to 7") + DIED.format("8 to 8")
    whole = finished_run("whole")
    chaos.check_replacements(whole, finished_run("good", log=log), kills=2)
    assert "their episodes cut short: 9" in capsys.readouterr().out
    bad = finished_run("bad", **{"log": log, **changes})
    with pytest.raises(chaos.Failure):
        chaos.check_replacements(whole, bad, kills=2)


def test_row_that_is_half_written_is_left_out():
    assert len(chaos.read_rows(finished_run("run", rows=ROWS + "300").folder)) == 2


@pytest.mark.parametrize("words", ["--resume=x", "--log_path=x"])
def test_folders_are_its_own(words, capsys):
    with pytest.raises(SystemExit):
        chaos.main(["--alg=a2c", words])
    assert "chosen by the bench" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "--alg=a2c --num_env=2 --num_timesteps=4000 --checkpoint_interval=500 "
        "--log_interval=5",
        "--alg=ppo2 --env=CartPole-v1 --ranks=2 --num_env=2 --num_timesteps=6000 "
        "--nsteps=64 --checkpoint_interval=500 --log_interval=1",
    ],
)
def test_chaos(arguments, capsys):
    chaos.main([*arguments.split(), "--kills=2"])
    out = capsys.readouterr().out
    assert out.count("kill 2: ") == (1 if "--ranks" in arguments else 2)
    assert "differing: 0" in out and "final weights equal: True" in out
