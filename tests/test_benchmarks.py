"""Programs that measure: throughput, scaling, kernels, killing and resuming, leaks."""

import contextlib
import json
import re
import shlex
from collections import defaultdict
from pathlib import Path

import keras
import numpy as np
import pytest
from test_readme import find_commands, skip_without_packages

from baselines import logger
from baselines.common.arguments.discovery import list_algorithms
from baselines.common.base.errors import UserValueError
from baselines.common.run.command_line import read_arguments
from baselines.common.saving.tensors import save_tensors
from benchmarks import (
    chaos,
    faults,
    gpu,
    kernels,
    leaks,
    mutations,
    scaling,
    throughput,
)
from benchmarks.peers import (
    STABLE_BASELINES3,
    TORCH,
    PeerProgram,
    check_comparable,
)
from benchmarks.rates import Clock

FRAME_STACK = 84 * 84 * 4
ROOT = Path(throughput.__file__).parents[1]
ROWS = "total_timesteps,fps\n100,1\n200,2\n"
GAMES = '# {"t_start": 0} \nr,l,t\n-21.0,80,1.0\n'

pytestmark = [pytest.mark.benchmarks, pytest.mark.usefixtures("empty_folder")]


@pytest.mark.parametrize("program", [throughput, chaos])
def test_command_lines_of_the_docs_are_understood(program):
    commands = find_commands(program.__name__)
    assert len(commands) > 1
    for command in commands:
        options, others = program.make_parser().parse_known_args(shlex.split(command))
        if "my_pkg" not in command:
            skip_without_packages(command)
            read_arguments([f"--alg={options.alg}", f"--env={options.env}", *others])


@pytest.mark.parametrize("name", gpu.COMMANDS)
def test_measurements_of_a_gpu_give_their_commands_what_they_take(name):
    program, *words = gpu.COMMANDS[name].split()
    skip_without_packages(gpu.COMMANDS[name])
    parser = {"benchmarks.throughput": throughput, "benchmarks.chaos": chaos}[program]
    options, others = parser.make_parser().parse_known_args(words)
    given = [f"--alg={options.alg}", f"--env={options.env}", *others]
    settings = read_arguments(given).learn_arguments
    for peer in filter(None, getattr(options, "compare", "").split(",")):
        comparable = TORCH if peer.startswith("torch") else STABLE_BASELINES3
        check_comparable(peer, comparable, options.alg, settings)


def test_failed_measurements_of_a_gpu_are_repeated_and_finished_ones_are_not(
    monkeypatch,
):
    statuses, called = iter([1, 0, 0]), []

    def call(command, stdout, stderr):
        called.append(command[-1])
        stdout.write("a figure")
        return next(statuses)

    monkeypatch.setattr(gpu.subprocess, "call", call)
    monkeypatch.setattr(gpu, "COMMANDS", {"one": "of {name}", "two": "in {folder}"})
    for status in (1, 0):
        with pytest.raises(SystemExit) as ended:
            gpu.main(["figures"])
        assert ended.value.code == status
    assert called == ["one", "figures", "one"]
    files = {path.name: path.read_text() for path in Path("figures").iterdir()}
    assert files == {"one.txt": "a figure", "two.txt": "a figure"}


