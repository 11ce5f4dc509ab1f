"""Reads CSV files of numbers, from this library or others, into record arrays."""

import csv
import gzip
import os
import zlib

import numpy as np

from baselines.common.base.errors import UserFileError, UserValueError

MAX_UNCOMPRESSED = 2**25  # A small compressed file can stand for far more than memory.


def read_table(path) -> np.recarray:
    """Returns the rows of a CSV file, whose first line names the columns.

    Args:
        path: of the file, compressed by gzip if it ends in ``.gz``; anything after its
            last line break is left out.

    Returns:
        a record array with a float column ``table[name]`` (also ``table.name``) for
        each name; a cell that is not a number becomes NaN.

    Raises:
        UserFileError, UserValueError: if it cannot be read, or is not such a file.
    """
    return parse_table(read_text(path), path)


def read_text(path) -> str:
    if os.path.exists(path) and not os.path.isfile(path):  # A pipe would wait.
        raise UserFileError(f"cannot read {path}: it is not a regular file")
    compressed = os.fspath(path).endswith(".gz")
    try:
        with (gzip.open if compressed else open)(path, "rt", newline="") as file:
            text = file.read(MAX_UNCOMPRESSED + 1 if compressed else -1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserValueError(f"{path} is not a gzip file: {error}") from None
    except OSError as error:
        raise UserFileError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserValueError(f"{path} is not a CSV file: it is not text") from None
    if compressed and len(text) > MAX_UNCOMPRESSED:
        raise UserValueError(
            f"{path} has more than {MAX_UNCOMPRESSED:,} characters when uncompressed"
        )
    return text


def parse_table(text, path) -> np.recarray:
    """Returns the rows of a text as ``read_table`` does; ``path`` is for messages."""
    # The last line may still be being written.
    lines = text.rpartition("\n")[0].splitlines()
    names = []
    try:
        names = next(csv.reader(lines), [])
        rows = [row for row in csv.reader(lines[1:], strict=True) if row]
        for row in rows:
            if len(row) != len(names):
                raise ValueError(f"it has a row of {len(row)}, {','.join(row)!r}")
        dtype = [(name, float) for name in names]
        table = np.array([tuple(map(to_number, row)) for row in rows], dtype)
    except (ValueError, csv.Error) as error:
        raise UserValueError(
            f"{path} is not a table of {len(names)} columns: {error}"
        ) from None
    return table.view(np.recarray)


def to_number(cell) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan
