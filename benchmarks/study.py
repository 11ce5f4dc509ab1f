"""Makes the training runs behind results/: trains missing ones and saves the results.

    python -m benchmarks.study --list                  what is finished, and what not
    python -m benchmarks.study FOLDER                  trains all, one after the other
    python -m benchmarks.study FOLDER 'a2c_envs/*'     only these

``--jobs`` runs train at a time, with the lowest priority and, on Linux, each on its own
share of the cores, which is faster on Pong than one after another on all cores. Each
has a log folder below FOLDER, named as in ``RUNS``. An interrupted run is resumed. One
that has reached its end, or the agent steps or mean return at which it should stop, is
copied to results/, with the returns of all games in ``games.csv.gz``. ``python -m
benchmarks.tables write`` then fills in the tables of results/README.md. If a run fails,
no other is started. Finished runs, and those in ``CUT``, are only trained with
``--again``; results/ keeps what it has of them.
"""

import fnmatch
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from baselines.bench.monitor import PACKED, pack_monitors
from baselines.common.arguments import cli
from baselines.common.base.errors import UserValueError
from benchmarks import tables

POLL_SECONDS = 10
STOPPED = threading.Event()  # set when this program ends, to end its runs


class Study(NamedTuple):
    """One training run.

    Attributes:
        name: path of its folder, both below results/ and below FOLDER.
        arguments: arguments for ``program``.
        last_step: agent steps after which it is stopped, possibly before its schedules
            end; None to train to their end.
        above: mean return of 100 games above which it is stopped; None for never.
        program: the module that trains it.
    """

    name: str
    arguments: str
    last_step: int | None = None
    above: float | None = None
    program: str = "baselines.run"


PONG = "--env=PongNoFrameskip-v4"
MUJOCO_1M = (  # tasks of OpenAI Baselines' benchmark
    "HalfCheetah",
    "Hopper",
    "Walker2d",
    "InvertedDoublePendulum",
    "InvertedPendulum",
    "Reacher",
    "Swimmer",
)
SYSTEMS = {  # as in Maksim Lapan's study, with dqn's preset and rainbow's learning rate
    "dqn": "--alg=dqn",
    "n_step": "--alg=dqn --n_step=3",
    "double": "--alg=dqn --double_q",
    "noisy": "--alg=dqn --noisy",
    "prioritized": "--alg=dqn --prioritized_replay",
    "dueling": "--alg=dqn --dueling --hiddens=[256]",
    "categorical": "--alg=dqn --values=categorical --v_min=-5 --v_max=5",
    "rainbow": "--alg=rainbow",
    # As controls: longer returns, and the paper's range of returns.
    "rainbow_4_steps": "--alg=rainbow --n_step=4",
    "rainbow_5_steps": "--alg=rainbow --n_step=5",
    "rainbow_wide": "--alg=rainbow --v_min=-10 --v_max=10",
    # Noise right behind the convolutions, as in the paper.
    "rainbow_512": "--alg=rainbow --network=cnn --dense_layer=False --hiddens=[512]",
}
CUT = {  # runs that are not trained, or not to their end, and why
    "a2c_envs/4_seed_0": "its machine was lost; seed 1 was trained instead",
    "a2c_envs/16_seed_0": "results/a2c_pong/ten_million has 16 environments",
    "ppo2_clip/falling_4_envs_seed_0": "it learns later than with 8 environments",
    "systems/rainbow_4_steps_seed_0": "trained twice, see rainbow_4_steps_again_seed_0",
    "systems/rainbow_5_steps_seed_0": "it learns no sooner than with 4 steps",
    "systems/rainbow_512_seed_0": "it learns no sooner than with shared features",
    "systems/rainbow_wide_seed_0": "it learns later than with returns from -5 to 5",
    "systems/rainbow_less_noise_seed_1": "it learns later than with the paper's noise",
    "systems/rainbow_4_steps_falling_lr_seed_1": "18 had become out of its reach",
    "acer_pong/seed_0": "the last 400,000 steps would not change the comparison",
}


