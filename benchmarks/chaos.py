"""Kills a training run at random moments, and compares it with an undisturbed one.

    python -m benchmarks.chaos --alg=a2c --kills=20
    python -m benchmarks.chaos --alg=a2c --kills=20 --faults=all

The first run is not disturbed. The second has the same arguments, but is killed with
SIGKILL at random moments and resumed each time. It must end with the same rows of
progress.csv (all columns but ``fps`` and ``time_elapsed``), the same games in its
monitor files (all columns but the time) and the same final weights, bit for bit. The
third loses a random worker process at each of as many moments and has to continue by
itself. With ``--ranks=2`` there are only the first two runs, with two MPI ranks each. A
kill then hits one rank at random, and the others have to end as well.

With ``--faults=all``, a run of one rank gets a random fault each time: SIGKILL, SIGKILL
and damage to the newest checkpoint, SIGTERM, two SIGINTs, or a pause (SIGSTOP and
SIGCONT). A worker is killed, or stopped forever.

All other arguments are passed to ``baselines.run``. Unless ``--checkpoint_interval`` is
given, there are at least four checkpoints per kill. Each kill waits for a new one, so
that every resume is from a different checkpoint. Needs ``pip install psutil``.
"""

import argparse
import contextlib
import csv
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from baselines.common.arguments import cli
from baselines.common.base.errors import UserError
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.tensors import load_tensors

END_SECONDS = 60  # for a run to end, or all ranks after one; enough on a busy machine
PAUSE_SECONDS = 0.5
WORKER_TIMEOUT = 10  # seconds, if workers are stopped; new ones start in less
STALL_SECONDS = 1800  # without a new checkpoint until a run counts as stuck
IGNORED = {"fps", "time_elapsed"}  # columns that depend on time


class Failure(UserError):
    """A run did not do what it should after a fault."""


def count(text) -> int:
    return int(float(text))


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments that ``baselines.run`` lacks."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chaos", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--alg", required=True, help="algorithm")
    parser.add_argument("--env", default="PongNoFrameskip-v4", help="environment id")
    parser.add_argument("--kills", type=count, default=20, help="faults per run")
    parser.add_argument("--num_timesteps", type=count, default=100_000)
    parser.add_argument("--faults", choices=["kill", "all"], default="kill")
    parser.add_argument("--ranks", type=count, default=1, help="MPI ranks; 1: no MPI")
    parser.add_argument("--seed", type=int, default=0, help="of the runs and faults")
    parser.add_argument(
        "--checkpoint_interval",
        type=count,
        help="agent steps (default: num_timesteps // (4 * kills + 8))",
    )
    return parser


