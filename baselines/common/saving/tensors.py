"""Named arrays in a safetensors file: loading one never runs code from it."""

import hashlib
import json
import os

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from baselines.common.base.errors import UserFileError, UserValueError, first_line
from baselines.common.saving.files import replace_file


def save_tensors(path, tensors, metadata) -> None:
    """Writes arrays and JSON metadata to one file, atomically.

    Args:
        path: of the file; missing folders are made, and an old file is replaced.
        tensors: a dict of NumPy arrays by name.
        metadata: a dict of JSON values.

    Raises:
        UserFileError: if it cannot be written.
    """
    # safetensors 0.8 writes memory as it lies, whatever the strides.
    tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    data = save(tensors, {"json": json.dumps(metadata)})
    replace_file(os.path.abspath(os.path.expanduser(path)), data)


def load_tensors(path):
    """Reads what ``save_tensors`` wrote.

    Returns:
        (tensors, metadata), as they were given to ``save_tensors``.

    Raises:
        UserFileError: if there is no such file.
        UserValueError: if it is damaged or another kind of file.
    """
    path = os.path.expanduser(path)
    if not os.path.isfile(path):
        raise UserFileError(f"there is no saved model at {path}")
    try:
        with safe_open(path, framework="np") as file:
            metadata = dict(json.loads(file.metadata()["json"]))
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, metadata
    except Exception as error:  # Damage may show itself in any way.
        raise UserValueError(
            f"{path} is not a saved model, or is damaged ({first_line(error)})"
        ) from None


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
        return {k: take_arrays(v, tensors, f"{path}/{k}") for k, v in state.items()}
    if isinstance(state, (list, tuple)):
        return [take_arrays(v, tensors, f"{path}/{i}") for i, v in enumerate(state)]
    return state


def put_arrays(state, tensors):
    """Returns the state that ``take_arrays`` was given."""
    if isinstance(state, dict):
        if state.keys() == {"tensor"}:
            return tensors[state["tensor"]]
        return {key: put_arrays(value, tensors) for key, value in state.items()}
    if isinstance(state, list):
        return [put_arrays(value, tensors) for value in state]
    return state
