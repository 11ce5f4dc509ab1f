"""A run's ``config.json``: what it was started with, and what ``--resume`` needs."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib import metadata

import baselines
from baselines.common.arguments.declarations import Argument
from baselines.common.arguments.types import Count
from baselines.common.base import machine, mpi
from baselines.common.base.errors import UserFileError, UserValueError, shown
from baselines.common.saving.files import read_json

FORMAT = 6
VERSIONS_OF = (
    *("tensorflow", "keras", "numpy", "gymnasium", "opencv-python-headless", "ale-py"),
    *("stable-retro", "mujoco", "gymnasium-robotics", "box2d", "mpi4py"),
)
# Arguments that name code: those needed to play a model, and to resume its training.
CODE_OF_MODEL = "alg", "env", "network", "values"
CODE = *CODE_OF_MODEL, "reward"
WRITTEN = "save_path", "checkpoint_path"  # arguments that name a file to write
KINDS = {
    "arguments": dict,
    "settings": dict,
    "ranks": Count,
    "command": str | None,  # None for a run that was started from Python
    "resumed": list,
    "versions": dict,
    "log_formats": list[str],
}
KEYS = {name: Argument(name, kind) for name, kind in KINDS.items()}  # besides format
ADDED = {  # once learn() is called
    "update_size": Argument("update_size", Count),  # agent steps of an update
    # Of runs started from Python: arguments that are not JSON.
    "described": Argument("described", dict),
}
NEVER_STORED = {"env", "seed", "resume"}  # among the settings of learn()


def make_config(settings, argv=None) -> dict:
    """Returns the content of ``config.json``; the logger adds the log formats.

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
        "versions": versions()
        | foreign_commits(settings.learn_arguments | settings.arguments),
    }


def add_start(config, argv, num_timesteps) -> None:
    """Records in the content of a run's ``config.json`` that it is resumed.

    Args:
        config: what ``read_config`` returned; changed in place.
        argv: as in ``make_config``.
        num_timesteps: the run's new total of agent steps; None to keep the old one.
    """
    if num_timesteps is not None:
        config["arguments"]["num_timesteps"] = num_timesteps
        config["settings"]["total_timesteps"] = num_timesteps
    command = argv and command_line(argv)
    found = versions() | foreign_commits(config["settings"] | config["arguments"])
    config["resumed"].append({"command": command, "versions": found})


