"""Trains standard tasks by their default commands, and says which are solved.

    python -m benchmarks.solved FOLDER                    trains what is missing
    python -m benchmarks.solved FOLDER 'ppo2/*'           only these
    python -m benchmarks.solved --write                   makes results/solved.md

Each run is named ALGORITHM/ENVIRONMENT/SEED, and is the command ``python -m
baselines.run --alg=ALGORITHM --env=ENVIRONMENT --seed=SEED``. It has a log folder below
FOLDER and, once finished, a line in results/solved.jsonl: its command and commit, agent
steps and minutes, learning curve, and the returns of games that ``baselines.evaluate``
played afterwards. The model of a task's best run is in results/agents. ``--jobs`` is
as in ``benchmarks.study``.
"""

import argparse
import collections
import fnmatch
import json
import math
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from threading import Lock

import gymnasium as gym

from baselines.common.arguments import cli
from baselines.common.base.errors import UserValueError
from benchmarks import study, tables
from benchmarks.faults import markdown

SEEDS = range(3)
GAMES = collections.defaultdict(
    # Where luck moves the mean of 100 games by more than the agents differ.
    lambda: 100,
    {"Blackjack-v1": 10_000, "FrozenLake-v1": 1000, "Taxi-v4": 1000},
)
DISCRETE = "a2c acer acktr deepq dqn ppo1 ppo2 pqn qrdqn rainbow trpo"
CONTINUOUS = "a2c acktr crossq ddpg ppo1 ppo2 sac td3 tqc trpo"
TASKS = {
    "CartPole-v1": DISCRETE,
    "Acrobot-v1": DISCRETE,
    "MountainCar-v0": DISCRETE,
    "LunarLander-v3": DISCRETE,
    "FrozenLake-v1": DISCRETE,
    "CliffWalking-v1": DISCRETE,
    "Taxi-v4": DISCRETE,
    "Blackjack-v1": DISCRETE,
    "Pendulum-v1": CONTINUOUS,
    "MountainCarContinuous-v0": CONTINUOUS,
    "LunarLanderContinuous-v3": CONTINUOUS,
    "BipedalWalker-v3": CONTINUOUS,
    "InvertedPendulum-v5": CONTINUOUS,
    "InvertedDoublePendulum-v5": CONTINUOUS,
    "Reacher-v5": CONTINUOUS,
    "Swimmer-v5": CONTINUOUS,
    "Hopper-v5": CONTINUOUS,
    "Walker2d-v5": CONTINUOUS,
    "HalfCheetah-v5": CONTINUOUS,
    "Ant-v5": CONTINUOUS,
    "Humanoid-v5": CONTINUOUS,
    "HumanoidStandup-v5": CONTINUOUS,
    "Pusher-v5": CONTINUOUS,
}
ZOO = "RL Baselines3 Zoo's"
SLM = "SLM-Lab's CrossQ, while training for 2 million steps"
# Mean scores that count as solved, and where they are from, for tasks for which
# Gymnasium has none, or one that is above the best possible: the Zoo's, or else the
# best published for this version of the task, as far as known.
THRESHOLDS = {
    "Pendulum-v1": (-172.2, f"{ZOO} PPO"),
    "Walker2d-v5": (4717.8, f"{ZOO} TD3, on v3"),
    "Humanoid-v5": (6232.3, f"{ZOO} SAC, on v3 after 2 million steps"),
    "HumanoidStandup-v5": (150_912.7, SLM),
    "Pusher-v5": (-37.08, SLM),  # Gymnasium's is 0, and all rewards are negative.
    "CliffWalking-v1": (-13, "the shortest way"),
    # By dynamic programming, the best are 7.93 and -0.0466; the standard errors of the
    # games played are 0.082 and 0.0095.
    "Taxi-v4": (7.85, "the best, less a standard error"),
    "Blackjack-v1": (-0.056, "the best, less a standard error"),
}
SECONDS = 900  # for the games of one model; if they do not end, its score is -inf
LOCK = Lock()


def threshold(task) -> tuple:
    """Returns (mean score from which a task is solved, its source)."""
    known = gym.spec(task).reward_threshold, "Gymnasium's"
    return THRESHOLDS.get(task, known)


def list_runs() -> list:
    """Returns a ``Study`` for each run, those of one seed after the other."""
    return [
        study.Study(f"{alg}/{task}/{seed}", f"--alg={alg} --env={task} --seed={seed}")
        for seed in SEEDS
        for task, algorithms in TASKS.items()
        for alg in algorithms.split()
    ]


