"""The command line: ``python -m baselines.run --alg=ALG --env=ENV``.

Finds ``learn()`` by the algorithm's name, builds the environment, trains,
saves, plays. An algorithm is any folder ``<name>/<name>.py`` with a function
``learn``; ``--alg=my_pkg.my_alg`` runs one from outside this package.
"""

import contextlib
import importlib
import importlib.util
import os
import secrets
import shlex
import signal
import sys
from argparse import SUPPRESS, ArgumentTypeError, Namespace

import numpy as np

import baselines
from baselines import logger
from baselines.common import cli, mpi
from baselines.common.checkpoint import check_ranks, list_manifests
from baselines.common.envs import (
    find_env_type,
    find_spec,
    list_env_types,
    make_env,
    make_vec_env,
)
from baselines.common.errors import (
    MissingDependency,
    UserTypeError,
    UserValueError,
    suggest,
)
from baselines.common.files import check_writable
from baselines.common.run_config import make_config, read_config, versions
from baselines.common.vec_env import VecFrameStack, VecNormalize, clip_actions

# What main() itself gives to learn(), from arguments that all algorithms share.
SHARED = {"env", "network", "seed", "total_timesteps", "load_path", "resume"}
FRAME_STACK = {"atari": 4, "retro": 4}  # by environment type
SCALED_REWARDS = {"mujoco"}  # environment types, as in OpenAI Baselines


def main(argv=None):
    """Runs one command line.

    Args:
        argv: arguments after the program's name; None for ``sys.argv``.

    Returns:
        The trained model.

    Raises:
        SystemExit: status 2, after one line on stderr, for a mistake in ``argv``.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    with cli.one_line_errors():
        mpi.connect()
        return run(argv)


def run(argv):
    """Trains, saves and plays as ``argv`` says; returns the model."""
    resume = resume_parser().parse_known_args(argv)[0].resume
    if resume is None:
        args, learn, settings = parse(argv)
        command = command_line(argv)
        config, log_formats = make_config(args, settings, command), None
    else:
        args, learn, settings, config = parse_resume(argv)
        log_formats = config["log_formats"]
    spec = find_spec(args.env)
    training = settings["total_timesteps"] > 0
    with contextlib.ExitStack() as stack:
        if training:
            logger.configure(resume or args.log_path, log_formats, config)
            stack.callback(logger.close)
            stack.enter_context(hangup_ignored())
        env = build_env(
            spec,
            args.env_type,
            num_env=args.num_env,
            seed=args.seed,
            reward_scale=args.reward_scale,
            gamestate=args.gamestate,
            log_dir=logger.get_dir() if training else None,
            on_worker_failure=args.on_worker_failure,
        )
        stack.callback(env.close)
        model = learn(env=env, seed=args.seed, resume=resume, **settings)
        if training:
            path = args.save_path or os.path.join(logger.get_dir(), "model.safetensors")
            model.save(path)
            tell_what_next(config, os.path.expanduser(path))
        elif args.save_path is not None:
            model.save(args.save_path)
    if args.play:
        with build_env(
            spec,
            args.env_type,
            seed=args.seed,
            gamestate=args.gamestate,
            env_kwargs={"render_mode": "human"},
        ) as env:
            play(model, env)
    return model


@contextlib.contextmanager
def hangup_ignored():
    """Lets this process, and those that it starts, outlive their terminal."""
    try:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    except ValueError:  # Only the main thread may.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def command_line(argv) -> str:
    return shlex.join(["python", "-m", "baselines.run", *argv])


def launcher() -> str:
    """Returns what stands before a command that starts as many MPI ranks as these."""
    return f"mpiexec -n {mpi.size} " if mpi.size > 1 else ""


def parse_resume(argv):
    """Reads a command line with ``--resume``.

    The settings are those of the run's ``config.json``.

    Returns:
        what ``parse`` returns, and the config to go on with.
    """
    given, unknown = resume_parser().parse_known_args(argv)
    path = os.path.join(os.path.expanduser(given.resume), "config.json")
    if given.num_timesteps == 0:
        raise UserValueError("--num_timesteps=0 trains nothing, so nothing is resumed")
    if unknown:
        raise UserValueError(
            f"{unknown[0].split('=')[0]} cannot be given with --resume, which takes "
            f"all settings from {path}; only --num_timesteps may change"
        )
    config = read_config(given.resume)
    args, settings = Namespace(**config["arguments"]), dict(config["settings"])
    for name in ("alg", "env"):
        found, expected = getattr(args, name), getattr(given, name)
        if expected not in (None, found):
            raise UserValueError(
                f"cannot resume {given.resume}: its {name} is {found}, not {expected}"
            )
    check_ranks(given.resume, config["ranks"])
    args.play = False
    if given.num_timesteps is not None:
        config["arguments"]["num_timesteps"] = given.num_timesteps
        config["settings"]["total_timesteps"] = given.num_timesteps
        args.num_timesteps = settings["total_timesteps"] = given.num_timesteps
    config["resumed"].append({"command": command_line(argv), "versions": versions()})
    if list_manifests(os.path.join(os.path.dirname(path), "checkpoints")):
        settings["load_path"] = None  # The checkpoint has the newer weights.
    return args, import_learn(find_algorithm(args.alg)), settings, config


def resume_parser():
    """Returns a parser of the arguments that go with ``--resume``."""
    parser = cli.OneLineErrorParser(add_help=False)
    for name in ("--resume", "--alg", "--env"):
        parser.add_argument(name)
    parser.add_argument("--num_timesteps", type=count_parser(minimum=0))
    return parser


def import_learn(module):
    """Returns the algorithm's ``learn``; imports Keras."""
    cli.import_quietly("baselines.common.backend")
    learn = getattr(importlib.import_module(module), "learn", None)
    if not callable(learn):
        raise UserTypeError(f"the algorithm {module} has no function learn()")
    return learn


