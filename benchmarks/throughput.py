"""Measures an algorithm's speed, and the limit that its parts set on this machine.

``python -m benchmarks.throughput --alg=a2c`` measures in agent steps a second:

    env    the whole vectorised stack under random actions
    act    observations to the device, forward pass, sampling, actions back
    train  from a rollout's last step to new parameters, plus training done while the
           environments step
    loop   ``learn()`` as it is

    serial limit = 1 / (1 / env + 1 / act + 1 / train)

``--loop`` measures the loop only. ``--cores`` measures what one run makes of all cores:
the speed of its loop, divided by that of as many runs as there are cores, each on one,
together.

``train`` is timed inside ``learn()`` while its environment replays stored steps.
The parts are measured in turn, ``--repeats`` times, and the medians are reported.
Other arguments are those of ``baselines.run``. Run it from a checkout's top folder.
"""

import argparse
import contextlib
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.base.mpi import available_cores
from baselines.common.envs.make import build_env
from baselines.common.envs.registry import find_spec
from baselines.common.run.command_line import read_arguments
from baselines.common.saving.config import versions
from baselines.common.vec_env import VecEnvWrapper
from benchmarks.peers import PEERS
from benchmarks.rates import Clock, rate_of_env

PEER_PACKAGES = "torch", "stable-baselines3", "sbx-rl"
TOTAL_TIMESTEPS = int(1e9)  # of learn(), which is stopped when time is up


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments that ``baselines.run`` lacks."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.throughput", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--alg", required=True, help="algorithm")
    parser.add_argument("--env", default="PongNoFrameskip-v4", help="environment id")
    parser.add_argument(
        "--compare", default="", help=f"with one or several of {','.join(PEERS)}"
    )
    parser.add_argument("--cores", action="store_true", help="the use of all cores")
    parser.add_argument("--loop", action="store_true", help="the loop's speed only")
    parser.add_argument("--json", help="JSON file for all figures")
    parser.add_argument("--seconds", type=float, default=10.0, help="per measurement")
    parser.add_argument("--repeats", type=int, default=3, help="times to measure each")
    return parser


class RememberedVecEnv(VecEnvWrapper):
    """Replays stored steps of another VecEnv, so that stepping costs nothing.

    Args:
        env: the VecEnv, which is stepped under random actions.
        num_steps: how many of its steps to store.
    """

    keeps_observations = True

    def __init__(self, env, num_steps=32):
        super().__init__(env)
        self.first_obs = env.reset()
        self.steps = []
        for _ in range(num_steps):
            actions = [env.action_space.sample() for _ in range(env.num_envs)]
            self.steps.append(env.step(np.array(actions)))
        self.count = 0
        self.step_began = self.step_ended = None
        self.meanwhile = 0.0  # seconds between the two, summed over steps

    def reset(self):
        return self.first_obs

    def step_async(self, actions):
        self.count += 1
        self.step_began = time.perf_counter()

    def step_wait(self):
        self.step_ended = time.perf_counter()
        self.meanwhile += self.step_ended - self.step_began
        return self.steps[self.count % len(self.steps)]


def make_env(arguments, **changes):
    """Returns the VecEnv of a command line; ``changes`` are arguments of its own."""
    names = "num_env", "seed", "reward_scale", "gamestate"
    kept = {name: arguments[name] for name in (*names, "on_worker_failure")}
    spec = find_spec(arguments["env"])
    return build_env(spec, arguments["env_type"], **kept | changes)


