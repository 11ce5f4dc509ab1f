"""A run's ``config.json``: what it was started with, and what ``--resume`` needs."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib import metadata

import baselines
from baselines.common.base import machine, mpi
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.saving.files import read_json

FORMAT = 7
VERSIONS_OF = (
    *("tensorflow", "keras", "numpy", "gymnasium", "opencv-python-headless", "ale-py"),
    *("stable-retro", "mujoco", "gymnasium-robotics", "box2d", "mpi4py"),
)
PARTS = (
    "network",
    "value_network",
    "distribution",
    "values",
    "critic",
    "memory",
    "optimizer",
    "reward",
)


def make_config(arguments, command=None) -> dict:
    """Returns the content of ``config.json``; the logger adds the log formats.

    Args:
        arguments: JSON values of the run's arguments, by name.
        command: words of its command line; None for a run that Python started.
    """
    return {
        "format": FORMAT,
        "arguments": arguments,
        "ranks": mpi.size,
        **describe_start(arguments, command),
        "resumed": [],
    }


def describe_start(arguments, command) -> dict:
    """Returns the command and the versions of a start; arguments as ``make_config``."""
    return {
        "command": command and shlex.join(["python", "-m", "baselines.run", *command]),
        "versions": versions() | external_commits(external_code(arguments)),
    }


def read_config(folder) -> dict:
    """Reads the ``config.json`` of a run.

    Args:
        folder: the run's folder.

    Raises:
        UserFileError: if there is no such file.
        UserValueError: if it is in another version of the format.
    """
    path = os.path.join(os.path.expanduser(folder), "config.json")
    if not os.path.isfile(path):
        raise UserFileError(f"there is no run in {folder}: no file {path}")
    config = read_json(path)
    version = config.get("format") if isinstance(config, dict) else None
    if version != FORMAT:
        raise UserValueError(
            f"{folder} has a run of another version: the format of its config.json is "
            f"{version}, not {FORMAT}; to evaluate or play its model, give --env"
        )
    return config


def check_trust(path, code, trust) -> None:
    """Raises UserValueError for code outside this package that is not trusted.

    Args:
        path: of the run or model that names it, for the message.
        code: as ``external_code`` returns it.
        trust: whether it may be imported.
    """
    for name, value in code.items():
        if not trust:
            raise UserValueError(
                f"{path} names code outside this package, {name}={value}: give "
                "--trust (in Python, trust=True) to have it imported"
            )


def external_code(arguments, parts=PARTS, log_formats=()) -> dict:
    """Returns what names code outside this package among a run's arguments.

    Args:
        arguments: of the run, by name.
        parts: names of those that are a ``Part``.
        log_formats: the formats that the run is logged in.
    """
    alg, code = str(arguments.get("alg")), {}
    if "." in alg and not alg.startswith("baselines."):
        code["alg"] = alg
    for name in ("env", *parts):
        if ":" in str(arguments.get(name)):
            code[name] = str(arguments[name])
    for name in log_formats:
        if ":" in name:
            code["log_format"] = name
    return code


WRITTEN_PATHS = "save_path", "checkpoint_path"


def resume_command(folder, config) -> str:
    """Returns the command that continues a run, or the call in Python.

    Args:
        folder: its log folder.
        config: the content of its ``config.json``.
    """
    if config["command"] is None:
        return f"learn(..., resume={folder!r})"
    ranks = f"mpiexec -n {config['ranks']} " if config["ranks"] > 1 else ""
    # The interpreter with this package; "python" may be another one.
    words = [sys.executable, "-m", "baselines.run", f"--resume={folder}"]
    # A file is not trusted to say where to write.
    given = ((name, config["arguments"].get(name)) for name in WRITTEN_PATHS)
    words += [f"--{name}={path}" for name, path in given if path]
    return ranks + shlex.join([*words, *trust_flag(config)])


def trust_flag(config) -> list:
    """Returns the flag that a command needs for the code that a run names, if any."""
    code = external_code(config["arguments"], log_formats=config.get("log_formats", ()))
    # Presets of this package name their parts as module:function, too.
    others = [x for x in code.values() if not x.startswith("baselines.")]
    return ["--trust"] if others else []


def versions(*packages) -> dict:
    """Returns the versions, and the processor, that a result may depend on.

    Args:
        packages: names of further packages.
    """
    found = {
        "python": platform.python_version(),
        "commit": commit_of_file(baselines.__file__),
        "platform": platform.platform(),
        "processor": machine.processor(),
        "baselines": baselines.__version__,
    }
    for name in (*VERSIONS_OF, *packages):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def external_commits(code) -> dict:
    """Returns the Git commits of code outside this package.

    Args:
        code: as ``external_code`` returns it.

    Returns:
        the commit, or None, by ``commit of MODULE``.
    """
    commits = {}
    for value in code.values():
        module = str(value).partition(":")[0]
        source = getattr(sys.modules.get(module), "__file__", None)
        commits[f"commit of {module}"] = source and commit_of_file(source)
    return commits


def commit_of_file(path):
    """Returns the Git commit of a file's repository, None if it is not part of one."""
    folder, name = os.path.split(os.path.abspath(path))
    words = "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"
    # Installed, a file may lie in a repository of something else.
    tracked = ask_git(folder, "ls-files", "--", name)
    return ask_git(folder, *words) if tracked else None


def ask_git(folder, *words):
    """Returns what a Git command prints in a folder, None if that is nothing."""
    if not shutil.which("git"):
        return None
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)
    return done.stdout.strip() or None
