"""Modules of the user's own, such as that of an environment: imported by name."""

import importlib
import os
import traceback

import baselines
from baselines.common.errors import TRACEBACK, UserError, UserValueError, first_line

PACKAGE = os.path.dirname(baselines.__file__)


def import_named(module, purpose):
    """Returns a module of the user's own.

    Args:
        module: its dotted name.
        purpose: what it is for, to begin messages with, such as ``network 'x:y'``.

    Raises:
        UserValueError: if it does not exist or raises, with its own file and line.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise UserValueError(f"{purpose}: {module!r} is not the name of a module")
    try:
        return importlib.import_module(module)
    except UserError:
        raise
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            raise UserValueError(
                f"{purpose}: there is no module {error.name!r}"
            ) from None
        raise failed(purpose, error) from error
    except (Exception, SystemExit) as error:
        if find_place(error) is None:  # a bug of this package
            raise
        raise failed(purpose, error) from error


def failed(purpose, error) -> UserValueError:
    """Returns one line about an exception in code of the user's own."""
    message = str(error.msg) if isinstance(error, SyntaxError) else first_line(error)
    return UserValueError(
        f"{purpose}: {find_place(error)}: {type(error).__name__}: {message} "
        f"({TRACEBACK}=1 shows the traceback)"
    )


def find_place(error):
    """Returns ``file:line`` of the user's own code, None if it was not running."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    ours = PACKAGE, os.path.dirname(importlib.__file__), "<frozen"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(ours)
    ]
    if not frames:
        return None
    # The last line of the user's own, rather than in a package that it calls.
    library = os.path.dirname(os.__file__)
    own = [
        frame
        for frame in frames
        if "site-packages" not in frame.filename
        and not frame.filename.startswith(library)
    ]
    frame = (own or frames)[-1]
    return f"{frame.filename}:{frame.lineno}"
