"""Kills a run again and again, and compares it with one that nothing happened to.

    python -m baselines.bench.chaos --alg=a2c --kills=20

One run goes through. A second, with the same arguments, is killed with SIGKILL at
random moments and resumed each time: it must have the same rows of progress.csv (but
for fps), the same games in its monitor files (but for their times) and the same final
weights, bit for bit. A third loses a random worker process at each of as many moments
and has to go on without help. With ``--ranks=2`` there are two runs of so many MPI
ranks, and it is a random rank that is killed, which has to end all of them.

Arguments that are not its own are those of ``baselines.run``. Four checkpoints or more
come to each kill, unless ``--checkpoint_interval`` says otherwise. At least one lies
between two kills, so that each part begins at another.
"""

import contextlib
import csv
import os
import random
import re
import shlex
import shutil
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
LONGEST = 1800  # seconds without a new checkpoint
IGNORED = {"fps"}  # columns that tell the time
ITS_OWN = "--log_path", "--save_path", "--resume"  # arguments that the bench chooses


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
        self.errors = Path(f"{folder}.stderr")
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
        environ = {k: v for k, v in os.environ.items() if k != "OPENAI_LOG_FORMAT"}
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, env=environ
            )

    def wait_until(self, condition) -> None:
        """Waits until a function of no arguments is true, or the run has ended.

        Raises:
            Failure: if the run stands still.
        """
        newest, since = self.newest_checkpoint(), time.monotonic()
        while not condition() and self.process.poll() is None:
            time.sleep(0.02)
            if self.newest_checkpoint() != newest:
                newest, since = self.newest_checkpoint(), time.monotonic()
            if time.monotonic() - since > LONGEST:
                raise self.failure(f"had no checkpoint in {LONGEST} s")

    def wait_for_moment(self, num_timesteps, delay) -> None:
        """Waits for a new checkpoint after so many agent steps, and then some seconds.

        Raises:
            Failure: if the run ends before.
        """
        least = max(num_timesteps, self.newest_checkpoint() + 1)
        self.wait_until(lambda: self.newest_checkpoint() >= least)
        time.sleep(delay)
        if self.process.poll() is not None:
            raise self.failure("ended before its next kill")

    def wait_for_replacements(self, count) -> None:
        """Waits until so many workers have been replaced since it began."""
        self.wait_until(lambda: len(self.replacements()) >= count)

    def finish(self) -> None:
        """Waits for its end; raises Failure unless it is a good one."""
        self.wait_until(lambda: False)
        if self.process.returncode != 0:
            raise self.failure("did not come to its end")

    def failure(self, what):
        """Returns a Failure with what the run last said."""
        words = (self.errors.read_text().strip() or "nothing").splitlines()[-1]
        return Failure(
            f"the run in {self.folder} {what}; its status is {self.process.poll()}, "
            f"its last words are: {words}"
        )

    def children(self, program) -> list:
        """Returns the processes below it that have ``program`` in their command."""
        found = []
        with contextlib.suppress(psutil.NoSuchProcess):
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
        if not ranks:
            raise self.failure("has no ranks that could be killed")
        rng.choice(ranks).kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)
        _, alive = psutil.wait_procs(ranks, PATIENCE)
        if self.process.poll() is None or any(map(is_running, alive)):
            raise self.failure(f"goes on {PATIENCE} s after a rank was killed")
        return f"one of {len(ranks)} ranks"

    def stop(self) -> None:
        """Ends what may still be running."""
        if self.process is not None and self.process.poll() is None:
            children = self.children("")
            self.process.kill()
            self.process.wait()
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()

    def newest_checkpoint(self) -> int:
        """Returns the agent steps of its newest checkpoint, 0 if there is none."""
        manifests = list_manifests(self.folder / "checkpoints")
        return int(Path(manifests[-1]).stem) if manifests else 0

    def replacements(self) -> list:
        """Returns how many environments each worker had that was replaced."""
        log = self.folder / "log.txt"
        pattern = r"environments (\d+) to (\d+) died .* another takes over"
        told = re.findall(pattern, log.read_text()) if log.exists() else []
        return [int(last) - int(first) + 1 for first, last in told]

    def rows(self) -> list:
        """Returns the rows of progress.csv, without columns that tell the time."""
        with open(self.folder / "progress.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        return [{k: v for k, v in row.items() if k not in IGNORED} for row in rows]

    def games(self) -> dict:
        """Returns (return, length) of the games in each monitor file, by its name."""
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
    """Whether a process is more than an entry that nobody has taken note of."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find_mpiexec() -> str:
    """Returns the launcher that was installed beside this Python, else any."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    path = beside if os.path.exists(beside) else shutil.which("mpiexec")
    if path is None:
        raise MissingDependency("there is no mpiexec: pip install -e '.[mpi]'")
    return path


def draw_moments(count, num_timesteps, rng) -> list:
    """Returns agent steps at which to kill: one in each part of most of the run."""
    part = 0.8 * num_timesteps / count
    return [int((i + rng.random()) * part) for i in range(count)]


def run_through_kills(run, moments, delay, rng) -> None:
    """Kills a run at each moment and resumes it.

    Args:
        run: has not begun.
        moments: agent steps; the kill comes after a checkpoint that has as many.
        delay: most seconds from then to the kill.
        rng: a ``random.Random``.
    """
    for number, moment in enumerate(moments, 1):
        run.start()
        run.wait_for_moment(moment, rng.uniform(0, delay))
        what = run.kill(rng)
        print(
            f"kill {number}: {what}, newest checkpoint at {run.newest_checkpoint()} "
            "agent steps",
            flush=True,
        )
    run.start()
    run.finish()


def run_through_lost_workers(run, moments, delay, rng) -> int:
    """Kills a worker at each moment; returns how many were killed.

    Args:
        run, moments, delay, rng: as of ``run_through_kills``.
    """
    run.start()
    for number, moment in enumerate(moments, 1):
        # A worker that has not yet made a step is not replaced again.
        run.wait_for_moment(moment, rng.uniform(0, delay))
        workers = run.children("worker.py")
        if not workers:
            print("there are no worker processes that could be killed")
            run.finish()
            return 0
        rng.choice(workers).kill()
        run.wait_for_replacements(number)
        print(f"kill {number}: one of {len(workers)} workers", flush=True)
    run.finish()
    return len(moments)


def compare(whole, cut) -> list:
    """Prints how two runs compare; returns what differs."""
    rows, cut_rows = whole.rows(), cut.rows()
    differing = sum(a != b for a, b in zip(rows, cut_rows))
    differing += abs(len(rows) - len(cut_rows))
    print(f"rows of progress.csv: {len(rows)}, differing: {differing}")
    games, cut_games = whole.games(), cut.games()
    count = sum(map(len, games.values()))
    equal_games = games == cut_games
    print(f"monitor files: {len(games)}, games: {count}, equal: {equal_games}")
    equal_weights = whole.weights() == cut.weights()
    print(f"final weights equal: {equal_weights}", flush=True)
    equal = {"rows": not differing, "games": equal_games, "weights": equal_weights}
    return [name for name in equal if not equal[name]]


def check_replacements(whole, run, kills) -> None:
    """Prints what became of the episodes of lost workers.

    Raises:
        Failure: if a kill was not told of, or the run is shorter than another.
    """
    replaced = run.replacements()
    steps, expected = run.newest_checkpoint(), whole.newest_checkpoint()
    games = [length for games in run.games().values() for _, length in games]
    print(
        f"workers replaced: {len(replaced)} of {kills}; episodes cut short by that: "
        f"{sum(replaced)}; games that came to their end: {len(games)}, of "
        f"{sum(map(int, games))} agent steps; agent steps in all: {steps}"
    )
    if len(replaced) != kills or steps != expected:
        raise Failure("the run with lost workers is not what it should be")


def make_parser():
    """Returns a parser of the arguments that ``baselines.run`` does not have."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.bench.chaos", description=__doc__
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
        "--seed",
        type=count_parser(0),
        default=0,
        help="of the runs and of the moments (default: 0)",
    )
    parser.add_argument("--checkpoint_interval", type=count_parser(1))
    return parser


def main(argv=None):
    """Does what the command line says, and prints what came of it."""
    argv = sys.argv[1:] if argv is None else list(argv)
    with cli.one_line_errors(), tempfile.TemporaryDirectory() as folder:
        args, others = make_parser().parse_known_args(argv)
        if psutil is None:
            raise MissingDependency("processes are found by psutil: pip install psutil")
        if any(word.split("=")[0] in ITS_OWN for word in others):
            raise UserValueError(f"the bench itself chooses {', '.join(ITS_OWN)}")
        interval = args.checkpoint_interval
        interval = interval or args.num_timesteps // (4 * args.kills + 8)
        if interval == 0:
            raise UserValueError(
                f"{args.num_timesteps} agent steps are too few for {args.kills} kills"
            )
        print("python -m baselines.bench.chaos", shlex.join(argv), flush=True)
        arguments = [
            f"--alg={args.alg}",
            f"--env={args.env}",
            f"--seed={args.seed}",
            f"--num_timesteps={args.num_timesteps}",
            f"--checkpoint_interval={interval}",
            *others,
        ]
        names = ["whole", "cut", "workers"][: 3 if args.ranks == 1 else 2]
        runs = {name: Run(arguments, Path(folder, name), args.ranks) for name in names}
        with contextlib.ExitStack() as stack:
            for run in runs.values():
                stack.callback(run.stop)
            bring_chaos(args, interval, **runs)


def bring_chaos(args, interval, whole, cut, workers=None) -> None:
    """Makes the runs and compares them.

    Args:
        args: of the command line.
        interval: agent steps from one checkpoint to the next.
        whole, cut, workers: runs that have not begun.

    Raises:
        Failure: if they are not what they should be.
    """
    rng = random.Random(args.seed)
    start = time.monotonic()
    whole.start()
    whole.wait_until(whole.newest_checkpoint)
    first, begun = whole.newest_checkpoint(), time.monotonic()
    whole.finish()
    end = time.monotonic()
    seconds = end - start
    print(f"the whole run: {seconds:.0f} s", flush=True)
    delay = interval * (end - begun) / (whole.newest_checkpoint() - first or 1)

    start = time.monotonic()
    moments = draw_moments(args.kills, args.num_timesteps, rng)
    run_through_kills(cut, moments, delay, rng)
    cut_seconds = time.monotonic() - start
    lost = (cut_seconds - seconds) / args.kills
    print(f"with {args.kills} kills: {cut_seconds:.0f} s, {lost:.1f} s lost to each")
    differing = compare(whole, cut)

    if workers is not None:
        moments = draw_moments(args.kills, args.num_timesteps, rng)
        killed = run_through_lost_workers(workers, moments, delay, rng)
        check_replacements(whole, workers, killed)
    if differing:
        raise Failure(f"a run that was killed differs in its {' and '.join(differing)}")


if __name__ == "__main__":
    main()