def parse(argv):
    """Reads and checks a command line before anything is built.

    Returns:
        the shared arguments, ``learn``, and its arguments: signature <
        defaults.py < command line.
    """
    parser = shared_parser(add_help=False)
    early, _ = parser.parse_known_args([arg for arg in argv if arg != "--help"])
    wants_help = "--help" in argv or "-h" in argv
    if early.alg is None and wants_help:
        shared_parser().parse_args(["--help"])
    for name in ("alg", "env"):
        if getattr(early, name) is None and not wants_help:
            raise UserValueError(f"--{name} is required; see --help")
    module = find_algorithm(early.alg)
    spec, network, defaults = None, early.network, {}
    if early.env is not None:
        spec = find_spec(early.env)
        if early.env_type is None:
            early.env_type = find_env_type(spec)
        else:
            check_env_type(early.env_type)
        defaults = find_defaults(module, early.env_type)
        if not wants_help:
            check_shared(early)
        network = network or defaults.get("network") or network_for(spec, early)
    learn = import_learn(module)
    from baselines.common.models import find_network

    env_defaults = defaults.pop("env", {})
    arguments = cli.function_arguments(learn, leave_out=SHARED)
    parser = shared_parser()
    check_distinct(parser, early.alg, arguments)
    cli.add_function_arguments(
        parser, f"arguments of {early.alg}", arguments, learn, defaults
    )
    network_arguments = {}
    if network is not None:
        builder = find_network(network)
        network_arguments = cli.function_arguments(builder, leave_out=arguments)
        check_distinct(parser, network, network_arguments)
        title = f"arguments of the network {network}"
        cli.add_function_arguments(parser, title, network_arguments, builder, defaults)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        flag = unknown[0].split("=")[0]
        known = [f"--{name}" for name in vars(args)]
        known += [f"--{name}" for name in (*arguments, *network_arguments)]
        raise UserValueError(f"unknown argument {flag}{suggest(flag, known)}")
    check_defaults(module, early.env_type, defaults, arguments, network_arguments)
    args.env_type = early.env_type
    if args.num_env is None:
        args.num_env = env_defaults.get("num_env", 1)
    settings = cli.signature_defaults({**arguments, **network_arguments})
    settings |= {**defaults, "network": network, "load_path": args.load_path}
    settings["total_timesteps"] = args.num_timesteps
    for name in (*arguments, *network_arguments):
        if name in vars(args):
            settings[name] = getattr(args, name)
    if args.seed is None:
        args.seed = mpi.broadcast(secrets.randbelow(2**31))
    return args, learn, settings


