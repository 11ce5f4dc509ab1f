"""Packages whose names are imported only when they are used."""

import importlib
import os
import sys
import tempfile

from baselines.common.base.errors import (
    MissingDependency,
    UserError,
    UserValueError,
    install_command,
)


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


def import_module(name):
    """Returns a module that a user named.

    Raises:
        UserValueError: if there is no such module.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):
            raise UserValueError(
                f"there is no module {error.name!r} in the current folder or on "
                "PYTHONPATH"
            ) from None
        raise


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


def import_extra(name, extra="plot"):
    """Imports and returns an optional package.

    Args:
        name: of the package.
        extra: the extra of this package that installs it.

    Raises:
        MissingDependency: if it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingDependency(
            f"this needs {name}: {install_command(extra)}"
        ) from None
