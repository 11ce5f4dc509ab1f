"""PPO2 on OpenAI Baselines' Mujoco1M: a million agent steps of seven tasks.

    python -m benchmarks.mujoco1m FOLDER           (needs pip install -e '.[mujoco]')

Trains what is missing in FOLDER, resumes what was interrupted, leaves what is finished,
and then writes results/mujoco1m.csv: for each task the mean return of the last 100
episodes of each seed, the mean of these, and the standard deviation of the episodes.
"""

import argparse
import csv
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

TABLE = Path(__file__).parents[1] / "results" / "mujoco1m.csv"
STEPS = 1_000_000
UPDATE = 2048  # agent steps
# OpenAI Baselines' Mujoco1M benchmark, at its commit ea68f3b: means over six seeds of
# the last 100 episodes, of the -v1 or -v2 of these tasks.
PUBLISHED = {
    "HalfCheetah-v4": 1668.58,
    "Hopper-v4": 2316.16,
    "Walker2d-v4": 3424.95,
    "InvertedDoublePendulum-v4": 7102.91,
    "InvertedPendulum-v4": 809.43,
    "Reacher-v4": -6.71,
    "Swimmer-v4": 111.19,
}
# Seed 0 of all tasks first, so that each has a result before any has a second.
RUNS = [(env, 0) for env in PUBLISHED]
RUNS += [(env, seed) for seed in (1, 2) for env in list(PUBLISHED)[:3]]


def steps_done(folder):
    """Returns the agent steps in the last row of a run's log, 0 if there is none."""
    try:
        with open(folder / "progress.csv", newline="") as file:
            return int(list(csv.DictReader(file))[-1]["total_timesteps"])
    except (OSError, IndexError, TypeError, ValueError):
        return 0  # Also where a kill left half a row.


def train(folder, env, seed):
    if steps_done(folder) == STEPS // UPDATE * UPDATE:
        return
    arguments = [
        "--alg=ppo2",
        f"--env={env}",
        f"--num_timesteps={STEPS}",
        f"--seed={seed}",
        f"--log_path={folder}",
    ]
    if any((folder / "checkpoints").glob("*.json")):
        arguments = [f"--resume={folder}"]
    command = [sys.executable, "-m", "baselines.run", *arguments]
    print(" ".join(command), flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def last_returns(folder):
    """Returns the returns of a run's last 100 episodes, in no order."""
    (monitor,) = folder.glob("*.monitor.csv")
    with open(monitor, newline="") as file:
        next(file)
        return [float(row["r"]) for row in csv.DictReader(file)][-100:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    folders = {(env, seed): args.folder / f"{env}_{seed}" for env, seed in RUNS}
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda run: train(folders[run], *run), RUNS))
    rows = []
    for env, published in PUBLISHED.items():
        returns = [last_returns(folders[run]) for run in RUNS if run[0] == env]
        means = [np.mean(x) for x in returns]
        rows.append(
            {
                "env": env,
                "seeds": len(returns),
                "mean": f"{np.mean(means):.1f}",
                "std_of_episodes": f"{np.std(np.concatenate(returns)):.1f}",
                "mean_of_each_seed": " ".join(f"{mean:.1f}" for mean in means),
                "openai_baselines": published,
            }
        )
    with open(TABLE, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