def shared_parser(add_help=True):
    """Returns a parser of the arguments that do not depend on the algorithm."""
    parser = cli.OneLineErrorParser(
        prog="python -m baselines.run",
        description="Train an agent by reinforcement learning, save it, play it.",
        epilog=f"algorithms: {', '.join(list_algorithms())}\n"
        "--alg=ALG --help shows an algorithm's own arguments; with --env and "
        "--network, also\ntheir defaults and the network's.",
        add_help=add_help,
    )
    add = parser.add_argument
    add("--alg", help="algorithm, or my_pkg.my_alg for one of your own (required)")
    add("--env", help="environment id, or module:EnvId (required)")
    add("--env_type", help="kind of environment, if it is not what is detected")
    add("--seed", type=count_parser(minimum=0), help="default: a random one")
    add(
        "--num_timesteps",
        type=count_parser(minimum=0),
        default=int(1e6),
        help="agent steps over all environments (default: 1e6)",
    )
    add(
        "--network",
        help="a function of common/models.py, such as mlp, cnn, lstm or cnn_lstm, or "
        "module:function (default: the algorithm's for this kind of environment, else "
        "cnn for images and mlp)",
    )
    add("--gamestate", help="state that a retro game starts in (default: its own)")
    add(
        "--num_env",
        type=count_parser(minimum=1),
        help="environments that step together (default: the algorithm's for this "
        "kind of environment, else 1)",
    )
    add(
        "--reward_scale",
        type=cli.value_parser(float),
        default=1.0,
        help="factor on the rewards, above the monitor (default: 1.0)",
    )
    add(
        "--on_worker_failure",
        choices=("replace", "raise"),
        default="replace",
        help="what follows when a worker process dies: another takes over and its "
        "episodes count as truncated (the default), or training stops",
    )
    add("--save_path", help="where to save the model (default: in the log folder)")
    add("--load_path", help="a saved model to start from")
    add(
        "--resume",
        metavar="LOG_PATH",
        help="go on with an interrupted run, bit for bit; takes no other argument "
        "than a new --num_timesteps",
    )
    add("--save_video_interval", type=count_parser(minimum=0), default=0, help=SUPPRESS)
    add("--save_video_length", type=count_parser(minimum=0), default=200, help=SUPPRESS)
    add(
        "--log_path",
        help="folder of the run's files (default: $OPENAI_LOGDIR, else a new one in "
        "the temporary folder)",
    )
    add(
        "--play",
        action="store_true",
        help="play in a window afterwards; --num_timesteps=0 plays at once",
    )
    return parser


def count_parser(minimum):
    """Returns a parser of whole numbers (also like 1e6) of at least ``minimum``."""
    parse_integer = cli.value_parser(int)

    def parse_count(text):
        count = parse_integer(text)
        if count < minimum:
            raise ArgumentTypeError(f"expected at least {minimum}, received {text}")
        return count

    return parse_count


def list_algorithms() -> list:
    """Returns the names of the algorithms in this package."""
    folder = os.path.dirname(baselines.__file__)
    return sorted(
        name
        for name in os.listdir(folder)
        if os.path.isfile(os.path.join(folder, name, f"{name}.py"))
    )


