"""The state of a run on disk: saved at intervals, restored bit for bit.

A checkpoint is a file of tensors (with JSON metadata) and a manifest that lists the
checkpoint's files with their checksums. The manifest is written last, so that a kill at
any moment leaves the previous checkpoint undamaged. Files that no manifest names are
removed. Each MPI rank has its own file, and rank 0 writes one manifest for all.

A part that is large and grows, such as a replay memory, is saved in segments: files
that are written once, when a segment is full, and that the manifests of later
checkpoints list again.
"""

import contextlib
import json
import os
import re
from glob import escape, glob

from baselines.common.base import mpi
from baselines.common.base.errors import UserError, UserValueError, first_line
from baselines.common.saving.files import file_digest, read_json, replace_file, writing
from baselines.common.saving.states import VariableState
from baselines.common.saving.tensors import (
    load_tensors,
    put_arrays,
    save_tensors,
    take_arrays,
)

FORMAT = 12
MAX_CHECKPOINTS = 2  # kept on disk: the newest, and one in case it is damaged
# What checkpoints leave behind; a user may keep models under other names beside them.
FILE = re.compile(r"(\w+-)?\d{12}\.((\d+\.)?safetensors(\.tmp)?|json\.tmp)")


class Checkpoints:
    """The checkpoints in one folder.

    Args:
        folder: where they are; created when the first is saved.
        description: JSON values that have to be the same in a checkpoint that is
            restored, such as the algorithm and the shapes.
        parts: objects with ``get_state`` and ``set_state``, or Keras optimisers, by
            name. A state is a nest of dicts and lists of arrays and JSON values. A part
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
            total_timesteps: agent steps that the whole run is to have.
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
        path = data_path(manifest_path, mpi.rank)
        save_tensors(path, tensors, metadata)
        files = mpi.gather((os.path.basename(path), file_digest(path)))
        segments = {}
        for written in mpi.gather(self.written):
            segments |= written
        if mpi.rank == 0:
            manifest = {"files": dict(files), "segments": segments}
            replace_file(manifest_path, json.dumps(manifest, indent=2).encode())
            with writing(self.folder):
                self._remove_old()
        # If a signal ends the run, no rank may exit before the manifest is written.
        mpi.wait()

    def _segment_files(self) -> dict:
        """Returns the segments that this rank needs now: {file: (part, number)}."""
        return {
            f"{name}-{number:012d}.{file_ending(mpi.rank)}": (part, number)
            for name, part in self.segmented.items()
            for number in part.segments()
        }

    def write_segments(self) -> None:
        """Writes the segments that have become full since the last call."""
        next_segments = [part.segments().stop for part in self.segmented.values()]
        if next_segments == self.next_segments:
            return  # Usually no segment has become full.
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
        named = set()
        for path in manifests[-MAX_CHECKPOINTS:]:
            with contextlib.suppress(UserError):
                named.update(*read_manifest(path).values())
        for path in manifests[:-MAX_CHECKPOINTS]:
            os.unlink(path)
        for file in os.listdir(self.folder):
            if FILE.fullmatch(file) and file not in named:
                os.unlink(os.path.join(self.folder, file))

    def restore(self, run_folder, total_timesteps):
        """Restores every part from the newest undamaged checkpoint of a run.

        Args:
            run_folder: log folder of the run to continue.
            total_timesteps: agent steps that the whole run is to have.

        Returns:
            the checkpoint's ``num_timesteps`` and ``total_timesteps``, and the error of
            the one after it, if that is damaged; None for a run that was killed before
            its first checkpoint.

        Raises:
            UserValueError: if all checkpoints are damaged, or the newest undamaged one
                does not fit this run.
        """
        damaged = None
        for path in reversed(list_manifests(os.path.join(run_folder, "checkpoints"))):
            problem = manifest = None
            try:
                manifest = read_manifest(path)
                if len(manifest["files"]) == mpi.size:
                    check_files(path, manifest["files"], mpi.rank)
                    check_files(path, manifest["segments"], mpi.rank)
            except UserError as error:
                problem = error
            problems = [error for error in mpi.gather(problem) if error]
            if problems:
                damaged = problems[0]
                continue
            check_ranks(run_folder, len(manifest["files"]))
            tensors, metadata = load_tensors(data_path(path, mpi.rank))
            self._check_fits(path, metadata, total_timesteps)
            states = put_arrays(metadata["states"], tensors)
            for name in self.parts:
                self._restore_part(name, path, states, manifest["segments"])
            return metadata["num_timesteps"], metadata["total_timesteps"], damaged
        if damaged:
            raise damaged
        return None

    def _check_fits(self, path, metadata, total_timesteps):
        found, done = metadata["description"], metadata["num_timesteps"]
        for key, expected in self.description.items():
            if found.get(key) != expected:
                value = found.get(key, "a function or another object")
                raise UserValueError(
                    f"cannot resume from {path}: its {key} is {value}, this run's is "
                    f"{expected}"
                )
        if done > total_timesteps:
            raise UserValueError(
                f"cannot resume from {path}: {done} agent steps are done, more than "
                f"the {total_timesteps} asked for"
            )

    def _restore_part(self, name, manifest_path, states, segments):
        """Restores one part, with its segments."""
        try:
            self.parts[name].set_state(states[name])
            for file, (part, number) in self._segment_files().items():
                if part is self.parts[name]:
                    path = os.path.join(os.path.dirname(manifest_path), file)
                    self.written[file] = segments[file]
                    part.set_segment(number, load_tensors(path)[0])
        except UserError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise UserValueError(
                f"cannot resume from {manifest_path}: its {name} is of another run "
                f"({first_line(error)}); the environment, its wrappers and the network "
                "have to be the same"
            ) from error


def check_ranks(folder, ranks) -> None:
    """Raises UserValueError if a run had a different number of MPI ranks."""
    if ranks != mpi.size:
        raise UserValueError(
            f"cannot resume {folder}: it was trained by {ranks} MPI rank(s), this is a "
            f"run of {mpi.size}: start it with mpiexec -n {ranks}"
        )


def list_manifests(folder) -> list:
    """Returns the paths of all manifests, oldest first, damaged ones included."""
    if not folder:
        return []
    return sorted(glob(os.path.join(escape(folder), f"{'[0-9]' * 12}.json")))


def read_manifest(path) -> dict:
    """Returns the checksums of a checkpoint's files by name, in two dicts.

    ``files`` has one file for each MPI rank, and ``segments`` has the segments.

    Raises:
        UserFileError, UserValueError: if the manifest is damaged.
    """
    manifest = read_json(path)
    try:
        files, segments = dict(manifest["files"]), dict(manifest["segments"])
    except (LookupError, TypeError, ValueError):
        raise UserValueError(f"{path} is damaged") from None
    paths = [data_path(path, rank) for rank in range(len(files))]
    if files.keys() != set(map(os.path.basename, paths)):
        raise UserValueError(f"{path} is damaged")
    return {"files": files, "segments": segments}


def check_files(manifest_path, digests, rank) -> None:
    """Raises UserValueError unless the files of a checkpoint are those written.

    Args:
        manifest_path: path of its manifest.
        digests: the checksums in it, by file name.
        rank: whose files are checked.
    """
    for name, digest in digests.items():
        if rank_of(name) == rank:
            path = os.path.join(os.path.dirname(manifest_path), name)
            if not os.path.isfile(path) or file_digest(path) != digest:
                raise UserValueError(f"{path} is damaged or missing")


def file_ending(rank) -> str:
    """Returns the ending of the names of a rank's files."""
    return f"{rank}.safetensors" if rank else "safetensors"


def rank_of(name) -> int:
    """Returns the MPI rank that a file of a checkpoint belongs to, by its name."""
    match = re.search(r"\.(\d+)\.safetensors$", name)
    return int(match[1]) if match else 0


def data_path(manifest_path, rank) -> str:
    """Returns the path of a rank's file in the checkpoint of a manifest."""
    return manifest_path.removesuffix("json") + file_ending(rank)
