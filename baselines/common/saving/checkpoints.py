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

from baselines import logger
from baselines.common.base import mpi
from baselines.common.base.errors import (
    UserError,
    UserFileError,
    UserValueError,
    first_line,
)
from baselines.common.saving.files import (
    file_digest,
    remove_file,
    replace_file,
    writing,
)
from baselines.common.saving.json_values import is_regular, read_json
from baselines.common.saving.log_folder import OWN_FILE, checkpoint_steps
from baselines.common.saving.states import (
    DamagedState,
    VariableState,
    check_like,
    refusing_damage,
)
from baselines.common.saving.tensors import (
    has_its_size,
    load_tensors,
    put_arrays,
    save_tensors,
    take_arrays,
)

FORMAT = 10
METADATA = {
    "description": ...,
    "num_timesteps": 0,
    "total_timesteps": 0,
    "states": ...,
}
MAX_CHECKPOINTS = 2  # kept on disk: the newest, and one in case it is damaged


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
        path = data_path(manifest_path)
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
        kept = list(filter(is_regular, manifests))[-MAX_CHECKPOINTS:]
        named = set()
        for path in manifests:
            if path not in kept:
                remove_file(path)
                continue
            with contextlib.suppress(UserError):
                named.update(*read_manifest(path).values())
        for file in os.listdir(self.folder):
            if OWN_FILE.fullmatch(file) and file not in named:
                remove_file(os.path.join(self.folder, file))

    def restore(self, run_folder, total_timesteps):
        """Restores every part from the newest undamaged checkpoint of a run.

        Args:
            run_folder: log folder of the run to continue.
            total_timesteps: agent steps that the whole run is to have.

        Returns:
            the checkpoint's ``num_timesteps`` and ``total_timesteps``; None for a run
            that was killed before its first checkpoint.

        Raises:
            UserValueError: if all checkpoints are damaged, or the newest undamaged one
                does not fit this run.
        """
        manifests = list_manifests(os.path.join(run_folder, "checkpoints"))
        if manifests:
            check_ranks(run_folder, find_ranks(run_folder, manifests))
        damaged = None
        for path in reversed(manifests):
            problem = None
            try:
                states, metadata = load_checkpoint(path)
                self._check_segments(path)
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
            for name in self.parts:
                try:
                    with refusing_damage():
                        self._restore_part(name, path, states)
                except DamagedState as error:
                    raise UserValueError(
                        f"the checkpoint {path} is damaged, or this run is not made as "
                        f"that one was, such as its environment: its {name} cannot be "
                        f"restored ({error})"
                    ) from error
            if damaged:
                logger.warn(f"{damaged}; resumed from the one before it")
            return done, metadata["total_timesteps"]
        if damaged:
            raise damaged
        return None

    def _restore_part(self, name, manifest_path, states):
        """Restores one part, with its segments.

        Raises:
            DamagedState: if the manifest does not name exactly the segments needed.
        """
        if name not in states:
            raise UserValueError(
                f"cannot resume from {manifest_path}: it has no {name}"
            )
        self.parts[name].set_state(states[name])
        if name not in self.segmented:
            return
        named = read_manifest(manifest_path)["segments"]
        found = {file for file in named if segment_of(file) == (name, mpi.rank)}
        needed = {
            k: v for k, v in self._segment_files().items() if v[0] is self.parts[name]
        }
        if found != needed.keys():
            raise DamagedState(f"segments: {sorted(found)}, expected {sorted(needed)}")
        for file, (part, number) in needed.items():
            path = os.path.join(os.path.dirname(manifest_path), file)
            part.set_segment(number, load_tensors(path)[0])
            self.written[file] = named[file]

    def _check_segments(self, manifest_path):
        """Raises UserValueError for a damaged segment, or an unknown part or rank."""
        for file, digest in read_manifest(manifest_path)["segments"].items():
            path = os.path.join(os.path.dirname(manifest_path), file)
            part, rank = segment_of(file)
            if part not in self.segmented or rank >= mpi.size:
                raise damaged_checkpoint(manifest_path, f"it names {file!r:.100}")
            if rank == mpi.rank:
                check_intact(path, digest, manifest_path)

    def _check_description(self, path, found):
        for key, expected in self.description.items():
            if found.get(key) != expected:
                value = found.get(key, "a function or another object")
                raise UserValueError(
                    f"cannot resume from {path}: its {key} is "
                    f"{first_line(value):.200}, this run's is {expected}"
                )


def check_ranks(folder, ranks) -> None:
    """Raises UserValueError if a run had a different number of MPI ranks."""
    if ranks != mpi.size:
        start = (
            f"start it with mpiexec -n {ranks}" if ranks > 1 else "leave out mpiexec"
        )
        raise UserValueError(
            f"cannot resume {folder}: it was trained by {ranks} MPI rank(s), this is a "
            f"run of {mpi.size}; {start}"
        )


