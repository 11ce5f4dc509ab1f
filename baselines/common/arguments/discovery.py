"""Finds algorithms by name: any ``<name>/<name>.py`` with a function ``learn``."""

import importlib.util
import os

import baselines
from baselines.common.base.errors import UserTypeError, UserValueError, suggest
from baselines.common.base.lazy import import_module, import_quietly


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
    try:
        found = importlib.util.find_spec(module)  # This imports the parents.
    except ModuleNotFoundError as error:
        if error.name and not f"{module}.".startswith(f"{error.name}."):
            raise
        found = None
    if found is None:
        known = list_algorithms()
        raise UserValueError(
            f"unknown algorithm {alg!r}{suggest(alg, known)} (known: "
            f"{', '.join(known)}; one of your own: my_pkg.my_alg, whose file is "
            "my_pkg/my_alg/my_alg.py in the current folder or in one on PYTHONPATH)"
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
        base = learn.preset_of
        if base is None or base.declared.keys() != learn.declared.keys():
            return {}
        defaults = find_defaults(base.__module__, env_type)
        return {k: v for k, v in defaults.items() if k not in learn.settings}
    return getattr(import_module(name), env_type, dict)()


def import_learn(module):
    """Returns the algorithm's ``learn``; imports Keras."""
    import_quietly("baselines.common.backend")
    learn = getattr(import_module(module), "learn", None)
    if not hasattr(learn, "declared"):
        raise UserTypeError(
            f"{module} has to have a function learn() with the decorator @algorithm() "
            "of baselines.common.run.algorithm"
        )
    return learn
