"""Kills a run again and again, and compares it with one that nothing happened to.

    python -m baselines.bench.chaos --alg=a2c --kills=20

One run goes through. A second, with the same arguments, is killed with SIGKILL at
random moments and resumed each time: it must have the same rows of progress.csv (but
for fps), the same games in its monitor files (but for their times) and the same final
weights, bit for bit. A third loses a random worker process at each of as many moments
and has to go on without help. With ``--ranks=2`` there are two runs of so many MPI
ranks, and it is a random rank that is killed, which has to end all of them.

Arguments that are not its own are those of ``baselines.run``.
"""

import contextlib
import csv
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
from pathlib import Path

from baselines.common import cli
from baselines.common.checkpoint import list_manifests
from baselines.common.errors import MissingDependency, UserError, UserValueError
from baselines.common.tensors import load_tensors
from baselines.run import count_parser

try:
    import psutil
except ImportError:
    psutil = None

PATIENCE = 20  # seconds in which the loss of a rank has to end all of them
LONGEST_DELAY = 1.0  # seconds from a row of the log to a kill
IGNORED = {"fps"}  # columns that tell the time


class Failure(UserError):
    """A run did not do what it should have after a kill."""


class Run:
    """A training run in processes of its own, with all its files in one folder.

    Args:
        arguments: of ``baselines.run``, without its folder.
        folder: of its files.
        ranks: how many MPI ranks it has; 1 for no MPI.
    """

    def __init__(self, arguments, folder, ranks=1):
        self.arguments = [*arguments, f"--log_path={folder}"]
        self.folder = folder
        self.ranks = ranks
        self.process = None

    def start(self) -> None:
        """Starts the run, or goes on with it."""
        arguments = self.arguments
        if (self.folder / "config.json").exists():
            arguments = [f"--resume={self.folder}"]
        command = [sys.executable, "-m", "baselines.run", *arguments]
        if self.ranks > 1:
            command = [find_mpiexec(), "-n", str(self.ranks), *command]
        # What a rank that was killed leaves unsaid is not of interest.
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def wait_for(self, num_timesteps, newer_than=0) -> None:
        """Waits for a row of the log that tells of so many agent steps.

        Args:
            num_timesteps: agent steps.
            newer_than: a time of writing that the log has to be newer than.

        Raises:
            Failure: if the run ends before.
        """
        path = self.folder / "progress.csv"
        while True:
            rows = read_rows(self.folder)
            if (
                rows
                and os.stat(path).st_mtime_ns > newer_than
                and steps_of(rows) >= num_timesteps
            ):
                return
            if self.process.poll() is not None:
                raise Failure(
                    f"the run in {self.folder} ended with status "
                    f"{self.process.returncode} before {num_timesteps} agent steps"
                )
            time.sleep(0.02)

    def finish(self) -> None:
        """Waits for its end; raises Failure unless it is a good one."""
        if self.process.wait() != 0:
            raise Failure(
                f"the run in {self.folder} ended with status {self.process.returncode}"
            )

    def children(self, program) -> list:
        """Returns the processes below it that have ``program`` in their command."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(word.endswith(program) for word in child.cmdline()):
                    found.append(child)
        return found

    def kill(self, rng) -> str:
        """Kills its process, or one of its ranks; returns what was killed.

        Raises:
            Failure: if the other ranks go on.
        """
        if self.ranks == 1:
            self.process.kill()
            self.process.wait()
            return "the run"
        ranks = self.children("baselines.run")
        rng.choice(ranks).kill()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(
                f"{PATIENCE} seconds after a rank was killed, the others go on"
            ) from None
        return f"one of {len(ranks)} ranks"

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()


def find_mpiexec() -> str:
    """Returns the launcher that was installed beside this Python, else any."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    path = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if path is None:
        raise MissingDependency("there is no mpiexec: pip install -e '.[mpi]'")
    return path


