"""A whole run on disk: saved now and then, restored bit for bit.

A checkpoint is a file of tensors (with JSON beside them) and a manifest that
lists the files it consists of with their checksums. The manifest is written
last, so that a kill at any moment leaves the checkpoint before it whole. Files
named by no manifest are removed; a file that several manifests name is kept as
long as one of them is. Each MPI rank has a file of its own, and rank 0 writes the
manifest over all.

A part that is large and grows, such as a replay memory, is saved in segments: files
that are written once, when a segment is full, and that the manifests of later
checkpoints name again.
"""

import hashlib
import json
import os
import re
import shlex
import signal

import numpy as np

from baselines import logger
from baselines.common import mpi
from baselines.common.errors import (
    DivergedError,
    FullDiskError,
    UserFileError,
    UserTypeError,
    UserValueError,
)
from baselines.common.files import replace_file
from baselines.common.tensors import load_tensors, save_tensors
from baselines.common.vec_env import VecEnvWrapper

FORMAT = 2
METADATA = {
    "description": dict,
    "num_timesteps": int,
    "total_timesteps": int,
    "states": dict,
}
KEPT = 2  # checkpoints: the newest, and one in case it is damaged
NOT_RESUMABLE = (
    "a run in these environments cannot be resumed: their VecEnv, a wrapper of it, or "
    "a wrapper above the Recorder of an environment has no get_state()"
)
FREE_ARGUMENTS = {  # of learn(), which may change when a run is resumed
    "checkpoint_interval",
    "checkpoint_path",
    "load_path",
    "log_interval",
    "print_freq",
    "resume",
    "seed",
    "total_timesteps",
}
STOP_SIGNALS = signal.SIGINT, signal.SIGTERM


