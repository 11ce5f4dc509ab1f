"""The command line of ``baselines.run``, read and checked before anything is built."""

import contextlib
import os
import secrets

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.arguments.checked import check_arguments
from baselines.common.arguments.declarations import REQUIRED, declared_arguments
from baselines.common.arguments.discovery import (
    find_algorithm,
    find_defaults,
    import_learn,
    list_algorithms,
)
from baselines.common.base import mpi
from baselines.common.base.errors import (
    UserFileError,
    UserTypeError,
    UserValueError,
    suggest,
)
from baselines.common.envs.make import make_env
from baselines.common.envs.registry import (
    GAMES,
    check_env_type,
    find_env_type,
    find_spec,
)
from baselines.common.envs.spaces import is_image
from baselines.common.run.resuming import parse_resume
from baselines.common.run.settings import OWN, Settings
from baselines.common.saving.config import absolute, make_config
from baselines.common.saving.log_folder import (
    check_may_overwrite,
    check_save_path,
    check_unused,
)

# Arguments of learn() that are not flags of the algorithm: baselines.run sets them.
SHARED = {
    "env",
    "eval_env",
    "network",
    "seed",
    "total_timesteps",
    "load_path",
    "overwrite",
    "resume",
}


def parse(argv) -> Settings:
    """Reads and checks a command line before anything is built.

    The arguments of ``learn()`` come from its signature, from the algorithm's
    ``defaults.py`` for the kind of environment, and from the command line; each of
    these overrides the one before.

    Raises:
        UserError: for a mistake.
        SystemExit: after printing the help, if that is asked for.
    """
    if {"--help", "-h"} & set(argv):
        print_help([word for word in argv if word not in ("--help", "-h")])
    given, words = cli.read(OWN, argv)
    if "resume" in given:
        return parse_resume(given, words, argv)
    for name in ("alg", "env"):
        if name not in given:
            for word in words:
                if cli.suggest_flag(word, [name]):
                    raise cli.unknown_argument(word, [name])
            raise UserValueError(f"--{name} is required; see --help")
    settings = Settings(**given)
    defaults = find(settings)
    check_own(settings)
    if settings.save_path is not None:
        # It may be resumed from another folder.
        settings.save_path = absolute(settings.save_path)
    settings.learn = import_learn(find_algorithm(settings.alg))
    known, values, unknown = read_learn(settings, words, defaults)
    if unknown:
        raise cli.unknown_argument(unknown[0], [*OWN, *known])
    declared = declared_arguments(settings.learn)
    check_rewards(given, values, declared)
    if settings.load_path is not None:
        settings.load_path = absolute(settings.load_path)
    values["load_path"] = settings.load_path
    for name, argument in known.items():
        is_path = {arg.ReadPath, arg.WrittenPath} & {*argument.markers}
        if is_path and isinstance(values.get(name), str):
            values[name] = absolute(values[name])
    values["overwrite"] = settings.overwrite
    values["total_timesteps"] = settings.num_timesteps
    check_arguments(settings.learn, {**values, "env": None})
    if settings.seed is None:
        settings.seed = mpi.broadcast(secrets.randbelow(2**31))
    if values.get("precision") == "auto":
        # Only here, because it imports Keras. Resuming uses what "auto" meant.
        from baselines.common.backend.precision import choose_precision

        values["precision"] = choose_precision("auto")
    settings.network, settings.learn_arguments = values["network"], values
    settings.config = make_config(settings, argv)
    return settings


