"""Files that survive a kill: replaced atomically, or truncated and continued."""

import contextlib
import hashlib
import json
import os
import tempfile

from baselines.common.base.errors import (
    UserError,
    UserFileError,
    UserValueError,
    WriteError,
    first_line,
)


@contextlib.contextmanager
def writing(path):
    """Raises a WriteError that names ``path`` if the block cannot write it."""
    try:
        yield
    except UserError:
        raise
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        in_the_way = error.filename2 or error.filename
        if in_the_way not in (None, path):
            reason = f"{reason} ({in_the_way})"
        raise WriteError(f"cannot write {path}: {reason}") from None


def replace_file(path, data) -> None:
    """Writes a file atomically (all bytes or none), and makes missing folders.

    Raises:
        WriteError: if it cannot be written, such as where there is a folder.
    """
    # Always the same name, so that what a kill leaves behind is replaced next time.
    temporary = f"{path}.tmp"
    with writing(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(temporary, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
            sync_folder(os.path.dirname(path))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def sync_folder(path) -> None:
    """Waits until the names of a folder's files are on the disk."""
    # Some file systems do not support it; the files themselves are on the disk.
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_text(path, size=None):
    """Opens a text file for writing: a new one, or one truncated to ``size`` bytes.

    Raises:
        UserFileError: if the file to truncate is missing or shorter.
        WriteError: if it cannot be written.
    """
    if size is None:
        with writing(path):
            return open(path, "w", newline="", encoding="utf-8")
    if not os.path.isfile(path) or os.path.getsize(path) < size:
        raise UserFileError(
            f"cannot resume: {path} is missing or shorter than at the checkpoint"
        )
    with writing(path):
        os.truncate(path, size)
        return open(path, "a", newline="", encoding="utf-8")


def flush(file) -> None:
    """Flushes an open file; raises WriteError if it is not writable or was removed."""
    with writing(file.name):
        file.flush()
        os.stat(file.name)  # Writing to a removed file raises no error.


def sync_file(file) -> None:
    """Waits until everything written to an open file is on the disk."""
    flush(file)
    with writing(file.name):
        os.fsync(file.fileno())


def synced_size(file) -> int:
    """Returns the size of an open file in bytes, once they are all on the disk."""
    sync_file(file)
    return os.fstat(file.fileno()).st_size


def check_writable(folder, name="") -> None:
    """Raises UserFileError if a file cannot be made in a folder, which may be new.

    Args:
        folder: its path.
        name: of the file, for the message.
    """
    existing = folder
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        path = os.path.join(folder, name) if name else folder
        raise UserFileError(f"cannot write to {path}: {error.strerror}") from None


def read_json(path):
    """Returns the values of a JSON file.

    Raises:
        UserFileError: if it cannot be read.
        UserValueError: if it is not JSON.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise UserFileError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserValueError(f"{path} is damaged ({first_line(error)})") from None


def file_digest(path) -> str:
    """Returns the SHA-256 checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
