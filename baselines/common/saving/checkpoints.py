"""The state of a run on disk: saved at intervals, restored bit for bit.

A checkpoint is a file of tensors (with JSON beside them) and a manifest that lists the
files it consists of with their checksums. The manifest is written last, so that a kill
at any moment leaves the previous checkpoint undamaged. Files that no manifest names are
removed. Each MPI rank has its own file, and rank 0 writes one manifest for all.

A part that is large and grows, such as a replay memory, is saved in segments: files
that are written once, when a segment is full, and that the manifests of later
checkpoints name again.
"""

import json
import os
import re

from baselines import logger
from baselines.common import mpi
from baselines.common.errors import UserError, UserFileError, UserValueError
from baselines.common.saving.files import file_digest, replace_file, writing
from baselines.common.saving.tensors import (
    load_tensors,
    put_arrays,
    save_tensors,
    take_arrays,
)

FORMAT = 6
METADATA = {
    "description": dict,
    "num_timesteps": int,
    "total_timesteps": int,
    "states": dict,
}
MAX_CHECKPOINTS = 2  # on disk: the newest, and one in case it is damaged


class Checkpoints:
    """The checkpoints in one folder.

    Args:
        folder: where they are; made when the first is saved.
        description: JSON values that have to be the same in a checkpoint, such as the
            algorithm and the shapes.
        parts: objects with ``get_state`` and ``set_state``, or Keras optimisers, by
            name. A state is a nest of dicts and lists of arrays and JSON values. One
            that is saved in segments also has ``segments``, ``get_segment`` and
            ``set_segment``, see ``ReplayBuffer``.
    """

    def __init__(self, folder, description, parts):
        self.folder = folder
        self.description = {"checkpoint_format": FORMAT, **description}
        self.parts = {
            name: part if hasattr(part, "get_state") else VariableState(part.variables)
            for name, part in parts.items()
        }
        self.segmented = {k: v for k, v in parts.items() if hasattr(v, "segments")}
        self.written = {}  # checksums of segments by file name
        self.next_segments = []  # of each part, when segments were last written

    def save(self, num_timesteps, total_timesteps) -> None:
        """Writes a checkpoint and removes the ones it replaces.

        Args:
            num_timesteps: agent steps done.
            total_timesteps: agent steps that the run is to have.
        """
        self.next_segments = []  # The folder may have been removed.
        self.write_segments()
        tensors = {}
        states = {name: part.get_state() for name, part in self.parts.items()}
        metadata = {
            "description": self.description,
            "num_timesteps": num_timesteps,
            "total_timesteps": total_timesteps,
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
            with writing(self.folder):
                self._remove_old()
        # If a signal ends the run, no rank may exit before the manifest is written.
        mpi.wait()

    def _segment_files(self) -> dict:
        """Returns (part, number) of the segments needed now, by their files' names."""
        return {
            f"{name}-{number:012d}.safetensors": (part, number)
            for name, part in self.segmented.items()
            for number in part.segments()
        }

    def write_segments(self) -> None:
        """Writes the segments that have become full since the last call."""
        next_segments = [part.segments().stop for part in self.segmented.values()]
        if next_segments == self.next_segments:
            return  # Usually none has.
        self.next_segments = next_segments
        files = self._segment_files()
        for file, (part, number) in files.items():
            path = os.path.join(self.folder, file)
            if file not in self.written or not os.path.isfile(path):
                save_tensors(path, part.get_segment(number), {})
                self.written[file] = file_digest(path)
        self.written = {file: self.written[file] for file in files}

    def _remove_old(self):
        manifests = list_manifests(self.folder)
        for path in manifests[:-MAX_CHECKPOINTS]:
            os.unlink(path)
        named = set(self.written)
        for path in manifests[-MAX_CHECKPOINTS:]:
            named |= set(read_files_of(path)) | set(read_files_of(path, "segments"))
        for file in os.listdir(self.folder):
            if file.endswith((".safetensors", ".tmp")) and file not in named:
                os.unlink(os.path.join(self.folder, file))

    def restore(self, run_folder, total_timesteps):
        """Restores every part from the newest undamaged checkpoint of a run.

        Args:
            run_folder: log folder of the run to continue.
            total_timesteps: agent steps that it is to have.

        Returns:
            the checkpoint's ``num_timesteps`` and ``total_timesteps``; None for a run
            that was killed before its first checkpoint.

        Raises:
            UserValueError: if all checkpoints are damaged, or the newest undamaged one
                does not fit this run.
        """
        manifests = list_manifests(os.path.join(run_folder, "checkpoints"))
        damaged = None
        for path in reversed(manifests):
            check_ranks(run_folder, len(read_files_of(path)) or mpi.size)
            problem = None
            try:
                tensors, metadata = load_checkpoint(path)
                segments = self._find_segments(path)
            except UserError as error:
                problem = error
            problems = [error for error in mpi.gather(problem) if error]
            if problems:
                damaged = problems[0]
                continue
            self._check_description(path, metadata["description"])
            done = metadata["num_timesteps"]
            if done > total_timesteps:
                raise UserValueError(
                    f"cannot resume {run_folder}: {done} agent steps are done, more "
                    f"than the {total_timesteps} asked for"
                )
            for part, segment_path in segments:
                part.set_segment(load_tensors(segment_path)[0])
            states = put_arrays(metadata["states"], tensors)
            for name, part in self.parts.items():
                part.set_state(states[name])
            self._check_segments(path)
            if damaged:
                logger.warn(f"{damaged}; resumed from the one before it")
            return done, metadata["total_timesteps"]
        if damaged:
            raise damaged
        return None

    def _find_segments(self, manifest_path) -> list:
        """Returns (part, path) of the segments of a manifest, in their order.

        Raises:
            UserValueError: if one of them is damaged.
        """
        found = []
        for file, digest in sorted(read_files_of(manifest_path, "segments").items()):
            part = self.segmented.get(file.partition("-")[0])
            path = os.path.join(os.path.dirname(manifest_path), file)
            if part is None or os.path.basename(path) != file:
                raise UserValueError(f"the checkpoint {manifest_path} is damaged")
            check_intact(path, digest)
            found.append((part, path))
        return found

    def _check_segments(self, manifest_path):
        """Raises UserValueError unless a manifest names exactly the segments needed."""
        named = read_files_of(manifest_path, "segments")
        if set(named) != set(self._segment_files()):
            raise UserValueError(f"the checkpoint {manifest_path} is damaged")
        # In another folder they have to be written again.
        if self.folder and os.path.dirname(manifest_path) == self.folder:
            self.written = named

    def _check_description(self, path, found):
        for key, expected in self.description.items():
            if found.get(key) != expected:
                raise UserValueError(
                    f"cannot resume from {path}: its {key} is {found.get(key)}, this "
                    f"run's is {expected}"
                )


def check_ranks(folder, ranks) -> None:
    """Raises UserValueError if a run had another number of MPI ranks."""
    if ranks != mpi.size:
        start = (
            f"start it with mpiexec -n {ranks}" if ranks > 1 else "leave out mpiexec"
        )
        raise UserValueError(
            f"cannot resume {folder}: it was trained by {ranks} MPI rank(s), this is a "
            f"run of {mpi.size}; {start}"
        )


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


def name_newest(folder) -> str:
    """Returns in words which is the newest checkpoint in a folder."""
    if manifests := list_manifests(folder):
        return f"the last good checkpoint is {manifests[-1]}"
    return "there is no checkpoint yet"


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
        UserFileError, UserValueError: if it is damaged.
    """
    digest = read_files_of(path).get(os.path.basename(data_path(path)))
    if digest is None:
        raise UserValueError(f"the checkpoint {path} is damaged")
    check_intact(data_path(path), digest)
    tensors, metadata = load_tensors(data_path(path))
    for key, kind in METADATA.items():
        if not isinstance(metadata.get(key), kind):
            raise UserValueError(f"the checkpoint {path} is damaged")
    return tensors, metadata


def check_intact(path, digest) -> None:
    """Raises UserValueError unless there is a file with that checksum."""
    if not os.path.isfile(path) or file_digest(path) != digest:
        raise UserValueError(f"the checkpoint {path} is damaged")


def find_run_folder(folder) -> str:
    """Returns the log folder of a run to resume; raises UserFileError if none."""
    folder = os.path.expanduser(folder)
    if not os.path.isdir(folder):
        raise UserFileError(f"there is no run to resume in {folder}")
    return folder


class VariableState:
    """The values of Keras variables, as a part of a checkpoint."""

    def __init__(self, variables):
        self.variables = variables

    def get_state(self) -> list:
        return [variable.numpy() for variable in self.variables]

    def set_state(self, state) -> None:
        for variable, value in zip(self.variables, state, strict=True):
            variable.assign(value)