class Bench:
    """An algorithm in an environment, with the settings of a command line.

    Every ``*_rate`` is in agent steps a second.

    Args:
        argv: arguments for ``baselines.run``.
        seconds: length of each measurement, without its warm-up.

    Attributes:
        arguments: the ``Arguments`` of the command line.
        learn_arguments: keywords for ``learn()``.
    """

    def __init__(self, argv, seconds):
        self.arguments = arguments = read_arguments(argv)
        self.checkpoint_interval = arguments["checkpoint_interval"]
        self.learn_arguments = {
            **arguments.learn_arguments,
            "total_timesteps": TOTAL_TIMESTEPS,
            "checkpoint_interval": 0,
        }
        self.seconds = seconds
        # Algorithms with a replay memory fill some of it before they train.
        self.first_steps = max(
            self.learn_arguments.get(name, 0)
            for name in ("learning_starts", "replay_start")
        )
        self.env = make_env(arguments, log_dir=logger.get_dir())
        self.remembered = RememberedVecEnv(self.env)
        self.model = self._learn(self.remembered, lambda *_: True)

    def _learn(self, env, callback, **changes):
        changes = {"overwrite": True, "callback": callback, **changes}
        return self.arguments.learn(env=env, **{**self.learn_arguments, **changes})

    def close(self):
        self.env.close()

    def env_rate(self) -> float:
        return rate_of_env(self.env, self.seconds)

    def act_rate(self) -> float:
        from baselines.common import backend

        batches = [obs for obs, *_ in self.remembered.steps]
        clock, count = Clock(self.seconds), 0
        while not clock.is_over(count * self.env.num_envs):
            self.model.step(backend.to_device(batches[count % len(batches)]))
            count += 1
        return clock.rate

    def train_rate(self) -> float:
        clock, training = Clock(self.seconds, self.first_steps), []

        def callback(local_variables, global_variables):
            env = self.remembered
            training.append(time.perf_counter() - env.step_ended + env.meanwhile)
            env.meanwhile = 0.0
            if not clock.warm:
                training.clear()
            return clock.is_over(local_variables["num_timesteps"])

        self._learn(self.remembered, callback)
        return clock.steps / sum(training)

    def loop_rate(self) -> float:
        clock = Clock(self.seconds, self.first_steps)
        self._learn(self.env, lambda names, _: clock.is_over(names["num_timesteps"]))
        return clock.rate

    def bytes_uploaded(self) -> float:
        """Returns the bytes copied to the device per agent step."""
        counts = []

        def callback(local_variables, global_variables):
            num_timesteps = local_variables["num_timesteps"]
            if num_timesteps > self.first_steps:
                counts.append((sum(uploaded), num_timesteps))
            return len(counts) == 11

        with counted_uploads() as uploaded:
            self._learn(self.remembered, callback)
        (first_bytes, first_step), *_, (last_bytes, last_step) = counts
        return (last_bytes - first_bytes) / (last_step - first_step)

    def checkpoint_seconds(self) -> float:
        """Returns the seconds to save a checkpoint, the median of five.

        A checkpoint has the actions of the current episodes and so takes a little more
        time later in an episode; these five are saved 100 to 500 steps into theirs.
        """
        from baselines.common.saving.checkpoints import Checkpoints

        seconds, save = [], Checkpoints.save

        def timed_save(*args):
            start = time.perf_counter()
            save(*args)
            seconds.append(time.perf_counter() - start)

        with mock.patch.object(Checkpoints, "save", timed_save):
            interval = 100 * self.env.num_envs
            self._learn(
                self.env, lambda *_: len(seconds) > 4, checkpoint_interval=interval
            )
        return statistics.median(seconds)

    def replay_memory(self) -> dict:
        """Returns the costs of a full replay memory; {} for algorithms without one."""
        seen = {}
        self._learn(self.remembered, lambda names, _: seen.update(names) or True)
        if "memory" not in seen:
            return {}
        memory, before = seen["memory"], megabytes("VmRSS")
        if "batch_size" in self.learn_arguments:
            draw = partial(memory.sample, 1, self.learn_arguments["batch_size"])
        else:
            draw = partial(memory.sample_sequences, self.learn_arguments["nsteps"])
        obs, rewards, dones, _ = self.remembered.steps[0]
        actions = np.array([self.env.action_space.sample()] * self.env.num_envs)
        while len(memory) < self.learn_arguments["buffer_size"]:
            memory.add(actions, rewards, dones, obs, {}, [])
        return {
            "transitions": len(memory),
            "bytes": (megabytes("VmRSS") - before) * 2**20,
            "seconds_to_draw_a_batch": median_seconds([draw] * 100),
            "seconds_to_write_a_transition": write_seconds(memory),
        }


