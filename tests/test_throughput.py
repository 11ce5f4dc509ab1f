"""The bench: what it measures, and that frames are uploaded once."""

import json
import sys
from pathlib import Path

import pytest
from discovered import algorithms

from baselines.bench import throughput
from baselines.bench.peers import check_comparable
from baselines.bench.rates import Clock
from baselines.common.errors import UserValueError
from baselines.run import parse

FRAME_STACK = 84 * 84 * 4


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_clock_leaves_the_warm_up_out(monkeypatch):
    # Compilation until 100, warm-up until 102, then 60 steps in 12 seconds.
    times = iter([100.0, 101.0, 102.0, 108.0, 114.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    clock = Clock(seconds=10)
    assert [clock.is_over(steps) for steps in (10, 20, 30, 60)] == [False] * 4
    assert clock.is_over(90)
    assert (clock.steps, clock.rate) == (60, 5.0)


@pytest.mark.parametrize("alg", algorithms())
def test_every_algorithm_is_measured(alg, capsys):
    throughput.main(
        f"--alg={alg} --env=CartPole-v1 --num_env=2 --seconds=0.3 --repeats=2 "
        "--json=figures.json".split()
    )
    figures = json.loads(Path("figures.json").read_text())
    rates = figures["agent_steps_per_second"]
    assert list(rates) == ["env", "act", "train", "loop"]
    for env, act, train, limit in zip(
        rates["env"], rates["act"], rates["train"], figures["serial_limit"]
    ):
        assert limit == pytest.approx(1 / (1 / env + 1 / act + 1 / train))
    assert all(rate > 10 for values in rates.values() for rate in values)
    assert figures["settings"]["checkpoint_interval"] == 0
    assert figures["checkpoint_interval"] == 100_000
    assert "--repeats=2" in figures["command"]
    table = capsys.readouterr().out
    for words in ("serial limit", "loop / serial limit", "checkpoint", "uploaded"):
        assert words in table
    if sys.platform == "linux":
        # Of the whole process, with all that other tests left in it.
        assert 100 < figures["peak_megabytes"] <= throughput.peak_megabytes()


@pytest.mark.parametrize(
    ("alg", "stacks"),
    # Acting uploads one; dqn also 2 * 32 every 4 agent steps, as each is drawn anew.
    [("a2c", 1), ("ppo2", 1), ("dqn", 17)],
)
def test_each_frame_is_uploaded_once_as_uint8(alg, stacks):
    replay = "--buffer_size=2500 --learning_starts=200" if alg == "dqn" else ""
    throughput.main(
        f"--alg={alg} --num_env=2 --network=cnn_small --seconds=0.3 --repeats=1 "
        f"--json=figures.json {replay}".split()
    )
    figures = json.loads(Path("figures.json").read_text())
    uploaded = figures["bytes_uploaded_per_agent_step"]
    assert FRAME_STACK * stacks <= uploaded < 1.01 * FRAME_STACK * stacks
    if sys.platform == "linux":
        assert len(figures["peak_megabytes_of_workers"]) == 2
        assert all(5 < size < 200 for size in figures["peak_megabytes_of_workers"])
    if alg == "dqn":
        seconds = figures["replay_memory"]["seconds_to_write_a_transition"]
        assert 1e-7 < seconds < 1e-2
        figures["checkpoint_seconds"] = 0.25
        figures["replay_memory"]["seconds_to_write_a_transition"] = 1e-5
        assert "checkpoint           1.250 s" in throughput.report(figures)


def test_ale_is_set_beside_our_environments(capsys):
    throughput.main(
        [
            "--alg=a2c",
            "--num_env=2",
            "--network=cnn_small",
            "--seconds=0.3",
            "--repeats=1",
            "--compare=ale",
        ]
    )
    table = capsys.readouterr().out
    assert "env of AtariVectorEnv" in table and "ours / theirs" in table


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alg=a2c", "--compare=sb4"], "sb3"),
        (["--alg=a2c", "--env=CartPole-v1", "--compare=ale"], "for Atari games"),
        (["--alg=a2c", "--nstep=3"], "did you mean '--nsteps'"),
        (["--alg=a2c", "--seconds=soon"], "a finite number"),
    ],
)
def test_mistake_gives_one_line(capfd, arguments, words):
    with pytest.raises(SystemExit) as stop:
        throughput.main(arguments)
    assert stop.value.code == 2
    err = capfd.readouterr().err
    assert words in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("alg", "changes", "words"),
    [
        ("rainbow", {}, "is for a2c, ppo2 and dqn, received --alg=rainbow"),
        ("ppo2", dict(network="lstm"), "received 'lstm'"),
        ("dqn", dict(noisy=True), "has no --noisy; leave it out"),
        ("dqn", dict(n_step=3), "has no --n_step; leave it out"),
        ("dqn", dict(train_freq=3), "train_freq has to divide num_env"),
    ],
)
def test_what_stable_baselines3_cannot_do_is_told(alg, changes, words):
    argv = ["--alg=dqn", "--env=CartPole-v1", "--network=mlp", "--num_env=8"]
    settings = parse(argv)[2]
    check_comparable("dqn", {**settings, "train_freq": 4}, 8)
    check_comparable("dqn", {**settings, "train_freq": 16}, 8)
    with pytest.raises(UserValueError, match=words):
        check_comparable(alg, {**settings, **changes}, 8)


def test_missing_stable_baselines3_is_named(capfd, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", without("stable_baselines3"))
    with pytest.raises(SystemExit):
        throughput.main(["--alg=a2c", "--env=CartPole-v1", "--compare=sb3"])
    assert "pip install stable-baselines3" in capfd.readouterr().err


def without(package):
    from importlib.util import find_spec

    return lambda name, *args: None if name == package else find_spec(name, *args)