def find(settings) -> dict:
    """Finds algorithm and environment; returns the algorithm's defaults for it."""
    module = find_algorithm(settings.alg)
    settings.spec = find_spec(settings.env)
    if settings.env_type is None:
        settings.env_type = find_env_type(settings.spec)
    else:
        check_env_type(settings.env_type)
    defaults = find_defaults(module, settings.env_type)
    of_env = defaults.pop("env", {})
    usual = {"num_env": 1, "normalize_rewards": False}
    for key in of_env.keys() - usual.keys():
        raise UserTypeError(
            f"{settings.alg}'s defaults.{settings.env_type}() sets env[{key!r}], but "
            f"what an algorithm needs of an environment is {' or '.join(usual)}"
        )
    for key, value in (usual | of_env).items():
        if getattr(settings, key) is None:
            setattr(settings, key, value)
    return defaults


def usual_network(settings) -> str:
    """Returns the name of the default network for an environment's observations."""
    if settings.env_type in GAMES:
        return "cnn"
    env = make_env(settings.spec, settings.env_type, gamestate=settings.gamestate)
    with contextlib.closing(env):
        return "cnn" if is_image(env.observation_space) else "mlp"


def read_learn(settings, words, defaults):
    """Reads the arguments of ``learn()``, and of its parts such as the network.

    Args:
        settings: the Settings so far.
        words: the words of the command line that ``baselines.run`` does not take.
        defaults: the algorithm's defaults for this kind of environment.

    Returns:
        the declarations of the arguments that can be given, all values by name, and
        the words that nothing takes.
    """
    declared = declared_arguments(settings.learn)
    known = cli.of_text({k: v for k, v in declared.items() if k not in SHARED})
    given, _ = cli.read(known, words)
    if settings.network is not None:
        given["network"] = settings.network
    of_network = defaults.keys() - declared.keys()
    if "network" not in defaults and ("network" not in given or of_network):
        defaults = {"network": usual_network(settings), **defaults}
    for name, argument in declared.items():
        if part := argument.marker(arg.Part):
            usual = defaults.get(name, argument.default)
            used = given.get(name, usual)
            takes = declared_arguments(part.find(used))
            # Defaults for the usual part do not apply to another.
            if usual not in (used, REQUIRED):
                others = declared_arguments(part.find(usual)).keys() - declared.keys()
                defaults = {k: v for k, v in defaults.items() if k not in others}
            known = cli.of_text(takes) | known
    check_names(settings, known, defaults)
    found, unknown = cli.read(known, words)
    values = {name: argument.default for name, argument in known.items()}
    preset = getattr(settings.learn, "settings", {})  # also arguments of parts
    values |= {name: value for name, value in preset.items() if name in known}
    values |= defaults | given | found
    # Of arguments without effect, only those that were given are worth a warning.
    usual = {name: argument.default for name, argument in declared.items()}
    unused = {
        name: argument.default
        for name, argument in known.items()
        if name in defaults.keys() - given.keys() - found.keys()
        and argument.default is not REQUIRED
        and argument.why_unused(usual | values)
    }
    return known, values | unused, unknown


def check_names(settings, known, defaults) -> None:
    """Raises UserTypeError for names that clash or that ``defaults.py`` cannot set."""
    for name in known.keys() & OWN.keys():
        raise UserTypeError(
            f"{settings.alg} or its network has an argument {name!r}, but --{name} is "
            "an argument of baselines.run; rename it"
        )
    for key, value in defaults.items():
        place = f"{settings.alg}'s defaults.{settings.env_type}() sets {key!r}"
        if key not in known and key != "network":
            raise UserTypeError(
                f"{place}, which learn() does not take{suggest(key, known)}"
            )
        if callable(value):
            raise UserTypeError(
                f"{place} to a function, but a run's settings are stored as text; name "
                "it instead, as the command line would"
            )


def check_rewards(given, values, declared) -> None:
    """Raises UserValueError for changes of rewards that are not learned from.

    Args:
        given: arguments of ``baselines.run`` on the command line, by name.
        values: all arguments of ``learn()``, by name.
        declared: declarations of ``learn()``'s own, by name.
    """
    if "reward" not in declared or arg.REWARD not in declared["reward"].markers:
        return
    reward = values["reward"]
    if getattr(arg.REWARD.find(reward), "replaces_rewards", False):
        for name, usual in {"reward_scale": 1.0, "normalize_rewards": False}.items():
            if given.get(name, usual) != usual:
                raise UserValueError(
                    f"--{name} would change nothing, as {reward} gives other rewards "
                    "than the environment's; leave it out"
                )


