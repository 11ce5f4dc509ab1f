"""Measures what training leaves behind: memory, files, threads, processes.

    python -m benchmarks.leaks --minutes=60        one run of 8 environments
    python -m benchmarks.leaks --calls=200         calls of learn() in one process

Prints the resident memory of this process at the start, after the first tenth and at
the end, and how many file descriptors, threads, processes and temporary files there are
before and after. The first tenth is a warm-up, in which memory is allocated once. With
``--calls``, several algorithms take turns. If anything grew, the exit status is 1.
Needs ``pip install psutil``.
"""

import gc
import os
import sys
import tempfile
import time
from typing import Annotated
from unittest import mock

import numpy as np
import psutil

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.arguments.discovery import find_algorithm, import_learn
from baselines.common.envs import make_vec_env

ALLOWED = 1.01  # times the memory of the second tenth
SETTINGS = {  # with which these algorithms train within a few agent steps
    "ppo2": dict(nsteps=64),
    "dqn": dict(learning_starts=100, buffer_size=1000, print_freq=1),
    "rainbow": dict(learning_starts=100, buffer_size=1000, print_freq=1),
}


def resident() -> float:
    """Returns the resident memory of this process in MB, after garbage collection."""
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def belongings() -> dict:
    """Returns how many of each kind of resource this process holds."""
    process = psutil.Process()
    return {
        "file descriptors": process.num_fds(),
        "threads": process.num_threads(),
        "processes": len(process.children(recursive=True)),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
    }


def train(alg, env, seed, num_timesteps, on_update=None) -> None:
    """Calls ``learn()`` of an algorithm, with a log folder and checkpoints."""
    folder = os.path.join(tempfile.gettempdir(), "log")
    learn = import_learn(find_algorithm(alg))
    venv = make_vec_env(env, num_env=8, seed=seed, num_workers=2, log_dir=folder)
    with logger.scoped_configure(folder, ["csv", "log"]), venv:
        learn(
            env=venv,
            seed=seed,
            network="mlp",
            total_timesteps=num_timesteps,
            overwrite=True,
            on_update=on_update,
            **SETTINGS.get(alg, {}),
        )


def measure_calls(algs, env, calls, num_timesteps) -> list:
    """Returns the memory in MB after each of many calls of ``learn()``."""
    memory = []
    for i in range(calls):
        train(algs[i % len(algs)], env, i, num_timesteps)
        memory.append(resident())
        print(f"call {i + 1}: {memory[-1]:.1f} MB", file=sys.stderr)
    return memory


def measure_minutes(alg, env, minutes) -> list:
    """Returns the memory in MB during one run, measured about once a second."""
    memory, begun = [], time.monotonic()

    def on_update(run):
        seconds = time.monotonic() - begun
        if seconds > len(memory):
            memory.append(resident())
        return seconds > 60 * minutes

    train(alg, env, 0, 10**9, on_update)
    return memory


def measure(
    *,
    algs: Annotated[str, "comma-separated algorithms to alternate"] = "a2c,ppo2,dqn",
    env: Annotated[str, "environment id"] = "CartPole-v1",
    calls: Annotated[arg.CountOrZero, "number of calls of learn()"] = 0,
    minutes: Annotated[arg.CountOrZero, "minutes of a run of the first algorithm"] = 1,
    num_timesteps: Annotated[arg.Count, "agent steps per call"] = 1000,
):
    """Measures what training leaves behind, in --calls or else in --minutes."""
    algs = algs.split(",")
    # No other program's temporary files are counted.
    with tempfile.TemporaryDirectory() as place, mock.patch("tempfile.tempdir", place):
        for alg in algs[: None if calls else 1]:  # TensorFlow's threads, modules.
            train(alg, env, 0, num_timesteps)
        before = belongings()
        if calls:
            memory = measure_calls(algs, env, calls, num_timesteps)
        else:
            memory = measure_minutes(algs[0], env, minutes)
        after = belongings()
    tenth = max(1, len(memory) // 10)
    second = np.median(memory[tenth : 2 * tenth])
    ratio = np.median(memory[-tenth:]) / second
    print(
        f"memory: {memory[0]:.1f} MB at first, {memory[tenth]:.1f} MB after a tenth, "
        f"{memory[-1]:.1f} MB at the end; the last tenth has {ratio:.4f} times that of "
        "the second"
    )
    for name, number in after.items():
        print(f"{name}: {before[name]} before, {number} after")
    if ratio > ALLOWED or any(after[name] > before[name] for name in before):
        raise SystemExit(1)


def main(argv=None):
    """Measures what the command line asks for."""
    cli.command(measure, argv)


if __name__ == "__main__":
    main()