def studies() -> list:
    """Returns all runs, in the order in which they are trained."""
    found = []
    for num_env in (4, 8, 16, 2):
        command = f"--alg=a2c {PONG} --num_timesteps=1e7 --num_env={num_env} --seed=0"
        found.append(Study(f"a2c_envs/{num_env}_seed_0", command, 5_000_000, 15.0))
    command = f"--alg=a2c {PONG} --num_timesteps=1e7 --num_env=4 --seed=1"
    found.append(Study("a2c_envs/4_seed_1", command, 5_000_000, 15.0))
    command = f"--alg=a2c {PONG} --num_timesteps=1e7 --seed=0"
    sb3 = "benchmarks.train_sb3"
    found.append(Study("a2c_sb3/seed_0", command, 4_000_000, program=sb3))
    for clip, cliprange in {"falling": "linear:0.1", "constant": "0.1"}.items():
        for seed in (0, 1) if clip == "falling" else (0,):
            command = f"--alg=ppo2 {PONG} --num_timesteps=1e7 --seed={seed}"
            command += f" --cliprange={cliprange}"
            found.append(Study(f"ppo2_clip/{clip}_seed_{seed}", command, 3_000_000))
    # On as many environments as A2C's runs suggest that OpenAI Baselines had.
    command = f"--alg=ppo2 {PONG} --num_timesteps=1e7 --seed=0 --cliprange=linear:0.1"
    command += " --num_env=4"
    found.append(Study("ppo2_clip/falling_4_envs_seed_0", command, 3_000_000))
    for seed in (0, 1):
        for system, arguments in SYSTEMS.items():
            if seed and system not in ("dqn", "n_step", "rainbow", "rainbow_4_steps"):
                continue
            command = f"{arguments} {PONG} --num_timesteps=6e5 --seed={seed}"
            command += " --lr=2.5e-4 --precision=bfloat16"
            found.append(Study(f"systems/{system}_seed_{seed}", command, None, 18.0))
    command = f"--alg=rainbow --noisy_sigma=0.1 {PONG} --num_timesteps=6e5 --seed=1"
    command += " --lr=2.5e-4 --precision=bfloat16"
    found.append(Study("systems/rainbow_less_noise_seed_1", command, None, 18.0))
    # The paper's learning rate and its Adam's epsilon, one at a time.
    of_paper = {"lr": "--lr=6.25e-5", "epsilon": "--lr=2.5e-4 --adam_epsilon=1.5e-4"}
    for name, arguments in of_paper.items():
        command = f"--alg=rainbow {PONG} --num_timesteps=6e5 --seed=0 {arguments}"
        command += " --precision=bfloat16"
        found.append(Study(f"systems/rainbow_{name}_of_paper_seed_0", command, 150_000))
    for seed in (0, 1):
        command = f"--alg=rainbow {PONG} --num_timesteps=4e5 --n_step=4 --seed={seed}"
        command += " --lr=linear:3e-4 --precision=bfloat16"
        found.append(Study(f"systems/rainbow_4_steps_falling_lr_seed_{seed}", command))
    fast = f"--alg=dqn {PONG} --num_timesteps=1e6 --n_step=3 --double_q=True"
    fast += " --lr=2.5e-4 --exploration_fraction=0.05"
    for precision in ("bfloat16", "float32"):
        for seed in (0, 1):
            command = f"--alg=ppo2 {PONG} --num_timesteps=1200000 --seed={seed}"
            command += f" --precision={precision}"
            found.append(Study(f"precision/ppo2_{precision}_seed_{seed}", command))
        for seed in (0, 1):
            command = f"{fast} --seed={seed} --precision={precision}"
            name = f"precision/dqn_{precision}_seed_{seed}"
            found.append(Study(name, command, 500_000))
    fast = f"--alg=acktr {PONG} --num_timesteps=1.5e6 --width=0.5 --precision=bfloat16"
    fast += " --kfac_clip=0.003 --kfac_update=10 --log_interval=50"
    for name, ent_coef in {"fast": 0.003, "ent_coef_0.01": 0.01}.items():
        for seed in (0, 1):
            command = f"{fast} --ent_coef={ent_coef} --seed={seed}"
            found.append(Study(f"acktr_pong/{name}_seed_{seed}", command, above=18.5))
    command = f"--alg=acktr {PONG} --num_timesteps=1e7 --seed=0"
    found.append(Study("acktr_pong/preset_seed_0", command, 2_000_000))
    command = f"--alg=acer {PONG} --num_timesteps=1e7 --seed=0"
    found.append(Study("acer_pong/seed_0", command, 3_500_000))
    breakout = "--env=BreakoutNoFrameskip-v4 --seed=0"
    command = f"--alg=ppo2 {breakout} --num_timesteps=1e7 --cliprange=linear:0.1"
    found.append(Study("breakout/ppo2", command, 3_000_000))
    command = f"--alg=dqn {breakout} --num_timesteps=1.5e6"
    found.append(Study("breakout/dqn", command))
    for seed in (0, 1, 2):
        command = f"--alg=ppo2 --env=CartPole-v1 --num_timesteps=1e5 --seed={seed}"
        found.append(Study(f"cartpole/ppo2_seed_{seed}", command))
        for env in MUJOCO_1M[:3] if seed == 2 else MUJOCO_1M:
            command = f"--alg=ppo2 --env={env}-v4 --num_timesteps=1e6 --seed={seed}"
            found.append(Study(f"mujoco/{env}_seed_{seed}", command))
    for seed in (0, 1):
        for env in ("HalfCheetah", "Hopper", "Walker2d"):
            for alg in ("sac", "td3") if seed else ("sac", "td3", "ddpg", "trpo"):
                command = f"--alg={alg} --env={env}-v4 --num_timesteps=1e6"
                command += f" --seed={seed} --eval_interval=50_000"
                found.append(Study(f"continuous/{alg}_{env}_seed_{seed}", command))
    for env in ("Ant-v4", "Humanoid-v4", "HumanoidStandup-v4", "Pusher-v5"):
        for seed in (0, 1, 2):
            command = f"--alg=ppo2 --env={env} --num_timesteps=1e6 --seed={seed}"
            task = env.partition("-")[0]
            found.append(Study(f"solved/ppo2_{task}_seed_{seed}", command))
    for env, steps, every in (
        ("FetchReach", 20_000, 1_000),
        ("FetchPush", 1_200_000, 30_000),
    ):
        command = f"--alg=her --env={env}-v4 --num_timesteps={steps} --seed=0"
        command += f" --eval_interval={every} --eval_episodes=50"
        found.append(Study(f"robotics/her_{env}_seed_0", command))
    return found


