"""The benchmark of how speed grows: its formula, its tables, its mistakes."""

import json
from pathlib import Path

import pytest

from baselines.common.base.errors import UserValueError
from benchmarks import scaling

FIGURES = {
    "num_env": {1: {"env": 900.4, "loop": 1100.0}},
    "workers": {2: 1450.0},
    "ranks": {
        1: {"loop": 209.0, "exchange_bytes": 0, "exchange_seconds": 0.0},
        2: {"loop": 270.0, "exchange_bytes": 1_000_000, "exchange_seconds": 0.0124},
    },
}


def test_time_of_an_exchange():
    # 2 messages of 0.5 MB at 1 Gbit/s: 4 ms each, and twice the latency.
    expected = 2 * (20e-6 + 0.004)
    assert scaling.exchange_seconds(2, 1_000_000, 1e9) == pytest.approx(expected)
    # 14 messages of 0.125 MB.
    expected = 14 * (20e-6 + 0.001)
    assert scaling.exchange_seconds(8, 1_000_000, 1e9) == pytest.approx(expected)


def test_report_has_a_table_of_each():
    text = scaling.report(FIGURES)
    for row in (
        "| 1 | 900 | 1,100 |",
        "| 2 | 1,450 |",
        "| 2 | 270 | 1,000,000 | 12.4 |",
    ):
        assert row in text
    assert "| 8 | 10 | 1.7 |" in text
    assert (
        scaling.report({"num_env": {}, "workers": {2: 1.0}, "ranks": {}}).count("---")
        == 2
    )


@pytest.mark.slow
@pytest.mark.usefixtures("empty_folder")
def test_rates_are_measured(capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(scaling.__file__).parents[1]))
    numbers = ["--num_env=[2]", "--workers=[1]", "--ranks=[1]", "--seconds=0.1"]
    scaling.main(
        ["--alg=a2c", "--env=CartPole-v1", *numbers, "--json=figures.json"],
    )
    with open("figures.json") as file:
        figures = json.load(file)
    assert figures["num_env"]["2"]["loop"] > 10
    assert figures["workers"]["1"] > 10
    assert figures["ranks"]["1"]["loop"] > 10
    assert "| ranks | loop |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alg=a2c", "--ranks=[3]"], "has to divide 8, received 3"),
        (["--alg=a2c", "--env=NoSuchGame-v0"], "unknown environment"),
        (["--alg=a2c", "--num_env=[0]"], "each of num_env has to be at least 1"),
    ],
)
def test_mistake_gives_one_line(capfd, arguments, words):
    with pytest.raises(SystemExit) as stop:
        scaling.main(arguments)
    assert stop.value.code == 2
    err = capfd.readouterr().err
    assert words in err and err.count("\n") == 1


def test_failure_of_a_command_is_named():
    with pytest.raises(UserValueError, match="false ended with exit status 1"):
        scaling.run(["false"])
    with pytest.raises(ImportError, match="there is no no_such_program"):
        scaling.run(["no_such_program"])
