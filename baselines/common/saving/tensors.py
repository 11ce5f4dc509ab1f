"""Named arrays in a safetensors file: loading one never runs code from it."""

import hashlib
import json
import os
from zipfile import is_zipfile

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from baselines.common.base.errors import UserFileError, UserValueError, first_line
from baselines.common.saving.files import replace_file
from baselines.common.saving.json_values import check_json, parse_json


def save_tensors(path, tensors, metadata) -> None:
    """Writes arrays and JSON metadata to one file, atomically.

    Args:
        path: of the file; missing folders are made, and an old file is replaced.
        tensors: a dict of NumPy arrays by name.
        metadata: a dict of JSON values.

    Raises:
        UserValueError: for metadata that could not be read back.
    """
    try:
        check_json(metadata)
    except ValueError as error:
        raise UserValueError(f"{path} cannot be saved: {error}") from None
    data = save(tensors, {"json": json.dumps(metadata)})
    replace_file(os.path.abspath(os.path.expanduser(path)), data)


def load_tensors(path):
    """Reads what ``save_tensors`` wrote.

    Returns:
        (tensors, metadata), as they were given to ``save_tensors``.

    Raises:
        UserFileError: if the file is missing or cannot be read.
        UserValueError: if it is damaged or another kind of file.
    """
    path = os.path.expanduser(path)
    if not os.path.isfile(path):
        raise UserFileError(f"there is no saved model at {path}")
    try:
        with safe_open(path, framework="np") as file:
            metadata = parse_json(file.metadata()["json"])
            if not isinstance(metadata, dict):
                raise TypeError("its metadata is not a JSON object")
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, metadata
    except OSError as error:
        raise UserFileError(f"cannot read {path}: {error.strerror}") from None
    except (
        SafetensorError,
        TypeError,
        KeyError,
        ValueError,
        AttributeError,  # for number types that NumPy lacks
    ) as error:
        reason = f"or is damaged ({first_line(error)})"
        if is_zipfile(path):
            reason = "but a .zip, as Stable-Baselines3 saves; it may have pickles in it"
        raise UserValueError(f"{path} is not a saved model, {reason}") from None


def has_its_size(path) -> bool:
    """Whether a file is as long as its header says; does not read the whole file."""
    try:
        with safe_open(path, framework="np"):
            return True
    except (OSError, SafetensorError):
        return False


def tensors_digest(tensors, metadata) -> str:
    """Returns the SHA-256 checksum of a file's contents, in hexadecimal.

    Args:
        tensors, metadata: as in ``save_tensors``; the key ``sha256`` is ignored.
    """
    metadata = {key: value for key, value in metadata.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array)
    return digest.hexdigest()


def take_arrays(state, tensors, path=""):
    """Returns ``state`` as JSON values and moves its arrays to ``tensors``."""
    if isinstance(state, (np.ndarray, np.generic)):
        tensors[path] = np.asarray(state)
        return {"tensor": path}
    if isinstance(state, dict):
        if state.keys() == {"tensor"}:
            raise ValueError("a state cannot be a dict whose only key is 'tensor'")
        return {k: take_arrays(v, tensors, f"{path}/{k}") for k, v in state.items()}
    if isinstance(state, (list, tuple)):
        return [take_arrays(v, tensors, f"{path}/{i}") for i, v in enumerate(state)]
    return state


def put_arrays(state, tensors):
    """Returns the state that ``take_arrays`` was given.

    Raises:
        ValueError: unless each tensor is named exactly once.
    """
    left = dict(tensors)

    def put(state):
        if isinstance(state, dict):
            if state.keys() == {"tensor"}:
                if not isinstance(name := state["tensor"], str) or name not in left:
                    raise ValueError(f"there is no tensor {name!r:.100}")
                return left.pop(name)
            return {key: put(value) for key, value in state.items()}
        if isinstance(state, list):
            return [put(value) for value in state]
        return state

    state = put(state)
    if left:
        raise ValueError(f"nothing is said of the tensor {min(left)!r:.100}")
    return state