def find_ranks(run_folder, manifests) -> int:
    """Returns how many MPI ranks a run had.

    Args:
        run_folder: its log folder.
        manifests: of its checkpoints, oldest first, in case config.json does not say.
    """
    with contextlib.suppress(UserError, KeyError, TypeError):
        ranks = read_json(os.path.join(run_folder, "config.json"))["ranks"]
        if type(ranks) is int:
            return ranks
    for path in reversed(manifests):
        with contextlib.suppress(UserError):
            return len(read_manifest(path)["files"])
    return mpi.size


def list_manifests(folder) -> list:
    """Returns the paths of all manifests, oldest first, damaged ones included."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [
        os.path.join(folder, name)
        for name in sorted(names)
        if re.fullmatch(r"\d{12}\.json", name, re.ASCII)
    ]


def name_newest(folder) -> str:
    """Returns a sentence about the newest checkpoint in a folder."""
    if manifests := list_manifests(folder):
        return f"the last good checkpoint is {manifests[-1]}"
    return "there is no checkpoint"


def can_continue(folder, error) -> bool:
    """Whether resuming could help: a mistake before any checkpoint is only repeated."""
    return bool(list_manifests(folder)) or not isinstance(error, UserError)


def read_manifest(path) -> dict:
    """Returns the checksums of a checkpoint's files by name, in two dicts.

    ``files`` has one file for each MPI rank, and ``segments`` has the segments.

    Raises:
        UserFileError, UserValueError: if the manifest is damaged.
    """
    if not is_regular(path):
        raise damaged_checkpoint(path, "it is not a regular file")
    try:
        manifest = read_json(path)
        with refusing_damage():
            check_like(manifest, {"files": ..., "segments": ...})
            files, segments = manifest["files"], manifest["segments"]
            if set(files) != {data_name(path, rank) for rank in range(len(files))}:
                raise ValueError(f"its files are {sorted(files)!r:.100}")
            for name, digest in [*files.items(), *segments.items()]:
                if not re.fullmatch(r"[0-9a-f]{64}", digest):
                    raise ValueError(f"the checksum of {name!r:.100}")
            for name in segments:
                segment_of(name)
    except UserValueError as error:
        raise damaged_checkpoint(path, error) from error
    return manifest


def damaged_checkpoint(path, what) -> UserValueError:
    """Returns the error for the damaged checkpoint of a manifest."""
    return UserValueError(f"the checkpoint {path} is damaged: {what}")


def file_ending(rank) -> str:
    """Returns the ending of the names of a rank's files."""
    return f"{rank}.safetensors" if rank else "safetensors"


def segment_of(name):
    """Returns (part, rank) of a segment's file name; raises ValueError for others."""
    pattern = r"(\w+)-\d{12,15}\.(?:([1-9]\d{0,8})\.)?safetensors"
    match = re.fullmatch(pattern, name, re.ASCII)
    if match is None:
        raise ValueError(f"the name {name!r:.100}")
    return match[1], int(match[2] or 0)


def data_name(manifest_path, rank) -> str:
    """Returns the name of a rank's file in the checkpoint of a manifest."""
    stem = os.path.basename(manifest_path).removesuffix("json")
    return f"{stem}{file_ending(rank)}"


def data_path(manifest_path) -> str:
    """Returns the path of this rank's data in the checkpoint of a manifest."""
    folder = os.path.dirname(manifest_path)
    return os.path.join(folder, data_name(manifest_path, mpi.rank))


def load_checkpoint(path):
    """Reads the checkpoint of a manifest.

    Returns:
        (states, metadata) of this rank's data file.

    Raises:
        UserFileError, UserValueError: if it is damaged.
    """
    files = read_manifest(path)["files"]
    if len(files) != mpi.size:
        raise damaged_checkpoint(path, f"it has files of {len(files)} MPI rank(s)")
    data = data_path(path)
    check_intact(data, files[os.path.basename(data)], path)
    try:
        tensors, metadata = load_tensors(data)
        with refusing_damage():
            check_like(metadata, METADATA)
            if metadata["num_timesteps"] != checkpoint_steps(path):
                raise ValueError(f"it has {metadata['num_timesteps']} agent steps")
            states = put_arrays(metadata["states"], tensors)
            if not isinstance(states, dict) or not isinstance(
                metadata["description"], dict
            ):
                raise TypeError("it has no states or no description by name")
    except UserValueError as error:
        raise damaged_checkpoint(path, error) from error
    return states, metadata


def check_intact(path, digest, manifest_path) -> None:
    """Raises UserValueError unless there is a file with that checksum."""
    # The size first: reading a sparse file of terabytes could take hours.
    sized = is_regular(path) and has_its_size(path)
    if not sized or file_digest(path) != digest:
        what = f"{os.path.basename(path)} is missing, or has another checksum"
        raise damaged_checkpoint(manifest_path, what)


def find_run_folder(folder) -> str:
    """Returns the absolute path of a run to resume; raises UserFileError if missing."""
    path = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isfile(config := os.path.join(path, "config.json")):
        raise UserFileError(f"there is no run to resume in {folder}: no file {config}")
    return path
