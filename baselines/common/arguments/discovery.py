"""Finds algorithms by name: any ``<name>/<name>.py`` with a function ``learn``."""

import importlib.util
import pkgutil
from pathlib import Path

import baselines
from baselines.common.base.errors import UserTypeError, UserValueError, suggest
from baselines.common.base.lazy import import_module

# Kinds of Gymnasium's environments, which ``TASKS`` may name without a function for
# their kind.
GYMNASIUM = {"classic_control", "box2d", "toy_text", "mujoco"}


def list_algorithms() -> list:
    """Returns the names of the algorithms in this package."""
    files = Path(baselines.__file__).parent.glob("*/*.py")
    return sorted(file.stem for file in files if file.stem == file.parent.name)


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


def find_layers(module, env, with_defaults=True) -> dict:
    """Returns the layers of arguments between the signature and what is given.

    Args:
        module, env: as in ``find_defaults``.
        with_defaults: whether the algorithm's defaults.py counts.
    """
    return {
        "environment": {"network": env["network"]} if env["network"] else {},
        "preset": {},
        "defaults.py": find_defaults(module, **env) if with_defaults else {},
    }


def find_defaults(module, env_type, network=None, env_id=None) -> dict:
    """Returns an algorithm's defaults for an environment, from its defaults.py.

    A preset without such a file, and with the same arguments as its base, takes the
    defaults of its base, except for those that it sets itself.

    Args:
        module: of the algorithm.
        env_type: names the function; where there is none, it is ``atari`` for images,
            and ``other`` for vectors.
        network: that suits its images; None if it has none.
        env_id: of an environment whose own settings, in the dict ``TASKS``, come on top
            of those for its kind.

    Raises:
        UserTypeError: for a function as a default, as a run stores arguments as text.
    """
    package, _, name = module.rpartition(".")
    if package.rpartition(".")[2] != name:  # a learn() outside an algorithm's folder
        return {}
    folder = import_module(package).__path__
    if "defaults" not in {found.name for found in pkgutil.iter_modules(folder)}:
        learn = import_learn(module)
        base = learn.preset_of
        if base is None or base.declared.keys() != learn.declared.keys():
            return {}
        defaults = find_defaults(base.__module__, env_type, network, env_id)
        return {k: v for k, v in defaults.items() if k not in learn.settings}
    functions = import_module(f"{package}.defaults")
    if hasattr(functions, env_type):
        defaults = getattr(functions, env_type)()
    else:
        defaults = getattr(functions, "atari" if network else "other", dict)()
        if network == "multi":  # in place of one for images alone
            defaults.pop("network", None)
    # Not for somebody's environment that has the name of a task.
    if env_type in GYMNASIUM or hasattr(functions, env_type):
        defaults |= getattr(functions, "TASKS", {}).get(env_id, {})
    for name, value in defaults.items():
        if callable(value):
            raise UserTypeError(f"{module}: defaults.py sets {name!r} to a function")
    return defaults


def import_learn(module):
    """Returns the algorithm's ``learn``; imports Keras."""
    learn = getattr(import_module(module), "learn", None)
    if not hasattr(learn, "declared"):
        raise UserTypeError(
            f"{module} has to have a function learn() with the decorator @algorithm() "
            "of baselines.common.run.algorithm"
        )
    return learn