def median_seconds(functions) -> float:
    """Returns the median of the seconds that some calls take; 0 for none."""
    seconds = [0.0] if not functions else []
    for function in functions:
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def write_seconds(memory) -> float:
    """Returns seconds per transition to write checkpoint segments to the disk.

    The median of up to five segments; 0 for a memory that is smaller than one.
    """
    from baselines.common.saving.files import file_digest
    from baselines.common.saving.tensors import save_tensors

    with tempfile.TemporaryDirectory(dir=logger.get_dir()) as folder:
        path = os.path.join(folder, "segment")

        def write(number):
            save_tensors(path, memory.get_segment(number), {})
            file_digest(path)

        seconds = median_seconds([partial(write, n) for n in memory.segments()[:5]])
    return seconds / (memory.segment_rows * memory.num_envs)


@contextlib.contextmanager
def counted_uploads():
    """Yields a list that collects the bytes of every array given to the backend."""
    import keras

    from baselines.common import backend

    uploaded = []

    def count(*arguments):
        leaves = keras.tree.flatten(arguments)
        uploaded.extend(x.nbytes for x in leaves if isinstance(x, np.ndarray))

    def counted(function):
        def call(*arguments):
            count(*arguments)
            return function(*arguments)

        return call

    def compiling(compiler):
        return lambda fn, *how, **more: counted(compiler(fn, *how, **more))

    with (
        mock.patch.object(backend, "to_device", counted(backend.to_device)),
        mock.patch.object(backend, "compile", compiling(backend.compile)),
        mock.patch.object(backend, "scan", compiling(backend.scan)),
    ):
        yield uploaded


def megabytes(field="VmHWM") -> float:
    """Returns the peak (VmHWM) or resident (VmRSS) memory of this process.

    NaN where there is no /proc.
    """
    path = Path("/proc/self/status")
    match = path.exists() and re.search(rf"{field}:\s+(\d+)", path.read_text())
    return int(match[1]) / 1024 if match else math.nan


def gpu_megabytes() -> dict:
    """Returns the peak of TensorFlow's memory on the first GPU; {} without one."""
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return {}
    peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    return {"peak_gpu_megabytes": peak / 2**20}


def measure_rates(bench, names, repeats, peers=()) -> dict:
    """Measures rates in turn with those of peers; returns them as lists, and memory."""
    rates = {name: [] for name in names}
    peers = {
        peer: {name: [] for name in peer.measures if name in rates} for peer in peers
    }
    for _ in range(repeats):
        for name, values in rates.items():
            values.append(getattr(bench, f"{name}_rate")())
            for peer, their_rates in peers.items():
                if name in their_rates:
                    their_rates[name].append(peer.rate(name))
    return gpu_megabytes() | {
        "agent_steps_per_second": rates,
        "peak_megabytes": megabytes(),
        "peers": [
            {"name": peer.name, "agent_steps_per_second": their_rates}
            for peer, their_rates in peers.items()
        ],
    }


def measure(bench, repeats, peers=()) -> dict:
    """Measures everything; returns the figures, rates as lists."""
    figures = measure_rates(bench, ("env", "act", "train", "loop"), repeats, peers)
    rates = figures["agent_steps_per_second"]
    parts = zip(rates["env"], rates["act"], rates["train"])
    return figures | {
        "serial_limit": [1 / sum(1 / rate for rate in part) for part in parts],
        "bytes_uploaded_per_agent_step": bench.bytes_uploaded(),
        "checkpoint_seconds": bench.checkpoint_seconds(),
        "checkpoint_interval": bench.checkpoint_interval,
        "replay_memory": bench.replay_memory(),
    }


