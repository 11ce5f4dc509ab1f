"""Python's warnings, such as Gymnasium's and NumPy's, while they have to wait."""

import contextlib
import warnings

from baselines.common.errors import UserError

held = []  # arguments of the calls of warnings.showwarning
original = None  # that function while warnings wait, None while they do not


@contextlib.contextmanager
def held_warnings():
    """Keeps warnings back until the block or the waiting ends; a UserError drops them.

    For such an error has one line on stderr, and nothing beside it.
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
    """Keeps warnings back until ``show_warnings`` is called."""
    global original
    if original is None:
        original = warnings.showwarning
        warnings.showwarning = lambda *args, **kwargs: held.append((args, kwargs))


def show_warnings() -> None:
    """Shows what was kept back, and from now on each warning at once."""
    global original
    if original is not None:
        warnings.showwarning, original = original, None
        while held:
            args, kwargs = held.pop(0)
            warnings.showwarning(*args, **kwargs)