def read() -> dict:
    """Returns what is known of the finished runs, by name."""
    path = tables.RESULTS / "solved.jsonl"
    lines = tables.read_lines(path) if path.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def finish(run, folder) -> None:
    """Evaluates a run, and adds its line to the results."""
    task = run.name.split("/")[1]
    command = [sys.executable, "-m", "baselines.evaluate", str(folder), "--json"]
    command += [f"--episodes={GAMES[task]}", "--seed=1000"]
    how = dict(check=True, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    try:
        found = json.loads(subprocess.run(command, **how).stdout)
    except subprocess.TimeoutExpired:  # CliffWalking's games have no limit.
        found = dict(deterministic=True, mean=-math.inf, std=0.0)
    record = tables.read_record(folder)
    curve = [
        [int(row["total_timesteps"]), round(float(row["eprewmean"]), 2)]
        for row in tables.read_rows(folder / "progress.csv")
        if row["eprewmean"] not in ("", "nan")
    ]
    last = tables.read_rows(folder / "progress.csv")[-1]
    row = {
        "name": run.name,
        "command": f"{run.program} {run.arguments}",
        "commit": " ".join(map(tables.short, record.commits)),
        "steps": int(last["total_timesteps"]),
        "minutes": round(float(last["time_elapsed"]) / 60, 2),
        "games": GAMES[task],
        "deterministic": found["deterministic"],
        "mean": found["mean"],
        "std": found["std"],
        "curve": curve[:: len(curve) // 50 + 1] + curve[-1:],
    }
    with LOCK:
        others = [x["mean"] for x in read().values() if x["name"].split("/")[1] == task]
        best = max(others, default=-math.inf)
        agent = tables.RESULTS / "agents" / task
        as_good = found["mean"] == best > -math.inf and not agent.exists()
        if found["mean"] > best or as_good:
            agent.mkdir(parents=True, exist_ok=True)
            for file in ("config.json", "model.safetensors"):
                shutil.copy(folder / file, agent)
        with (tables.RESULTS / "solved.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def lines_of(task, rows) -> list:
    """Returns a line of cells for each algorithm that was run, the best first.

    Args:
        task: id of the environment.
        rows: of its runs, as ``read`` returns them.
    """
    lines = []
    for alg in dict.fromkeys(row["name"].split("/")[0] for row in rows):
        runs = [row for row in rows if row["name"].split("/")[0] == alg]
        mean = statistics.mean(row["mean"] for row in runs)
        minutes = statistics.median(row["minutes"] for row in runs)
        line = [
            alg,
            ", ".join(f"{row['mean']:.4g}" for row in runs),
            f"{runs[0]['steps']:,}",
            f"{minutes:.1f}",
            verdict(mean, threshold(task)[0]),
        ]
        lines.append((-mean, minutes, line))
    return [line for *_, line in sorted(lines)]


def verdict(mean, limit) -> str:
    """Returns whether a mean score solves a task, or by how much it does not."""
    return "yes" if mean >= limit else f"{limit - mean:.3g} below"


def write() -> None:
    """Makes the page of results."""
    found = collections.defaultdict(list)
    for name, row in read().items():
        found[name.split("/")[1]].append(row)
    header = ["Algorithm", "Mean score of each seed", "Agent steps", "Minutes"]
    header, best, parts = [*header, "Solved"], [], []
    for task, algorithms in TASKS.items():
        (limit, source), lines = threshold(task), lines_of(task, found[task])
        first = lines[0] if lines else ["not run", "", "", "", ""]
        shown = f"{limit:g}, {source}"
        best.append([f"[{task}](#{task.lower()})" if lines else task, shown, *first])
        ran = [line[0] for line in lines]
        missing = [alg for alg in algorithms.split() if alg not in ran]
        not_run = f"\nNot run: {', '.join(missing)}.\n" * bool(missing)
        if lines:
            parts.append(f"\n## {task}\n\n{markdown(header, lines)}{not_run}")
    solved = sum(line[-1] == "yes" for line in best)
    (tables.RESULTS / "solved.md").write_text(
        "# Standard tasks by their default commands\n\n"
        "`python -m baselines.run --alg=ALGORITHM --env=TASK --seed=SEED`, then "
        "`python -m baselines.evaluate FOLDER --episodes=100 --seed=1000`, on one core "
        "(`python -m benchmarks.solved`); FrozenLake and Taxi are played 1,000 times, "
        "Blackjack 10,000; crossq on HalfCheetah was evaluated during training, too, "
        "and trained its policy with each step of the critics (`--policy_delay=1`). "
        "Some runs paused, or ran beside other programs, for some of their minutes. "
        "Solved means that the mean of the seeds shown reaches the "
        f"threshold: **{solved} of {len(TASKS)} tasks are solved** by at least one "
        "algorithm. Commits and learning curves are in "
        "`solved.jsonl`. Watch the best with `python -m baselines.play "
        "results/agents/LunarLander-v3`. The best of each:\n\n"
        f"{markdown(['Task', 'Threshold', *header], best)}{''.join(parts)}"
    )


def main(argv=None):
    """Trains what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.solved", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the logs")
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of runs")
    parser.add_argument("--write", action="store_true", help="make the page of results")
    parser.add_argument("--jobs", type=int, default=1, help="number of runs at a time")
    args = parser.parse_args(argv)
    if args.folder is not None:
        done = read()
        chosen = [
            run
            for run in list_runs()
            if run.name not in done
            and any(fnmatch.fnmatch(run.name, pattern) for pattern in args.patterns)
        ]
        study.train_all(chosen, args.folder, args.jobs, finish)
    elif not args.write:
        raise UserValueError("give a folder to train, or --write")
    if args.write:
        write()


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
