"""States of parts as checkpoints have them: checked before they are used.

A checkpoint may be somebody else's, with right checksums. So ``set_state`` first
compares what it is given with what it expects: NumPy and TensorFlow take a lot
silently, or end the process.
"""

import contextlib
import math

import numpy as np

from baselines.common.errors import UserError, UserValueError, first_line

# What code raises that is given other types, names or numbers than it expects. Others,
# such as a WorkerError, are faults of their own.
DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
LARGEST_INTEGER = 2**62  # that is a count, with room for sums


class DamagedState(UserValueError):
    """A state that its part cannot have returned."""


@contextlib.contextmanager
def refusing_damage(errors=DAMAGE):
    """Raises DamagedState where a block raises one of ``errors``, except UserErrors."""
    try:
        yield
    except UserError:
        raise
    except errors as error:
        what = f"{type(error).__name__}: {first_line(error)}"
        raise DamagedState(what) from error


def check_like(state, example, name="it", largest=LARGEST_INTEGER) -> None:
    """Raises DamagedState unless a state is made like an example.

    Dicts have to have its keys (others are of a fork's subclass), lists its length,
    arrays its shape and type, all else its type. Integers are not negative, and floats
    finite.

    Args:
        state: the nest of arrays and JSON values to check.
        example: a nest that is right; ``...`` in it stands for anything.
        name: of the state, for the message.
        largest: integer.
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
    """Returns what ``check_like`` compares, without what is inside."""
    if isinstance(value, (np.ndarray, np.generic)):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, dict):
        return f"a dict of {sorted(map(str, value))}"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return f"of type {type(value).__name__}"


def blank(shape, dtype) -> np.ndarray:
    """Returns zeros that take no memory, for an example."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def check_batch(array, shape, dtype, name="it") -> None:
    """Raises DamagedState unless an array has a shape, and numbers of a kind.

    The number of bytes may differ: environments of others are free in it.
    """
    fits = isinstance(array, np.ndarray) and array.shape == tuple(shape)
    if not fits or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise DamagedState(
            f"{name} is {describe(array)}, expected shape {tuple(shape)} and type "
            f"{dtype}"
        )


def check_number(value, name="it") -> None:
    """Raises DamagedState unless a value is one finite number, in NumPy or not."""
    known = isinstance(value, (np.ndarray, np.generic)) or type(value) in (int, float)
    array = np.asarray(value if known else None)
    if array.shape or array.dtype.kind not in "iuf" or not np.isfinite(array):
        raise DamagedState(f"{name} is {describe(value)}, expected a finite number")


def set_generator(rng, state) -> None:
    """Sets the state of a NumPy ``Generator`` to what it was.

    Raises:
        DamagedState: if it is not one of such a generator.
    """
    generator = rng.bit_generator
    with refusing_damage():
        check_like(state, generator.state, "the generator", largest=2**128)
        # NumPy would read beyond the end of the numbers.
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
