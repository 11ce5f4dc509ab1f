"""JSON that may be somebody else's: checked against limits before it is used."""

import json
import os
import stat

from baselines.common.base.errors import UserFileError, UserValueError, first_line

# Far above what a run writes, and far below what would use up memory or the stack.
MAX_BYTES = 2**26
MAX_DEPTH = 32
MAX_VALUES = 1_000_000


def is_regular(path) -> bool:
    """Whether ``path`` is a regular file, not a folder, pipe, device or link."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def read_json(path):
    """Returns the values of a JSON file.

    Raises:
        UserFileError: if it cannot be read.
        UserValueError: if it is not JSON, or exceeds the limits.
    """
    if not os.path.isfile(path):  # Opening a pipe would wait.
        raise UserFileError(f"there is no file {path}")
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES} bytes")
        return parse_json(data.decode())
    except OSError as error:
        raise UserFileError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserValueError(f"{path} is damaged ({first_line(error)})") from None


def parse_json(text):
    """Returns the values of a JSON text; raises ValueError if it cannot be used."""
    try:
        values = json.loads(text, object_pairs_hook=unique_keys)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    check_json(values)
    return values


def check_json(values) -> None:
    """Raises ValueError for values that are too many, too deep, or not Unicode."""
    level, count = [values], 0
    for _ in range(MAX_DEPTH):
        count += len(level)
        if not level or count > MAX_VALUES:
            break
        for value in level:
            if isinstance(value, str):
                value.encode()  # Half a surrogate pair cannot be written anywhere.
        level = [child for value in level for child in children(value)]
    if level:
        raise ValueError(
            f"it has more than {MAX_VALUES} values, or more than {MAX_DEPTH} inside "
            "each other"
        )


def children(value) -> list:
    """Returns the parts of a JSON value; those of an object include its names."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, (list, tuple)) else []


def unique_keys(pairs) -> dict:
    """Returns a JSON object as a dict; raises ValueError for a repeated name."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("an object has the same name twice")
    return values
