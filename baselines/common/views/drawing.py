"""Importing matplotlib and drawing with it; what fails becomes a message."""

import contextlib
import os

from baselines.common.base.errors import (
    MissingDependency,
    UserError,
    UserValueError,
    first_line,
    install_command,
)


def import_matplotlib():
    """Returns matplotlib.

    Raises:
        MissingDependency: if it is not installed.
        UserValueError: if it rejects its settings, such as MPLBACKEND.
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingDependency(
            f"plots need matplotlib: {install_command('plot')}"
        ) from None
    except ValueError as error:
        raise UserValueError(
            f"matplotlib cannot be imported: {first_line(error)} (MPLBACKEND is "
            f"{os.environ.get('MPLBACKEND', 'not set')})"
        ) from None
    return matplotlib


@contextlib.contextmanager
def drawing_errors():
    """Raises UserValueError if matplotlib cannot draw the numbers in a block."""
    try:
        yield
    except UserError:
        raise
    except (ArithmeticError, ValueError) as error:  # of 1e308, for example
        raise UserValueError(
            f"the numbers of the log cannot be drawn: {first_line(error)}"
        ) from error
