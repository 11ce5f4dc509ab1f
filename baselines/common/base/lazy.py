"""Packages whose names are imported only when they are used."""

import importlib
import os
import sys
import tempfile

from baselines.common.base.errors import (
    MissingDependency,
    UserValueError,
    install_command,
)


def exports(package, **modules):
    """Returns ``__getattr__`` and ``__dir__`` for a package's ``__init__``.

    Args:
        package: its ``__name__``.
        modules: the module, in the package, that each name comes from; if there are
            none, ``learn`` comes from the module with the name of the package.
    """
    modules = modules or {"learn": package.rpartition(".")[2]}

    def __getattr__(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return __getattr__, lambda: [*sys.modules[package].__dict__, *modules]


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


class QuietTensorFlow:
    """Finder of modules that imports TensorFlow before Keras does, without its noise.

    No setting silences all that it says about the processor. If the import fails, what
    it wrote is shown.
    """

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "keras":
            return
        sys.meta_path.remove(cls)
        sys.stderr.flush()
        stderr = os.dup(2)
        with tempfile.TemporaryFile() as notes:
            os.dup2(notes.fileno(), 2)
            try:
                importlib.import_module("tensorflow")
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
