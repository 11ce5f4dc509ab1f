"""Standard output that is closed, full, or cannot show all characters."""

import contextlib
import io
import os
import select
import sys

from baselines.common.base.errors import UserFileError


@contextlib.contextmanager
def usable_output():
    """Lets ``print`` escape what standard output cannot encode, as on stderr.

    If standard output was closed by the caller, what is printed is dropped.

    Raises:
        SystemExit: if the reader of standard output is gone.
        UserFileError: if it cannot be written for another reason.
    """
    if sys.stdout is None:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
        return
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper) or stream.closed:
        yield
        return
    errors = stream.errors
    if errors == "strict":
        stream.reconfigure(errors="backslashreplace")
    try:
        yield
    except BrokenPipeError:
        if has_reader(stream):
            raise
        raise SystemExit(1) from None
    finally:
        if not stream.closed:
            flush(stream)
            stream.reconfigure(errors=errors)


def has_reader(stream) -> bool:
    """Whether a stream is not a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return not poll.poll(0)


def flush(stream) -> None:
    """Flushes standard output; for exceptions, see ``usable_output``."""
    try:
        stream.flush()
    except OSError as error:
        # Otherwise, Python would try to flush the rest again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(1) from None
        raise UserFileError(
            f"cannot write to standard output: {error.strerror}"
        ) from None
