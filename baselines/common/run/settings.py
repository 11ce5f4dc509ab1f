"""Arguments of the command line that are not for ``learn()``, and its other words."""

from typing import Annotated, Literal

from baselines.common.arguments import types as arg
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.vec_env.subproc_vec_env import WORKER_TIMEOUT


def run_arguments(
    alg: Annotated[str, "algorithm, or my_pkg.my_alg for one of your own"],
    env: Annotated[str, "environment id, or module:EnvId"],
    env_type: Annotated[
        str | None, "kind of environment, in place of the one that is detected"
    ] = None,
    gamestate: Annotated[
        str | None, "state that a retro game starts in (default: the game's own)"
    ] = None,
    num_env: Annotated[
        arg.Count,
        "environments that run in parallel (default: the algorithm's for this kind of "
        "environment, else 1)",
    ] = 1,
    reward_scale: Annotated[
        float,
        arg.NeedsNo("normalize_rewards"),
        "factor on the rewards; the monitor logs them without it",
    ] = 1.0,
    on_worker_failure: Annotated[
        Literal["replace", "raise"],
        "what to do when a worker process dies: replace it and count its episodes as "
        "truncated, or stop training",
    ] = "replace",
    worker_timeout: Annotated[
        arg.Positive | None,
        "seconds after which a worker process that does not respond counts as dead",
    ] = WORKER_TIMEOUT,
    save_path: Annotated[
        str | None,
        arg.MayChange,
        arg.WrittenPath,
        "new file to save the model to (default: in the log folder)",
    ] = None,
    log_path: Annotated[
        str | None,
        "folder for the run's files (default: $OPENAI_LOGDIR, else a new temporary "
        "folder)",
    ] = None,
    save_video_interval: Annotated[
        arg.CountOrZero,
        "steps of each environment between videos of training, which are saved in the "
        "folder videos of the log folder; 0 for none",
    ] = 0,
    save_video_length: Annotated[
        arg.Count, arg.Needs("save_video_interval"), "steps in a video"
    ] = 200,
    play: Annotated[
        bool,
        arg.MayChange,
        "play in a window after training; with --num_timesteps=0, without training",
    ] = False,
):
    """Declares what ``baselines.run`` takes besides the arguments of ``learn()``."""


RUN_ARGUMENTS = declared_arguments(run_arguments)
NUM_TIMESTEPS = 1_000_000  # by default, as in OpenAI Baselines
# Kinds of environments without images; others are looked at.
VECTORS = {"classic_control", "mujoco", "toy_text", "gymnasium_robotics"}
