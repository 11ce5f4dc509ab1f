"""What a run is started with: from a command line, to and from ``config.json``."""

import contextlib
import dataclasses
import os
import secrets
from typing import Annotated, Any, Literal

from baselines.common import arguments as arg
from baselines.common import cli, mpi
from baselines.common.config import command_line, make_config, read_config, versions
from baselines.common.declarations import (
    REQUIRED,
    check_arguments,
    declared_arguments,
)
from baselines.common.discovery import (
    find_algorithm,
    find_defaults,
    import_learn,
    list_algorithms,
)
from baselines.common.envs.make import SCALED_REWARDS, make_env
from baselines.common.envs.registry import (
    GAMES,
    check_env_type,
    find_env_type,
    find_spec,
)
from baselines.common.envs.spaces import is_image
from baselines.common.errors import UserTypeError, UserValueError, suggest
from baselines.common.saving.checkpoints import check_ranks, list_manifests
from baselines.common.saving.files import check_writable
from baselines.play import check_can_play

# Arguments of learn() that are not the algorithm's own but come from those below.
SHARED = {"env", "network", "seed", "total_timesteps", "load_path", "resume"}


@dataclasses.dataclass
class Settings:
    """The arguments of ``baselines.run``, and those of ``learn()``.

    Attributes:
        learn_arguments: keywords for ``learn()``, those of the network included.
        learn: the algorithm's function.
        spec: of the environment.
        config: JSON values for ``config.json``.
    """

    alg: Annotated[str, "algorithm, or my_pkg.my_alg for one of your own (required)"]
    env: Annotated[str, "environment id, or module:EnvId (required)"]
    env_type: Annotated[str, "kind of environment, if it is not what is detected"] = (
        None
    )
    seed: Annotated[arg.Seed, "seed of all random numbers (default: a random one)"] = (
        None
    )
    num_timesteps: Annotated[arg.CountOrZero, "agent steps, over all environments"] = (
        1_000_000
    )
    network: Annotated[
        str,
        "a function of common/models.py, such as mlp, cnn, lstm or cnn_lstm, or "
        "module:function (default: the algorithm's for this kind of environment, else "
        "cnn for images and mlp)",
    ] = None
    gamestate: Annotated[
        str, "state that a retro game starts in (default: its own)"
    ] = None
    num_env: Annotated[
        arg.Count,
        "environments that step together (default: the algorithm's for this kind of "
        "environment, else 1)",
    ] = None
    reward_scale: Annotated[float, "factor on the rewards, above the monitor"] = 1.0
    on_worker_failure: Annotated[
        Literal["replace", "raise"],
        "what happens when a worker process dies: another takes over and its episodes "
        "count as truncated, or training stops",
    ] = "replace"
    save_path: Annotated[
        str, "where to save the model (default: in the log folder)"
    ] = None
    load_path: Annotated[str, "a saved model to start from"] = None
    resume: Annotated[
        str,
        "log folder of a run to continue, bit for bit; takes no other argument than a "
        "new --num_timesteps",
    ] = None
    log_path: Annotated[
        str,
        "folder of the run's files (default: $OPENAI_LOGDIR, else a new one in the "
        "temporary folder)",
    ] = None
    play: Annotated[
        bool, "play in a window afterwards; --num_timesteps=0 plays at once"
    ] = False

    learn_arguments: dict = dataclasses.field(default_factory=dict, init=False)
    learn: Any = dataclasses.field(default=None, init=False)
    spec: Any = dataclasses.field(default=None, init=False)
    config: dict = dataclasses.field(default_factory=dict, init=False)

    @property
    def arguments(self) -> dict:
        """The arguments of ``baselines.run``, by name."""
        return {name: getattr(self, name) for name in OWN}

    @property
    def training(self) -> bool:
        return self.num_timesteps > 0


OWN = declared_arguments(Settings)


