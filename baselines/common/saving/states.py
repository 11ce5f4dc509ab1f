"""States of the parts in a checkpoint: checked before they are used.

A checkpoint may be somebody else's, and still have correct checksums. So ``set_state``
first compares what it is given with what it expects: NumPy and TensorFlow accept many
wrong values silently, or crash the process.
"""

import contextlib
import math

import numpy as np

from baselines.common.base.errors import UserError, UserValueError, first_line

# What code raises when it is given types, names or numbers that it does not expect.
# Other exceptions, such as a WorkerError, have other causes.
DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
LARGEST_INTEGER = 2**62  # allowed as a count; leaves room for sums


class DamagedState(UserValueError):
    """A state that its part cannot have returned."""


@contextlib.contextmanager
def refusing_damage(errors=DAMAGE):
    """Raises DamagedState if the block raises one of ``errors``, except UserErrors."""
    try:
        yield
    except UserError:
        raise
    except errors as error:
        what = f"{type(error).__name__}: {first_line(error)}"
        raise DamagedState(what) from error


def check_like(state, example, name="it", largest=LARGEST_INTEGER) -> None:
    """Raises DamagedState unless a state has the structure of an example.

    Dicts need the keys of the example (others may be from a subclass in a fork), lists
    its length, arrays its shape and type, and anything else its type. Integers must not
    be negative, and floats have to be finite.

    Args:
        state: the nest of arrays and JSON values to check.
        example: a valid nest; ``...`` in it stands for anything.
        name: of the state, for the message.
        largest: the largest integer allowed.
    """
    if example is ...:
        return
    if isinstance(state, dict) and isinstance(example, dict):
        state = {key: state[key] for key in state if key in example}
    found, expected = describe(state), describe(example)
    if found != expected:
        raise DamagedState(f"{name} is {found:.200}, expected {expected:.200}")
    if isinstance(example, dict):
        for key, value in example.items():
            check_like(state[key], value, f"{name}[{key!r}]", largest)
    elif isinstance(example, list):
        for i, value in enumerate(example):
            check_like(state[i], value, f"{name}[{i}]", largest)
    elif type(state) is int and not 0 <= state <= largest:
        raise DamagedState(f"{name} is negative or too large")
    elif type(state) is float and not math.isfinite(state):
        raise DamagedState(f"{name} is {state}")


def describe(value) -> str:
    """Returns a description that ``check_like`` compares, without nested values."""
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, dict):
        return f"a dict of {sorted(map(str, value))}"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return f"of type {type(value).__name__}"


def blank(shape, dtype) -> np.ndarray:
    """Returns an array of zeros that takes no memory, for an example."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def check_batch(array, shape, dtype, name="it") -> None:
    """Raises DamagedState unless an array has that shape, and a type of that kind.

    The size of the type may differ: other people's environments may choose it freely.
    """
    fits = isinstance(array, np.ndarray) and array.shape == tuple(shape)
    if not fits or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise DamagedState(
            f"{name} is {describe(array)}, expected shape {tuple(shape)} and type "
            f"{dtype}"
        )


def check_number(value, name="it") -> None:
    """Raises DamagedState unless a value is a finite number, of NumPy or of Python."""
    known = isinstance(value, (np.ndarray, np.generic)) or type(value) in (int, float)
    array = np.asarray(value if known else None)
    if array.shape or array.dtype.kind not in "iuf" or not np.isfinite(array):
        raise DamagedState(f"{name} is {describe(value)}, expected a finite number")


def set_generator(rng, state) -> None:
    """Restores the state of a NumPy ``Generator``.

    Raises:
        DamagedState: if ``state`` is not that of such a generator.
    """
    generator = rng.bit_generator
    with refusing_damage():
        check_like(state, generator.state, "the generator", largest=2**128)
        # NumPy would read beyond the end of its array.
        if state["state"].get("pos", 0) > 624:
            raise ValueError("the position of the generator")
        generator.state = state


class VariableState:
    """The values of Keras variables, as a part of a checkpoint."""

    def __init__(self, variables):
        self.variables = variables

    def get_state(self) -> list:
        return [variable.numpy() for variable in self.variables]

    def set_state(self, state) -> None:
        check_like(state, [blank(x.shape, x.dtype) for x in self.variables])
        for variable, value in zip(self.variables, state, strict=True):
            variable.assign(value)
