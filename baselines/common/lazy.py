"""Packages whose names are imported when they are asked for, and not before."""

import importlib


def exports(package, **modules):
    """Returns a ``__getattr__`` for a package's ``__init__``.

    Args:
        package: its ``__name__``.
        modules: the module of the package that has each name.
    """

    def __getattr__(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return __getattr__


def learn_of(package):
    """Returns a ``__getattr__`` for an algorithm's folder: it exports ``learn``.

    Keras is imported when ``learn`` is asked for, not before.
    """
    return exports(package, learn=package.rpartition(".")[2])
