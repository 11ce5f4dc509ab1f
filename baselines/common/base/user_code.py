"""The user's own code, such as an environment: importing it, locating its errors."""

import contextlib
import importlib.util
import inspect
import os
import sys
import traceback
from functools import partial
from itertools import accumulate

from baselines.common.base.errors import (
    TRACEBACK,
    MissingDependency,
    UserError,
    UserValueError,
    first_line,
)


def folder_of(package) -> str:
    """Returns the folder of a package, as a prefix: with a separator at its end.

    Raises:
        MissingDependency: if it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise MissingDependency(
            f"{package} is not installed for {sys.executable}; is the virtual "
            "environment active?"
        )
    return os.path.join(os.path.dirname(spec.origin), "")


# What calls the user's own code.
CALLERS = (*map(folder_of, ("baselines", "gymnasium", "importlib")), "<frozen")
LIBRARY = os.path.join(os.path.dirname(os.__file__), "")


def import_named(module, purpose):
    """Returns a module of the user's own.

    Args:
        module: its dotted name.
        purpose: what it is for, as messages begin with, such as ``network 'x:y'``.

    Raises:
        UserValueError: if it does not exist, or raises; then with its file and line.
    """
    if not all(part.isidentifier() for part in module.split(".")):
        raise UserValueError(f"{purpose}: {module!r} is not the name of a module")
    with told_in_one_line(purpose, partial(find_source, module)):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if f"{module}.".startswith(f"{error.name}."):
                raise UserValueError(
                    f"{purpose}: there is no module {error.name!r}"
                ) from None
            raise


@contextlib.contextmanager
def told_in_one_line(purpose, find_home):
    """Raises UserValueError, with file and line, for what the user's own code raises.

    Args:
        purpose: what the message begins with.
        find_home: function of the exception that returns where the code that failed is
            defined, or None; for exceptions whose traceback has no line of it.
    """
    try:
        yield
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        place = find_place(error) or find_home(error)
        if place is None or place.startswith(CALLERS):  # a bug of this package
            raise
        is_syntax = isinstance(error, SyntaxError)
        message = str(error.msg) if is_syntax else first_line(error)
        raise UserValueError(
            f"{purpose}: {place}: {type(error).__name__}: {message} "
            f"({TRACEBACK}=1 shows the traceback)"
        ) from error


def find_place(error):
    """Returns ``file:line`` of the user's own code, None if it was not running.

    It is the last line of the user's own code, rather than of a package that it calls.
    """
    filename = getattr(error, "filename", None)
    if isinstance(error, SyntaxError) and filename and not filename.startswith("<"):
        return f"{filename}:{error.lineno}"
    # Gymnasium re-raises some exceptions of constructors with a longer message.
    found = [each for each in (error.__cause__, error) if each is not None]
    frames = [x for each in found for x in traceback.extract_tb(each.__traceback__)]
    frames = [frame for frame in frames if not frame.filename.startswith(CALLERS)]
    own = [frame for frame in frames if is_own(frame.filename)]
    for frame in (own or frames)[-1:]:
        return f"{frame.filename}:{frame.lineno}"
    return None


def is_own(filename) -> bool:
    """Whether code is the user's own, not that of Python, of a package or a string."""
    others = *CALLERS, LIBRARY, "<"
    # Debian's Python has dist-packages.
    packages = "site-packages" in filename or "dist-packages" in filename
    return not (filename.startswith(others) or packages)


def own_traceback(error):
    """Returns an exception's traceback, starting at the user's own code.

    It is None if no such code was running, as with a bug of this package, or if
    ``BASELINES_TRACEBACK`` asks for the whole traceback.
    """
    if os.environ.get(TRACEBACK):
        return None
    shown = link = traceback.TracebackException.from_exception(error)
    found = False
    while link is not None:
        own = [i for i, frame in enumerate(link.stack) if is_own(frame.filename)]
        frames = link.stack[own[0] :] if own else []
        link.stack = traceback.StackSummary.from_list(frames)
        found = found or bool(own)
        link = link.__cause__ or link.__context__
    return "".join(shown.format()) if found else None


def find_source(module, error):
    """Returns the file of a module that could not be imported, and its line if known.

    It is the file of the outermost package, or the module, that was not imported; None
    if all were.
    """
    for name in accumulate(module.split("."), "{}.{}".format):
        if name not in sys.modules:
            origin = getattr(importlib.util.find_spec(name), "origin", None)
            if not isinstance(error, SyntaxError):  # such as in an extension module
                return origin
            with open(origin, "rb") as file:  # Python does not say where a null is.
                before = file.read().partition(b"\0")[0]
            return f"{origin}:{before.count(10) + 1}"
    return None


def find_definition(entry_point, error):
    """Returns ``file:line`` of a class or function, None if that is not known.

    Args:
        entry_point: the object, or ``module:name``; if the module has no such name,
            it stands for the module itself.
        error: see ``find_source``, for a module that could not be imported.
    """
    if isinstance(entry_point, str):
        name, _, attribute = entry_point.partition(":")
        if name not in sys.modules:
            return find_source(name, error)
        module = sys.modules[name]
        entry_point = getattr(module, attribute, module)
    try:
        line = inspect.getsourcelines(entry_point)[1] or 1
        return f"{inspect.getsourcefile(entry_point)}:{line}"
    except (OSError, TypeError):
        return None
