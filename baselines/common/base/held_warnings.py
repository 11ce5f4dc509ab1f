"""Holds back Python's warnings, such as those of Gymnasium and NumPy."""

import contextlib
import warnings

from baselines.common.base.errors import UserError

held = []  # arguments of the calls to warnings.showwarning
original = None  # warnings.showwarning while warnings are held back, else None


@contextlib.contextmanager
def held_warnings():
    """Holds warnings back until the block ends or ``show_warnings`` is called.

    A UserError drops them, so that its line on stderr is the only one.
    """
    hold_warnings()
    try:
        yield
    except UserError:
        held.clear()
        raise
    finally:
        show_warnings()


def hold_warnings() -> None:
    """Holds warnings back until ``show_warnings`` is called."""
    global original
    if original is None:
        original = warnings.showwarning
        warnings.showwarning = lambda *args, **kwargs: held.append((args, kwargs))


def show_warnings() -> None:
    """Shows the warnings that were held back; from now on, each is shown at once."""
    global original
    if original is not None:
        warnings.showwarning, original = original, None
        while held:
            args, kwargs = held.pop(0)
            warnings.showwarning(*args, **kwargs)
