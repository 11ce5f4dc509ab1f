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

With ``--fork``, four of five times a run is resumed in a fork of this program, which
has already imported TensorFlow; this takes a quarter of the time. First starts always
use a new process.

All other arguments are passed to ``baselines.run``. Unless ``--checkpoint_interval`` is
given, there are at least four checkpoints per kill. Each kill waits for a new one, so
that every resume is from a different checkpoint.
"""

import contextlib
import csv
import dataclasses
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.arguments.discovery import find_algorithm, import_learn
from baselines.common.base.errors import MissingDependency, UserError, UserValueError
from baselines.common.run.settings import OWN
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.config import foreign_code, read_config
from baselines.common.saving.tensors import load_tensors
from benchmarks.fork import ForkedRun
from benchmarks.options import parse_options

try:
    import psutil
except ImportError:
    psutil = None

END_SECONDS = 60  # for a run to end, or all ranks after one; enough on a busy machine
PAUSE_SECONDS = 0.5
WORKER_TIMEOUT = 10  # seconds, if workers are stopped; new ones start in less
STALL_SECONDS = 1800  # without a new checkpoint until a run counts as stuck
IGNORED = {"fps", "time_elapsed"}  # columns that depend on time
RESERVED = "--log_path", "--save_path", "--resume"  # arguments that are set here


@dataclasses.dataclass
class Options:
    """The arguments that ``baselines.run`` lacks, or has different defaults for."""

    alg: Annotated[str, "algorithm (required)"]
    env: Annotated[str, "environment id"] = "PongNoFrameskip-v4"
    kills: Annotated[arg.Count, "number of kills, or other faults, per run"] = 20
    num_timesteps: Annotated[arg.Count, "agent steps per run"] = 100_000
    faults: Annotated[
        Literal["kill", "all"], "kinds of faults to inject: only kills, or all of them"
    ] = "kill"
    ranks: Annotated[arg.Count, "MPI ranks of a run; 1 for no MPI"] = 1
    fork: Annotated[bool, "whether to resume runs in forks of this program"] = False
    seed: Annotated[arg.CountOrZero, "seed of the runs and of the faults"] = 0
    checkpoint_interval: Annotated[
        arg.Count | None,
        "agent steps between checkpoints (default: num_timesteps // (4 * kills + 8))",
    ] = None


class Failure(UserError):
    """A run did not do what it should after a fault."""


class Run:
    """A training run in processes of its own, with all its files in one folder.

    Args:
        arguments: for ``baselines.run``, without the folder.
        folder: where its files are.
        ranks: number of MPI ranks; 1 for no MPI.
        fork: whether to resume it in forks of this process, four of five times.
    """

    def __init__(self, arguments, folder, ranks=1, fork=False):
        self.arguments = [*arguments, f"--log_path={folder}"]
        self.folder = folder
        self.errors = Path(f"{folder}.stderr")
        self.ranks = ranks
        self.fork = fork
        self.starts = self.forks = 0
        self.process = None

    def start(self) -> None:
        """Starts the run, or resumes it."""
        arguments = self.arguments
        self.starts += 1
        if (self.folder / "config.json").exists():
            own = foreign_code(read_config(self.folder, OWN))
            arguments = [f"--resume={self.folder}", *own]
            if self.fork and self.starts % 5:
                self.forks += 1
                self.process = ForkedRun(arguments, self.errors)
                return
        command = [sys.executable, "-m", "baselines.run", *arguments]
        if self.ranks > 1:
            command = [find_mpiexec(), "-n", str(self.ranks), *command]
        environ = {k: v for k, v in os.environ.items() if k != "OPENAI_LOG_FORMAT"}
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

    def wait_for_replacements(self, count) -> None:
        """Waits until ``count`` workers have been replaced since the run began."""
        self.wait_until(lambda: len(self.replacements()) >= count)

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

    def children(self, program) -> list:
        """Returns descendant processes with a command word that ends in ``program``."""
        found = []
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if any(word.endswith(program) for word in child.cmdline()):
                        found.append(child)
        return found

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
        if not ranks:
            raise self.failure("has no ranks that could be killed")
        rng.choice(ranks).kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        _, alive = psutil.wait_procs(ranks, END_SECONDS)
        if self.process.poll() is None or any(map(is_running, alive)):
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
        processes = [psutil.Process(self.process.pid), *self.children("")]
        for number in signal.SIGSTOP, signal.SIGCONT:
            for process in processes:
                process.send_signal(number)
            time.sleep(rng.uniform(0, PAUSE_SECONDS))
        return "the run, for a moment"

    def stop(self) -> None:
        """Kills the run and its child processes, if it is still running."""
        if self.process is not None and self.process.poll() is None:
            children = self.children("")
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
        found = re.findall(pattern, log.read_text()) if log.exists() else []
        return [int(last or first) - int(first) + 1 for first, last in found]

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


def is_running(process) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find_mpiexec() -> str:
    """Returns the path of the mpiexec next to this Python, else of any on the PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    path = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if path is None:
        raise MissingDependency("--ranks needs mpiexec: pip install -e '.[mpi]'")
    return path


