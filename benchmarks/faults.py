"""Injects faults into runs of all algorithms, until ``--count`` have been made.

    python -m benchmarks.faults FOLDER --count=2000 --parallel=2

Each run is one of ``benchmarks.chaos`` with ``--faults=all`` and its own seed. Its
output is a file in FOLDER. A run whose file exists is not made
again, so you can end and start this program at any time. ``table.md`` in FOLDER has the
faults done to each run, and what differed. The status is 1 if anything did.
"""

import re
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.gail.expert import Expert, write_expert

PONG = "--env=PongNoFrameskip-v4 --network=mlp"  # its environments have workers
CASES = {
    "a2c": "--alg=a2c --env=CartPole-v1 --num_timesteps=30_000 --log_interval=10",
    "a2c_workers": f"--alg=a2c {PONG} --num_env=8 --num_timesteps=20_000 "
    "--log_interval=5",
    "a2c_ranks": "--alg=a2c --env=CartPole-v1 --ranks=2 --num_timesteps=30_000 "
    "--log_interval=10",
    "ppo2": "--alg=ppo2 --env=Pendulum-v1 --num_env=4 --nsteps=64 "
    "--num_timesteps=60_000",
    "ppo2_lstm": "--alg=ppo2 --env=CartPole-v1 --network=lstm --value_network=shared "
    "--num_env=4 --nsteps=64 --num_timesteps=30_000",
    "ppo2_workers": f"--alg=ppo2 {PONG} --nsteps=16 --num_timesteps=20_000 "
    "--log_interval=5",
    "ppo1": "--alg=ppo1 --env=Pendulum-v1 --timesteps_per_actorbatch=256 "
    "--num_timesteps=60_000",
    "acktr": "--alg=acktr --env=CartPole-v1 --num_timesteps=80_000 --log_interval=1",
    "trpo": "--alg=trpo --env=CartPole-v1 --timesteps_per_batch=256 "
    "--num_timesteps=60_000",
    "trpo_mpi": "--alg=trpo_mpi --env=Pendulum-v1 --num_env=4 "
    "--timesteps_per_batch=256 --num_timesteps=60_000",
    "gail": "--alg=gail --env=CartPole-v1 --timesteps_per_batch=256 "
    "--num_timesteps=60_000 --expert_path={folder}/expert.npz --pretrained "
    "--BC_max_iter=100",
    **{
        f"acer{suffix}": f"--alg=acer --env=CartPole-v1 --num_env=4{ranks} "
        "--num_timesteps=40_000 --replay_start=2000 --log_interval=20"
        for suffix, ranks in (("", ""), ("_ranks", " --ranks=2"))
    },
    **{
        alg: f"--alg={alg} --env=Pendulum-v1 --num_timesteps=20_000 --print_freq=1 "
        "--num_hidden=32 --batch_size=32"
        for alg in ("ddpg", "td3", "sac", "tqc", "crossq")
    },
    "sac_ranks": "--alg=sac --env=Pendulum-v1 --ranks=2 --num_timesteps=20_000 "
    "--print_freq=1 --num_hidden=32 --batch_size=32",
    # Pendulum has no goals, and returns below their range.
    "her": "--alg=her --env=Pendulum-v1 --replay_k=0 --clip_return=False "
    "--num_timesteps=20_000 --print_freq=1 --batch_size=32",
    "dqn": "--alg=dqn --env=CartPole-v1 --num_timesteps=20_000 --print_freq=5",
    "dqn_workers": f"--alg=dqn {PONG} --num_timesteps=20_000 --buffer_size=5000 "
    "--learning_starts=1000 --print_freq=1",
    "qrdqn": "--alg=qrdqn --env=CartPole-v1 --num_timesteps=10_000 --print_freq=5",
    "pqn": "--alg=pqn --env=CartPole-v1 --nsteps=16 --num_timesteps=80_000",
    "deepq": "--alg=deepq --env=CartPole-v1 --num_timesteps=10_000 --print_freq=5",
    "rainbow": "--alg=rainbow --env=CartPole-v1 --num_timesteps=10_000 --print_freq=5 "
    "--learning_starts=500",
}
INTERRUPTED = 130  # exit status
END = re.compile(r"^\d+ faults \((.*)\): nothing differs$", re.M)
COMPARED = re.compile(r"^rows of .*: (\d+),.*\nmonitor files: \d+, games: (\d+),", re.M)


