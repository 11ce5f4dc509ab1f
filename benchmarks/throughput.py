"""Measures an algorithm's speed, and the limit that its parts set on this machine.

``python -m benchmarks.throughput --alg=a2c`` measures in agent steps a second:

    env    the whole vectorised stack under random actions
    act    observations to the device, forward pass, sampling, actions back
    train  from a rollout's last step to new parameters, plus training done while the
           environments step
    loop   ``learn()`` as it is

    serial limit = 1 / (1 / env + 1 / act + 1 / train)

``train`` is timed inside ``learn()`` while its environment replays stored steps.
The parts are measured in turn, ``--repeats`` times, and the medians are reported.
Arguments of ``baselines.run`` that affect the measurements can be given as well. Run it
from the top folder of a checkout.
"""

import contextlib
import dataclasses
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from functools import partial
from typing import Annotated

import numpy as np

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base.errors import UserValueError
from baselines.common.base.mpi import available_cores
from baselines.common.envs.make import build_env
from baselines.common.run.parsing import parse
from baselines.common.saving.config import versions
from baselines.common.saving.files import check_writable
from baselines.common.vec_env import VecEnvWrapper
from benchmarks.options import parse_options
from benchmarks.peers import find_peers
from benchmarks.rates import Clock, rate_of_env

PEER_PACKAGES = "torch", "stable-baselines3", "sbx-rl"
TOTAL_TIMESTEPS = int(1e9)  # of learn(), which is stopped when time is up
NOT_MEASURED = {  # arguments of baselines.run that have no effect here
    f"--{name}"
    for name in (
        "eval_episodes",
        "eval_interval",
        "load_path",
        "log_path",
        "num_timesteps",
        "play",
        "resume",
        "save_path",
        "save_video_interval",
        "save_video_length",
        "stop_at",
        "worker_timeout",
    )
}


@dataclasses.dataclass
class Options:
    """The arguments that ``baselines.run`` lacks, or has no default for."""

    alg: Annotated[str, "algorithm (required)"]
    env: Annotated[str, "environment id"] = "PongNoFrameskip-v4"
    compare: Annotated[
        str | None,
        "also measure, on the same work: ours in float32 (float32), Stable-Baselines3 "
        "(sb3), its version in JAX (sbx), a PyTorch PPO on ALE's vectorised "
        "environment (torch), sb3 and torch tuned for speed on a CPU (sb3_best, "
        "torch_best), or that environment alone (ale); separate several with commas",
    ] = None
    json: Annotated[str | None, "JSON file for all figures"] = None
    seconds: Annotated[arg.Positive, "seconds per measurement"] = 10.0
    repeats: Annotated[arg.Count, "how many times to measure each rate"] = 3


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


def make_env(settings, **changes):
    """Returns the VecEnv of ``Settings``; ``changes`` are arguments of its own."""
    arguments = dict(
        num_env=settings.num_env,
        seed=settings.seed,
        reward_scale=settings.reward_scale,
        normalize_rewards=settings.normalize_rewards,
        gamestate=settings.gamestate,
        on_worker_failure=settings.on_worker_failure,
    )
    return build_env(settings.spec, settings.env_type, **arguments | changes)