def read_rows(folder) -> list:
    """Returns the whole rows of progress.csv, without columns that tell the time."""
    try:
        text = (folder / "progress.csv").read_text()
    except FileNotFoundError:
        return []
    whole = text[: text.rfind("\n") + 1]
    rows = csv.DictReader(whole.splitlines())
    return [{k: v for k, v in row.items() if k not in IGNORED} for row in rows]


def steps_of(rows) -> int:
    return int(rows[-1]["total_timesteps"]) if rows else 0


def read_games(folder) -> dict:
    """Returns [return, length] of the games in each monitor file, by its name."""
    return {
        path.name: [line.split(",")[:2] for line in path.read_text().splitlines()[2:]]
        for path in sorted(folder.glob("*.monitor.csv"))
    }


def read_weights(folder) -> dict:
    """Returns the bytes of the saved model's variables by name."""
    tensors, _ = load_tensors(folder / "model.safetensors")
    return {name: value.tobytes() for name, value in tensors.items()}


def newest_checkpoint(folder) -> int:
    """Returns the agent steps of a run's newest checkpoint, 0 if there is none."""
    manifests = list_manifests(folder / "checkpoints")
    return int(Path(manifests[-1]).stem) if manifests else 0


def draw_moments(count, num_timesteps, rng) -> list:
    """Returns agent steps at which to kill: one in each part of most of the run."""
    part = 0.9 * num_timesteps / count
    return [int((i + rng.random()) * part) for i in range(count)]


def run_through(run) -> float:
    """Runs without harm; returns the seconds that it took."""
    start = time.monotonic()
    run.start()
    run.finish()
    return time.monotonic() - start


def run_through_kills(run, moments, rng) -> float:
    """Kills a run at each moment and resumes it; returns the seconds in all."""
    start, repeated = time.monotonic(), 0
    for number, moment in enumerate(moments, 1):
        # Resuming cuts the log back, so rows of an earlier part are no news.
        now = time.time_ns()
        run.start()
        run.wait_for(moment, newer_than=now)
        time.sleep(rng.uniform(0, LONGEST_DELAY))
        if run.process.poll() is not None:
            raise Failure(f"the run ended before kill {number}; give it more steps")
        what = run.kill(rng)
        done, kept = steps_of(read_rows(run.folder)), newest_checkpoint(run.folder)
        repeated += max(0, done - kept)
        print(
            f"kill {number}: {what}, row at {done} agent steps, newest checkpoint at "
            f"{kept}",
            flush=True,
        )
    run.start()
    run.finish()
    print(f"agent steps in rows that were played again: {repeated}")
    return time.monotonic() - start


def run_through_lost_workers(run, moments, rng) -> None:
    """Kills a worker at each moment; raises Failure if the run does not cope."""
    run.start()
    newer_than = 0
    for number, moment in enumerate(moments, 1):
        # A row after each replacement, so that the new worker has made a step.
        run.wait_for(moment, newer_than)
        time.sleep(rng.uniform(0, LONGEST_DELAY))
        workers = run.children("worker.py")
        if not workers:
            raise Failure("the run has no worker processes that could be killed")
        victim = rng.choice(workers)
        victim.kill()
        newer_than = time.time_ns()
        print(f"kill {number}: one of {len(workers)} workers", flush=True)
    run.finish()


def compare(whole, cut) -> list:
    """Prints how two runs compare; returns what differs."""
    rows, cut_rows = read_rows(whole.folder), read_rows(cut.folder)
    differing = sum(a != b for a, b in zip(rows, cut_rows))
    differing += abs(len(rows) - len(cut_rows))
    print(f"rows of progress.csv: {len(rows)}, differing: {differing}")
    games, cut_games = read_games(whole.folder), read_games(cut.folder)
    print(
        f"monitor files: {len(games)}, games: {sum(map(len, games.values()))}, equal: "
        f"{games == cut_games}"
    )
    equal_weights = read_weights(whole.folder) == read_weights(cut.folder)
    print(f"final weights equal: {equal_weights}")
    found = {
        "rows": bool(differing),
        "games": games != cut_games,
        "weights": not equal_weights,
    }
    return [name for name, differs in found.items() if differs]


