"""The command line of ``baselines.run``: read and checked before anything is built."""

import argparse
import contextlib
import os
from collections import ChainMap

import gymnasium as gym

from baselines.common.arguments import cli, completion
from baselines.common.arguments import types as arg
from baselines.common.arguments.arguments import (
    NEVER_STORED,
    Arguments,
    declare,
    gather,
)
from baselines.common.arguments.declaration import Argument, Text, declared_arguments
from baselines.common.arguments.discovery import (
    find_algorithm,
    find_layers,
    import_learn,
    list_algorithms,
)
from baselines.common.arguments.parts import changed_parts
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.envs.make import make_env
from baselines.common.envs.nests import network_for
from baselines.common.envs.registry import (
    GAMES,
    check_env_type,
    find_env_type,
    find_spec,
    quiet_emulator,
)
from baselines.common.run.settings import NUM_TIMESTEPS, RUN_ARGUMENTS, VECTORS
from baselines.common.saving.checkpoints import check_ranks, list_manifests
from baselines.common.saving.config import (
    check_trust,
    external_code,
    read_config,
)

NUM_TIMESTEPS_OF_LEARN = "total_timesteps"  # OpenAI Baselines has both names.
NOT_FLAGS = {"eval_env", "callback", "on_update"}  # but only arguments in Python
BASIC = {  # what every learn() takes
    "seed": Argument("seed", arg.Seed, None),
    "num_timesteps": Argument("num_timesteps", arg.Timesteps, NUM_TIMESTEPS),
    "network": Argument("network", arg.Network, None),
}
GENERAL = {**RUN_ARGUMENTS, **BASIC, **arg.SHARED_ARGUMENTS}
GENERAL = {name: x for name, x in GENERAL.items() if name not in NOT_FLAGS}


def read_arguments(argv) -> Arguments:
    """Returns the arguments of a run, of a new one or of one that is resumed.

    Raises:
        UserError: for a mistake.
        SystemExit: after printing the help, if that is asked for.
    """
    argv = ["--help" if word == "-h" else word for word in argv]
    words = cli.read_words(argv, flags=("help",))
    for name in words.keys() & {*NOT_FLAGS, NUM_TIMESTEPS_OF_LEARN}:
        raise cli.unknown_argument(name, ["num_timesteps"])
    if "num_timesteps" in words:
        words[NUM_TIMESTEPS_OF_LEARN] = words.pop("num_timesteps")
    if words.pop("help", None):
        (complete if completion.WANTED else print_help)(words)
        raise SystemExit(0)
    arguments = (resumed_arguments if "resume" in words else new_arguments)(words)
    arguments.command = argv
    return arguments


def new_arguments(words) -> Arguments:
    """Returns the arguments of a new run.

    They come from the signature of ``learn()``, from the algorithm's ``defaults.py``
    for the kind of environment, and from the command line; each of these overrides the
    one before.

    Args:
        words: as ``cli.read_words`` returns them.
    """
    for name in ("alg", "env"):
        if name not in words:
            raise UserValueError(f"--{name} is required; see --help")
    module = find_algorithm(str(words["alg"]))
    layers = layers_of_command(module, words)
    learn = import_learn(module)
    layers |= {"preset": learn.settings, "given": words}
    absolute_paths(learn, words)
    arguments = gather_run(learn, layers)
    reward = arguments.functions.get("reward")
    for name in ("reward_scale", "normalize_rewards"):
        given = arguments.sources[name] == "given"
        if given and getattr(reward, "replaces_rewards", False):
            raise UserValueError(
                f"--{name} would change nothing, as {arguments['reward']} gives other "
                "rewards than the environment's; leave it out"
            )
    return arguments


def gather_run(learn, layers) -> Arguments:
    """Returns checked arguments of ``learn()`` and of the command line."""
    for name in declared_arguments(learn).keys() & RUN_ARGUMENTS.keys() - {"env"}:
        raise UserTypeError(
            f"learn() of {learn.__module__} has an argument {name!r}, but --{name} is "
            "an argument of baselines.run; rename it"
        )
    try:
        return gather(learn, layers, RUN_ARGUMENTS)
    except (UserTypeError, UserValueError) as error:
        # In Python, an argument that does not exist is a TypeError, and the length of a
        # run has OpenAI Baselines' other name.
        text = str(error).replace(NUM_TIMESTEPS_OF_LEARN, "num_timesteps")
        raise UserValueError(text) from None


def layers_of_command(module, words) -> dict:
    """Returns the layers of the arguments of a command line, without its own words.

    Args:
        module: of the algorithm.
        words: as ``cli.read_words`` returns them.
    """
    if not module.startswith("baselines."):
        import_learn(module)  # It may register environments.
    spec = find_spec(str(words["env"]))
    env_type = str(words.get("env_type") or find_env_type(spec))
    check_env_type(env_type)
    wanted = GENERAL["defaults"].validate(words.get("defaults", True))
    network = network_for_env(spec, env_type)
    env = dict(env_type=env_type, network=network, env_id=spec.id)
    layers = find_layers(module, env, wanted)
    command = {"env_type": env_type, NUM_TIMESTEPS_OF_LEARN: NUM_TIMESTEPS}
    layers["environment"] |= command
    return layers


