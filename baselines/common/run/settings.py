"""The settings of a run, as given on a command line and stored in ``config.json``."""

import dataclasses
from typing import Annotated, Any, Literal

from baselines.common.arguments import types as arg
from baselines.common.arguments.declarations import declared_arguments
from baselines.common.vec_env.subproc_vec_env import WORKER_TIMEOUT


@dataclasses.dataclass
class Settings:
    """The arguments of ``baselines.run``, and those of ``learn()``.

    Attributes:
        learn_arguments: keywords for ``learn()``, including those of the network.
        learn: the algorithm's ``learn()``.
        spec: of the environment.
        config: JSON values for ``config.json``.
    """

    alg: Annotated[str, "algorithm, or my_pkg.my_alg for one of your own"]
    env: Annotated[str, "environment id, or module:EnvId"]
    env_type: Annotated[
        str, "kind of environment, in place of the one that is detected"
    ] = None
    seed: arg.Seed = None
    num_timesteps: arg.Timesteps = 1_000_000
    network: Annotated[
        str,
        "a function of common/networks/networks.py, such as mlp, cnn, lstm or "
        "cnn_lstm, or module:function (default: the algorithm's for this kind of "
        "environment, else cnn for images and mlp)",
    ] = None
    gamestate: Annotated[
        str, "state that a retro game starts in (default: the game's own)"
    ] = None
    num_env: Annotated[
        arg.Count,
        "environments that run in parallel (default: the algorithm's for this kind of "
        "environment, else 1)",
    ] = None
    reward_scale: Annotated[
        float, "factor on the rewards; the monitor logs them without it"
    ] = 1.0
    normalize_rewards: Annotated[
        bool,
        "divide rewards by the running standard deviation of returns (default: the "
        "algorithm's for this kind of environment, else False)",
    ] = None
    on_worker_failure: Annotated[
        Literal["replace", "raise"],
        "what to do when a worker process dies: replace it and count its episodes as "
        "truncated, or stop training",
    ] = "replace"
    worker_timeout: Annotated[
        arg.Positive | None,
        "seconds after which a worker process that does not respond counts as dead",
    ] = WORKER_TIMEOUT
    save_path: Annotated[
        str, "new file to save the model to (default: in the log folder)"
    ] = None
    load_path: Annotated[str, "a saved model to start from"] = None
    resume: Annotated[
        str,
        "log folder of a run to continue, bit for bit; beside it go only "
        "--num_timesteps, paths of files, what does not affect learning, such as "
        "--log_interval, and the names of your own code",
    ] = None
    log_path: Annotated[
        str,
        "folder for the run's files (default: $OPENAI_LOGDIR, else a new temporary "
        "folder)",
    ] = None
    overwrite: Annotated[
        bool, "replace an existing run in the log folder, and a file at save_path"
    ] = False
    save_video_interval: Annotated[
        arg.CountOrZero,
        "steps of each environment between videos of training, which are saved in the "
        "folder videos of the log folder; 0 for none",
    ] = 0
    save_video_length: Annotated[arg.Count, "steps in a video"] = 200
    play: Annotated[
        bool,
        "play in a window after training; with --num_timesteps=0, without training",
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