class Run:
    """A training run in processes of its own, with all its files in one folder.

    Args:
        arguments: for ``baselines.run``, without the folder.
        folder: where its files are.
        ranks: number of MPI ranks; 1 for no MPI.
    """

    def __init__(self, arguments, folder, ranks=1):
        self.arguments = [*arguments, f"--log_path={folder}"]
        self.folder = folder
        self.errors = Path(f"{folder}.stderr")
        self.ranks = ranks
        self.process = None

    def start(self) -> None:
        """Starts the run, or resumes it."""
        arguments = self.arguments
        if (self.folder / "config.json").exists():
            arguments = [f"--resume={self.folder}", "--trust"]
        command = [sys.executable, "-m", "baselines.run", *arguments]
        if self.ranks > 1:
            command = ["mpiexec", "-n", str(self.ranks), *command]
        environ = {k: v for k, v in os.environ.items() if k != "OPENAI_LOG_FORMAT"}
        beside = os.path.dirname(sys.executable)  # where pip installs mpiexec
        environ["PATH"] = os.pathsep.join([beside, environ["PATH"]])
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, env=environ
            )

    def wait_until(self, condition) -> None:
        """Waits until ``condition()`` is true or the run has ended.

        Raises:
            Failure: if there is no new checkpoint for ``STALL_SECONDS``.
        """
        newest, since = self.newest_checkpoint(), time.monotonic()
        while not condition() and self.process.poll() is None:
            time.sleep(0.02)
            if self.newest_checkpoint() != newest:
                newest, since = self.newest_checkpoint(), time.monotonic()
            if time.monotonic() - since > STALL_SECONDS:
                raise self.failure(f"had no checkpoint in {STALL_SECONDS} s")

    def wait_for_moment(self, num_timesteps, delay) -> None:
        """Waits for a new checkpoint of ``num_timesteps`` or more, then ``delay`` s.

        Raises:
            Failure: if the run ends before that.
        """
        least = max(num_timesteps, self.newest_checkpoint() + 1)
        self.wait_until(lambda: self.newest_checkpoint() >= least)
        time.sleep(delay)
        if self.process.poll() is not None:
            raise self.failure("ended before its next kill")

    def finish(self) -> None:
        """Waits for the run to end; raises Failure unless its exit status is 0."""
        self.wait_until(lambda: False)
        if self.process.returncode != 0:
            raise self.failure("failed")

    def failure(self, what):
        """Returns a Failure with the last line that the run wrote to stderr."""
        line = (self.errors.read_text().strip() or "nothing").splitlines()[-1]
        return Failure(
            f"the run in {self.folder} {what}; its status is {self.process.poll()}, "
            f"the last line of its stderr is: {line}"
        )

    def children(self, program="") -> list:
        """Returns descendant processes with a command word that ends in ``program``."""
        processes = []
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if any(word.endswith(program) for word in child.cmdline()):
                        processes.append(child)
        return processes

    def kill(self, rng) -> str:
        """Kills the run, or one of its ranks; returns what was killed.

        Raises:
            Failure: if the other ranks do not end.
        """
        if self.ranks == 1:
            self.process.kill()
            self.process.wait()
            return "the run"
        ranks = self.children("baselines.run")
        rng.choice(ranks).kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        _, alive = psutil.wait_procs(ranks, END_SECONDS)
        if self.process.poll() is None or alive:
            raise self.failure(f"still runs {END_SECONDS} s after a rank was killed")
        return f"one of {len(ranks)} ranks"

    def damage(self, rng) -> str:
        """Kills the run and truncates a file of its newest checkpoint."""
        # Without the one before it, the run could not be resumed.
        self.wait_until(lambda: len(list_manifests(self.folder / "checkpoints")) > 1)
        self.kill(rng)
        path = Path(list_manifests(self.folder / "checkpoints")[-1])
        path = rng.choice([path, path.with_suffix(".safetensors")])
        os.truncate(path, rng.randrange(path.stat().st_size))
        return f"the run, and damaged {path.name}"

    def terminate(self, rng) -> str:
        """Ends the run by SIGTERM, which makes it save a checkpoint first."""
        self.process.send_signal(signal.SIGTERM)
        return self.check_ended([128 + signal.SIGTERM])

    def interrupt(self, rng) -> str:
        """Ends the run by two SIGINTs."""
        self.process.send_signal(signal.SIGINT)
        time.sleep(rng.uniform(0, PAUSE_SECONDS))
        self.process.send_signal(signal.SIGINT)
        # The second may have come when Python itself was already shutting down.
        return self.check_ended([128 + signal.SIGINT, -signal.SIGINT])

    def check_ended(self, statuses) -> str:
        """Waits for the run to end after a signal, with one of these exit statuses.

        Raises:
            Failure: if it ends with another status than these and 0, or not in time.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        # The run may have ended by itself before the signal came.
        if self.process.poll() not in (*statuses, 0):
            raise self.failure(f"did not end with status {statuses[0]}")
        return f"the run, which ended with status {self.process.poll()}"

    def pause(self, rng) -> str:
        """Suspends the run and its workers for a moment, as Ctrl-Z and ``fg`` do."""
        processes = [psutil.Process(self.process.pid), *self.children()]
        for number in signal.SIGSTOP, signal.SIGCONT:
            for process in processes:
                process.send_signal(number)
            time.sleep(rng.uniform(0, PAUSE_SECONDS))
        return "the run, for a moment"

    def lose_worker(self, fault, rng) -> str:
        """Kills a worker, or stops it forever, and waits until another replaces it."""
        workers, before = self.children("worker.py"), len(self.replacements())
        getattr(rng.choice(workers), fault)()
        self.wait_until(lambda: len(self.replacements()) > before)
        return f"one of {len(workers)} workers"

    def stop(self) -> None:
        """Kills the run and its child processes, if it is still running."""
        if self.process is not None and self.process.poll() is None:
            children = self.children()
            self.process.kill()
            self.process.wait()
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()

    def newest_checkpoint(self) -> int:
        """Returns the agent steps of the newest checkpoint, or 0 if there is none."""
        manifests = list_manifests(self.folder / "checkpoints")
        return int(Path(manifests[-1]).stem) if manifests else 0

    def replacements(self) -> list:
        """Returns the number of environments of each worker that was replaced."""
        log = self.folder / "log.txt"
        pattern = r"environments? (\d+)(?: to (\d+))? (?:died|did not) .* another takes"
        matches = re.findall(pattern, log.read_text()) if log.exists() else []
        return [int(last or first) - int(first) + 1 for first, last in matches]

    def rows(self) -> list:
        """Returns the rows of progress.csv without the columns that depend on time."""
        with open(self.folder / "progress.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        return [{k: v for k, v in row.items() if k not in IGNORED} for row in rows]

    def games(self) -> dict:
        """Returns (return, length) of the games in each monitor file, by file name."""
        return {
            path.name: [
                tuple(line.split(",")[:2]) for line in path.read_text().splitlines()[2:]
            ]
            for path in sorted(self.folder.glob("*.monitor.csv"))
        }

    def weights(self) -> dict:
        """Returns the bytes of the saved model's variables by name."""
        tensors, _ = load_tensors(self.folder / "model.safetensors")
        return {name: value.tobytes() for name, value in tensors.items()}