def parse(argv) -> Settings:
    """Reads and checks a command line before anything is built.

    The arguments of ``learn()`` are, each overriding the one before: those of its
    signature, of the algorithm's ``defaults.py`` for the kind of environment, and of
    the command line.

    Raises:
        UserError: for a mistake.
        SystemExit: after the help, if that is asked for.
    """
    wants_help = "--help" in argv or "-h" in argv
    own_parser = cli.OneLineErrorParser(add_help=False)
    cli.add_arguments(own_parser, OWN.values())
    words = [word for word in argv if word not in ("--help", "-h")]
    given, words = own_parser.parse_known_args(words)
    given = vars(given)
    if "resume" in given:
        return parse_resume(given, words, argv)
    if wants_help and "alg" not in given:
        help_parser().parse_args(["--help"])
    for name in ("alg", "env"):
        if name not in given and not wants_help:
            raise UserValueError(f"--{name} is required; see --help")
    settings = Settings(**{"env": None, **given})
    module = find_algorithm(settings.alg)
    defaults = {} if settings.env is None else find_environment(settings, module)
    if not wants_help:
        check_own(settings)
    num_env = defaults.pop("env", {}).get("num_env", 1)
    settings.num_env = settings.num_env or num_env
    settings.learn = import_learn(module)
    parser = help_parser() if wants_help else cli.OneLineErrorParser(add_help=False)
    chosen, unknown = parse_learn(parser, settings, words, defaults)
    if wants_help:
        parser.parse_args(["--help"])
    if unknown:
        flag = unknown[0].split("=")[0]
        known = [f"--{name}" for name in (*OWN, *chosen)]
        raise UserValueError(f"unknown argument {flag}{suggest(flag, known)}")
    if settings.seed is None:
        settings.seed = mpi.broadcast(secrets.randbelow(2**31))
    chosen["load_path"] = settings.load_path
    chosen["total_timesteps"] = settings.num_timesteps
    check_arguments(settings.learn, {**chosen, "env": None})
    settings.network, settings.learn_arguments = chosen["network"], chosen
    settings.config = make_config(settings, argv)
    return settings


def find_environment(settings, module) -> dict:
    """Finds the environment and its kind; returns the algorithm's defaults for it."""
    settings.spec = find_spec(settings.env)
    if settings.env_type is None:
        settings.env_type = find_env_type(settings.spec)
    else:
        check_env_type(settings.env_type)
    defaults = find_defaults(module, settings.env_type)
    if "network" not in defaults:
        defaults["network"] = usual_network(settings)
    return defaults


def usual_network(settings) -> str:
    """Returns the name of the usual network for an environment's observations."""
    if settings.env_type in GAMES:
        return "cnn"
    env = make_env(settings.spec, settings.env_type, gamestate=settings.gamestate)
    with contextlib.closing(env):
        return "cnn" if is_image(env.observation_space) else "mlp"


def parse_learn(parser, settings, words, defaults):
    """Reads the arguments of ``learn()``, and of its parts such as the network.

    Args:
        parser: a parser, which gets them.
        settings: the Settings so far.
        words: the words of the command line that are not of ``baselines.run``.
        defaults: of the algorithm for this kind of environment.

    Returns:
        the arguments by name, and the words that are nobody's.
    """
    declared = declared_arguments(settings.learn)
    own = [x for x in cli.of_text(declared) if x.name not in SHARED]
    add_group(parser, settings.alg, own, defaults)
    given = vars(parser.parse_known_args(words)[0])
    if settings.network is not None:
        given["network"] = settings.network
    for name, argument in declared.items():
        part = argument.marker(arg.Part)
        usual = defaults.get(name, argument.default)
        used = given.get(name, usual)
        if part is None or used is REQUIRED:  # The help may have no environment.
            continue
        takes = declared_arguments(part.find(used))
        if used != usual:  # Defaults for the usual network are for no other.
            others = declared_arguments(part.find(usual)).keys() - declared.keys()
            defaults = {k: v for k, v in defaults.items() if k not in others}
        its_own = [x for x in cli.of_text(takes) if x.name not in declared]
        add_group(parser, f"the {part.kind} {used}", its_own, defaults)
        own += its_own
    found, unknown = parser.parse_known_args(words)
    given |= vars(found)
    check_defaults(settings, defaults, [*declared, *(x.name for x in own)])
    values = {x.name: x.default for x in own if x.default is not REQUIRED}
    return values | defaults | given, unknown


