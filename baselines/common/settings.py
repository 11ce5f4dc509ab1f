"""What a run is started with: from a command line, to and from ``config.json``."""

import contextlib
import dataclasses
import os
import secrets
from typing import Annotated, Any, Literal

from baselines.common import arguments as arg
from baselines.common import cli, mpi
from baselines.common.config import add_start, make_config, read_config
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
from baselines.common.errors import (
    UserTypeError,
    UserValueError,
    suggest,
    suggest_name,
)
from baselines.common.saving.checkpoints import check_ranks, list_manifests
from baselines.common.saving.files import check_writable

# Arguments of learn() that are not the algorithm's own but come from those below.
SHARED = {
    "env",
    "eval_env",
    "network",
    "seed",
    "total_timesteps",
    "load_path",
    "resume",
}


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
    save_video_interval: Annotated[
        arg.CountOrZero,
        "steps of each environment from one video of training, in the folder videos of "
        "the log folder, to the next; 0 for none",
    ] = 0
    save_video_length: Annotated[arg.Count, "steps in a video"] = 200
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
    if {"--help", "-h"} & set(argv):
        print_help([word for word in argv if word not in ("--help", "-h")])
    given, words = cli.read(OWN, argv)
    if "resume" in given:
        return parse_resume(given, words, argv)
    for name in ("alg", "env"):
        if name not in given:
            for flag in [word.split("=")[0] for word in words]:
                if hint := suggest_name(flag, [f"--{name}"]):
                    raise UserValueError(f"unknown argument {flag}{hint}")
            raise UserValueError(f"--{name} is required; see --help")
    settings = Settings(**given)
    defaults = find(settings)
    check_own(settings)
    settings.learn = import_learn(find_algorithm(settings.alg))
    known, values, unknown = read_learn(settings, words, defaults)
    if unknown:
        flag, flags = unknown[0].split("=")[0], [f"--{x}" for x in (*OWN, *known)]
        raise UserValueError(f"unknown argument {flag}{suggest_name(flag, flags)}")
    values["load_path"] = settings.load_path
    values["total_timesteps"] = settings.num_timesteps
    check_arguments(settings.learn, {**values, "env": None})
    if settings.seed is None:
        settings.seed = mpi.broadcast(secrets.randbelow(2**31))
    if values.get("precision") == "auto":
        # Here, because it imports Keras. A run is resumed in what it meant.
        from baselines.common.precision import choose_precision

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
    for key in of_env.keys() - {"num_env"}:
        raise UserTypeError(
            f"{settings.alg}'s defaults.{settings.env_type}() sets env[{key!r}], but "
            "what an algorithm needs of an environment is num_env"
        )
    if settings.num_env is None:
        settings.num_env = of_env.get("num_env", 1)
    return defaults


def usual_network(settings) -> str:
    """Returns the name of the usual network for an environment's observations."""
    if settings.env_type in GAMES:
        return "cnn"
    env = make_env(settings.spec, settings.env_type, gamestate=settings.gamestate)
    with contextlib.closing(env):
        return "cnn" if is_image(env.observation_space) else "mlp"


def read_learn(settings, words, defaults):
    """Reads the arguments of ``learn()``, and of its parts such as the network.

    Args:
        settings: the Settings so far.
        words: the words of the command line that are not of ``baselines.run``.
        defaults: of the algorithm for this kind of environment.

    Returns:
        what is declared of the arguments that can be given, all values by name, and
        the words that are nobody's.
    """
    declared = declared_arguments(settings.learn)
    known = cli.of_text({k: v for k, v in declared.items() if k not in SHARED})
    given, _ = cli.read(known, words)
    if settings.network is not None:
        given["network"] = settings.network
    if "network" not in given.keys() | defaults or defaults.keys() - declared.keys():
        defaults = {"network": usual_network(settings), **defaults}
    for name, argument in declared.items():
        if part := argument.marker(arg.Part):
            usual = defaults.get(name, given.get(name, argument.default))
            used = given.get(name, usual)
            takes = declared_arguments(part.find(used))
            if used != usual:  # Defaults for the usual network are for no other.
                others = declared_arguments(part.find(usual)).keys() - declared.keys()
                defaults = {k: v for k, v in defaults.items() if k not in others}
            known = cli.of_text(takes) | known
    check_names(settings, known, defaults)
    found, unknown = cli.read(known, words)
    values = {name: argument.default for name, argument in known.items()}
    preset = getattr(settings.learn, "settings", {})  # also arguments of parts
    values |= {name: value for name, value in preset.items() if name in known}
    return known, values | defaults | given | found, unknown


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


def print_help(words) -> None:
    """Prints what there is to give, in as much detail as the other words allow."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.run",
        description="Train an agent by reinforcement learning, save it, play it.",
        epilog=f"algorithms: {', '.join(list_algorithms())}\n"
        "--alg=ALG --help shows an algorithm's own arguments; with --env and "
        "--network, also\ntheir defaults and the network's.",
        add_help=True,
    )
    cli.add_arguments(parser, OWN)
    given, words = cli.read(OWN, words)
    if "alg" in given:
        settings = Settings(**{"env": None, **given})
        defaults = {} if settings.env is None else find(settings)
        settings.learn = import_learn(find_algorithm(settings.alg))
        declared = declared_arguments(settings.learn)
        own = cli.of_text({k: v for k, v in declared.items() if k not in SHARED})
        cli.add_arguments(parser, own, defaults, f"arguments of {settings.alg}")
        given = cli.read(own, words)[0] | {"network": settings.network}
        if settings.env is not None and settings.network is None:
            given["network"] = defaults.get("network") or usual_network(settings)
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
    usual = OWN["save_video_length"].default
    if settings.save_video_length != usual and not settings.save_video_interval:
        raise UserValueError("--save_video_length needs --save_video_interval")
    if settings.log_path is not None and not settings.training:
        raise UserValueError(
            "--log_path is for training, but --num_timesteps is 0; leave it out"
        )


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
    if config["command"] is None:
        raise UserValueError(
            f"cannot resume {folder} here: it was started from Python, where its "
            f"environment is made; call learn(..., resume={folder!r}) there"
        )
    settings = Settings(**config["arguments"])
    for name in ("alg", "env"):
        found, expected = getattr(settings, name), given.get(name)
        if expected not in (None, found):
            raise UserValueError(
                f"cannot resume {folder}: its {name} is {found}, not {expected}"
            )
    check_ranks(folder, config["ranks"])
    formats = os.environ.get("OPENAI_LOG_FORMAT", "").split(",")
    named = [name.strip() for name in formats]
    for name in config["log_formats"]:
        if ":" in str(name) and name not in named:
            raise UserValueError(
                f"{folder} was logged by {name}, which is code outside this package; "
                f"to have it imported, set OPENAI_LOG_FORMAT={name}"
            )
    settings.resume, settings.play, settings.config = folder, False, config
    if steps is not None:
        settings.num_timesteps = steps
    add_start(config, argv, steps)
    settings.learn_arguments = dict(config["settings"])
    if list_manifests(os.path.join(os.path.dirname(path), "checkpoints")):
        settings.learn_arguments["load_path"] = None  # Older than the checkpoint.
    settings.learn = import_learn(find_algorithm(settings.alg))
    settings.spec = find_spec(settings.env)
    return settings