class Bench:
    """An algorithm in an environment, with the settings of a command line.

    Every ``*_rate`` is in agent steps a second.

    Args:
        argv: arguments for ``baselines.run``.
        seconds: length of each measurement, without its warm-up.
        changes: arguments of ``learn()`` that override those.

    Attributes:
        settings: the ``Settings`` of the command line.
        learn_arguments: keywords for ``learn()``.
    """

    def __init__(self, argv, seconds, **changes):
        for word in argv:
            if word.split("=")[0] in NOT_MEASURED:
                raise UserValueError(
                    f"{word.split('=')[0]} has no effect on a measurement; leave it out"
                )
        self.argv = argv
        self.settings = settings = parse(argv)
        self.checkpoint_interval = settings.learn_arguments["checkpoint_interval"]
        self.learn_arguments = {
            **settings.learn_arguments,
            "total_timesteps": TOTAL_TIMESTEPS,
            "checkpoint_interval": 0,
            **changes,
        }
        self.seconds = seconds
        # Algorithms with a replay memory fill some of it before they train.
        self.first_steps = max(
            self.learn_arguments.get(name, 0)
            for name in ("learning_starts", "replay_start")
        )
        self.env = make_env(settings, log_dir=logger.get_dir())
        self.remembered = RememberedVecEnv(self.env)
        self.model = self._learn(self.remembered, lambda *_: True)

    def _learn(self, env, callback, **changes):
        return self.settings.learn(
            env=env,
            seed=self.settings.seed,
            callback=callback,
            **{**self.learn_arguments, "overwrite": True, **changes},
        )

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
        with counted_uploads() as uploaded:
            counts = []

            def callback(local_variables, global_variables):
                num_timesteps = local_variables["num_timesteps"]
                if num_timesteps > self.first_steps:
                    counts.append((sum(uploaded), num_timesteps))
                return len(counts) == 11

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

        with replaced(Checkpoints, "save", timed_save):
            interval = 100 * self.env.num_envs
            self._learn(
                self.env, lambda *_: len(seconds) > 4, checkpoint_interval=interval
            )
        return statistics.median(seconds)

    def replay_memory(self) -> dict:
        """Returns the costs of a full replay memory; {} for algorithms without one."""
        found = {}
        self._learn(self.remembered, lambda names, _: found.update(names) or True)
        if "memory" not in found:
            return {}
        memory, before = found["memory"], resident_bytes()
        if "batch_size" in self.learn_arguments:
            draw = partial(memory.sample, 1, self.learn_arguments["batch_size"])
        else:
            draw = partial(memory.sample_sequences, self.learn_arguments["nsteps"])
        obs, rewards, dones, _ = self.remembered.steps[0]
        actions = np.array([self.env.action_space.sample()] * self.env.num_envs)
        while len(memory) < self.learn_arguments["buffer_size"]:
            memory.add(actions, rewards, dones, obs, {}, [])
        grown, seconds = resident_bytes() - before, []
        for _ in range(100):
            start = time.perf_counter()
            draw()
            seconds.append(time.perf_counter() - start)
        return {
            "transitions": len(memory),
            "bytes": grown,
            "seconds_to_draw_a_batch": statistics.median(seconds),
            "seconds_to_write_a_transition": write_seconds(memory),
        }

    def worker_megabytes(self) -> list:
        """Returns the peak memory of every worker process."""
        return [peak_megabytes(pid) for pid in getattr(self.env, "worker_pids", [])]


def write_seconds(memory) -> float:
    """Returns seconds per transition to write checkpoint segments to the disk.

    The median of up to five segments; 0 for a memory that is smaller than one.
    """
    from baselines.common.saving.files import file_digest
    from baselines.common.saving.tensors import save_tensors

    seconds = []
    with tempfile.TemporaryDirectory(dir=logger.get_dir()) as folder:
        path = os.path.join(folder, "segment")
        for number in memory.segments()[:5]:
            start = time.perf_counter()
            save_tensors(path, memory.get_segment(number), {})
            file_digest(path)
            seconds.append(time.perf_counter() - start)
    transitions = memory.segment_rows * memory.num_envs
    return statistics.median(seconds) / transitions if seconds else 0.0


@contextlib.contextmanager
def replaced(owner, name, value):
    """Replaces an attribute inside a ``with`` block."""
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextlib.contextmanager
def counted_uploads():
    """Yields a list that collects the bytes of every array given to the backend."""
    import keras

    from baselines.common import backend

    uploaded = []

    def count(*arguments):
        leaves = keras.tree.flatten(arguments)
        uploaded.extend(x.nbytes for x in leaves if isinstance(x, np.ndarray))

    def to_device(array, original=backend.to_device):
        count(array)
        return original(array)

    def counted(compiler):
        def compile(fn, variables):
            compiled = compiler(fn, variables)

            def call(*arguments):
                count(*arguments)
                return compiled(*arguments)

            return call

        return compile

    with (
        replaced(backend, "to_device", to_device),
        replaced(backend, "compile", counted(backend.compile)),
        replaced(backend, "scan", counted(backend.scan)),
    ):
        yield uploaded