def report(figures) -> str:
    """Returns the figures as a table, with the median of each rate."""
    rates = figures["agent_steps_per_second"]
    rows = [(name, steps(values)) for name, values in rates.items()]
    for peer in figures["peers"]:
        for name, theirs in peer["agent_steps_per_second"].items():
            rows.append((f"{name} of {peer['name']}", steps(theirs)))
            rows.append(("ours / theirs", ratio(rates[name], theirs)))
    rows.append(("peak memory", f"{figures['peak_megabytes']:,.0f} MB"))
    if "peak_gpu_megabytes" in figures:
        rows.append(("on the GPU", f"{figures['peak_gpu_megabytes']:,.0f} MB"))
    if "serial_limit" in figures:
        rows += rows_of_costs(figures)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def rows_of_costs(figures) -> list:
    """Returns rows of what ``measure`` adds to ``measure_rates``."""
    loop, limit = figures["agent_steps_per_second"]["loop"], figures["serial_limit"]
    rows = [("serial limit", steps(limit)), ("loop / serial limit", ratio(loop, limit))]
    uploaded = figures["bytes_uploaded_per_agent_step"]
    rows.append(("uploaded", f"{uploaded:,.0f} bytes/step"))
    seconds, interval = figures["checkpoint_seconds"], figures["checkpoint_interval"]
    memory = figures["replay_memory"]
    # The part of a replay memory that is new since the previous checkpoint.
    seconds += interval * memory.get("seconds_to_write_a_transition", 0)
    share = seconds * statistics.median(loop) / interval if interval else 0
    rows.append(("checkpoint", f"{seconds:.3f} s, {share:.2%} of the run's time"))
    if memory:
        size = f"{memory['bytes'] / 1e9:.2f} GB for {memory['transitions']:,}"
        rows.append(("replay memory", f"{size} transitions"))
        milliseconds = 1000 * memory["seconds_to_draw_a_batch"]
        rows.append(("drawing a batch", f"{milliseconds:.2f} ms"))
    return rows


def steps(rates) -> str:
    return f"{statistics.median(rates):,.0f} steps/s"


def ratio(ours, theirs) -> str:
    """Returns the median of the ratios of measurements made one after the other."""
    return f"{statistics.median(a / b for a, b in zip(ours, theirs)):.2f}"


def loop_rates(argv, groups) -> list:
    """Returns the speeds of loops at the same time, each on its group of cores."""
    command = [sys.executable, "-m", "benchmarks.throughput", "--loop", *argv]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, str(number)) for number in range(len(groups))]
        processes = [
            subprocess.Popen(
                [*command, f"--json={file}", "--repeats=1"],
                stdout=subprocess.DEVNULL,
                preexec_fn=partial(os.sched_setaffinity, 0, group),
            )
            for file, group in zip(files, groups)
        ]
        for process in processes:
            process.wait()
        figures = [json.loads(file.read_text()) for file in files]
    return [each["agent_steps_per_second"]["loop"][0] for each in figures]


def compare_cores(argv, repeats) -> dict:
    """Measures one run on all cores, and runs on one core each together, in turn."""
    cores = sorted(os.sched_getaffinity(0))[: available_cores()]
    one, several = [], []
    for _ in range(repeats):
        one += loop_rates(argv, [cores])
        several.append(sum(loop_rates(argv, [{core} for core in cores])))
    print(f"one run on {len(cores)} cores  {steps(one)}")
    print(f"one on each core    {steps(several)} together")
    print(f"ratio               {ratio(one, several)}")
    return {"one_run": one, "one_on_each_core": several}


def write(path, figures) -> None:
    """Writes figures as JSON, if there is a path."""
    if path:
        Path(path).write_text(json.dumps(figures, indent=2))


def main(argv=None):
    """Measures what the command line asks for, and prints the figures."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser()
    options, others = parser.parse_known_args(argv)
    names = [name.strip() for name in options.compare.split(",") if name]
    if unknown := set(names) - PEERS.keys():
        parser.error(f"--compare is one of {', '.join(PEERS)}, received {unknown}")
    about = {
        "command": f"{parser.prog} {shlex.join(argv)}",
        "cores": available_cores(),
        "versions": versions(*PEER_PACKAGES),
    }
    words = [f"--alg={options.alg}", f"--env={options.env}", *others]
    if options.cores:
        if names or options.loop:
            parser.error("--compare and --loop have no effect with --cores")
        words.append(f"--seconds={options.seconds}")
        write(options.json, compare_cores(words, options.repeats) | about)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        logger.scoped_configure(folder, ["log", "csv"]),
        contextlib.ExitStack() as stack,
    ):
        bench = stack.enter_context(contextlib.closing(Bench(words, options.seconds)))
        peers = [
            stack.enter_context(contextlib.closing(PEERS[name](bench)))
            for name in names
        ]
        if options.loop:
            figures = measure_rates(bench, ["loop"], options.repeats, peers)
        else:
            figures = measure(bench, options.repeats, peers)
    print(report(figures))
    write(options.json, figures | about | {"settings": bench.learn_arguments})


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
