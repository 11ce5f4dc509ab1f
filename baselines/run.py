"""Trains an agent: ``python -m baselines.run --alg=ALG --env=ENV``.

Finds ``learn()`` by the algorithm's name, builds the environment, trains, saves and
plays. An algorithm is any ``<name>/<name>.py`` with a function ``learn``;
``--alg=my_pkg.my_alg`` runs one from outside this package.
"""

import contextlib
import os
import shlex
import signal
import sys

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.base import mpi
from baselines.common.base.errors import (
    UserError,
    UserFileError,
    one_line,
    printable,
)
from baselines.common.envs.make import build_env
from baselines.common.envs.registry import find_env_type, find_spec
from baselines.common.run.evaluation import seed_of_evaluation
from baselines.common.run.loading import TrainedEnv, rendered
from baselines.common.run.parsing import parse
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.config import (
    CODE_OF_MODEL,
    WRITTEN,
    foreign_code,
    launcher,
    resume_command,
)
from baselines.common.saving.log_folder import MODEL_FILE, checkpoint_steps
from baselines.common.saving.video import check_packages
from baselines.common.vec_env import WorkerError
from baselines.common.vec_env.vec_video_recorder import VecFilm, VecVideoRecorder
from baselines.common.views.run_folder import has_update_left
from baselines.play import check_can_play, play
from baselines.report import report_run


def main(argv=None):
    """Runs one command line.

    Args:
        argv: arguments after the program's name; None for ``sys.argv``.

    Returns:
        The trained model.

    Raises:
        SystemExit: after one line on stderr, with status 2 for a mistake in ``argv``,
            or 1 if a file could not be written.
    """
    with cli.one_line_errors():
        if argv is None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # A run outlives its terminal.
        mpi.connect()
        return run(sys.argv[1:] if argv is None else list(argv))


def run(argv):
    """Trains, saves and plays as ``argv`` says, and returns the model."""
    settings = parse(argv)
    if settings.play:
        check_can_play(settings.env_type)
    model = train(settings)
    if settings.play:
        trained_env = TrainedEnv(settings.spec, settings.env_type, settings.gamestate)
        with trained_env.make(1, settings.seed, render_mode="human") as env:
            play(model, env)
    return model


def get_env_type(args):
    """Returns the (type, id) of the environment named by parsed arguments.

    Args:
        args: has ``env``, and ``env_type``, which is None to have it detected.
    """
    return args.env_type or find_env_type(find_spec(args.env)), args.env


def train(settings):
    """Trains and saves a model according to ``Settings``, and returns it."""
    with contextlib.ExitStack() as stack:
        if settings.training:
            config = settings.config
            folder = settings.resume or settings.log_path
            logger.configure(folder, config.get("log_formats"), config)
            stack.callback(logger.close)
        env = stack.enter_context(make_train_env(settings))
        arguments = dict(settings.learn_arguments, env=env)
        if settings.training and arguments.get("eval_interval"):
            arguments["eval_env"] = stack.enter_context(make_eval_env(settings))
        model = settings.learn(seed=settings.seed, resume=settings.resume, **arguments)
        path = settings.save_path
        if settings.training and path is not None and is_taken(path, settings):
            path = settings.save_path = settings.config["arguments"]["save_path"] = None
        if settings.training and path is None:
            path = os.path.join(logger.get_dir(), MODEL_FILE)
        if path is not None:
            model.save(path)
        if settings.training:
            print_next_steps(settings, os.path.expanduser(path))
    if settings.training:
        write_report(logger.get_dir())
    return model


def is_taken(path, settings) -> bool:
    """Whether another program has written ``--save_path`` during training; warns."""
    allowed = settings.overwrite or settings.resume is not None
    if allowed or mpi.rank > 0 or not os.path.lexists(os.path.expanduser(path)):
        return False
    logger.warn(
        f"the model is not saved to {path}, which another program has written since "
        "training began, but to the log folder"
    )
    return True


