"""Packages whose names are imported only when they are used."""

import importlib
import os
import sys
import tempfile

from baselines.common.errors import MovedModule, UserError


def exports(package, **modules):
    """Returns ``__getattr__`` and ``__dir__`` for a package's ``__init__``.

    Args:
        package: its ``__name__``.
        modules: the module, in the package, that each name comes from.
    """

    def __getattr__(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return __getattr__, lambda: [*sys.modules[package].__dict__, *modules]


def learn_of(package, *others):
    """Returns ``__getattr__`` and ``__dir__`` for an algorithm's folder.

    It exports ``learn``, and imports Keras only when one of its names is used.

    Args:
        package: its ``__name__``.
        others: other names of the same module to export.
    """
    names = dict.fromkeys(("learn", *others), package.rpartition(".")[2])
    get, list_names = exports(package, **names)

    def __getattr__(name):
        if name in names:
            import_quietly("baselines.common.backend")
        return get(name)

    return __getattr__, list_names


def moved_names(module, others=None):
    """Returns a ``__getattr__`` that says what became of names of OpenAI Baselines.

    Args:
        module: its ``__name__``.
        others: a ``__getattr__`` for all other names, or None.
    """

    def __getattr__(name):
        # Only here, because it imports this package.
        from baselines.moved import MOVED_NAMES

        # A copy of the module, outside this package, has none.
        if became := MOVED_NAMES.get(module, {}).get(name):
            raise MovedModule(f"{module}.{name} of OpenAI Baselines is gone: {became}")
        if others is not None:
            return others(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


def import_quietly(module):
    """Imports a module; what it writes to stderr is shown only if it fails.

    No setting silences all of TensorFlow's messages about the processor.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            importlib.import_module(module)
        except UserError:
            raise
        except Exception:
            notes.seek(0)
            os.write(stderr, notes.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