def read_config(folder, own) -> dict:
    """Reads and checks the ``config.json`` of a run.

    Args:
        folder: the run's folder.
        own: declarations of the arguments of ``baselines.run``.

    Raises:
        UserFileError: if there is no such file.
        UserValueError: if it is damaged, or in another version of the format.
    """
    path = os.path.join(os.path.expanduser(folder), "config.json")
    if not os.path.isfile(path):
        raise UserFileError(f"there is no run to resume in {folder}: no file {path}")
    config = read_json(path)
    version = config.get("format") if isinstance(config, dict) else None
    if type(version) is int and version != FORMAT:
        raise UserValueError(
            f"{folder} has a run of another version: the format of its config.json is "
            f"{shown(version)}, not {FORMAT}; to evaluate or play its model, give --env"
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
    """Raises UserValueError unless a dict has everything that ``make_config`` returns.

    Unknown arguments, and values stored twice that disagree, are errors as well.
    """
    missing = KEYS.keys() - config.keys()
    arguments, settings = config.get("arguments", {}), config.get("settings", {})
    needed = {"alg", "num_env", "normalize_rewards", "seed"}
    same = [("num_timesteps", "total_timesteps")]
    if config.get("command") is not None:  # From Python, env may have no id.
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

    Missing names, and names from other versions, are accepted here.
    """
    for name, argument in {**KEYS, **ADDED}.items():
        if name in config:
            argument.check(config[name])
    for name, value in config.get("arguments", {}).items():
        # From Python, env may have no id.
        if name in own and (name, value) != ("env", None):
            own[name].check(value)
    try:
        shlex.split(config.get("command") or "")
    except ValueError as error:
        raise UserValueError(f"command is not a valid command line ({error})") from None


def check_formats(folder, formats) -> None:
    """Raises UserValueError for foreign log formats that are not named again.

    Args:
        folder: the log folder.
        formats: the formats that it was written in.
    """
    chosen = os.environ.get("OPENAI_LOG_FORMAT", "").split(",")
    named = [name.strip() for name in chosen]
    for name in formats:
        if ":" in str(name) and name not in named:
            raise UserValueError(
                f"{folder} was logged by {name}, which is code outside this package; "
                f"to have it imported, set OPENAI_LOG_FORMAT={shlex.quote(name)}"
            )


def foreign_code(config, names=CODE) -> list:
    """Returns the flags with which a command names code outside this package again.

    Args:
        config: what ``make_config`` returned.
        names: of the arguments that the command takes.
    """
    found = foreign_values(config.get("settings", {}) | config["arguments"], names)
    return [f"--{name}={value}" for name, value in found.items()]


def foreign_values(arguments, names=CODE) -> dict:
    """Returns those of a run's arguments that name code from outside this package."""
    return {
        name: value
        for name in names
        if is_foreign(name, value := arguments.get(name))
        and not str(value).startswith("baselines.")  # as presets name their parts
    }


def is_foreign(name, value) -> bool:
    """Whether the value of an argument names code from outside this package."""
    return ("." if name == "alg" else ":") in str(value)


def command_line(argv) -> str:
    return shlex.join(["python", "-m", "baselines.run", *argv])


def launcher() -> str:
    """Returns the prefix that makes a command run as this process does."""
    ranks = f"mpiexec -n {mpi.size} " if mpi.size > 1 else ""
    formats = os.environ.get("OPENAI_LOG_FORMAT", "")
    if ":" in formats:  # one of the user's own, which has to be named again on resume
        return f"OPENAI_LOG_FORMAT={shlex.quote(formats)} {ranks}"
    return ranks


def resume_command(folder, config) -> str:
    """Returns the command that continues a run, or the call in Python.

    Args:
        folder: its log folder.
        config: what ``make_config`` returned; None for a run started from Python.
    """
    if config is None:
        return f"learn(..., resume={folder!r})"
    # The interpreter with this package; "python" may be another one.
    words = [sys.executable, "-m", "baselines.run", *resume_flags(folder, config)]
    return launcher() + shlex.join(words)


def resume_flags(folder, config) -> list:
    """Returns the arguments with which ``baselines.run`` continues a run.

    Args:
        folder: its log folder.
        config: what ``make_config`` returned; ``settings`` may be missing.
    """
    stored = config.get("settings", {}) | config["arguments"]
    paths = {name: path for name in WRITTEN if (path := stored.get(name)) is not None}
    named_again = {k: x for k, x in paths.items() if not is_inside(x, folder)}
    flags = [f"--{name}={path}" for name, path in named_again.items()]
    return [f"--resume={folder}", *foreign_code(config), *flags]


def absolute(path) -> str:
    """Returns a path that is the same from any folder."""
    return os.path.abspath(os.path.expanduser(path))


def is_inside(path, folder) -> bool:
    """Whether a path lies in a folder, once links are followed."""
    path, folder = (os.path.realpath(os.path.expanduser(x)) for x in (path, folder))
    return os.path.commonpath([path, folder]) == folder


def versions(*packages) -> dict:
    """Returns the versions, and the processor, that a result may depend on.

    Args:
        packages: names of further packages.
    """
    found = {"python": platform.python_version(), "commit": commit()}
    found |= {"platform": platform.platform(), "processor": machine.processor()}
    found["baselines"] = baselines.__version__
    for name in (*VERSIONS_OF, *packages):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def commit():
    """Returns the Git commit of this package's checkout, or None if there is none."""
    checkout = os.path.dirname(os.path.dirname(baselines.__file__))
    # Installed, the package may lie in a repository of something else.
    return describe_commit(checkout) if os.path.exists(f"{checkout}/.git") else None


def foreign_commits(arguments) -> dict:
    """Returns the Git commits of the code outside this package that a run names.

    Args:
        arguments: of the run, among them ``CODE``.

    Returns:
        the commit, or None, by ``commit of MODULE``.
    """
    found = {}
    for value in foreign_values(arguments).values():
        module = str(value).partition(":")[0]
        source = getattr(sys.modules.get(module), "__file__", None)
        found[f"commit of {module}"] = source and commit_of_file(source)
    return found


def commit_of_file(path):
    """Returns the Git commit of a file's repository, None if it is not part of one."""
    folder, name = os.path.split(os.path.abspath(path))
    tracked = ask_git(folder, "ls-files", "--", name)
    return describe_commit(folder) if tracked else None


def describe_commit(folder):
    """Returns the Git commit of a folder's repository, or None if it is in none."""
    words = ["describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"]
    return ask_git(folder, *words)


def ask_git(folder, *words):
    """Returns what a Git command prints in a folder, None if that is nothing."""
    if not shutil.which("git"):
        return None
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)
    return done.stdout.strip() or None