def draw_moments(count, num_timesteps, rng) -> list:
    """Draws agent steps to kill at, one in each equal part of the first 80 %."""
    part = 0.8 * num_timesteps / count
    return [int((i + rng.random()) * part) for i in range(count)]


def run_through_kills(run, moments, delay, rng, faults=("kill",)) -> Counter:
    """Injects a fault into a run at each moment, and resumes it if it has ended.

    Args:
        run: a run that has not been started.
        moments: agent steps; each fault follows a checkpoint with at least as many.
        delay: maximum number of seconds from that checkpoint to the fault.
        rng: a ``random.Random``.
        faults: names of methods of the run, one of which is drawn each time.

    Returns:
        how often each fault was injected.
    """
    done = Counter()
    run.start()
    for number, moment in enumerate(moments, 1):
        run.wait_for_moment(moment, rng.uniform(0, delay))
        fault = rng.choice(faults)
        what = getattr(run, fault)(rng)
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


def run_through_lost_workers(run, moments, delay, rng, faults=("kill",)) -> Counter:
    """Kills or suspends a worker at each moment; ends a run that has no workers.

    Args:
        run, moments, delay, rng: as in ``run_through_kills``.
        faults: ``kill``, ``suspend`` or both, one of which is drawn each time.

    Returns:
        how often each fault was injected.
    """
    done = Counter()
    run.start()
    for number, moment in enumerate(moments, 1):
        # After new steps: between two, a worker is replaced only a few times.
        run.wait_for_moment(moment, rng.uniform(0, delay))
        workers = run.children("worker.py")
        if not workers:
            print("there are no worker processes that could be killed")
            run.stop()
            return done
        fault = rng.choice(faults)
        getattr(rng.choice(workers), fault)()
        done[fault] += 1
        run.wait_for_replacements(number)
        print(f"{fault} {number}: one of {len(workers)} workers", flush=True)
    run.finish()
    return done


def compare(reference, killed) -> list:
    """Prints how two runs compare; returns what differs."""
    rows, killed_rows = reference.rows(), killed.rows()
    differing = sum(a != b for a, b in zip(rows, killed_rows))
    differing += abs(len(rows) - len(killed_rows))
    print(f"rows of progress.csv: {len(rows)}, differing: {differing}")
    games, killed_games = reference.games(), killed.games()
    count = sum(map(len, games.values()))
    equal_games = games == killed_games
    print(f"monitor files: {len(games)}, games: {count}, equal: {equal_games}")
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
    games = [length for games in run.games().values() for _, length in games]
    print(
        f"workers replaced: {len(replaced)} of {kills}; episodes cut short by that: "
        f"{sum(replaced)}; finished games: {len(games)}, of "
        f"{sum(map(int, games))} agent steps; agent steps in all: {steps}"
    )
    if len(replaced) != kills or steps != expected:
        raise Failure(
            f"the run that lost {kills} workers reported {len(replaced)} replacements "
            f"and made {steps} agent steps of {expected}"
        )