def make_train_env(settings):
    """Returns the VecEnv of a run, which records videos if the settings say so."""
    # Of the environments of rank 0 alone, as all ranks have the same folder.
    filmed = settings.training and settings.save_video_interval and mpi.rank == 0
    if filmed:
        check_packages("imageio", "imageio_ffmpeg")
    env = build_env(
        settings.spec,
        settings.env_type,
        num_env=settings.num_env,
        seed=settings.seed,
        reward_scale=settings.reward_scale,
        normalize_rewards=settings.normalize_rewards,
        gamestate=settings.gamestate,
        log_dir=logger.get_dir() if settings.training else None,
        on_worker_failure=settings.on_worker_failure,
        worker_timeout=settings.worker_timeout,
        **rendered(settings.num_env, "rgb_array", settings.env_type) if filmed else {},
    )
    if not filmed:
        return env
    return VecVideoRecorder(
        env,
        os.path.join(logger.get_dir(), "videos"),
        lambda step: step % settings.save_video_interval == 0,
        settings.save_video_length,
    )


def make_eval_env(settings):
    """Returns the VecEnv of evaluations in training, filmed if the log takes videos."""
    env = TrainedEnv(settings.spec, settings.env_type, settings.gamestate)
    num_env = min(settings.num_env, settings.learn_arguments["eval_episodes"])
    seed = seed_of_evaluation(settings.seed)
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


def write_report(folder) -> None:
    """Writes the ``report.html`` of a run, if that is possible."""
    if mpi.rank > 0:
        return
    try:
        report_run(folder)
    except UserFileError:
        raise
    except UserError as error:
        print(f"no report was written: {one_line(error)}")


def print_next_steps(settings, model_path) -> None:
    """Prints where the files are, and those commands to continue that can work."""
    python = shlex.quote(sys.executable)
    own = foreign_code(settings.config, CODE_OF_MODEL)
    place = [logger.get_dir(), *own]
    usual = settings.gamestate is None
    usual &= settings.env_type == find_env_type(settings.spec)
    if settings.save_path is not None and usual:
        place = [model_path, *dict.fromkeys([f"--env={settings.env}", *own])]
    place = shlex.join(place)
    resume = resume_command(logger.get_dir(), settings.config)
    command = command_of_model(settings.config["command"], model_path)
    lines = [f"Log files: {logger.get_dir()}", f"Model: {model_path}"]
    manifests = list_manifests(os.path.join(logger.get_dir(), "checkpoints"))
    done = checkpoint_steps(manifests[-1]) if manifests else 0
    # If it was ended by stop_at, it would end again at once.
    if manifests and not has_update_left(logger.get_config(), done):
        steps = 2 * settings.num_timesteps
        lines.append(f"Train longer: {resume} --num_timesteps={steps}")
    command = f"{launcher()}{command}"
    if os.environ.get("OPENAI_LOGDIR"):  # There is a run already.
        command = f"OPENAI_LOGDIR= {command}"
    lines.append(f"Start again from this model: {command}")
    if os.path.isfile(os.path.join(logger.get_dir(), "config.json")):
        lines.append(f"Evaluate: {python} -m baselines.evaluate {place}")
        lines.append(f"Play: {python} -m baselines.play {place}")
    logger.log("\n".join(map(printable, lines)))


def command_of_model(command, model_path) -> str:
    """Returns a run's command, with the model to load but without its other paths."""
    left_out = ["--load_path", "--log_path", "--overwrite", "--play"]
    left_out += [f"--{name}" for name in WRITTEN]
    kept, previous = [], ""
    for word in shlex.split(command):
        is_value = not word.startswith("--") and previous in left_out
        if not is_value and word.split("=")[0] not in left_out:
            kept.append(word)
        previous = word
    # The interpreter that has this package; "python" may be another one.
    return shlex.join([sys.executable, *kept[1:], f"--load_path={model_path}"])


if __name__ == "__main__":
    main()