def draw_moments(count, num_timesteps, rng) -> list:
    """Draws agent steps to kill at, one in each equal part of the first 80 %."""
    part = 0.8 * num_timesteps / count
    return [int((i + rng.random()) * part) for i in range(count)]


def inject(run, faults, moments, delay, rng) -> Counter:
    """Injects a fault into a run at each moment, and resumes it if it has ended.

    Args:
        run: a run that has not been started.
        faults: functions that take ``rng`` and return what was done, by name; one is
            drawn each time.
        moments: agent steps; each fault follows a checkpoint with at least as many.
        delay: maximum number of seconds from that checkpoint to the fault.
        rng: a ``random.Random``.

    Returns:
        how often each fault was injected.
    """
    done = Counter()
    run.start()
    for number, moment in enumerate(moments, 1):
        run.wait_for_moment(moment, rng.uniform(0, delay))
        fault = rng.choice(list(faults))
        what = faults[fault](rng)
        done[fault] += 1
        print(
            f"{fault} {number}: {what}, newest checkpoint at {run.newest_checkpoint()} "
            "agent steps",
            flush=True,
        )
        if run.process.poll() is not None:
            run.start()
    run.finish()
    return done


def compare(reference, killed) -> list:
    """Prints how two runs compare; returns what differs."""
    rows, killed_rows = reference.rows(), killed.rows()
    differing = sum(a != b for a, b in zip(rows, killed_rows))
    differing += abs(len(rows) - len(killed_rows))
    print(f"rows of progress.csv: {len(rows)}, differing: {differing}")
    games, killed_games = reference.games(), killed.games()
    number = sum(map(len, games.values()))
    equal_games = games == killed_games
    print(f"monitor files: {len(games)}, games: {number}, equal: {equal_games}")
    equal_weights = reference.weights() == killed.weights()
    print(f"final weights equal: {equal_weights}", flush=True)
    equal = {"rows": not differing, "games": equal_games, "weights": equal_weights}
    return [name for name in equal if not equal[name]]


