"""The precision that networks compute in."""

import contextlib

import keras

from baselines.common import backend
from baselines.common.base import machine

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}  # of Keras


def choose_precision(precision) -> str:
    """Returns ``precision``; for auto, bfloat16 where it is fast, else float32."""
    if precision != "auto":
        return precision
    has_bfloat16 = backend.gpu_has_bfloat16()
    if has_bfloat16 is None:  # There is no GPU.
        has_bfloat16 = machine.bfloat16_flags() and backend.uses_cpu_bfloat16()
    return "bfloat16" if has_bfloat16 else "float32"


@contextlib.contextmanager
def computing_in(precision):
    """Makes Keras layers that are built in a block compute in a precision.

    Their variables, and thus gradients and optimisers, are float32 in either case. A
    layer that is built outside the block casts their outputs to float32.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(POLICIES[precision])
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
