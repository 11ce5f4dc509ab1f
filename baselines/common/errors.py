"""Errors that the caller can fix: the command line prints them as one line.

Each is also the Python exception that research code would expect, so that
``except ValueError`` works as usual. An exception of any other type is a bug,
ours or an environment's, and is shown with its traceback.
"""

import difflib
import re


class UserError(Exception):
    """A mistake of the caller; the message says what was wrong and what is right."""


class UserValueError(UserError, ValueError):
    """A value, space or file content that cannot be used."""


class UserTypeError(UserError, TypeError):
    """An object or keyword of the wrong kind."""


class UserFileError(UserError, OSError):
    """A path that cannot be read or written."""


class FullDiskError(UserFileError):
    """There was no space left to write a file."""


class DivergedError(UserError, ArithmeticError):
    """The loss or the weights became NaN or infinite."""


class MissingDependency(UserError, ImportError):
    """A package that has to be installed first."""


def suggest(name: str, known) -> str:
    """Returns ``; did you mean 'x'?`` for the nearest of ``known``, or nothing."""
    nearest = difflib.get_close_matches(name, [str(k) for k in known], n=1, cutoff=0.6)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def first_line(error) -> str:
    """Returns an exception's message as one line."""
    return re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
