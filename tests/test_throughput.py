"""The throughput benchmark: what it measures, and that frames are uploaded once."""

import contextlib
import json
import re
import sys
from pathlib import Path

import pytest

from baselines import logger
from baselines.common.base.errors import UserValueError
from baselines.common.run.parsing import parse
from benchmarks import throughput
from benchmarks.peers import AlePeer, PeerProgram, check_comparable
from benchmarks.rates import Clock

FRAME_STACK = 84 * 84 * 4

pytestmark = pytest.mark.usefixtures("empty_folder")


def test_clock_leaves_the_warm_up_out(monkeypatch):
    # Compilation until 100, warm-up until 102, then 60 steps in 12 seconds.
    times = iter([100.0, 101.0, 102.0, 108.0, 114.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    clock = Clock(seconds=10)
    assert [clock.is_over(steps) for steps in (10, 20, 30, 60)] == [False] * 4
    assert clock.is_over(90)
    assert (clock.steps, clock.rate) == (60, 5.0)


@pytest.mark.slow
def test_every_algorithm_is_measured(alg, small, env_id, capsys):
    throughput.main(
        [
            *f"--alg={alg} --env={env_id} --num_env=2 --checkpoint_interval=5000 "
            "--seconds=0.1 --repeats=1 --json=figures.json".split(),
            *(f"--{name}={value}" for name, value in small.items()),
        ]
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
    assert figures["checkpoint_interval"] == 5000
    assert figures["command"].startswith("python -m benchmarks.throughput --alg=")
    assert "commit" in figures["versions"]
    table = capsys.readouterr().out
    for words in ("serial limit", "loop / serial limit", "checkpoint", "uploaded"):
        assert words in table
    if sys.platform == "linux":
        # Of the whole process, with all that other tests left in it; Linux updates it
        # from counters of its threads, and only now and then.
        assert 100 < figures["peak_megabytes"] <= 1.01 * throughput.peak_megabytes()


@pytest.mark.parametrize(
    ("alg_name", "others", "stacks"),
    [
        ("a2c", [], 1),
        ("ppo2", ["--nsteps=16"], 1),
        # Acting uploads one, and an update every 4 agent steps 2 * 32, drawn anew.
        ("dqn", ["--buffer_size=2500", "--learning_starts=200"], 1 + 64 / 4),
    ],
)
def test_each_frame_is_uploaded_once_as_uint8(
    alg_name, others, stacks, tmp_path, monkeypatch
):
    monkeypatch.setattr("baselines.common.base.mpi.available_cores", lambda: 2)
    argv = [f"--alg={alg_name}", "--env=PongNoFrameskip-v4", "--num_env=2", *others]
    argv += ["--network=cnn_small"]
    with (
        logger.scoped_configure(str(tmp_path / "log"), []),
        contextlib.closing(throughput.Bench(argv, seconds=0.1)) as bench,
    ):
        uploaded = bench.bytes_uploaded()
        memory = bench.replay_memory()
        workers = bench.worker_megabytes()
    assert FRAME_STACK * stacks <= uploaded < 1.01 * FRAME_STACK * stacks
    if sys.platform == "linux":
        assert len(workers) == 2 and all(5 < size < 200 for size in workers)
    assert bool(memory) == (alg_name == "dqn")
    if memory:
        assert memory["transitions"] == 2500
        assert 1e-7 < memory["seconds_to_write_a_transition"] < 1e-2
        assert 1e-6 < memory["seconds_to_draw_a_batch"] < 1


class StubBench:
    """Has three measurements of each rate, and all other figures."""

    checkpoint_interval = 100_000

    def __init__(self):
        self.rates = {
            name: iter(rates)
            for name, rates in dict(
                env=[400, 500, 900], act=[400] * 3, train=[400] * 3, loop=[100] * 3
            ).items()
        }

    def env_rate(self):
        return next(self.rates["env"])

    def act_rate(self):
        return next(self.rates["act"])

    def train_rate(self):
        return next(self.rates["train"])

    def loop_rate(self):
        return next(self.rates["loop"])

    def bytes_uploaded(self):
        return 28224.4

    def worker_megabytes(self):
        return [60.0, 70.0]

    def checkpoint_seconds(self):
        return 0.25

    def replay_memory(self):
        # A second to write what is new of it, in the 1,000 s between two checkpoints.
        return {
            "transitions": 50_000,
            "bytes": 353_000_000,
            "seconds_to_draw_a_batch": 0.0006,
            "seconds_to_write_a_transition": 1e-5,
        }


class StubPeer:
    name = "Peer"
    measures = ("loop",)

    def __init__(self):
        self.rates = iter([50, 40, 25])

    def rate(self, name):
        return next(self.rates)


def test_report_has_medians_and_what_a_checkpoint_costs():
    table = throughput.report(throughput.measure(StubBench(), 3, [StubPeer()]))
    rows = (re.split("  +", line) for line in table.splitlines())
    found = {name: value for name, value in rows if name != "peak memory"}
    assert found == {
        "env": "500 steps/s",
        "act": "400 steps/s",
        "train": "400 steps/s",
        "serial limit": "143 steps/s",  # 1 / (1/500 + 2/400)
        "loop": "100 steps/s",
        "loop / serial limit": "0.70",
        "loop of Peer": "40 steps/s",
        "ours / theirs": "2.50",
        "uploaded": "28,224 bytes/step",
        "largest worker": "70 MB",
        "checkpoint": "1.250 s, 0.12% of the run's time",
        "replay memory": "0.35 GB for 50,000 transitions",
        "drawing a batch": "0.60 ms",
    }


def test_ale_is_measured_with_as_many_environments(tmp_path):
    argv = ["--alg=a2c", "--env=PongNoFrameskip-v4", "--network=cnn_small"]
    argv += ["--num_env=3"]
    with (
        logger.scoped_configure(str(tmp_path / "log"), []),
        contextlib.closing(throughput.Bench(argv, seconds=0.1)) as bench,
        contextlib.closing(AlePeer(bench)) as peer,
    ):
        assert peer.env.num_envs == 3
        assert all(peer.rate(name) > 10 for name in peer.measures)


def test_own_float32_is_measured_beside_bfloat16(capsys):
    throughput.main(
        [
            "--alg=a2c",
            "--env=CartPole-v1",
            "--num_env=2",
            "--precision=bfloat16",
            "--seconds=0.1",
            "--repeats=1",
            "--compare=float32",
        ]
    )
    table = capsys.readouterr().out
    assert all(f"{x} of ours in float32" in table for x in ("act", "train", "loop"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env=CartPole-v1"], "--alg is required"),
        (["--alg=a2c", "--compare=float32"], "another --precision, received float32"),
        (["--alg=a2c", "--compare=sb3s"], "did you mean 'sb3'"),
        (["--alg=a2c", "--env=CartPole-v1", "--compare=ale"], "for Atari games"),
        (["--alg=a2c", "--env=CartPole-v1", "--compare=sbx"], "for sac, td3 and ddpg"),
        (["--alg=a2c", "--compare=ale,sb3_bets"], "did you mean 'sb3_best'"),
        (["--alg=a2c", "--nstep=3"], "did you mean '--nsteps'"),
        (["--alg=a2c", "--seconds=soon"], "a finite number"),
        (["--alg=a2c", "--seconds=0"], "seconds has to be above 0"),
        (["--alg=a2c", "--repeats=0"], "repeats has to be at least 1"),
        (["--alg=a2c", "--log_path=x"], "--log_path has no effect"),
        (["--alg=a2c", "--stop_at=3"], "--stop_at has no effect"),
    ],
)
def test_mistake_gives_one_line(capfd, arguments, words):
    with pytest.raises(SystemExit) as stop:
        throughput.main(arguments)
    assert stop.value.code == 2
    err = capfd.readouterr().err
    assert words in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        (
            "rainbow",
            {},
            "is for a2c, ppo2, dqn, sac, td3, ddpg, received",
        ),
        ("ppo2", dict(network="lstm"), "received 'lstm'"),
        ("dqn", dict(noisy=True), "compared with --noisy=False, received True"),
        (
            "dqn",
            dict(values="categorical"),
            "compared with --values=scalar",
        ),
        ("dqn", dict(n_step=3), "compared with --n_step=1, received 3"),
        ("dqn", dict(train_freq=3), "train_freq and num_env has to divide"),
    ],
)
def test_what_stable_baselines3_cannot_do_is_refused(name, changes, words):
    argv = ["--alg=dqn", "--env=CartPole-v1", "--network=mlp", "--num_env=8"]
    settings = parse(argv).learn_arguments
    check_comparable("dqn", {**settings, "train_freq": 4}, 8)
    check_comparable("dqn", {**settings, "train_freq": 16}, 8)
    with pytest.raises(UserValueError, match=words):
        check_comparable(name, {**settings, **changes}, 8)


def test_ppo2_without_value_clipping_is_not_compared():
    argv = ["--alg=ppo2", "--env=PongNoFrameskip-v4", "--clip_values=False"]
    with pytest.raises(UserValueError, match="compared with --clip_values=True"):
        check_comparable("ppo2", parse(argv).learn_arguments, 8)


def test_peer_program_answers_each_line(monkeypatch):
    """Or its end is reported."""
    monkeypatch.setenv("PYTHONPATH", str(Path(throughput.__file__).parents[1]))
    Path("peer.py").write_text(
        "from benchmarks.serving import serve\n"
        "serve(lambda work: {'loop': lambda: work['rate'], 'end': exit})\n"
    )
    peer = PeerProgram("Some library", "peer", {"rate": 3.5}, ("loop", "end"))
    with contextlib.closing(peer):
        assert peer.rate("loop") == 3.5
        with pytest.raises(UserValueError, match="Some library could not be measured"):
            peer.rate("end")


def test_missing_stable_baselines3_is_named(capfd, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", without("stable_baselines3"))
    with pytest.raises(SystemExit):
        throughput.main(["--alg=a2c", "--env=CartPole-v1", "--compare=sb3"])
    assert "pip install stable-baselines3" in capfd.readouterr().err


def without(package):
    from importlib.util import find_spec

    return lambda name, *args: None if name == package else find_spec(name, *args)
