"""Files that survive a kill: replaced atomically, or truncated and continued."""

import contextlib
import errno
import hashlib
import os
import tempfile

from baselines.common.base.errors import UserError, UserFileError, WriteError
from baselines.common.saving.states import check_like

LONGEST_NAME = 64 * "x"  # at least as long as any file name in a run's folders


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
        for place in path, temporary:
            if is_folder(place):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place)
        remove_file(temporary)
        try:
            # Only a new file: a link would be followed, a pipe would wait for a reader.
            with open(temporary, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
            sync_folder(os.path.dirname(path))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def is_folder(path) -> bool:
    """Whether ``path`` is a folder, and not a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def remove_file(path) -> None:
    """Removes whatever is at ``path``, unless it is a folder."""
    if os.path.lexists(path) and not is_folder(path):
        os.unlink(path)


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
        DamagedState: if ``size`` is not a number of bytes.
    """
    if size is None:
        with writing(path):
            return open(path, "w", newline="", encoding="utf-8")
    check_like(size, 0, "the size of a file")
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


def check_writable(folder, name=None) -> None:
    """Raises UserFileError if a file cannot be made in a folder, which may be new.

    Args:
        folder: its path.
        name: of the file; None for any file that a run writes.
    """
    path = folder if name is None else os.path.join(folder, name)
    try:
        path.encode()  # because it will be printed
        with contextlib.suppress(FileNotFoundError):  # Is it too long?
            os.lstat(f"{os.path.join(folder, name or LONGEST_NAME)}.tmp")
        existing = folder
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        tempfile.TemporaryFile(dir=existing).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserFileError(f"cannot write to {path}: {reason}") from None


def check_output_file(path) -> None:
    """Raises UserFileError if a file cannot be made in a folder that exists."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise UserFileError(f"cannot write {path}: there is no folder {folder}")
    check_writable(*os.path.split(os.path.abspath(path)))


def file_digest(path) -> str:
    """Returns the SHA-256 checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
