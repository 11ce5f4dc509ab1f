"""Files of trained models: a saved model, or a checkpoint of its run."""

import contextlib
import os
import re
from glob import escape, glob

import numpy as np

from baselines.common.base.errors import UserError, UserFileError, UserValueError
from baselines.common.saving.checkpoints import (
    check_intact,
    list_manifests,
    read_manifest,
)
from baselines.common.saving.log_folder import MODEL_FILE, checkpoint_steps
from baselines.common.saving.states import check_like
from baselines.common.saving.tensors import load_tensors, put_arrays, tensors_digest


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
        is_manifest = re.search(r"(^|/)\d{12,15}\.json$", path)
        return data_of_rank_0(path) if is_manifest else path
    model = os.path.join(path, MODEL_FILE)
    saved = trained_for(model) if os.path.isfile(model) else -1
    for manifest in reversed(list_manifests(os.path.join(path, "checkpoints"))):
        if checkpoint_steps(manifest) <= saved:
            break
        data = data_of_rank_0(manifest)
        with contextlib.suppress(UserError):
            files = read_manifest(manifest)["files"]
            check_intact(data, files.get(os.path.basename(data)), manifest)
            return data
    if os.path.isfile(model):
        return model
    raise UserFileError(
        f"there is no saved model at {path}, a folder with neither {MODEL_FILE} nor an "
        f"undamaged checkpoint{runs_below(path)}"
    )


def data_of_rank_0(manifest) -> str:
    """Returns the path of a checkpoint's file, which has the model on all ranks."""
    return f"{manifest.removesuffix('json')}safetensors"


def trained_for(path) -> float:
    """Returns the agent steps that a saved model was trained for, infinite if unknown.

    The file says so itself, as a copy of a folder may have lost the times of its files.
    """
    with contextlib.suppress(UserError):
        _, metadata = load_tensors(path)
        if isinstance(steps := metadata.get("num_timesteps"), int):
            return steps
    return np.inf


def runs_below(folder) -> str:
    """Returns a clause that names the log folders in a folder, or an empty one."""
    found = glob(f"{escape(folder)}/*/config.json")
    names = sorted(os.path.basename(os.path.dirname(path)) for path in found)
    if not names:
        return ""
    others = ", ..." if len(names) > 3 else ""
    return f"; it contains the runs {', '.join(names[:3])}{others}"


def read_model(path):
    """Reads the file of a trained model.

    Returns:
        (tensors, metadata), as ``Model.save`` writes them.

    Raises:
        UserFileError: if the file is missing or cannot be read.
        UserValueError: if it is damaged or another kind of file.
    """
    tensors, metadata = load_tensors(path)
    if "states" not in metadata:
        return tensors, metadata
    try:
        model = put_arrays(metadata["states"], tensors)["model"]
        check_like(model, {"variables": ..., "generator": ..., "metadata": ...})
        tensors, metadata = model["variables"], model["metadata"]
        if not isinstance(metadata, dict):
            raise TypeError("its description is not a dict")
        if not all(isinstance(x, np.ndarray) for x in tensors.values()):
            raise TypeError("a variable is not an array")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserValueError(f"the checkpoint {path} has no model ({error})") from None
    return tensors, metadata | {"sha256": tensors_digest(tensors, metadata)}