def read_faults(path) -> Counter:
    """Returns how often each fault was injected; empty if the run differs or failed."""
    ended = END.search(path.read_text())
    pairs = ended[1].split(", ") if ended else []
    return Counter({k: int(v) for k, v in (pair.rsplit(" ", 1) for pair in pairs)})


def make_table(outputs) -> str:
    """Returns a table in Markdown of the cases whose outputs are in some files.

    Its columns are the runs of a case, how often each fault was done to those that did
    not differ, the rows and the games that were compared, and the runs that differ or
    failed.
    """
    runs = defaultdict(list)
    for path in sorted(outputs):
        runs[path.name.partition(".")[0]].append(path)
    counts = {name: sum(map(read_faults, x), Counter()) for name, x in runs.items()}
    kinds = sorted(sum(counts.values(), Counter()))
    lines = []
    for name, paths in runs.items():
        compared = [COMPARED.search(path.read_text()) for path in paths]
        rows, games = (sum(int(x[i]) for x in compared if x) for i in (1, 2))
        done = [counts[name][kind] for kind in kinds]
        differ = [path.stem for path in paths if not read_faults(path)]
        differ = ", ".join(differ) or "none"
        lines.append([name, len(paths), *done, rows, games, differ])
    totals = [sum(column) for column in list(zip(*lines))[1:-1]]
    lines.append(["all", *totals, ""])
    cells = ([f"{x:,}" if isinstance(x, int) else x for x in line] for line in lines)
    return markdown(
        ["case", "runs", *kinds, "rows", "games", "runs that differ"], cells
    )


def markdown(header, rows) -> str:
    """Returns a table in Markdown; all cells are text."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def make_run(folder, kills, seed, name) -> Path:
    """Runs ``benchmarks.chaos`` on a case, unless its output exists.

    Args:
        folder: where the expert data are and the output goes.
        kills: faults per run.
        seed: seed of the run.
        name: name of the case.

    Returns:
        the path of the file with its output.
    """
    path = folder / f"{name}.{seed}.txt"
    if not path.exists():
        words = shlex.split(CASES[name].format(folder=shlex.quote(str(folder))))
        words += [f"--kills={kills}", "--faults=all", f"--seed={seed}"]
        command = [sys.executable, "-m", "benchmarks.chaos", *words]
        run = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if run.returncode == INTERRUPTED:
            raise KeyboardInterrupt
        path.write_text(run.stdout)
    return path


def write_noise(path) -> None:
    """Writes random expert data for CartPole, so that GAIL can start."""
    rng = np.random.default_rng(0)
    obs, acs = rng.standard_normal((500, 4)), rng.integers(2, size=500)
    write_expert(path, Expert(obs, acs, None, None))


def make_faults(
    folder: Annotated[str, "folder for the outputs"],
    count: Annotated[arg.Count, "number of faults to inject, or a few more"] = 2000,
    kills: Annotated[arg.Count, "faults per run, and as many of its workers"] = 30,
    parallel: Annotated[arg.Count, "number of runs at a time"] = 1,
):
    """Injects faults into runs of all algorithms, and checks that nothing differs."""
    folder = Path(folder).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    write_noise(folder / "expert.npz")
    done, seed, differing = 0, 0, []
    with ThreadPoolExecutor(parallel) as pool:
        while done < count:
            before = done
            for path in pool.map(partial(make_run, folder, kills, seed), CASES):
                table = make_table(folder.glob("*.txt"))
                (folder / "table.md").write_text(table)
                faults = read_faults(path)
                done += faults.total()
                differing += [] if faults else [path.name]
                print(
                    f"{path.stem}: {faults.total()} faults; {done} in all", flush=True
                )
            if done == before:
                break  # All runs of this seed differ or failed.
            seed += 1
    print((folder / "table.md").read_text())
    if differing:
        print(f"see {', '.join(differing)}", file=sys.stderr)
        raise SystemExit(1)


def main(argv=None):
    """Injects the faults that the command line asks for."""
    cli.command(make_faults, argv)


if __name__ == "__main__":
    main()