def find_algorithm(alg) -> str:
    """Returns the module that has ``learn``, without importing it.

    Args:
        alg: a folder of this package, or ``my_pkg.my_alg``.
    """
    package = alg if "." in alg else f"baselines.{alg}"
    module = f"{package}.{package.rpartition('.')[2]}"
    try:
        found = None if alg.startswith(".") else importlib.util.find_spec(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise MissingDependency(f"algorithm {alg!r}: {error}") from None
        found = None
    if found is None:
        raise UserValueError(
            f"unknown algorithm {alg!r}{suggest(alg, list_algorithms())} "
            f"(known: {', '.join(list_algorithms())}; one of your own: my_pkg.my_alg)"
        )
    return module


def find_defaults(module, env_type) -> dict:
    """Returns what the algorithm's defaults.py says of an environment type."""
    name = f"{module.rpartition('.')[0]}.defaults"
    if importlib.util.find_spec(name) is None:
        return {}
    return getattr(importlib.import_module(name), env_type, dict)()


def check_distinct(parser, owner, arguments) -> None:
    """Raises if an algorithm or network has an argument that all runs have."""
    for name in arguments:
        if f"--{name}" in parser.format_usage().replace("[", " ").split():
            raise UserTypeError(
                f"{owner} has an argument {name!r}, but --{name} is an argument of "
                "baselines.run; rename it"
            )


def check_defaults(module, env_type, defaults, *known) -> None:
    """Raises if defaults.py has a key that nothing takes."""
    names = {name for arguments in known for name in arguments} | {"network"}
    for key, value in defaults.items():
        setting = f"{module.rpartition('.')[0]}.defaults.{env_type}() sets {key!r}"
        if key not in names:
            raise UserTypeError(
                f"{setting}, which learn() does not take{suggest(key, names)}"
            )
        if callable(value):
            raise UserTypeError(
                f"{setting} to a function, but a run's settings are kept as text; "
                "name it instead, as the command line would"
            )


def check_env_type(env_type) -> None:
    """Raises if no registered environment is of that kind."""
    known = list_env_types()
    if env_type not in known:
        raise UserValueError(
            f"unknown env_type {env_type!r}{suggest(env_type, known)} "
            f"(known: {', '.join(sorted(known))})"
        )


def check_shared(args) -> None:
    """Raises if an argument cannot be used with the others or on this machine."""
    if args.save_video_interval != 0 or args.save_video_length != 200:
        raise UserValueError("recording videos is not implemented yet")
    if args.save_path is not None:
        path = os.path.abspath(os.path.expanduser(args.save_path))
        if os.path.isdir(path):
            raise UserValueError(f"--save_path has to name a file; {path} is a folder")
        check_writable(os.path.dirname(path))
    if args.env_type in SCALED_REWARDS and args.reward_scale != 1.0:
        raise UserValueError(
            f"--reward_scale would change nothing: rewards of {args.env_type} "
            "environments are divided by the deviation of returns; leave it out"
        )
    if args.log_path is not None and args.num_timesteps == 0:
        raise UserValueError(
            "--log_path is for training, but --num_timesteps is 0; leave it out"
        )
    if args.play and mpi.size > 1:
        raise UserValueError(
            "--play opens one window; leave it out, and play the model without mpiexec"
        )
    if args.play:
        check_display(args.env_type)


def network_for(spec, args) -> str:
    """Returns the name of the usual network for an environment's observations."""
    with contextlib.closing(
        make_env(spec, args.env_type, gamestate=args.gamestate)
    ) as env:
        observation_space = env.observation_space
    cli.import_quietly("baselines.common.backend")
    from baselines.common.models import default_network

    return default_network(observation_space)


def build_env(spec, env_type, **kwargs):
    """Returns the environments of a run, with the VecEnv wrappers usual for them."""
    env = make_vec_env(spec, env_type, **kwargs)
    if env_type in FRAME_STACK:
        env = VecFrameStack(env, FRAME_STACK[env_type])
    if env_type in SCALED_REWARDS:
        # Its gamma is 0.99 whatever the algorithm's is, as in OpenAI Baselines.
        env = VecNormalize(env, ob=False)
    return env


def tell_what_next(config, model_path) -> None:
    """Prints where things are and how to go on."""
    resume = command_line([f"--resume={logger.get_dir()}"])
    resume = resume.replace("python", shlex.quote(sys.executable), 1)
    longer = 10 * config["arguments"]["num_timesteps"]
    command = command_of_model(config["command"], model_path)
    logger.log(
        f"Log files: {logger.get_dir()}\n"
        f"Model: {model_path}\n"
        f"Train longer: {launcher()}{resume} --num_timesteps={longer}\n"
        f"Start again from this model: {launcher()}{command}\n"
        f"Play: {command} --num_timesteps=0 --play"
    )


def command_of_model(command, model_path) -> str:
    """Returns a run's command with the model to load, and without its other paths."""
    words, kept = iter(shlex.split(command)), []
    left_out = ("--load_path", "--save_path", "--log_path", "--num_timesteps")
    for word in words:
        if word in left_out:
            next(words)  # The value is a word of its own.
        elif word.split("=")[0] not in (*left_out, "--play"):
            kept.append(word)
    # The interpreter that has this package, which "python" may not be.
    return shlex.join([sys.executable, *kept[1:], f"--load_path={model_path}"])


def check_display(env_type) -> None:
    """Raises if there is no screen to play on."""
    names = ["DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"]
    if env_type == "retro":
        names = names[:1]  # stable-retro draws by pyglet, which knows X11 alone.
    if sys.platform.startswith("linux") and not any(map(os.environ.get, names)):
        raise UserValueError(
            "--play opens a window, but there is no display: set "
            f"{' or '.join(names[:2])} (over ssh, try ssh -X)"
        )


def play(model, env, games=None) -> None:
    """Lets a model play in its window and prints the score of each game.

    Args:
        model: has ``step`` and ``initial_state``.
        env: a VecEnv of one environment that renders itself.
        games: how many; None for as many as there are until Ctrl-C.
    """
    obs, states, dones = env.reset(), model.initial_state, np.zeros(1, bool)
    played = 0
    with contextlib.suppress(KeyboardInterrupt):
        while games is None or played < games:
            actions, _, states, _ = model.step(obs, S=states, M=dones)
            obs, _, dones, infos = env.step(clip_actions(actions, env.action_space))
            if "episode" in infos[0]:
                played += 1
                episode = infos[0]["episode"]
                print(f"game {played}: score {episode['r']:g}, {episode['l']} steps")


if __name__ == "__main__":
    main()