def add_group(parser, owner, arguments, defaults) -> None:
    """Adds arguments to a parser; raises if ``baselines.run`` has one of the name."""
    for argument in arguments:
        if argument.name in OWN:
            raise UserTypeError(
                f"{owner} has an argument {argument.name!r}, but --{argument.name} is "
                "an argument of baselines.run; rename it"
            )
    cli.add_arguments(parser, arguments, defaults, f"arguments of {owner}")


def help_parser():
    """Returns a parser with a help text that begins with the arguments of all runs."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.run",
        description="Train an agent by reinforcement learning, save it, play it.",
        epilog=f"algorithms: {', '.join(list_algorithms())}\n"
        "--alg=ALG --help shows an algorithm's own arguments; with --env and "
        "--network, also\ntheir defaults and the network's.",
    )
    cli.add_arguments(parser, OWN.values())
    return parser


def check_defaults(settings, defaults, known) -> None:
    """Raises UserTypeError for what ``defaults.py`` must not say."""
    for key, value in defaults.items():
        place = f"{settings.alg}'s defaults.{settings.env_type}() sets {key!r}"
        if key not in known:
            raise UserTypeError(
                f"{place}, which learn() does not take{suggest(key, known)}"
            )
        if callable(value):
            raise UserTypeError(
                f"{place} to a function, but a run's settings are stored as text; name "
                "it instead, as the command line would"
            )


def check_own(settings) -> None:
    """Raises if an argument cannot be used with the others or on this machine."""
    for name, value in settings.arguments.items():
        OWN[name].check(value)
    if settings.save_path is not None:
        path = os.path.abspath(os.path.expanduser(settings.save_path))
        if os.path.isdir(path):
            raise UserValueError(f"--save_path has to name a file; {path} is a folder")
        check_writable(os.path.dirname(path))
    if settings.env_type in SCALED_REWARDS and settings.reward_scale != 1.0:
        raise UserValueError(
            "--reward_scale would change nothing: rewards of "
            f"{settings.env_type} environments are divided by the deviation of "
            "returns; leave it out"
        )
    if settings.log_path is not None and not settings.training:
        raise UserValueError(
            "--log_path is for training, but --num_timesteps is 0; leave it out"
        )
    if settings.play:
        check_can_play(settings.env_type)


def parse_resume(given, words, argv) -> Settings:
    """Returns the Settings of a run to resume, from its ``config.json``.

    Args:
        given: arguments of ``baselines.run`` on the command line.
        words: the other words of it.
        argv: all of it.
    """
    folder, steps = given["resume"], given.get("num_timesteps")
    path = os.path.join(os.path.expanduser(folder), "config.json")
    if steps == 0:
        raise UserValueError("--num_timesteps=0 trains nothing, so nothing is resumed")
    others = given.keys() - {"resume", "num_timesteps", "alg", "env"}
    words = [*words, *(f"--{name}" for name in sorted(others))]
    if words:
        raise UserValueError(
            f"{words[0].split('=')[0]} cannot be given with --resume, which takes all "
            f"settings from {path}; only --num_timesteps may change"
        )
    config = read_config(folder, OWN)
    settings = Settings(**config["arguments"])
    for name in ("alg", "env"):
        found, expected = getattr(settings, name), given.get(name)
        if expected not in (None, found):
            raise UserValueError(
                f"cannot resume {folder}: its {name} is {found}, not {expected}"
            )
    check_ranks(folder, config["ranks"])
    settings.resume, settings.play, settings.config = folder, False, config
    if steps is not None:
        config["arguments"]["num_timesteps"] = settings.num_timesteps = steps
        config["settings"]["total_timesteps"] = steps
    config["resumed"].append({"command": command_line(argv), "versions": versions()})
    settings.learn_arguments = dict(config["settings"])
    if list_manifests(os.path.join(os.path.dirname(path), "checkpoints")):
        settings.learn_arguments["load_path"] = None  # Older than the checkpoint.
    settings.learn = import_learn(find_algorithm(settings.alg))
    settings.spec = find_spec(settings.env)
    return settings