def print_help(words) -> None:
    """Prints the arguments, in as much detail as the other words allow, and exits."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.run",
        description="Train an agent by reinforcement learning, save it, play it.",
        epilog=f"algorithms: {', '.join(list_algorithms())}\n"
        "--alg=ALG --help shows an algorithm's own arguments; with --env and "
        "--network, also\ntheir defaults and the network's.",
        add_help=True,
    )
    given, words = cli.read(OWN, words)
    settings = Settings(**{"alg": None, "env": None, **given})
    defaults, shown = {}, {}
    if {"alg", "env"} <= given.keys():
        chosen = given.keys() & {"alg", "env", "env_type", "gamestate"}
        usual = Settings(**{name: given[name] for name in chosen})
        defaults = find(usual)
        settings.env_type = usual.env_type
        shown = {
            name: getattr(usual, name) for name in ("num_env", "normalize_rewards")
        }
        if settings.network is None:
            shown["network"] = defaults.get("network") or usual_network(usual)
    cli.add_arguments(parser, OWN, shown)
    if "alg" in given:
        settings.learn = import_learn(find_algorithm(settings.alg))
        declared = declared_arguments(settings.learn)
        own = cli.of_text({k: v for k, v in declared.items() if k not in SHARED})
        cli.add_arguments(parser, own, defaults, f"arguments of {settings.alg}")
        given = cli.read(own, words)[0] | {"network": settings.network}
        if settings.env is not None and settings.network is None:
            given["network"] = shown["network"]
        for name, argument in declared.items():
            used = given.get(name) or defaults.get(name, argument.default)
            if (part := argument.marker(arg.Part)) and used is not REQUIRED:
                takes = cli.of_text(declared_arguments(part.find(used)))
                takes = {k: v for k, v in takes.items() if k not in declared}
                title = f"arguments of the {part.kind} {used}"
                cli.add_arguments(parser, takes, defaults, title)
    parser.parse_args(["--help"])


def check_own(settings) -> None:
    """Raises if an argument cannot be used with the others or on this machine."""
    for name, value in settings.arguments.items():
        OWN[name].check(value)
    folder = settings.log_path or os.environ.get("OPENAI_LOGDIR") or None
    if settings.training and folder is not None:
        check_log_folder(folder, settings)
    if settings.save_path is not None:
        check_save_path(settings.save_path)
        path = absolute(settings.save_path)
        if os.path.lexists(path) and not settings.overwrite:
            raise UserFileError(
                f"there is a file {path} already: give another --save_path, or replace "
                "it with --overwrite"
            )
    if settings.normalize_rewards and settings.reward_scale != 1.0:
        raise UserValueError(
            "--reward_scale would change nothing, as rewards are divided by the "
            "standard deviation of returns; leave it out, or give "
            "--normalize_rewards=False"
        )
    usual = OWN["save_video_length"].default
    if settings.save_video_length != usual and not settings.save_video_interval:
        raise UserValueError("--save_video_length needs --save_video_interval")
    if not settings.training:
        if settings.log_path is not None:
            raise UserValueError(
                "--log_path is for training, but --num_timesteps is 0; leave it out"
            )
        return
    if settings.overwrite and folder is None and settings.save_path is None:
        raise UserValueError(
            "--overwrite needs the folder of the run that is replaced, --log_path"
        )


def check_log_folder(folder, settings) -> None:
    """Raises UserFileError if there is a run in the log folder that must be kept."""
    if mpi.rank > 0:
        return
    if settings.overwrite:
        check_may_overwrite(folder, settings.load_path)
    else:
        check_unused(folder)
