"""Measures loops, memory and resumed runs on a GPU.

    python -m benchmarks.gpu FOLDER                      measures what is missing
    python -m benchmarks.gpu FOLDER 'ppo2_*'             only these

Each measurement is a command of its own, the most important first: loops beside those
of PyTorch on the same work (``benchmarks.throughput``), with our memory, and runs that
are killed and resumed (``benchmarks.chaos``), whose weights have to be those of a run
without a kill. A command's output goes to FOLDER/NAME.txt, or FOLDER/NAME.failed.txt;
if it fails, the others are measured all the same. Needs ``pip install torch
stable-baselines3 psutil`` and the extras ``cuda`` and ``mujoco``.
"""

import argparse
import fnmatch
import subprocess
import sys
import time
from pathlib import Path

LOOP = "benchmarks.throughput --loop --repeats=2 --json={folder}/{name}.json"
RESUME = "benchmarks.chaos --kills=2 --env=PongNoFrameskip-v4"
OFF_POLICY = "--learning_starts=2000 --buffer_size=20_000"
COMMANDS = {
    "ppo2_64": f"{LOOP} --alg=ppo2 --num_env=64 --compare=torch,torch_best",
    "ppo2_256": f"{LOOP} --alg=ppo2 --num_env=256 --compare=torch,torch_best",
    "a2c_64": f"{LOOP} --alg=a2c --num_env=64 --compare=sb3_best",
    "dqn_8": f"{LOOP} --alg=dqn {OFF_POLICY} --compare=sb3_best",
    "sac_4": f"{LOOP} --alg=sac --env=HalfCheetah-v5 {OFF_POLICY} --compare=sb3",
    "ppo2_resumed": f"{RESUME} --alg=ppo2 --num_timesteps=20_480 --log_interval=1",
    "dqn_resumed": f"{RESUME} --alg=dqn {OFF_POLICY} --num_timesteps=6000",
    "ppo2_8": f"{LOOP} --alg=ppo2 --compare=torch,torch_best",
    "ppo2_64_bfloat16": f"{LOOP} --alg=ppo2 --num_env=64 --precision=bfloat16 "
    "--compare=torch_best",
    # Without Stable-Baselines3, which would start 256 processes.
    "a2c_256": f"{LOOP} --alg=a2c --num_env=256",
}


def main(argv=None):
    """Runs the commands whose output is missing; the status is 1 if one fails."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("folder", type=Path, help="for figures and outputs")
    parser.add_argument("names", nargs="?", default="*", help="of what to measure")
    parser.add_argument("--seconds", type=float, default=8.0, help="per loop")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    chosen, failed = fnmatch.filter(COMMANDS, options.names), False
    if not chosen:
        parser.error(
            f"nothing has the name {options.names}; {', '.join(COMMANDS)} have"
        )
    for name in chosen:
        output = options.folder / f"{name}.txt"
        if output.exists():
            continue
        names = dict(folder=options.folder, name=name)
        words = [word.format(**names) for word in COMMANDS[name].split()]
        if "--loop" in words:
            words.append(f"--seconds={options.seconds}")
        began = time.monotonic()
        unfinished = output.with_suffix(".failed.txt")
        with open(unfinished, "w") as file:
            status = subprocess.call(
                [sys.executable, "-m", *words], stdout=file, stderr=subprocess.STDOUT
            )
        print(f"{name}: {time.monotonic() - began:.0f} s, status {status}")
        print(unfinished.read_text(), flush=True)
        if status:
            failed = True
        else:
            unfinished.rename(output)
    sys.exit(failed)


if __name__ == "__main__":
    main()
