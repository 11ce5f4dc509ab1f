"""The file through which worker processes return observations."""

import os
import sys
import tempfile

from baselines.common.base.errors import WriteError


def shared_memory_folder():
    """Returns a folder that is kept in memory, or None if no file can be made there."""
    folder = "/dev/shm"
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def allocate(file, size):
    """Gives a file in ``shared_memory_folder`` its size, and returns the file.

    If there is no space, it prints a warning, and returns another file, in the
    temporary folder.

    Args:
        file: open and empty.
        size: bytes.

    Raises:
        WriteError: if there is no space there either.
    """
    try:
        fill(file, size)
        return file
    except OSError as error:
        folder = shared_memory_folder() or "the temporary folder"
        full = f"{folder} has no {size:,} bytes for observations: {error.strerror}"
    file.close()
    try:
        file = tempfile.TemporaryFile()
        fill(file, size)
    except OSError as error:
        place = tempfile.tempdir or "the temporary folder"
        raise WriteError(f"{full}; nor has {place}: {error.strerror}") from None
    # Not to the log, which only begins once learn() has accepted everything.
    place = tempfile.gettempdir()
    print(f"warning: {full}; they go through a file in {place}", file=sys.stderr)
    return file


def fill(file, size) -> None:
    """Writes ``size`` zero bytes to a file.

    Only setting its size would not do: full memory has to be an error here, not a bus
    error in a worker.
    """
    zeros = memoryview(bytes(size))
    while zeros:
        zeros = zeros[os.write(file.fileno(), zeros) :]