class Checkpoints:
    """Saves and restores the parts of a run.

    Signals are answered inside ``with``: SIGTERM or SIGINT saves a checkpoint
    at the end of the update and then ends the run; a second SIGINT ends it at
    once.

    Args:
        folder: the run's log folder; None to save nothing.
        interval: agent steps from one checkpoint to the next; 0 for none.
        total_timesteps: agent steps that the run is meant to have.
        envs: the VecEnv that is trained in, and others whose state is kept.
        description: JSON values that a checkpoint has to agree in, such as the
            algorithm and the shapes.
        parts: objects with ``get_state`` and ``set_state`` by name. A state is
            a nest of dicts and lists of arrays and JSON values. One that is saved in
            segments also has ``segments``, ``get_segment`` and ``set_segment``, see
            ``ReplayBuffer``.
    """

    def __init__(self, folder, interval, total_timesteps, envs, description, **parts):
        self.folder = folder and os.path.join(folder, "checkpoints")
        self.interval = interval if folder else 0
        self.total_timesteps = total_timesteps
        self.envs = envs
        num_envs = envs[0].num_envs
        self.description = {
            **description,
            "checkpoint_format": FORMAT,
            "num_envs": num_envs,
        }
        # The log comes last, because restoring anything else may still fail.
        self.parts = {**parts, "logger": logger}
        self.segmented = {k: v for k, v in parts.items() if hasattr(v, "segments")}
        self.written = {}  # checksums of segments by file name
        self.written_up_to = None  # last numbers when they were looked at
        self.num_timesteps = 0
        self.signal = 0  # none yet
        self.old_handlers = {}

    def __enter__(self):
        if self.interval:
            for number in STOP_SIGNALS:
                try:
                    self.old_handlers[number] = signal.signal(number, self._stop)
                except ValueError:
                    break  # Only the main thread may; elsewhere signals are not ours.
        return self

    def __exit__(self, kind, error, traceback):
        for number, handler in self.old_handlers.items():
            signal.signal(number, handler)
        if isinstance(error, (DivergedError, FullDiskError)):
            where = "there is no checkpoint"
            if manifests := list_manifests(self.folder) if self.interval else []:
                where = f"the last good checkpoint is {manifests[-1]}"
            error.args = (f"{error}; {where}",)

    def _stop(self, number, frame):
        if self.signal == signal.SIGINT == number:
            raise KeyboardInterrupt
        self.signal = number

    def after_update(self, num_timesteps, last=False) -> None:
        """Saves a checkpoint if one is due.

        Args:
            num_timesteps: agent steps done.
            last: whether training ends here.

        Raises:
            KeyboardInterrupt, SystemExit: if SIGINT or SIGTERM came.
        """
        if not self.interval:
            return
        self._write_segments()
        # Of all ranks, as it may have reached one alone, or one later than the others.
        number = max(mpi.gather(self.signal))
        due = num_timesteps // self.interval > self.num_timesteps // self.interval
        if due or number or last:
            self.save(num_timesteps)
        self.num_timesteps = num_timesteps
        if not number:
            return
        name = signal.Signals(number).name
        run_folder = os.path.dirname(self.folder)
        logger.log(
            f"{name} after {num_timesteps} agent steps; go on by "
            f"--resume={shlex.quote(run_folder)}"
        )
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    def save(self, num_timesteps) -> None:
        """Writes a checkpoint and removes the ones it replaces."""
        self._write_segments()
        tensors = {}
        states = {name: part.get_state() for name, part in self.parts.items()}
        metadata = {
            "description": self.description,
            "num_timesteps": num_timesteps,
            "total_timesteps": self.total_timesteps,
            "states": take_arrays(states, tensors),
        }
        manifest_path = os.path.join(self.folder, f"{num_timesteps:012d}.json")
        path = data_path(manifest_path)
        save_tensors(path, tensors, metadata)
        files = mpi.gather((os.path.basename(path), file_digest(path)))
        if mpi.rank == 0:
            segments = {file: self.written[file] for file in self._segment_files()}
            manifest = {"files": dict(files), "segments": segments}
            replace_file(manifest_path, json.dumps(manifest, indent=2).encode())
            self._remove_old()
        # Where a signal ends the run, no rank may end before the manifest is written.
        mpi.wait()

    def _segment_files(self) -> dict:
        """Returns (part, number) of the segments needed now, by their files' names."""
        return {
            f"{name}-{number:012d}.safetensors": (part, number)
            for name, part in self.segmented.items()
            for number in part.segments()
        }

    def _write_segments(self):
        """Writes the segments that are full by now, and forgets those not needed."""
        newest = [part.segments().stop for part in self.segmented.values()]
        if newest == self.written_up_to:
            return  # As most times: none has become full.
        self.written_up_to = newest
        files = self._segment_files()
        for file, (part, number) in files.items():
            if file not in self.written:
                path = os.path.join(self.folder, file)
                save_tensors(path, part.get_segment(number), {})
                self.written[file] = file_digest(path)
        self.written = {file: self.written[file] for file in files}

    def _remove_old(self):
        manifests = list_manifests(self.folder)
        for path in manifests[:-KEPT]:
            os.unlink(path)
        named = set(self.written)
        for path in manifests[-KEPT:]:
            named |= set(read_files_of(path)) | set(read_files_of(path, "segments"))
        for file in os.listdir(self.folder):
            if file.endswith((".safetensors", ".tmp")) and file not in named:
                os.unlink(os.path.join(self.folder, file))

    def _remove_all(self):
        """Removes what an earlier run in the same folder left."""
        if self.folder and os.path.isdir(self.folder) and mpi.rank == 0:
            for file in os.listdir(self.folder):
                if re.fullmatch(r"(\w+-)?\d{12}\.(json|(\d+\.)?safetensors)", file):
                    os.unlink(os.path.join(self.folder, file))

    def restore(self, folder) -> int:
        """Puts every part where the newest whole checkpoint has it; opens the log.

        Args:
            folder: log folder of the run to go on with, or None for a new run.

        Returns:
            how many agent steps are done: 0 for a new run, or for one that was
            killed before its first checkpoint.

        Raises:
            UserFileError: if the folder has no run.
            UserValueError: if the checkpoint does not fit this run, or none is
                whole, or the MPI ranks do not train alike.
        """
        self._check_agreement()
        resumable = all(is_resumable(env) for env in self.envs)
        if folder is None:
            logger.open_files()
            if self.total_timesteps > 0:
                self._remove_all()
            if self.interval and not resumable:
                self.interval = 0
                logger.warn(f"no checkpoints are written: {NOT_RESUMABLE}")
            return 0
        if not resumable:
            raise UserTypeError(NOT_RESUMABLE)
        folder = os.path.expanduser(folder)
        if not os.path.isdir(folder):
            raise UserFileError(f"there is no run to resume in {folder}")
        manifests = list_manifests(os.path.join(folder, "checkpoints"))
        damaged = None
        for path in reversed(manifests):
            check_ranks(folder, len(read_files_of(path)) or mpi.size)
            problem = None
            try:
                tensors, metadata = load_checkpoint(path)
                segments = self._find_segments(path)
            except (UserValueError, UserFileError) as error:
                problem = error
            problems = [error for error in mpi.gather(problem) if error]
            if problems:
                damaged = problems[0]
                continue
            self._check_description(path, metadata["description"])
            if metadata["num_timesteps"] > self.total_timesteps:
                raise UserValueError(
                    f"cannot resume {folder}: {metadata['num_timesteps']} agent steps "
                    f"are done, more than the {self.total_timesteps} asked for"
                )
            for part, segment_path in segments:
                part.set_segment(load_tensors(segment_path)[0])
            states = put_arrays(metadata["states"], tensors)
            for name, part in self.parts.items():
                part.set_state(states[name])
            self._check_segments(path)
            if damaged:
                logger.warn(f"{damaged}; resumed from the one before it")
            self.num_timesteps = metadata["num_timesteps"]
            self._say_where(folder, metadata["total_timesteps"])
            return self.num_timesteps
        if damaged:
            raise damaged
        if not self.interval:
            raise UserValueError(
                f"cannot resume {folder}: it was run without checkpoints "
                "(checkpoint_interval=0)"
            )
        logger.open_files()
        logger.log(f"{folder} has no checkpoint yet: starting from its beginning")
        return 0

    def _find_segments(self, manifest_path) -> list:
        """Returns (part, path) of the segments of a manifest, in their order.

        Raises:
            UserValueError: if one of them is not whole.
        """
        found = []
        for file, digest in sorted(read_files_of(manifest_path, "segments").items()):
            part = self.segmented.get(file.partition("-")[0])
            path = os.path.join(os.path.dirname(manifest_path), file)
            if part is None or os.path.basename(path) != file:
                raise UserValueError(f"the checkpoint {manifest_path} is damaged")
            check_whole_file(path, digest)
            found.append((part, path))
        return found

    def _check_segments(self, manifest_path):
        """Raises UserValueError unless a manifest names just the segments needed."""
        named = read_files_of(manifest_path, "segments")
        if set(named) != set(self._segment_files()):
            raise UserValueError(f"the checkpoint {manifest_path} is damaged")
        # In another folder they have to be written again.
        if self.folder and os.path.dirname(manifest_path) == self.folder:
            self.written = named

    def _check_agreement(self):
        """Raises UserValueError unless rank 0 of MPI trains the same, and as long."""
        mine = {
            **self.description,
            "total_timesteps": self.total_timesteps,
            "checkpoint_interval (0 without a log folder)": self.interval,
        }
        for key, expected in mpi.broadcast(mine).items():
            if mine.get(key) != expected:
                raise UserValueError(
                    f"the MPI ranks have to train alike, but {key} is {expected} on "
                    f"rank 0 and {mine.get(key)} on rank {mpi.rank}"
                )

    def _say_where(self, folder, old_total):
        done, total = self.num_timesteps, self.total_timesteps
        logger.log(f"resuming {folder} at {done} of {total} agent steps")
        if done == total:
            logger.log("It is finished; a larger --num_timesteps trains it longer.")
        if total != old_total:
            logger.log(
                f"It was meant to have {old_total}. Schedules now span {total}: they "
                f"go on from where {done / total:.0%} of training is done."
            )

    def _check_description(self, path, found):
        for key, expected in self.description.items():
            if found.get(key) != expected:
                raise UserValueError(
                    f"cannot resume from {path}: its {key} is {found.get(key)}, this "
                    f"run's is {expected}"
                )


def must_not_change(arguments) -> dict:
    """Returns the arguments of ``learn`` that have to be the same when it is resumed.

    Args:
        arguments: by name; only numbers, text and the like are compared.
    """
    arguments = {**arguments, **arguments.get("network_kwargs", {})}
    plain = {
        name: value
        for name, value in arguments.items()
        if name not in FREE_ARGUMENTS
        and isinstance(value, (int, float, str, list, tuple, type(None)))
    }
    # As a checkpoint has them, where tuples are lists.
    return json.loads(json.dumps(plain))


def check_ranks(folder, ranks) -> None:
    """Raises UserValueError unless a run of so many MPI ranks can be resumed."""
    if ranks != mpi.size:
        start = f"start it by mpiexec -n {ranks}" if ranks > 1 else "leave out mpiexec"
        raise UserValueError(
            f"cannot resume {folder}: it was trained by {ranks} MPI rank(s), this is a "
            f"run of {mpi.size}; {start}"
        )


def is_resumable(env) -> bool:
    """Whether a VecEnv, ours or of the same interface, can hand over its state."""
    while True:
        if getattr(env, "get_state", None) is None:
            return False
        if not isinstance(env, VecEnvWrapper):
            return getattr(env, "resumable", True)
        env = env.venv


def list_manifests(folder) -> list:
    """Returns the paths of all manifests, oldest first."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in sorted(names)]
    return [
        path
        for path in paths
        if re.fullmatch(r"\d{12}\.json", os.path.basename(path))
        and os.path.isfile(path)
    ]


def read_files_of(path, kind="files") -> dict:
    """Returns the checksums of a manifest's files by name; none if it is damaged.

    Args:
        path: of the manifest.
        kind: ``files``, of which each MPI rank has one, or ``segments``.
    """
    try:
        with open(path) as file:
            files = json.load(file)[kind]
        return {str(name): str(digest) for name, digest in files.items()}
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        return {}


def data_path(manifest_path) -> str:
    """Returns the path of this rank's data in the checkpoint of a manifest."""
    end = f"{mpi.rank}.safetensors" if mpi.rank else "safetensors"
    return f"{manifest_path.removesuffix('json')}{end}"