def check_replacements(whole, run, kills) -> None:
    """Prints what became of the episodes of lost workers.

    Raises:
        Failure: if a kill was not told of, rows are missing, or there are more agent
            steps in games than were played.
    """
    log = (run.folder / "log.txt").read_text()
    told = re.findall(r"environments (\d+) to (\d+) died .* another takes over", log)
    cut_short = sum(int(last) - int(first) + 1 for first, last in told)
    steps, expected = (steps_of(read_rows(r.folder)) for r in (run, whole))
    games = [game for games in read_games(run.folder).values() for game in games]
    in_games = sum(int(length) for _, length in games)
    print(
        f"workers replaced: {len(told)} of {kills}, their episodes cut short: "
        f"{cut_short}\nagent steps in the last row: {steps} (without kills: "
        f"{expected}); in {len(games)} finished games: {in_games}"
    )
    if len(told) != kills or steps != expected or in_games > steps:
        raise Failure("the run with lost workers is not what it should be")


def make_parser():
    """Returns a parser of the arguments that ``baselines.run`` does not have."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.bench.chaos",
        description=__doc__,
    )
    parser.add_argument("--alg", required=True, help="algorithm")
    parser.add_argument(
        "--env", default="PongNoFrameskip-v4", help="default: PongNoFrameskip-v4"
    )
    parser.add_argument("--kills", type=count_parser(1), default=20, help="default: 20")
    parser.add_argument(
        "--num_timesteps",
        type=count_parser(1),
        default=100_000,
        help="agent steps of each run (default: 100,000)",
    )
    parser.add_argument("--ranks", type=count_parser(1), default=1, help="default: 1")
    parser.add_argument(
        "--seed", type=count_parser(0), default=0, help="of the moments and the runs"
    )
    return parser


def main(argv=None):
    """Does what the command line says, and prints what came of it."""
    argv = sys.argv[1:] if argv is None else list(argv)
    with cli.one_line_errors(), tempfile.TemporaryDirectory() as folder:
        args, others = make_parser().parse_known_args(argv)
        if psutil is None:
            raise MissingDependency("processes are found by psutil: pip install psutil")
        if any(word.startswith(("--log_path", "--resume")) for word in others):
            raise UserValueError("--log_path and --resume are chosen by the bench")
        print("python -m baselines.bench.chaos", shlex.join(argv), flush=True)
        arguments = [f"--alg={args.alg}", f"--env={args.env}", f"--seed={args.seed}"]
        arguments += [f"--num_timesteps={args.num_timesteps}", *others]
        names = ["whole", "cut", *(["workers"] if args.ranks == 1 else [])]
        runs = {name: Run(arguments, Path(folder, name), args.ranks) for name in names}
        with contextlib.ExitStack() as stack:
            for run in runs.values():
                stack.callback(run.stop)
            bring_chaos(args, **runs)


def bring_chaos(args, whole, cut, workers=None) -> None:
    """Makes the runs and compares them; raises Failure if they differ."""
    rng = random.Random(args.seed)
    seconds = run_through(whole)
    print(f"the whole run: {seconds:.0f} s", flush=True)
    moments = draw_moments(args.kills, args.num_timesteps, rng)
    cut_seconds = run_through_kills(cut, moments, rng)
    lost = (cut_seconds - seconds) / args.kills
    print(f"with {args.kills} kills: {cut_seconds:.0f} s, {lost:.1f} s lost to each")
    differing = compare(whole, cut)
    if workers is not None:
        moments = draw_moments(args.kills, args.num_timesteps, rng)
        run_through_lost_workers(workers, moments, rng)
        check_replacements(whole, workers, args.kills)
    if differing:
        raise Failure(f"a run that was killed differs in its {' and '.join(differing)}")


if __name__ == "__main__":
    main()
