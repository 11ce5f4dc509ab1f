"""Finds algorithms by name: any ``<name>/<name>.py`` with a function ``learn``."""

import importlib
import importlib.util
import os
from functools import partial

import baselines
from baselines.common.base.errors import (
    MissingDependency,
    UserTypeError,
    UserValueError,
    suggest,
)
from baselines.common.base.lazy import import_quietly
from baselines.common.base.user_code import find_source, import_named, told_in_one_line


def list_algorithms() -> list:
    """Returns the names of the algorithms in this package."""
    folder = os.path.dirname(baselines.__file__)
    return sorted(
        name
        for name in os.listdir(folder)
        if os.path.isfile(os.path.join(folder, name, f"{name}.py"))
    )


def find_algorithm(alg) -> str:
    """Returns the name of the module that has ``learn``, without importing it.

    Args:
        alg: a folder of this package, or ``my_pkg.my_alg``.
    """
    package = alg if "." in alg else f"baselines.{alg}"
    module = f"{package}.{package.rpartition('.')[2]}"
    spec = found = None
    with told_in_one_line(f"algorithm {alg!r}", partial(find_source, package)):
        try:  # This imports the parents' __init__.
            if not alg.startswith("."):
                spec = importlib.util.find_spec(package)
            if spec and spec.submodule_search_locations:
                found = importlib.util.find_spec(module)
        except ModuleNotFoundError as error:
            if not f"{module}.".startswith(f"{error.name}."):
                raise MissingDependency(f"algorithm {alg!r}: {error}") from None
    if found is None:
        known = list_algorithms()
        parent = package.rpartition(".")[0]
        if spec and "." in parent and alg == f"{parent}.{parent.rpartition('.')[2]}":
            known.append(parent)  # of which it is the file
        raise UserValueError(
            f"unknown algorithm {alg!r}{suggest(alg, known)} "
            f"(known: {', '.join(list_algorithms())}; one of your own: my_pkg.my_alg, "
            "whose file is my_pkg/my_alg/my_alg.py in the current folder or in one on "
            "PYTHONPATH)"
        )
    return module


def find_defaults(module, env_type) -> dict:
    """Returns an algorithm's defaults for an environment type, from its defaults.py.

    A preset without such a file, and with the same arguments as its base, takes the
    defaults of its base, except for those that it sets itself.
    """
    name = f"{module.rpartition('.')[0]}.defaults"
    if importlib.util.find_spec(name) is None:
        learn = import_learn(module)
        base = getattr(learn, "preset_of", None)
        if base is None or base.declared.keys() != learn.declared.keys():
            return {}
        found = find_defaults(base.__module__, env_type)
        return {k: v for k, v in found.items() if k not in learn.settings}
    return getattr(import_named(name, f"algorithm {module!r}"), env_type, dict)()


def import_learn(module):
    """Returns the algorithm's ``learn``; imports Keras."""
    import_quietly("baselines.common.backend")
    learn = getattr(import_named(module, f"algorithm {module!r}"), "learn", None)
    if not callable(learn):
        raise UserTypeError(f"the algorithm {module} has no function learn()")
    if not hasattr(learn, "declared"):
        raise UserTypeError(
            f"learn() of {module} has to have the decorator @algorithm() of "
            "baselines.common.run.algorithm"
        )
    return learn
