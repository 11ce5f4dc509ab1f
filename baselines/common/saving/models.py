"""Files of trained models: a saved model, or a checkpoint of its run."""

import contextlib
import os
import re

import numpy as np

from baselines.common.base.errors import UserError, UserFileError, UserValueError, shown
from baselines.common.saving.checkpoints import (
    check_files,
    data_path,
    list_manifests,
    read_manifest,
)
from baselines.common.saving.log_folder import MODEL_FILE, checkpoint_steps
from baselines.common.saving.states import check_like
from baselines.common.saving.tensors import (
    load_tensors,
    put_arrays,
    save_tensors,
    tensors_digest,
)


def save_model(path, variables, metadata) -> None:
    """Writes the file of a model: its variables, JSON metadata, and a checksum of both.

    Args:
        path: of the file.
        variables: arrays by name.
        metadata: enough to rebuild the model, as JSON values by name.
    """
    checksum = {"sha256": tensors_digest(variables, metadata)}
    save_tensors(path, variables, metadata | checksum)


def load_model(path, description, arguments, variables):
    """Reads the file of a model that has to be like one that is there.

    Args:
        path: of the file, of a checkpoint, or of a log folder that has either.
        description: what its metadata have to say, by name.
        arguments: those that the model there is made with, by name. Any of them that is
            in the file has to have the same value there.
        variables: by name, with their shapes and types.

    Returns:
        (tensors, metadata), as they were given to ``save_model``.

    Raises:
        UserFileError: if there is no such file.
        UserValueError: if it is damaged, or of another model.
    """
    path = find_model(path)
    tensors, metadata = read_model(path)
    stored = arguments | (metadata["arguments"] or {})
    pairs = (metadata, description, str), (stored, arguments, shown)
    for found, expected, text in pairs:
        for name, value in expected.items():
            if found.get(name) != value:
                raise UserValueError(
                    f"{path} was saved with {name} {text(found.get(name))}, but this "
                    f"run has {text(value)}"
                )
    try:
        check_like(tensors, variables, "its network")
    except ValueError as error:
        raise UserValueError(
            f"{path} was saved with another network: {error}; the arguments that make "
            "the model have to be those that it was trained with"
        ) from None
    return tensors, metadata


def find_model(path) -> str:
    """Returns the path of a trained model's file.

    Args:
        path: of that file, of a checkpoint's .json file, or of a log folder. For a
            folder, it is ``model.safetensors``, or the newest undamaged checkpoint if
            that was trained for longer.

    Raises:
        UserFileError: if the folder has neither.
    """
    path = os.path.expanduser(path)
    if not os.path.isdir(path):
        is_manifest = re.search(r"(^|/)\d{12}\.json$", path)
        return data_path(path, 0) if is_manifest else path
    model = os.path.join(path, MODEL_FILE)
    saved = trained_for(model) if os.path.isfile(model) else -1
    for manifest in reversed(list_manifests(os.path.join(path, "checkpoints"))):
        if checkpoint_steps(manifest) <= saved:
            break
        with contextlib.suppress(UserError):
            check_files(manifest, read_manifest(manifest)["files"], rank=0)
            return data_path(manifest, 0)
    if os.path.isfile(model):
        return model
    raise UserFileError(
        f"there is no saved model at {path}, a folder with neither {MODEL_FILE} nor an "
        "undamaged checkpoint"
    )


def trained_for(path) -> float:
    """Returns the agent steps that a saved model was trained for, infinite if unknown.

    The file says so itself, as a copy of a folder may have lost the times of its files.
    """
    with contextlib.suppress(UserError):
        return load_tensors(path)[1].get("num_timesteps", np.inf)
    return np.inf


def read_model(path):
    """Reads the file of a trained model, or the model in a checkpoint's file.

    Returns:
        (tensors, metadata), as they were given to ``save_model``.

    Raises:
        UserFileError: if there is no such file.
        UserValueError: if it is damaged or another kind of file.
    """
    tensors, metadata = load_tensors(path)
    if "states" in metadata:
        model = put_arrays(metadata["states"]["model"], tensors)
        return model["variables"], model["metadata"]
    if metadata.get("sha256") != tensors_digest(tensors, metadata):
        raise UserValueError(f"{path} is damaged: its checksum does not fit")
    return tensors, metadata
