"""A run's ``config.json``: what it was started with, and what ``--resume`` needs."""

import json
import os
import platform
from importlib import metadata

from baselines import __version__
from baselines.common import mpi
from baselines.common.errors import UserFileError, UserValueError

FORMAT = 2
TEXT_OR_NONE = str, type(None)
ARGUMENTS = {  # of baselines.run that are kept, with their types
    "alg": str,
    "env": str,
    "env_type": str,
    "num_env": int,
    "num_timesteps": int,
    "reward_scale": (int, float),
    "gamestate": TEXT_OR_NONE,
    "on_worker_failure": str,
    "seed": int,
    "save_path": TEXT_OR_NONE,
    "log_path": TEXT_OR_NONE,
    "play": bool,
}
OTHERS = {  # beside these and the format
    "settings": dict,
    "ranks": int,
    "command": str,
    "resumed": list,
    "versions": dict,
    "log_formats": list,
}
NO_SETTINGS = {"env", "seed", "resume"}  # arguments of learn() that come from elsewhere
VERSIONS_OF = "tensorflow", "keras", "gymnasium", "ale-py", "stable-retro", "numpy"


def make_config(args, settings, command) -> dict:
    """Returns what a run keeps; the logger adds its formats.

    Args:
        args: arguments of ``baselines.run``, by attributes.
        settings: arguments of ``learn()`` and of the network, by name.
        command: the command line.
    """
    return {
        "format": FORMAT,
        "arguments": {name: getattr(args, name) for name in ARGUMENTS},
        "settings": settings,
        "ranks": mpi.size,
        "command": command,
        "resumed": [],
        "versions": versions(),
    }


def read_config(folder) -> dict:
    """Returns what ``make_config`` made, from a run's folder.

    Raises:
        UserFileError: if there is none.
        UserValueError: if it is damaged, or of another version.
    """
    path = os.path.join(os.path.expanduser(folder), "config.json")
    if not os.path.isfile(path):
        raise UserFileError(f"there is no run to resume in {folder}: no file {path}")
    try:
        with open(path) as file:
            config = json.load(file)
        whole = config["format"] != FORMAT or is_config(config)
    except OSError as error:
        raise UserFileError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise UserValueError(f"{path} is damaged")
    if config["format"] != FORMAT:
        raise UserValueError(
            f"cannot resume {folder}: its format is {config['format']}, not {FORMAT}"
        )
    return config


def is_config(config) -> bool:
    """Whether a JSON value has all that ``make_config`` makes, of the same types."""
    arguments, settings = config["arguments"], config["settings"]
    return (
        all(isinstance(config[key], kind) for key, kind in OTHERS.items())
        and arguments.keys() == ARGUMENTS.keys()
        and all(isinstance(arguments[k], kind) for k, kind in ARGUMENTS.items())
        and isinstance(settings["total_timesteps"], int)
        and not settings.keys() & NO_SETTINGS
    )


def versions() -> dict:
    """Returns the versions that a result may depend on."""
    found = {"python": platform.python_version(), "baselines": __version__}
    for name in VERSIONS_OF:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found