RUNS = {study.name: study for study in studies()}


def progress(folder) -> tuple:
    """Returns agent steps and mean return of the last row of a log; 0 and NaN if none.

    Args:
        folder: the log folder.
    """
    path = folder / "progress.csv"
    rows = tables.read_rows(path) if path.exists() else []
    if not rows:
        return 0, float("nan")
    return int(rows[-1]["total_timesteps"]), float(rows[-1]["eprewmean"] or "nan")


def is_over(study, folder) -> bool:
    """Whether a run has reached its end, or the point at which it is stopped."""
    steps, mean = progress(folder)
    if study.last_step is not None and steps >= study.last_step:
        return True
    if study.above is not None and mean > study.above:
        return True
    return (folder / "model.safetensors").exists()


def shares_of_cores(jobs) -> list:
    """Returns the cores of each of ``jobs`` runs; empty sets where it cannot choose."""
    if not hasattr(os, "sched_getaffinity"):  # macOS
        return [set()] * jobs
    cores = sorted(os.sched_getaffinity(0))
    return [set(cores[i::jobs] or cores) for i in range(jobs)]


def train(study, folder) -> None:
    """Trains a run until it is over; resumes it if it was started before."""
    if is_over(study, folder):
        return
    arguments = [f"--log_path={folder}", *study.arguments.split()]
    if study.program == "baselines.run" and (folder / "config.json").exists():
        arguments = [f"--resume={folder}"]
    command = [sys.executable, "-m", study.program, *arguments]
    print(" ".join(command) + "\n", end="", flush=True)  # whole, beside others
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        os.setpriority(os.PRIO_PROCESS, process.pid, 19)
        while process.poll() is None and not is_over(study, folder):
            if STOPPED.wait(POLL_SECONDS):
                raise UserValueError(f"{study.name} was interrupted")
    finally:
        process.terminate()  # It saves a checkpoint, and ends.
        process.wait()
    if not is_over(study, folder):
        raise UserValueError(
            f"{study.name} ended with exit status {process.returncode}; see "
            f"{folder / 'log.txt'}"
        )


