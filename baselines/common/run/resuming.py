"""The settings of a run that is resumed, from its ``config.json``.

Such a file may come from somebody else. Code outside this package that it names is
imported, and files outside the log folder are written, only if the command line names
them again.
"""

import os
import shlex

from baselines.common.arguments import cli
from baselines.common.arguments.declarations import declared_arguments
from baselines.common.arguments.discovery import find_algorithm, import_learn
from baselines.common.arguments.parts import Part
from baselines.common.arguments.types import ReadPath, WrittenPath
from baselines.common.base.errors import UserFileError, UserValueError, printable
from baselines.common.envs.registry import find_spec
from baselines.common.run.settings import OWN, Settings
from baselines.common.saving.checkpoints import check_ranks, list_manifests
from baselines.common.saving.config import (
    absolute,
    add_start,
    check_formats,
    command_line,
    foreign_code,
    is_foreign,
    is_inside,
    read_config,
)
from baselines.common.saving.log_folder import check_save_path


def parse_resume(given, words, argv) -> Settings:
    """Returns the Settings of a run to resume.

    Args:
        given: arguments of ``baselines.run`` on the command line, by name.
        words: the other words of the command line.
        argv: the whole command line.
    """
    folder, steps = given["resume"], given.get("num_timesteps")
    if steps == 0:
        raise UserValueError("--num_timesteps=0 trains nothing, so nothing is resumed")
    config = read_config(folder, OWN)
    if config["command"] is None:
        raise UserValueError(
            f"cannot resume {folder} here: it was started from Python, where its "
            f"environment is made; call learn(..., resume={folder!r}) there"
        )
    settings = Settings(**config["arguments"])
    settings.learn_arguments = dict(config["settings"])
    stored = config["settings"] | config["arguments"]
    check_named_again(config, given, argv, ("alg", "env"))
    settings.learn = import_learn(find_algorithm(settings.alg))
    settings.spec = find_spec(settings.env)
    declared = declared_arguments(settings.learn)
    parts = [name for name, x in declared.items() if x.marker(Part)]
    paths = [name for name, x in declared.items() if WrittenPath in x.markers]
    known = cli.of_text({name: declared[name] for name in [*parts, *paths]})
    again, words = cli.read(known, words)
    again |= given
    preset = settings.learn.settings  # of an algorithm that was named
    trusted = [name for name in parts if stored.get(name) == preset.get(name)]
    check_named_again(config, again, argv, parts, trusted)
    changing = find_changing(declared, parts, stored)
    changed, words = cli.read(changing, words)
    for name, value in changed.items():
        changing[name].check(value)
    settings.learn_arguments |= changed
    config["settings"] |= changed
    allowed = {"resume", "num_timesteps", "alg", "env", "save_path", *known}
    words = [*words, *(f"--{name}" for name in sorted(again.keys() - allowed))]
    if words:
        names = ["num_timesteps", *sorted({"save_path", *paths, *changing})]
        raise UserValueError(
            f"{words[0].split('=')[0]} cannot be given with --resume, which takes all "
            f"settings from {os.path.join(folder, 'config.json')}; only "
            f"{', '.join(f'--{name}' for name in names)} may change; --load_path="
            f"{folder} starts a new run from its weights, with the same network"
        )
    if "save_path" in again:
        check_save_path(again["save_path"])
        place = absolute(again["save_path"])
        if place != stored.get("save_path") and os.path.lexists(place):
            raise UserFileError(
                f"there is a file {again['save_path']} already: give another "
                "--save_path, or remove it"
            )
        config["arguments"]["save_path"] = place
    settings.save_path = path_to_write("save_path", stored, again)
    if settings.save_path is None:
        config["arguments"]["save_path"] = None
    for name in paths:
        path = path_to_write(name, stored, again)
        settings.learn_arguments[name] = config["settings"][name] = path
    if list_manifests(os.path.join(os.path.expanduser(folder), "checkpoints")):
        settings.learn_arguments["load_path"] = None  # Older than the checkpoint.
    check_ranks(folder, config["ranks"])
    check_formats(folder, config["log_formats"])
    settings.resume, settings.play, settings.config = folder, False, config
    if steps is not None:
        settings.num_timesteps = settings.learn_arguments["total_timesteps"] = steps
    add_start(config, argv, steps)
    return settings


def check_named_again(config, again, argv, names, trusted=()) -> None:
    """Raises UserValueError unless the command line names the code of the run again.

    The code of this package may be left out.

    Args:
        config: content of the run's ``config.json``.
        again: settings on the command line, by name.
        argv: the whole command line.
        names: names of the settings to check.
        trusted: those of them that name the code of an algorithm named again.
    """
    stored = config["settings"] | config["arguments"]
    for name in names:
        found, expected = stored.get(name), again.get(name)
        if expected not in (None, found):
            raise UserValueError(
                f"cannot resume {again['resume']}: its {name} is {found}, not "
                f"{expected}"
            )
        if expected is None and name not in trusted and is_foreign(name, found):
            flags = dict.fromkeys([f"--{name}={found}", *foreign_code(config)])
            command = command_line([*argv, *(x for x in flags if x not in argv)])
            raise UserValueError(
                f"cannot resume {again['resume']}: its {name} is {found}, which is "
                "code outside this package; to have it imported, name it again: "
                f"{command}"
            )


def find_changing(declared, parts, stored) -> dict:
    """Returns declarations of the settings that may change, by name.

    These are files that are read, and what is marked by ``MayChange``.

    Args:
        declared: declarations of the arguments of ``learn()``.
        parts: names of those that are a ``Part``; each may read files as well.
        stored: settings of the run, by name.
    """
    found = {}
    for name in parts:
        part = declared[name].marker(Part)
        found |= declared_arguments(part.find(stored.get(name, declared[name].default)))
    changing = {
        name: argument
        for name, argument in (found | declared).items()
        if ReadPath in argument.markers
        or (argument.may_change and WrittenPath not in argument.markers)
    }
    own = {*OWN, "total_timesteps"}  # of the command line, which has its own rules
    # Checkpoints hold the state of the environments of evaluations.
    own |= {"eval_interval", "eval_episodes"}
    return {k: x for k, x in cli.of_text(changing).items() if k not in own}


def path_to_write(name, stored, again):
    """Returns the path of a setting; None if it has none or may not be written.

    Args:
        name: of the setting.
        stored: settings of the run, by name.
        again: settings on the command line, by name.
    """
    folder, path = again["resume"], stored.get(name)
    if name in again:
        return None if again[name] is None else absolute(again[name])
    if path is None:
        return None
    if not isinstance(path, str) or "\0" in path:
        raise UserValueError(f"{folder}/config.json is damaged: {name} is not a path")
    if is_inside(path, folder):
        return path
    flag = shlex.quote(f"--{name}={path}")
    print(printable(f"nothing will be written to {path} without {flag}"))
    return None
