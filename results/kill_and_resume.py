"""Kills a Pong run with SIGKILL at random moments, resumes it, and compares.

    python results/kill_and_resume.py

One run goes through. The other, with the same arguments, is killed ten times and
resumed each time, every other time with five worker processes in place of one for each
core. Both must have the same rows in progress.csv (but for fps), the same episodes in
the monitor files (but for their times) and the same final weights, bit for bit.
"""

import argparse
import csv
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = """
from baselines.common.vec_env import subproc_vec_env
from baselines.run import main

workers = {workers}
if workers is not None:
    subproc_vec_env.available_cores = lambda: workers
main({arguments})
"""
ARGUMENTS = [
    "--alg=a2c",
    "--env=PongNoFrameskip-v4",
    "--seed=0",
    "--log_interval=5",
    "--checkpoint_interval=2000",
]


def progress(folder):
    with open(folder / "progress.csv", newline="") as file:
        return [
            {k: v for k, v in row.items() if k != "fps"} for row in csv.DictReader(file)
        ]


def episodes(folder):
    return {
        path.name: [line.split(",")[:2] for line in path.read_text().splitlines()[1:]]
        for path in sorted(folder.glob("*.monitor.csv"))
    }


def weights(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def start(arguments, workers=None):
    program = RUN.format(arguments=arguments, workers=workers)
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)


def run_and_kill(folder, arguments, kills, rng):
    """Runs to the end through ``kills`` SIGKILLs; prints where each one struck."""
    arguments = [*arguments, f"--log_path={folder}"]
    for kill in range(kills):
        workers = None if kill % 2 == 0 else 5
        rows_before = count_rows(folder)
        process = start(arguments, workers)
        while count_rows(folder) <= rows_before and process.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 4))
        if process.poll() is not None:
            raise SystemExit(
                f"the run ended before kill {kill + 1}; give it more steps"
            )
        process.send_signal(signal.SIGKILL)
        process.wait()
        print(
            f"kill {kill + 1}: workers {workers or 'as cores'}, row "
            f"{count_rows(folder)}, newest checkpoint at {newest_checkpoint(folder)} "
            "agent steps",
            flush=True,
        )
        arguments = [f"--resume={folder}"]
    if start(arguments).wait() != 0:
        raise SystemExit("the last part failed")


def count_rows(folder):
    """Rows of progress.csv; resuming cuts it back first, so it counts from there."""
    path = folder / "progress.csv"
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


def newest_checkpoint(folder):
    names = [path.stem for path in (folder / "checkpoints").glob("*.json")]
    return int(max(names)) if names else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--num_timesteps", type=int, default=80_000)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    args = parser.parse_args()
    arguments = [*ARGUMENTS, f"--num_timesteps={args.num_timesteps}"]
    print("python -m baselines.run", *arguments, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        whole, cut = Path(temporary, "whole"), Path(temporary, "cut")
        process = start([*arguments, f"--log_path={whole}"])
        if process.wait() != 0:
            raise SystemExit("the whole run failed")
        run_and_kill(cut, arguments, args.kills, random.Random(args.seed))
        rows, cut_rows = progress(whole), progress(cut)
        differing = sum(a != b for a, b in zip(rows, cut_rows))
        differing += abs(len(rows) - len(cut_rows))
        print(f"rows of progress.csv: {len(rows)}, differing: {differing}")
        games, cut_games = episodes(whole), episodes(cut)
        count = sum(len(lines) - 1 for lines in games.values())
        print(
            f"monitor files: {len(games)}, games: {count}, equal: {games == cut_games}"
        )
        print(f"final weights equal: {weights(whole) == weights(cut)}")
        if differing or games != cut_games or weights(whole) != weights(cut):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