def resident_bytes() -> int:
    """Returns the resident memory of this process; 0 where there is no /proc."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def peak_megabytes(pid="self"):
    """Returns the peak memory of a process; None where there is no /proc."""
    try:
        with open(f"/proc/{pid}/status") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        return None


def measure(bench, repeats, peers=()) -> dict:
    """Measures everything in turn; returns the figures, rates as lists."""
    rates = {"env": [], "act": [], "train": [], "loop": []}
    peers = {peer: {name: [] for name in peer.measures} for peer in peers}
    for _ in range(repeats):
        for name, values in rates.items():
            values.append(getattr(bench, f"{name}_rate")())
            for peer, their_rates in peers.items():
                if name in their_rates:
                    their_rates[name].append(peer.rate(name))
    figures = {"agent_steps_per_second": rates}
    parts = [[1 / value for value in rates[name]] for name in ("env", "act", "train")]
    figures["serial_limit"] = [1 / sum(part) for part in zip(*parts)]
    figures["bytes_uploaded_per_agent_step"] = bench.bytes_uploaded()
    figures["peak_megabytes"] = peak_megabytes()
    figures["peak_megabytes_of_workers"] = bench.worker_megabytes()
    figures["checkpoint_seconds"] = bench.checkpoint_seconds()
    figures["checkpoint_interval"] = bench.checkpoint_interval
    figures["replay_memory"] = bench.replay_memory()
    figures["peers"] = [
        {"name": peer.name, "agent_steps_per_second": their_rates}
        for peer, their_rates in peers.items()
    ]
    return figures


def report(figures) -> str:
    """Returns the figures as a table, with the median of each rate."""
    rates = figures["agent_steps_per_second"]
    loop, limit = rates["loop"], figures["serial_limit"]
    median = statistics.median
    rows = [(name, f"{median(rates[name]):,.0f} steps/s") for name in rates]
    rows.insert(3, ("serial limit", f"{median(limit):,.0f} steps/s"))
    rows.append(("loop / serial limit", f"{median_ratio(loop, limit):.2f}"))
    for peer in figures["peers"]:
        for name, theirs in peer["agent_steps_per_second"].items():
            title = f"{name} of {peer['name']}"
            rows.append((title, f"{median(theirs):,.0f} steps/s"))
            rows.append(("ours / theirs", f"{median_ratio(rates[name], theirs):.2f}"))
    uploaded = figures["bytes_uploaded_per_agent_step"]
    rows.append(("uploaded", f"{uploaded:,.0f} bytes/step"))
    rows.append(("peak memory", f"{format_megabytes(figures['peak_megabytes'])}"))
    if workers := figures["peak_megabytes_of_workers"]:
        largest = None if None in workers else max(workers)
        rows.append(("largest worker", format_megabytes(largest)))
    seconds, interval = figures["checkpoint_seconds"], figures["checkpoint_interval"]
    memory = figures["replay_memory"]
    # The part of a replay memory that is new since the previous checkpoint.
    seconds += interval * memory.get("seconds_to_write_a_transition", 0)
    share = seconds * median(loop) / interval if interval else 0
    rows.append(("checkpoint", f"{seconds:.3f} s, {share:.2%} of the run's time"))
    if memory:
        size = f"{memory['bytes'] / 1e9:.2f} GB for {memory['transitions']:,}"
        rows.append(("replay memory", f"{size} transitions"))
        milliseconds = 1000 * memory["seconds_to_draw_a_batch"]
        rows.append(("drawing a batch", f"{milliseconds:.2f} ms"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def median_ratio(ours, theirs) -> float:
    """Returns the median of the ratios of measurements made one after the other."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


def format_megabytes(megabytes) -> str:
    return "unknown" if megabytes is None else f"{megabytes:,.0f} MB"


def main(argv=None):
    """Measures what the command line asks for, and prints the figures."""
    argv = sys.argv[1:] if argv is None else list(argv)
    program = "python -m benchmarks.throughput"
    with cli.one_line_errors(), tempfile.TemporaryDirectory() as folder:
        options, others = parse_options(Options, argv, program, __doc__)
        peers = find_peers(options.compare) if options.compare else []
        if options.json:
            check_writable(os.path.dirname(os.path.abspath(options.json)))
        with (
            logger.scoped_configure(folder, ["log", "csv"]),
            contextlib.ExitStack() as stack,
        ):
            argv_of_run = [f"--alg={options.alg}", f"--env={options.env}", *others]
            bench = Bench(argv_of_run, options.seconds)
            stack.callback(bench.close)
            for i, make_peer in enumerate(peers):
                peers[i] = make_peer(bench)
                stack.callback(peers[i].close)
            figures = measure(bench, options.repeats, peers)
        print(report(figures))
        if options.json:
            figures |= {
                "command": f"{program} {shlex.join(argv)}",
                "cores": available_cores(),
                "versions": versions(*PEER_PACKAGES),
                "settings": bench.learn_arguments,
            }
            with open(options.json, "w") as file:
                json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main()