def is_kept(study) -> bool:
    """Whether results/ has what it is to have of a run."""
    return is_finished(study) or study.name in CUT


def finish(study, folder) -> None:
    """Copies a run to results/."""
    if is_kept(study):
        print(f"{study.name} stays in {folder}, as results/ has what it is to have")
        return
    games = pack_monitors(folder)
    tables.add(folder, tables.RESULTS / study.name)
    # Last, because a run with this file counts as finished.
    (tables.RESULTS / study.name / PACKED).write_bytes(games)


def is_finished(study) -> bool:
    """Whether a run is in results/."""
    return (tables.RESULTS / study.name / PACKED).exists()


def describe(study, folder=None) -> str:
    """Returns the line of ``--list`` for a run."""
    kept = tables.RESULTS / study.name
    if is_finished(study) and study.name not in CUT:
        state, log = "finished", kept
    elif folder is not None and (folder / study.name / "config.json").exists():
        state, log = "begun", folder / study.name
    elif (kept / "progress.csv").exists():
        state, log = "stopped early", kept
    else:
        state, log = "cut" if study.name in CUT else "missing", None
    if log is not None:
        steps, mean = progress(log)
        mean = tables.rounded(Decimal(str(mean)))  # as in the tables
        state += f" at {steps:,} agent steps, mean {mean}"
    reason = f" ({CUT[study.name]})" if study.name in CUT else ""
    return f"{study.name:<42} {state}{reason}"


def train_all(folder, patterns, jobs, again) -> None:
    """Trains the runs that match the patterns, unless results/ has them already.

    Args:
        folder: folder of the logs.
        patterns: of the names of runs.
        jobs: number of runs at a time.
        again: whether to train those as well that results/ has.
    """
    chosen = [
        study
        for study in RUNS.values()
        if any(fnmatch.fnmatch(study.name, pattern) for pattern in patterns)
        and (again or not is_kept(study))
    ]
    if not chosen:
        raise UserValueError(
            f"nothing to train: no run matches {' '.join(patterns)}, or all are "
            "finished or cut, see --list; --again trains those as well"
        )
    shares = iter(shares_of_cores(jobs))

    def stay_on_own_cores():
        if cores := next(shares):  # All processes that this thread starts inherit them.
            os.sched_setaffinity(0, cores)

    def run(study):
        if STOPPED.is_set():
            return
        try:
            train(study, folder / study.name)
            finish(study, folder / study.name)
        except BaseException:
            STOPPED.set()
            raise

    with ThreadPoolExecutor(jobs, initializer=stay_on_own_cores) as pool:
        running = [pool.submit(run, study) for study in chosen]
        try:
            for future in wait(running, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            STOPPED.set()
            pool.shutdown(cancel_futures=True)
            raise


def main(argv=None):
    """Trains or lists the runs that the command line asks for."""
    parser = cli.OneLineErrorParser(
        prog="python -m benchmarks.study", description=__doc__
    )
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the logs")
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of runs")
    parser.add_argument("--list", action="store_true", help="list all runs")
    parser.add_argument(
        "--again", action="store_true", help="train finished and cut runs as well"
    )
    parser.add_argument("--jobs", type=int, default=1, help="number of runs at a time")
    with cli.one_line_errors():
        args = parser.parse_args(sys.argv[1:] if argv is None else argv)
        if args.list:
            print(*(describe(x, args.folder) for x in RUNS.values()), sep="\n")
            return
        if args.folder is None:
            raise UserValueError("FOLDER is missing: where the logs are to be")
        if args.jobs < 1:
            raise UserValueError(f"--jobs has to be at least 1, received {args.jobs}")
        # So that the runs end as well, and save a checkpoint.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        train_all(args.folder, args.patterns, args.jobs, args.again)


if __name__ == "__main__":
    main()
