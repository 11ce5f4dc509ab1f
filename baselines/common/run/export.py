"""Writes models as files that act without this library."""

import contextlib
import io
import logging
import os
import shutil
import warnings
from typing import Any

import keras
import numpy as np

from baselines.common.base.errors import (
    UserFileError,
    UserValueError,
    first_line,
    install_command,
)
from baselines.common.envs.nests import flatten

CHECKED = 100  # observations that a written file is tried on


def write_policy(model: Any, output: str) -> None:
    """Writes a model's best actions as a file that needs nothing of this library.

    Scaling, statistics of observations and masks are inside. Its inputs are
    observations [N, ...] as the model gets them, and of a recurrent network the state
    [N, S], zeros at first, and where episodes begin [N]; its outputs are actions
    [N, ...], and the next state.

    Args:
        model: a trained model.
        output: path of a file, ``.onnx`` or ``.tflite``; any other is the folder of a
            SavedModel.

    Raises:
        UserFileError: if it is there already.
        UserValueError: if that format cannot hold the model, or the written file does
            not act as the model does.
    """
    output = os.path.expanduser(output)
    ending = os.path.splitext(output)[1]
    kind, run = FORMATS.get(ending, FORMATS[""])
    if os.path.lexists(output):
        raise UserFileError(f"there is a file {output} already; give another --output")
    inputs, acting = inputs_of(model, CHECKED), Acting(model)
    expected = keras.tree.map_structure(np.asarray, acting(inputs))
    specs = [keras.InputSpec(x.dtype, (None, *x.shape[1:])) for x in inputs]
    logging.disable()  # of converters
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            acting.export(output, format=kind, input_signature=[specs], verbose=False)
        found = run(output, inputs)
    except Exception as error:  # of Keras, a converter, a runtime or a missing package
        remove(output)
        raise UserValueError(
            f"the model cannot be written as {output}: {first_line(error)} "
            f"(.onnx and .tflite need {install_command('export')})"
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    for mine, other in zip(keras.tree.flatten(expected), found, strict=True):
        close = np.isclose(mine, other, rtol=1e-3, atol=1e-3)
        # Roundings may decide between two actions of the same value.
        if np.mean(close.reshape(CHECKED, -1).all(axis=1)) < 0.99:
            remove(output)
            raise UserValueError(f"{output} did not act as the model does; removed")


def remove(path) -> None:
    """Removes a file or a folder, if it is there."""
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


class Acting(keras.Model):
    """The best actions of a model, as layers alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.parts = [*model.parts.values()]  # whose variables Keras then finds

    _default_save_signature = None  # Keras' own has float inputs, whatever was built.

    def call(self, inputs):
        obs, states, masks = [*inputs, None, None][:3]
        space = self.model.action_space
        actions, states = self.model.best(obs, states, masks)
        if hasattr(space, "low"):
            actions = keras.ops.clip(actions, space.low, space.high)
        return actions if states is None else (actions, states)


def inputs_of(model, count) -> list:
    """Returns what ``Acting`` takes, for ``count`` observations."""
    space = model.observation_space
    nest = getattr(space, "nest", space)
    nest.seed(0)
    obs = np.stack([flatten(space, nest.sample()) for _ in range(count)])
    if (stack := getattr(space, "stack", 1)) > 1:
        obs = np.tile(obs, stack)
    inputs = [np.clip(obs, -10, 10) if obs.dtype.kind == "f" else obs]
    if model.initial_state is not None:
        masks = np.arange(count) % 2 == 0
        inputs += [np.repeat(model.initial_state, count, axis=0), masks]
    return inputs


def run_saved_model(path, inputs) -> list:
    layer = keras.layers.TFSMLayer(path, call_endpoint="serve")
    return [np.asarray(x) for x in keras.tree.flatten(layer(inputs))]


def run_onnx(path, inputs) -> list:
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs)))


def run_tflite(path, inputs) -> list:
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(path).get_signature_runner()
    return [*run(**dict(zip(run.get_input_details(), inputs))).values()]


FORMATS = {  # by the ending of a file: how Keras calls it, and what runs it
    ".onnx": ("onnx", run_onnx),
    ".tflite": ("litert", run_tflite),
    "": ("tf_saved_model", run_saved_model),
}