def check_replacements(reference, run, kills) -> None:
    """Prints how many workers were replaced and how many episodes that cut short.

    Raises:
        Failure: if the number of replacements is not ``kills``, or the run does not
            have as many agent steps as the reference.
    """
    replaced = run.replacements()
    steps, expected = run.newest_checkpoint(), reference.newest_checkpoint()
    print(
        f"workers replaced: {len(replaced)} of {kills}; episodes cut short by that: "
        f"{sum(replaced)}; agent steps: {steps} of {expected}"
    )
    if len(replaced) != kills or steps != expected:
        raise Failure(f"the run that lost {kills} workers did not replace them all")


def make_and_compare(options, interval, rng, reference, killed, lost_workers) -> None:
    """Makes the runs and compares them.

    Args:
        options: the options from the command line.
        interval: agent steps between checkpoints.
        rng: generator that draws the moments and the faults.
        reference, killed, lost_workers: runs that have not been started.

    Raises:
        Failure: if a run did not do what it should.
    """
    start = time.monotonic()
    reference.start()
    reference.wait_until(reference.newest_checkpoint)
    first, begun = reference.newest_checkpoint(), time.monotonic()
    has_workers = options.ranks == 1 and bool(reference.children("worker.py"))
    reference.finish()
    end = time.monotonic()
    print(f"the reference run: {end - start:.0f} s", flush=True)
    delay = interval * (end - begun) / (reference.newest_checkpoint() - first or 1)

    everything = options.faults == "all"
    names = ["kill", "damage", "terminate", "interrupt", "pause"]
    names = names if everything and options.ranks == 1 else ["kill"]
    faults = {name: getattr(killed, name) for name in names}
    moments = draw_moments(options.kills, options.num_timesteps, rng)
    done = inject(killed, faults, moments, delay, rng)
    lost = (time.monotonic() - end - (end - start)) / options.kills
    print(f"with {options.kills} faults: {lost:.1f} s lost to each")
    differing = compare(reference, killed)

    if has_workers:
        faults = {
            f"{name} a worker": lambda rng, name=name: lost_workers.lose_worker(
                name, rng
            )
            for name in (["kill", "suspend"] if everything else ["kill"])
        }
        moments = draw_moments(options.kills, options.num_timesteps, rng)
        done += inject(lost_workers, faults, moments, delay, rng)
        check_replacements(reference, lost_workers, options.kills)
    if differing:
        raise Failure(f"a run that was killed differs in its {' and '.join(differing)}")
    counts = ", ".join(f"{fault} {number}" for fault, number in sorted(done.items()))
    print(f"{done.total()} faults ({counts}): nothing differs")


def main(argv=None):
    """Makes the runs that the command line asks for, and prints a comparison."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser()
    options, others = parser.parse_known_args(argv)
    interval = options.checkpoint_interval
    interval = interval or options.num_timesteps // (4 * options.kills + 8)
    print(parser.prog, shlex.join(argv), flush=True)
    arguments = [
        f"--alg={options.alg}",
        f"--env={options.env}",
        f"--seed={options.seed}",
        f"--num_timesteps={options.num_timesteps}",
        f"--checkpoint_interval={interval}",
        *others,
    ]
    if options.faults == "all":
        arguments.append(f"--worker_timeout={WORKER_TIMEOUT}")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        runs = [
            Run(arguments, Path(folder, name), options.ranks)
            for name in ("reference", "killed", "lost_workers")
        ]
        for run in runs:
            stack.callback(run.stop)
        # Each command line has moments of its own, the same every time.
        make_and_compare(options, interval, random.Random(shlex.join(argv)), *runs)


if __name__ == "__main__":
    with cli.one_line_errors():
        main()
