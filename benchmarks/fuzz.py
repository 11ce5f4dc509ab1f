"""Damages models, checkpoints and logs in many ways, and tries to use them.

    python -m benchmarks.fuzz --count=100000 --seed=0

Each attempt has to end in a correct load or in a one-line error of ours. Anything else
(another exception, a hang, a crash) is printed with the command that repeats it, and
makes the exit status 1. Most files get correct checksums, as an attacker would give
them. A checkpoint that loads has to be usable: its environments are stepped, its replay
memory is sampled, and its state is saved again. A folder with a damaged config.json or
log, or with a special file, is also listed, its curves are read and its environment is
made, as ``baselines.runs``, ``plot`` and ``evaluate`` do; some also get a report.

The attempts are made in a child process, which is restarted after a crash. An attempt
depends only on the seed and its number: ``--start=N`` continues with number N, so that
a long series can be made in parts. The files are in a temporary folder, or in the one
that is given, whose subfolders a2c and dqn are deleted first.
"""

import collections
import contextlib
import copy
import dataclasses
import importlib.util
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Annotated
from unittest import mock

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base.errors import UserError, UserValueError
from baselines.common.saving.files import file_digest, remove_file
from baselines.common.saving.tensors import (
    load_tensors,
    save_tensors,
    take_arrays,
    tensors_digest,
)
from benchmarks import mutations
from benchmarks.options import parse_options

PROGRAM = "python -m benchmarks.fuzz"
GOOD = "loaded", "loaded the older one", "refused"
HANG_SECONDS = 10
REPORT_EACH = 10  # attempts, because plots take longer than the rest
MORE_MEMORY = 8 * 2**30  # bytes of address space that attempts may add
TOTAL = 400  # agent steps of the runs
SHARED = f"--num_timesteps={TOTAL} --checkpoint_interval=150 --num_env=2 --seed=0 "
SHARED += "--env=CartPole-v1 --eval_interval=200 --eval_episodes=1"
RUNS = {
    "a2c": "--network=lstm --nlstm=4 --value_network=shared --nsteps=2 "
    "--log_interval=25",
    "dqn": "--num_layers=1 --num_hidden=4 --hiddens=[4] --buffer_size=150 "
    "--learning_starts=50 --batch_size=4 --prioritized_replay=True --print_freq=5",
}
MODEL, CONFIG = "model.safetensors", "config.json"
DATA, MANIFEST = "checkpoints/*.safetensors", "checkpoints/*.json"
LOG, OTHERS = "*.csv", ("log.txt", "report.html")
KINDS = {  # which files, how they are damaged, whether checksums are then corrected
    "model, bytes": (MODEL, mutations.damage_bytes, False),
    "model, tensors": (MODEL, mutations.damage_tensors, True),
    "model, metadata": (MODEL, mutations.damage_metadata, True),
    "checkpoint, bytes": (DATA, mutations.damage_bytes, False),
    "forged checkpoint, bytes": (DATA, mutations.damage_bytes, True),
    "forged checkpoint, tensors": (DATA, mutations.damage_tensors, True),
    "forged checkpoint, metadata": (DATA, mutations.damage_metadata, True),
    "manifest, bytes": (MANIFEST, mutations.damage_bytes, False),
    "manifest, values": (MANIFEST, mutations.damage_values, False),
    "config.json, bytes": (CONFIG, mutations.damage_bytes, False),
    "config.json, values": (CONFIG, mutations.damage_values, False),
    "log, bytes": (LOG, mutations.damage_bytes, False),
    "special files": (None, None, False),
}
LOOKED_AT = CONFIG, LOG, None  # what is read by commands that load nothing


@dataclasses.dataclass
class Options:
    """The arguments other than the folder."""

    count: Annotated[arg.Count, "number of attempts"] = 2000
    seed: Annotated[arg.CountOrZero, "seed of the attempts"] = 0
    start: Annotated[arg.CountOrZero, "number of the first attempt"] = 0


class Hang(BaseException):
    """An attempt takes too long; not an Exception, which the library would wrap."""