def network_for_env(spec, env_type) -> str | None:
    """Returns the network that suits an environment's images; None if it has none."""
    if env_type in GAMES | VECTORS:
        return "cnn" if env_type in GAMES else None
    with contextlib.closing(make_env(spec, env_type)) as env:
        return network_for(env.observation_space)


def absolute_paths(learn, words) -> None:
    """Makes paths absolute, as a run may be resumed from another folder."""
    declared = declared_arguments(learn) | RUN_ARGUMENTS
    for name in words.keys() & declared.keys():
        argument = declared[name]
        is_path = argument.marker(arg.ReadPath) or argument.marker(arg.WrittenPath)
        text = words[name]
        if is_path and isinstance(text, Text) and text.lower() != "none":
            words[name] = Text(os.path.abspath(os.path.expanduser(text)))


def resumed_arguments(words) -> Arguments:
    """Returns the arguments of a run that is resumed, from its ``config.json``.

    Only what does not affect learning may be given besides: the length of the run,
    paths, and what ``MayChange`` marks.

    Args:
        words: as ``cli.read_words`` returns them.
    """
    folder = str(words["resume"])
    config = read_config(folder)
    stored = {k: x for k, x in config["arguments"].items() if k not in NEVER_STORED}
    if config["command"] is None:
        raise UserValueError(
            f"cannot resume {folder} here: it was started from Python, where its "
            f"environment is made; call learn(..., resume={folder!r}) there"
        )
    trust = GENERAL["trust"].validate(words.get("trust", False))
    code = external_code(stored, (), config["log_formats"])
    check_trust(folder, code, trust)
    learn = import_learn(find_algorithm(stored["alg"]))
    absolute_paths(learn, words)
    check_trust(folder, external_code(stored, changed_parts(learn, stored)), trust)
    # A path that is given again is the run's own, whose model it may replace.
    changed = {k: v for k, v in words.items() if v != stored.get(k)}
    arguments = gather_run(learn, {"config.json": stored, "given": changed})
    for name in words.keys() - {"resume", "trust"}:
        argument = arguments.declared.get(name)
        movable = arg.MayChange, arg.ReadPath, arg.WrittenPath
        is_movable = argument is not None and any(map(argument.marker, movable))
        if name in FIXED_ON_RESUME or not is_movable:
            raise UserValueError(
                f"--{name} cannot be given with --resume, which takes all settings "
                f"from {folder}/config.json; --load_path={folder} starts a new run "
                "from its weights"
            )
    for name, argument in arguments.declared.items():
        path = arguments[name]
        stored_path = argument.marker(arg.WrittenPath) and path and name not in words
        if stored_path and not trust:
            raise UserValueError(
                f"{folder}/config.json says to write {name} to {path}: give --{name}, "
                "or --trust to allow that"
            )
    if not arguments[NUM_TIMESTEPS_OF_LEARN]:
        raise UserValueError("--num_timesteps=0 trains nothing, so nothing is resumed")
    check_ranks(folder, config["ranks"])
    if list_manifests(os.path.join(os.path.expanduser(folder), "checkpoints")):
        arguments = arguments.replace(load_path=None)  # older than the checkpoint
    return arguments


# Checkpoints hold the state of the environments of evaluations; a seed is used up.
FIXED_ON_RESUME = {"seed", "eval_interval", "eval_episodes", "overwrite", "play"}


def complete(words) -> None:
    """Tells a shell what may follow these words of a command line."""
    parser = argparse.ArgumentParser(add_help=False)
    choices, names = {name: x.choices for name, x in GENERAL.items()}, {*GENERAL}
    if words.get("alg", True) is not True:
        names.update(completion.names_of_learn(find_algorithm(words["alg"])))
    for name in names - NOT_FLAGS - {NUM_TIMESTEPS_OF_LEARN}:
        parser.add_argument(f"--{name}")
    quiet_emulator()  # It also registers its games.
    choices |= dict(alg=list_algorithms(), env=[*gym.registry])
    completion.answer(parser, **choices)


def print_help(words) -> None:
    """Prints the arguments, in as much detail as the other words allow."""
    parser = argparse.ArgumentParser(
        prog="python -m baselines.run",
        description="Train an agent by reinforcement learning, save it, play it.",
        epilog=f"algorithms: {', '.join(list_algorithms())}\n"
        "--alg=ALG --help shows an algorithm's own arguments; with --env and "
        "--network, also\ntheir defaults and the network's.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    defaults = {}
    if "alg" in words:
        module = find_algorithm(str(words["alg"]))
        layers = layers_of_command(module, words) if "env" in words else {}
        learn = import_learn(module)
        layers |= {"preset": learn.settings, "given": dict(words)}
        declared, _ = declare(learn, layers, RUN_ARGUMENTS)
        defaults = dict(ChainMap(*reversed(layers.values())))
        defaults["num_timesteps"] = defaults.get(NUM_TIMESTEPS_OF_LEARN, NUM_TIMESTEPS)
    cli.add_arguments(parser, GENERAL, defaults)
    if "alg" in words:
        left_out = {*GENERAL, *NOT_FLAGS, NUM_TIMESTEPS_OF_LEARN}
        group = parser.add_argument_group(f"arguments of {words['alg']}")
        others = {k: x for k, x in declared.items() if k not in left_out}
        cli.add_arguments(group, others, defaults)
    parser.print_help()