def load_checkpoint(path):
    """Reads the checkpoint of a manifest.

    Returns:
        (tensors, metadata) of this rank's data file.

    Raises:
        UserFileError, UserValueError: if it is not whole.
    """
    digest = read_files_of(path).get(os.path.basename(data_path(path)))
    if digest is None:
        raise UserValueError(f"the checkpoint {path} is damaged")
    check_whole_file(data_path(path), digest)
    tensors, metadata = load_tensors(data_path(path))
    for key, kind in METADATA.items():
        if not isinstance(metadata.get(key), kind):
            raise UserValueError(f"the checkpoint {path} is damaged")
    return tensors, metadata


def check_whole_file(path, digest) -> None:
    """Raises UserValueError unless there is a file with that checksum."""
    if not os.path.isfile(path) or file_digest(path) != digest:
        raise UserValueError(f"the checkpoint {path} is damaged")


def file_digest(path) -> str:
    """Returns the SHA-256 checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def take_arrays(state, tensors, path=""):
    """Returns ``state`` as JSON values and moves its arrays to ``tensors``."""
    if isinstance(state, (np.ndarray, np.generic)):
        tensors[path] = np.asarray(state)
        return {"tensor": path}
    if isinstance(state, dict):
        return {k: take_arrays(v, tensors, f"{path}/{k}") for k, v in state.items()}
    if isinstance(state, (list, tuple)):
        return [take_arrays(v, tensors, f"{path}/{i}") for i, v in enumerate(state)]
    return state


def put_arrays(state, tensors):
    """Returns what ``take_arrays`` was given."""
    if isinstance(state, dict):
        if set(state) == {"tensor"}:
            return tensors[state["tensor"]]
        return {key: put_arrays(value, tensors) for key, value in state.items()}
    if isinstance(state, list):
        return [put_arrays(value, tensors) for value in state]
    return state


class VariableState:
    """The values of Keras variables, as a part of a checkpoint."""

    def __init__(self, variables):
        self.variables = variables

    def get_state(self) -> list:
        return [variable.numpy() for variable in self.variables]

    def set_state(self, state) -> None:
        for variable, value in zip(self.variables, state, strict=True):
            variable.assign(value)
