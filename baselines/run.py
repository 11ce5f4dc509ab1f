"""Trains an agent: ``python -m baselines.run --alg=ALG --env=ENV``.

Finds ``learn()`` by the algorithm's name, builds the environment, trains, saves and
plays. An algorithm is any ``<name>/<name>.py`` with a function ``learn``;
``--alg=my_pkg.my_alg`` runs one from outside this package.
"""

import contextlib
import faulthandler
import os
import secrets
import shlex
import signal
import sys

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.base import mpi
from baselines.common.base.errors import UserError, UserFileError, UserValueError
from baselines.common.envs.registry import find_env_type, find_spec
from baselines.common.run.command_line import read_arguments
from baselines.common.run.evaluation import seed_of_evaluation
from baselines.common.run.loading import TrainedEnv
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.config import read_config, resume_command, trust_flag
from baselines.common.saving.log_folder import MODEL_FILE, check_save_path, check_unused
from baselines.common.vec_env import WorkerError
from baselines.common.vec_env.vec_video_recorder import VecFilm, VecVideoRecorder
from baselines.play import check_can_play, play


def main(argv=None):
    """Runs one command line.

    Args:
        argv: arguments after the program's name; None for ``sys.argv``.

    Returns:
        The trained model.

    Raises:
        SystemExit: after one line on stderr, with status 2 for a mistake in ``argv``,
            or 1 if a file could not be written during training.
    """
    with cli.one_line_errors():
        if argv is None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # A run outlives its terminal.
            faulthandler.enable()  # A crash of a library shows where Python was.
        mpi.connect()
        arguments = read_arguments(sys.argv[1:] if argv is None else list(argv))
        if arguments["play"]:
            check_can_play(arguments["env_type"])
        model = train(arguments)
        if arguments["play"]:
            with trained_env(arguments).make(1, render_mode="human") as env:
                play(model, env, deterministic=trained_env(arguments).deterministic)
        return model


def get_env_type(args):
    """Returns the (type, id) of the environment named by parsed arguments.

    Args:
        args: has ``env``, and ``env_type``, which is None to have it detected.
    """
    return args.env_type or find_env_type(find_spec(args.env)), args.env


def trained_env(arguments) -> TrainedEnv:
    """Returns the environment of a run, to train, evaluate and play in."""
    spec = find_spec(arguments["env"])
    return TrainedEnv(spec, arguments["env_type"], arguments["gamestate"], {})


def train(arguments):
    """Trains and saves a model according to ``Arguments``, and returns it."""
    # Only here, because it imports Keras.
    from baselines.common.run.algorithm import train as train_model

    if arguments["seed"] is None:
        seed = mpi.broadcast(secrets.randbelow(2**31))
        arguments = arguments.replace(seed=seed)
    training, path = arguments["total_timesteps"] > 0, arguments["save_path"]
    with contextlib.ExitStack() as stack:
        if not training and arguments["log_path"] is not None:
            raise UserValueError("--log_path is for training; --num_timesteps is 0")
        if training:
            configure_log(arguments)
            stack.callback(logger.close)
        if path is not None and arguments.sources["save_path"] == "given":
            check_save_path(path, logger.get_dir() if training else None)
            if os.path.lexists(path) and not arguments["overwrite"]:
                raise UserFileError(
                    f"there is a file {path} already: give another --save_path, or "
                    "replace it by a new run with --overwrite"
                )
        env = stack.enter_context(make_train_env(arguments, training))
        if training and arguments["eval_interval"]:
            eval_env = stack.enter_context(make_eval_env(arguments))
            arguments = arguments.replace(eval_env=eval_env)
        model = train_model(arguments, env)
        if path is None and training:
            path = os.path.join(logger.get_dir(), MODEL_FILE)
        if path is not None:
            model.save(path)
        if training:
            print_next_steps(arguments, path)
    return model


def configure_log(arguments) -> None:
    """Configures the logger for a run; refuses a folder that has another one."""
    folder, formats = arguments["resume"] or arguments["log_path"], None
    if arguments["resume"]:
        formats = read_config(folder)["log_formats"]
    logger.configure(folder, formats)
    if mpi.rank == 0 and not (arguments["resume"] or arguments["overwrite"]):
        check_unused(logger.get_dir())


def make_train_env(arguments, training):
    """Returns the VecEnv of a run, which records videos if the arguments say so."""
    # Of the environments of rank 0 alone, as all ranks have the same folder.
    filmed = training and arguments["save_video_interval"] and mpi.rank == 0
    names = "reward_scale", "on_worker_failure", "worker_timeout"
    env = trained_env(arguments).make(
        arguments["num_env"],
        arguments["seed"],
        "rgb_array" if filmed else None,
        log_dir=logger.get_dir() if training else None,
        **{name: arguments[name] for name in names},
    )
    if not filmed:
        return env
    return VecVideoRecorder(
        env,
        os.path.join(logger.get_dir(), "videos"),
        lambda step: step % arguments["save_video_interval"] == 0,
        arguments["save_video_length"],
    )


def make_eval_env(arguments):
    """Returns the VecEnv of evaluations in training, filmed if the log takes videos."""
    env = trained_env(arguments)
    num_env = min(arguments["num_env"], arguments["eval_episodes"])
    seed = seed_of_evaluation(arguments["seed"])
    if logger.takes_videos():
        try:
            filmed = VecFilm(env.make(num_env, seed, "rgb_array"), env.steps_per_second)
            filmed.render()  # Only this shows whether they can be drawn.
            return filmed
        except (UserError, WorkerError) as error:
            # Not to the log, which only begins once learn() has accepted everything.
            reason = str(error).splitlines()[-1]
            print(f"warning: evaluations are not filmed: {reason}", file=sys.stderr)
    return env.make(num_env, seed)


def print_next_steps(arguments, model_path) -> None:
    """Prints where the files are, and the commands that continue."""
    if mpi.rank > 0:
        return
    folder = logger.get_dir()
    config, python = read_config(folder), shlex.quote(sys.executable)
    place = [folder]
    if arguments["save_path"] is not None:
        place = [model_path, f"--env={arguments['env']}"]
    place = shlex.join([*place, *trust_flag(config)])
    lines = [f"Log files: {folder}", f"Model: {model_path}"]
    if list_manifests(os.path.join(folder, "checkpoints")):
        resume = resume_command(folder, config)
        lines.append(f"Train longer: {resume} --num_timesteps=N")
    lines.append(f"Evaluate: {python} -m baselines.evaluate {place}")
    lines.append(f"Play: {python} -m baselines.play {place}")
    logger.log("\n".join(lines))


if __name__ == "__main__":
    main()