def main(argv=None):
    """Makes the runs that the command line asks for, and prints a comparison."""
    argv = sys.argv[1:] if argv is None else list(argv)
    program = "python -m benchmarks.chaos"
    with cli.one_line_errors(), tempfile.TemporaryDirectory() as folder:
        options, others = parse_options(Options, argv, program, __doc__)
        if psutil is None:
            raise MissingDependency("processes are found by psutil: pip install psutil")
        if any(word.split("=")[0] in RESERVED for word in others):
            raise UserValueError(
                f"{', '.join(RESERVED)} are set by the benchmark; leave them out"
            )
        interval = options.checkpoint_interval
        interval = interval or options.num_timesteps // (4 * options.kills + 8)
        if options.fork and options.ranks > 1:
            raise UserValueError("--fork is for runs of one rank; leave out --ranks")
        if interval == 0:
            raise UserValueError(
                f"{options.num_timesteps} agent steps are too few for {options.kills} "
                "kills; give a larger --num_timesteps"
            )
        print(program, shlex.join(argv), flush=True)
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
        names = ["reference", "killed", "lost_workers"]
        if options.ranks > 1:
            names.pop()
        runs = {
            name: Run(arguments, Path(folder, name), options.ranks, options.fork)
            for name in names
        }
        if options.fork:
            import_for_forks(options.alg)
        with contextlib.ExitStack() as stack:
            for run in runs.values():
                stack.callback(run.stop)
            # Each command line has moments of its own, the same every time.
            rng = random.Random(shlex.join(argv))
            make_and_compare(options, interval, rng, **runs)


def import_for_forks(alg) -> None:
    """Imports what forks of this process begin with.

    Raises:
        UserValueError: if there is a GPU, whose state does not survive a fork.
    """
    import_learn(find_algorithm(alg))
    from baselines.common import backend

    if backend.gpu_has_bfloat16() is not None:
        raise UserValueError(
            "--fork cannot be used with a GPU; hide it with CUDA_VISIBLE_DEVICES=-1"
        )


def make_and_compare(
    options, interval, rng, reference, killed, lost_workers=None
) -> None:
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
    reference.finish()
    end = time.monotonic()
    seconds = end - start
    print(f"the reference run: {seconds:.0f} s", flush=True)
    delay = interval * (end - begun) / (reference.newest_checkpoint() - first or 1)

    start = time.monotonic()
    moments = draw_moments(options.kills, options.num_timesteps, rng)
    everything = options.faults == "all"
    faults = ["kill", "damage", "terminate", "interrupt", "pause"]
    faults = faults if everything and options.ranks == 1 else ["kill"]
    done = run_through_kills(killed, moments, delay, rng, faults)
    killed_seconds = time.monotonic() - start
    lost = (killed_seconds - seconds) / options.kills
    kills = f"with {options.kills} kills"
    print(f"{kills}: {killed_seconds:.0f} s, {lost:.1f} s lost to each")
    print(f"resumed {killed.starts - 1} times, {killed.forks} of them in forks")
    differing = compare(reference, killed)

    if lost_workers is not None:
        moments = draw_moments(options.kills, options.num_timesteps, rng)
        faults = ["kill", "suspend"] if everything else ["kill"]
        lost = run_through_lost_workers(lost_workers, moments, delay, rng, faults)
        if lost:
            check_replacements(reference, lost_workers, lost.total())
        done.update({f"{fault} a worker": count for fault, count in lost.items()})
    if differing:
        raise Failure(f"a run that was killed differs in its {' and '.join(differing)}")
    counts = ", ".join(f"{fault} {count}" for fault, count in sorted(done.items()))
    print(f"{done.total()} faults ({counts}): nothing differs")


if __name__ == "__main__":
    main()
