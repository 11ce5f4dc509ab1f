"""A run's ``config.json``: what it was started with, and what ``--resume`` needs."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib import metadata

import baselines
from baselines.common import machine, mpi
from baselines.common.arguments import Count
from baselines.common.declarations import Argument
from baselines.common.errors import UserFileError, UserValueError, shown
from baselines.common.saving.json_values import read_json

FORMAT = 6
VERSIONS_OF = "tensorflow", "keras", "gymnasium", "ale-py", "stable-retro", "numpy"
CODE = "alg", "env", "network", "values", "reward"  # arguments that name code
KINDS = {
    "arguments": dict,
    "settings": dict,
    "ranks": Count,
    "command": str | None,  # None for a run that was started from Python
    "resumed": list,
    "versions": dict,
    "log_formats": list[str],
}
KEYS = {name: Argument(name, kind) for name, kind in KINDS.items()}  # beside format
UPDATE_SIZE = Argument("update_size", Count)  # which a run from Python adds
NEVER_STORED = {"env", "seed", "resume"}  # among the settings of learn()


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
    version = config.get("format") if isinstance(config, dict) else None
    if type(version) is int and version != FORMAT:
        raise UserValueError(
            f"cannot resume {folder}: its format is {shown(version)}, not {FORMAT}"
        )
    try:
        if version != FORMAT:
            raise UserValueError("it has no format")
        check_config(config, own)
        check_complete(config, own)
    except UserValueError as error:
        raise UserValueError(f"{path} is damaged: {error}") from None
    return config


def check_complete(config, own) -> None:
    """Raises UserValueError unless a dict has all that ``make_config`` makes.

    What is in it twice has to agree.
    """
    missing = KEYS.keys() - config.keys()
    arguments, settings = config.get("arguments", {}), config.get("settings", {})
    needed = {"alg", "num_env", "normalize_rewards", "seed"}
    same = [("num_timesteps", "total_timesteps")]
    if config.get("command") is not None:  # Python may have made any environment.
        needed |= {"env", "env_type"}
        same += [(name, name) for name in settings.keys() & own.keys()]
    missing |= own.keys() - arguments.keys()
    missing |= {name for name in needed if arguments.get(name) is None}
    if missing:
        raise UserValueError(f"it has no {min(missing)}")
    if others := sorted(
        [*(arguments.keys() - own.keys()), *(settings.keys() & NEVER_STORED)]
    ):
        raise UserValueError(f"no run has a setting {shown(others[0])} there")
    for name, other in same:
        value, again = arguments[name], settings.get(other)
        if type(value) is not type(again) or value != again:
            raise UserValueError(
                f"{name} is {shown(value)}, but in settings {other} is {shown(again)}"
            )
    if not arguments["num_timesteps"]:
        raise UserValueError("num_timesteps is 0, with which no run begins")


def check_config(config, own) -> None:
    """Raises UserValueError for a value that no run has in its ``config.json``.

    Names that are missing, or that other versions have, are no mistake here.
    """
    for name, argument in {**KEYS, "update_size": UPDATE_SIZE}.items():
        if name in config:
            argument.check(config[name])
    for name, value in config.get("arguments", {}).items():
        # Python may have made any environment.
        if name in own and (name, value) != ("env", None):
            own[name].check(value)
    try:
        shlex.split(config.get("command") or "")
    except ValueError as error:
        raise UserValueError(f"command is no command line ({error})") from None


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


def launcher() -> str:
    """Returns what goes before a command that is to run as this process does."""
    ranks = f"mpiexec -n {mpi.size} " if mpi.size > 1 else ""
    formats = os.environ.get("OPENAI_LOG_FORMAT", "")
    if ":" in formats:  # one of the user's own, which a resumed run is told again
        return f"OPENAI_LOG_FORMAT={shlex.quote(formats)} {ranks}"
    return ranks


def resume_command(folder, config) -> str:
    """Returns the command that continues a run, or the call in Python.

    Args:
        folder: of its log.
        config: what ``make_config`` made; None for a run that was started from Python.
    """
    if config is None:
        return f"learn(..., resume={folder!r})"
    words = ["-m", "baselines.run", f"--resume={folder}", *foreign_code(config)]
    # The interpreter that has this package, which "python" may not be.
    return launcher() + shlex.join([sys.executable, *words])


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
