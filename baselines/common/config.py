"""A run's ``config.json``: what it was started with, and what ``--resume`` needs."""

import os
import platform
import shlex
import shutil
import subprocess
from importlib import metadata

import baselines
from baselines.common import machine, mpi
from baselines.common.errors import UserFileError, UserValueError
from baselines.common.saving.json_values import read_json

FORMAT = 6
VERSIONS_OF = "tensorflow", "keras", "gymnasium", "ale-py", "stable-retro", "numpy"
CODE = "alg", "env", "network", "values", "reward"  # arguments that name code
KEYS = {  # beside format and arguments
    "settings": dict,
    "ranks": int,
    "command": str | None,  # None for a run that was started from Python
    "resumed": list,
    "versions": dict,
    "log_formats": list,
}


def make_config(settings, argv=None) -> dict:
    """Returns the content of ``config.json``; the logger adds its formats.

    Args:
        settings: the ``Settings`` of the run.
        argv: its command line; None for a run that was started from Python.
    """
    return {
        "format": FORMAT,
        "arguments": settings.arguments,
        "settings": settings.learn_arguments,
        "ranks": mpi.size,
        "command": argv and command_line(argv),
        "resumed": [],
        "versions": versions(),
    }


def add_start(config, argv, num_timesteps) -> None:
    """Adds to the ``config.json`` of a run that it is resumed.

    Args:
        config: what ``read_config`` returned, which is changed.
        argv: as in ``make_config``.
        num_timesteps: agent steps that it is to have now; None for as many as before.
    """
    if num_timesteps is not None:
        config["arguments"]["num_timesteps"] = num_timesteps
        config["settings"]["total_timesteps"] = num_timesteps
    command = argv and command_line(argv)
    config["resumed"].append({"command": command, "versions": versions()})


def read_config(folder, own) -> dict:
    """Returns what ``make_config`` made, from a run's folder.

    Args:
        folder: of the run.
        own: declarations of the arguments of ``baselines.run``.

    Raises:
        UserFileError: if there is none.
        UserValueError: if it is damaged, or of another version.
    """
    path = os.path.join(os.path.expanduser(folder), "config.json")
    if not os.path.isfile(path):
        raise UserFileError(f"there is no run to resume in {folder}: no file {path}")
    config = read_json(path)
    try:
        version = config["format"]
        valid = type(version) is int
        valid = valid and (version != FORMAT or is_config(config, own))
    except (ValueError, TypeError, KeyError, AttributeError):
        valid = False
    if not valid:
        raise UserValueError(f"{path} is damaged")
    if config["format"] != FORMAT:
        raise UserValueError(
            f"cannot resume {folder}: its format is {config['format']}, not {FORMAT}"
        )
    return config


def is_config(config, own) -> bool:
    """Whether a JSON value has all that ``make_config`` makes, of the same types."""
    arguments, settings = config["arguments"], config["settings"]
    needed = {"alg", "num_env", "normalize_rewards", "seed"}
    if config["command"] is not None:  # Python may have made any environment.
        needed |= {"env", "env_type"}
    if None in (arguments[name] for name in needed):
        return False
    for name, value in arguments.items():
        if value is not None:
            own[name].check(value)
    return (
        all(isinstance(config[key], kind) for key, kind in KEYS.items())
        and config["arguments"].keys() == own.keys()
        and type(settings["total_timesteps"]) is type(config["ranks"]) is int
        and not settings.keys() & {"env", "seed", "resume"}
    )


def foreign_code(config) -> list:
    """Returns the flags that name code outside this package again.

    Args:
        config: what ``make_config`` made.
    """
    found = foreign_values(config.get("settings", {}) | config["arguments"])
    return [f"--{name}={value}" for name, value in found.items()]


def foreign_values(arguments) -> dict:
    """Returns those of a run's arguments that name code outside this package."""
    return {
        name: value
        for name in CODE
        if is_foreign(name, value := arguments.get(name))
        and not str(value).startswith("baselines.")  # as presets name their parts
    }


def is_foreign(name, value) -> bool:
    """Whether the value of an argument that names code is not of this package."""
    return ("." if name == "alg" else ":") in str(value)


def command_line(argv) -> str:
    return shlex.join(["python", "-m", "baselines.run", *argv])


def versions() -> dict:
    """Returns the versions, and the processor, that a result may depend on."""
    found = {"python": platform.python_version(), "commit": commit()}
    found |= {"platform": platform.platform(), "processor": machine.processor()}
    found["baselines"] = baselines.__version__
    for name in VERSIONS_OF:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def commit():
    """Returns the Git commit of this package's checkout, None if it is in none."""
    checkout = os.path.dirname(os.path.dirname(baselines.__file__))
    if not os.path.exists(os.path.join(checkout, ".git")) or not shutil.which("git"):
        return None
    command = ["git", "-C", checkout, "describe", "--always", "--dirty", "--exclude=*"]
    command.append("--abbrev=40")
    return (
        subprocess.run(command, capture_output=True, text=True).stdout.strip() or None
    )