class Target:
    """A small trained run, into which its damaged files are loaded.

    Args:
        name: name of the algorithm.
        folder: where the run's files are.
    """

    def __init__(self, name, folder):
        # Imported here, because the parent process does not need Keras.
        from baselines.common.data import replay_buffer
        from baselines.common.envs.make import make_vec_env
        from baselines.common.run import parsing
        from baselines.common.vec_env.vec_normalize import VecNormalize

        self.folder = folder
        replay_buffer.SEGMENT_SIZE = 64
        argv = [f"--alg={name}", *SHARED.split(), *RUNS[name].split()]
        settings = parsing.parse(argv)
        runs = []
        with self.log() as logger:
            env = make_vec_env("CartPole-v1", num_env=2, seed=0, log_dir=str(folder))
            eval_env = make_vec_env("CartPole-v1", seed=1)
            env = VecNormalize(env, ob=False)
            env.training = False  # Replay memories refuse a deviation that changes.
            keywords = settings.learn_arguments | dict(env=env, eval_env=eval_env)
            self.model = settings.learn(seed=0, on_update=runs.append, **keywords)
            logger.close()
        self.model.save(folder / MODEL)
        # As the command line writes it: --resume takes the settings from it.
        config = settings.config | {"log_formats": ["log", "csv", "json"]}
        (folder / CONFIG).write_text(json.dumps(config))
        self.checkpoints = runs[-1].checkpoints
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        self.files = {path: path.read_bytes() for path in paths}
        self.right = self.weights()

    @contextlib.contextmanager
    def log(self):
        """Logs to the folder inside a ``with`` block; yields the logger."""
        from baselines import logger

        with logger.scoped_configure(str(self.folder), ["log", "csv", "json"]):
            yield logger

    def weights(self) -> list:
        return [variable.numpy().tobytes() for variable in self.model.variables]

    def restore_files(self) -> None:
        """Restores the original files, and removes all others."""
        for path in self.folder.rglob("*"):
            if path.is_symlink() or not path.is_dir():
                if path not in self.files or not path.is_file() or path.is_symlink():
                    remove_file(path)
            elif path.name != "checkpoints":
                path.rmdir()
        for path, data in self.files.items():
            # The size first: a damaged file may be terabytes of zeros.
            whole = path.exists() and path.stat().st_size == len(data)
            if not whole or path.read_bytes() != data:
                path.write_bytes(data)

    def damage(self, kind, rng) -> Path:
        """Damages a file; returns its path."""
        pattern, damage, forged = KINDS[kind]
        if pattern is None:
            pattern = rng.choice([MODEL, CONFIG, DATA, MANIFEST, LOG, *OTHERS])
        paths = [*self.files, *(self.folder / name for name in OTHERS)]
        path = rng.choice([x for x in paths if x.match(str(self.folder / pattern))])
        if damage is None:
            path = rng.choice([path, path.with_name(f"{path.name}.tmp")])
            mutations.put_special_file(path, rng)
            return path
        path.write_bytes(damage(self.files[path], rng))
        if forged:
            self.sign(path)
        return path

    def sign(self, path) -> None:
        """Corrects the checksums of a damaged file."""
        if path.name == MODEL:
            with contextlib.suppress(UserError):
                tensors, metadata = load_tensors(path)
                digest = tensors_digest(tensors, metadata)
                save_tensors(path, tensors, metadata | {"sha256": digest})
            return
        for manifest in self.folder.glob(MANIFEST):
            old = json.loads(manifest.read_text())
            for files in old.values():
                if path.name in files:
                    files[path.name] = file_digest(path)
            manifest.write_text(json.dumps(old))

    def load(self, kind, path) -> str:
        """Loads the damaged file; returns the outcome, one of ``GOOD``."""
        if path.name == MODEL:
            return self.load_model(kind, path)
        if path.name == CONFIG:
            return self.parse()
        if path.suffix == ".safetensors":
            with contextlib.suppress(UserError):
                self.model.load(path)  # A checkpoint is a model, too.
        checkpoints = self.checkpoints
        whole = KINDS[kind][2] or path.suffix == ".tmp"
        if not whole:
            # A file that matches its checksum is intact, so that reading it is enough.
            checkpoints = copy.copy(checkpoints)
            checkpoints.parts = {}
        with self.log() as logger:
            logger.current.claimed = True  # as in a run that is resumed
            steps, _ = checkpoints.restore(str(self.folder), TOTAL)
            if whole:
                self.go_on()
            if path.suffix == ".tmp":
                checkpoints.save(TOTAL, TOTAL)
        return "loaded" if steps == TOTAL else "loaded the older one"

    def load_model(self, kind, path):
        import baselines

        self.model.load(path)
        if "metadata" in kind:
            baselines.load(path)
        elif "bytes" in kind and self.weights() != self.right:
            raise AssertionError("a damaged model was loaded")
        return "loaded"

    def parse(self):
        """Reads config.json as ``--resume`` does; prints what a run prints at its end.

        The arguments that ``learn()`` would get are checked.
        """
        from baselines.common.arguments.checked import check_arguments
        from baselines.common.run.parsing import parse

        from baselines import run

        settings = parse([f"--resume={self.folder}"])
        check_arguments(settings.learn, settings.learn_arguments | {"env": None})
        config = settings.config
        with self.log() as logger:
            logger.configure(str(self.folder), config["log_formats"], config)
            logger.current.claimed = True
            run.print_next_steps(settings, str(self.folder / MODEL))
        return "loaded"

    def look(self, with_report) -> list:
        """Does what other commands do with the folder; returns their UserErrors."""
        from baselines import report, runs
        from baselines.common.run.loading import find_env
        from baselines.common.views.curves import find_curves

        folder, errors = str(self.folder), []
        looks = [
            lambda: runs.list_runs(folder),
            lambda: find_curves([folder]),
            lambda: find_env(folder).make().close(),
        ]
        if with_report and importlib.util.find_spec("matplotlib"):
            looks.append(lambda: report.report([folder]))
        for look in looks:
            try:
                look()
            except UserError as error:
                errors.append(error)
        return errors

    def go_on(self) -> None:
        """Uses the restored parts."""
        parts = self.checkpoints.parts
        if "runner" in parts:
            parts["runner"].run()
        else:
            parts["collector"].step_async()
            parts["memory"].sample(2, 4)
            parts["collector"].step_wait()
        for name in parts.keys() - {"model", "target", "optimizer"}:
            json.dumps(take_arrays(parts[name].get_state(), {}))