def test_clock_leaves_the_warm_up_out(monkeypatch):
    # Compilation until 100, warm-up until 102, then 60 steps in 12 seconds.
    times = iter([100.0, 101.0, 102.0, 108.0, 114.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    clock = Clock(seconds=10)
    assert [clock.is_over(steps) for steps in (10, 20, 30, 60)] == [False] * 4
    assert clock.is_over(90)
    assert (clock.steps, clock.rate) == (60, 5.0)


@pytest.mark.parametrize(
    "words",
    [
        "--alg=a2c --env=PongNoFrameskip-v4 --network=cnn_small --compare=ale",
        "--alg=dqn --env=CartPole-v1 --learning_starts=50 --buffer_size=3000",
    ],
)
def test_throughput_is_measured(words, capsys):
    words += " --num_env=2 --checkpoint_interval=5000 --seconds=0.1 --repeats=1"
    throughput.main([*words.split(), "--json=figures.json"])
    figures = json.loads(Path("figures.json").read_text())
    rates = figures["agent_steps_per_second"]
    assert list(rates) == ["env", "act", "train", "loop"]
    assert all(rate > 10 for values in rates.values() for rate in values)
    limit = 1 / sum(1 / rates[name][0] for name in ("env", "act", "train"))
    assert figures["serial_limit"] == [pytest.approx(limit)]
    assert figures["settings"]["checkpoint_interval"] == 0
    table = capsys.readouterr().out
    if "ale" in words:
        assert "env of AtariVectorEnv" in table
    else:
        assert 1e-7 < figures["replay_memory"]["seconds_to_write_a_transition"] < 1e-2


def test_use_of_all_cores_is_measured(capsys):
    words = "--alg=a2c --env=CartPole-v1 --cores --seconds=0.2 --repeats=1"
    throughput.main(words.split())
    one, several, ratio = (
        float(re.search(r"  +([\d,.]+)", line)[1].replace(",", ""))
        for line in capsys.readouterr().out.splitlines()
    )
    assert one > 0 and several > 0
    assert abs(ratio - one / several) <= 0.01


@pytest.mark.parametrize(
    ("words", "stacks"),
    [
        ("--alg=a2c", 1),
        ("--alg=ppo2 --nsteps=16", 1),
        # Acting uploads one, and an update every 4 agent steps 2 * 32, drawn anew.
        ("--alg=dqn --buffer_size=2500 --learning_starts=200", 1 + 64 / 4),
    ],
)
def test_each_frame_is_uploaded_once_as_uint8(words, stacks):
    words += " --env=PongNoFrameskip-v4 --num_env=2 --network=cnn_small"
    with (
        logger.scoped_configure("log", []),
        contextlib.closing(throughput.Bench(words.split(), seconds=0.1)) as bench,
    ):
        uploaded = bench.bytes_uploaded()
    assert FRAME_STACK * stacks <= uploaded < 1.01 * FRAME_STACK * stacks


def test_report_has_medians_and_what_a_checkpoint_costs():
    figures = {
        "agent_steps_per_second": dict.fromkeys(["act", "train", "loop"], [100] * 3),
        "serial_limit": [133, 143, 164],
        "peers": [{"name": "Peer", "agent_steps_per_second": {"loop": [50, 40, 25]}}],
        "bytes_uploaded_per_agent_step": 28224.4,
        "peak_megabytes": 500,
        "checkpoint_seconds": 0.25,
        "checkpoint_interval": 100_000,
        # A second to write what is new of it, in the 1,000 s between two checkpoints.
        "replay_memory": defaultdict(int, seconds_to_write_a_transition=1e-5),
    }
    figures["agent_steps_per_second"]["env"] = [400, 500, 900]
    rows = (re.split("  +", line) for line in throughput.report(figures).splitlines())
    assert dict(rows).items() >= {
        ("env", "500 steps/s"),
        ("loop / serial limit", "0.70"),
        ("ours / theirs", "2.50"),
        ("checkpoint", "1.250 s, 0.12% of the run's time"),
    }


def test_report_of_a_loop_alone():
    figures = {"agent_steps_per_second": {"loop": [90, 100]}, "peers": []}
    figures |= {"peak_megabytes": 500, "peak_gpu_megabytes": 2000}
    lines = throughput.report(figures).splitlines()
    rows = dict(re.split("  +", line) for line in lines)
    assert rows["loop"] == "95 steps/s"
    assert rows["on the GPU"] == "2,000 MB"


@pytest.mark.parametrize("changes", [{}, dict(noisy=True), dict(network="lstm")])
def test_only_the_same_work_is_compared(changes):
    words = "--alg=dqn --env=CartPole-v1 --network=mlp"
    settings = read_arguments(words.split()).learn_arguments | changes
    refused = contextlib.nullcontext()
    if changes:
        refused = pytest.raises(UserValueError, match="received")
    with refused:
        check_comparable("Peer", STABLE_BASELINES3, "dqn", settings)


def test_peer_program_answers_each_line(monkeypatch):
    """Or its end is reported."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    Path("peer.py").write_text(
        "from benchmarks.rates import serve\n"
        "serve(lambda work: {'loop': lambda: work['rate'], 'end': exit})\n"
    )
    peer = PeerProgram("Some library", "peer", {"rate": 3.5}, ("loop", "end"))
    with contextlib.closing(peer):
        assert peer.rate("loop") == 3.5
        with pytest.raises(UserValueError, match="Some library could not be measured"):
            peer.rate("end")


def test_scaling_is_measured(capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    numbers = "--num_env=[] --workers=[1] --ranks=[1] --seconds=0.1 --json=figures.json"
    scaling.main(["--alg=a2c", "--env=CartPole-v1", *numbers.split()])
    figures = json.loads(Path("figures.json").read_text())
    assert figures["workers"]["1"]["env"] > 10
    assert figures["ranks"]["1"]["loop"] > 10
    assert "| ranks | loop |" in capsys.readouterr().out


def test_other_kernels_compute_the_same():
    rng = np.random.default_rng(0)
    functions = kernels.first_convolutions(3, rng)
    pairs = [
        [functions[name.format(way)]() for way in ("as it is", "on blocks")]
        for name in ("first convolution {}", "with its gradient, {}")
    ]
    pairs.append([function() for function in kernels.dense_gradients(2, rng).values()])
    for pair in pairs:
        arrays = [
            np.concatenate([np.ravel(x) for x in keras.tree.flatten(found)])
            for found in pair
        ]
        np.testing.assert_allclose(*arrays, rtol=1e-3, atol=1e-3)


def finished_run(name, rows=ROWS, games=GAMES, weight=1.0):
    folder = Path(name)
    folder.mkdir()
    (folder / "progress.csv").write_text(rows)
    (folder / "0.0.monitor.csv").write_text(games)
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
    ],
)
def test_what_differs_is_noticed(changes, differing):
    reference, killed = finished_run("reference"), finished_run("killed", **changes)
    assert chaos.compare(reference, killed) == differing


def test_killed_runs_do_not_differ(capsys):
    words = "--alg=a2c --num_env=2 --num_timesteps=2000 --log_interval=5 --network=mlp"
    chaos.main([*words.split(), "--kills=1", "--faults=all"])
    out = capsys.readouterr().out
    assert "differing: 0" in out and "\n2 faults (" in out


def test_faults_are_done_to_all_algorithms():
    done = {re.search(r"--alg=(\w+)", case)[1] for case in faults.CASES.values()}
    assert done == set(list_algorithms())


def test_leaks_of_two_calls(monkeypatch, capsys):
    monkeypatch.setattr(leaks, "ALLOWED", 2)
    leaks.measure(algs="a2c", calls=2, num_timesteps=80)
    out = capsys.readouterr().out
    assert out.startswith("memory: ")
    counts = re.findall(r"^.*: (\d+) before, (\d+) after$", out, re.M)
    assert len(counts) == 4 and all(int(x) >= int(y) for x, y in counts)


def test_mutations_can_be_made():
    for line in mutations.MUTATIONS.strip().splitlines():
        file, old, tests = re.fullmatch(r"(\S+): (.*) => .* \| (.*)", line).groups()
        assert (ROOT / "baselines" / file).read_text().count(old) == 1, line
        for name in tests.split():
            assert (ROOT / "tests" / f"test_{name}.py").exists(), line