def attempt(targets, seed, number) -> tuple:
    """Makes an attempt; returns its kind, its outcome and the error messages."""
    rng = random.Random(f"{seed} {number}")
    target, kind = rng.choice(targets), rng.choice(list(KINDS))
    target.restore_files()
    path = target.damage(kind, rng)
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
    try:
        # Waiting for the disk would take most of the time, or look like a hang.
        with mock.patch("os.fsync"):
            looked_at = KINDS[kind][0] in LOOKED_AT
            errors = target.look(number % REPORT_EACH == 0) if looked_at else []
            outcome = "refused" if errors else "loaded"
            try:
                if path.suffix not in (".csv", ".txt", ".html"):
                    outcome = target.load(kind, path)
            except UserError as error:
                errors, outcome = [*errors, error], "refused"
        said = "; ".join(map(str, errors))
        if not said.isprintable():
            outcome = "refused, but not in one line"
    except Hang:
        outcome, said = "hung", traceback.format_exc()
    except BaseException as error:
        outcome, said = f"raised {type(error).__name__}", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return kind, outcome, f"{path}: {said}"


def make_targets(folder) -> list:
    """Returns the Targets, and sets up an alarm that ends attempts that hang."""

    def stop(number, frame):
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    for name in RUNS:
        shutil.rmtree(Path(folder, name), ignore_errors=True)
    return [Target(name, Path(folder, name).absolute()) for name in RUNS]


def serve(pipe, folder, seed) -> None:
    """Makes the attempts whose numbers arrive through a pipe."""
    # The output of Keras and others would hide the findings.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    targets = make_targets(folder)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY,) * 2)
    pipe.send(None)
    while (number := pipe.recv()) is not None:
        pipe.send(attempt(targets, seed, number))


class Child:
    """The child process that makes attempts."""

    def __init__(self, folder, seed):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, folder, seed))
        self.process.start()
        other.close()
        self.pipe.recv()

    def attempt(self, number) -> tuple:
        """Returns the result of ``attempt``; a crash or hang in C ends the process."""
        self.pipe.send(number)
        try:
            if self.pipe.poll(2 * HANG_SECONDS):
                return self.pipe.recv()
            outcome = "hung"
        except EOFError:
            outcome = "crashed"
        self.process.kill()
        self.process.join()
        return "unknown", outcome, f"exit status {self.process.exitcode}"

    def end(self) -> None:
        if self.process.is_alive():
            self.pipe.send(None)
            self.process.join()


def main(argv=None):
    """Makes the attempts that the command line asks for; exits with 1 if any failed."""
    argv = sys.argv[1:] if argv is None else list(argv)
    with cli.one_line_errors(), tempfile.TemporaryDirectory() as temporary:
        options, others = parse_options(Options, argv, PROGRAM, __doc__)
        if len(others) > 1 or others and others[0].startswith("-"):
            raise UserValueError(f"expected one folder at most, received {others}")
        failed = make_attempts(options, *others or [temporary])
    sys.exit(1 if failed else 0)


def make_attempts(options, folder) -> int:
    """Makes attempts and prints a table of them; returns how many failed."""
    counts = collections.Counter()
    child, begun, failed = Child(folder, options.seed), time.monotonic(), 0
    for number in range(options.start, options.start + options.count):
        kind, outcome, said = child.attempt(number)
        counts[kind, outcome] += 1
        if outcome not in GOOD:
            failed += 1
            repeat = f"{PROGRAM} --seed={options.seed} --start={number} --count=1"
            print(f"{kind}: {outcome}; again by {repeat}\n{said}", flush=True)
        if not child.process.is_alive():
            child = Child(folder, options.seed)
    child.end()
    rate = options.count / (time.monotonic() - begun)
    print_table(counts)
    print(f"{options.count} attempts, {rate:.0f} a second; failed: {failed}")
    return failed


def print_table(counts) -> None:
    """Prints how often each kind of attempt had each outcome."""
    outcomes = [*GOOD, *sorted({outcome for _, outcome in counts} - set(GOOD))]
    kinds = sorted({kind for kind, _ in counts})
    width = max(map(len, kinds))
    print(" | ".join([" " * width, *outcomes]))
    for kind in kinds:
        cells = [f"{counts[kind, x]:>{len(x)}}" for x in outcomes]
        print(" | ".join([f"{kind:<{width}}", *cells]))


if __name__ == "__main__":
    main()
