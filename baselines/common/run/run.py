"""Everything about a run that is not specific to its algorithm."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from baselines import logger
from baselines.common.arguments.arguments import is_json
from baselines.common.backend.seeding import make_seed
from baselines.common.base import mpi
from baselines.common.base.amounts import duration
from baselines.common.base.errors import (
    DivergedError,
    UserError,
    UserFileError,
    UserTypeError,
    UserValueError,
)
from baselines.common.base.signals import StopSignals, stop
from baselines.common.base.timing import Clock, timed
from baselines.common.data.episodes import EpisodeResults, count_due, count_updates
from baselines.common.envs import as_vec_env, find_env_type
from baselines.common.networks.model import check_separate
from baselines.common.run.evaluation import make_evaluation
from baselines.common.run.run_warnings import find_warnings
from baselines.common.run.status import begin_status
from baselines.common.saving.checkpoints import Checkpoints, list_manifests
from baselines.common.saving.config import (
    describe_start,
    make_config,
    read_config,
    resume_command,
    trust_flag,
)
from baselines.common.saving.files import check_writable
from baselines.common.saving.log_folder import check_may_overwrite
from baselines.common.saving.progress import check_may_restart
from baselines.common.updates.update import move_towards
from baselines.common.vec_env.vec_env import VecEnv, is_resumable
from baselines.common.vec_env.vec_normalize import VecNormalize, normalizes

M = TypeVar("M")
NOT_RESUMABLE = (
    "a run in these environments cannot be resumed: their VecEnv or a wrapper has no "
    "get_state(), or is Gymnasium's NormalizeObservation or NormalizeReward, or their "
    "np_random is not a numpy.random.Generator"
)


class Run:
    """One call of ``learn()``: its environments, episodes, rows, checkpoints, end.

        with run.start(nsteps, policy, optimizer=optimizer, runner=runner):
            for nupdates, num_timesteps in run.updates():
                ...
                run.stop = callback is not None and callback(locals(), globals())

    If it writes checkpoints, SIGTERM or SIGINT inside ``with`` finishes the update,
    saves one and then ends the run; a second SIGINT ends it at once.

    Args:
        learn: the function that was called.
        arguments: its ``Arguments``.
        env: a VecEnv, a Gymnasium ``Env`` or a ``VectorEnv``.

    Attributes:
        env: the VecEnv.
        model: what is trained.
        seed: of this MPI rank.
        episodes: ``EpisodeResults``; with several ranks, those of all ranks up to the
            previous update.
        new_episodes: results of this rank's episodes that ended in this update.
        num_timesteps: agent steps at the end of this update, of all ranks.
        row: of the log, for this update; a dict that can be added to, None if none.
        stop: whether training ends after this update.
        reached_score: whether it does so because of ``stop_at``.
    """

    def __init__(self, learn: Any, arguments: Any, env: Any):
        self.learn = learn
        self.name = name = learn.__module__.rpartition(".")[2]
        self.arguments = given = arguments
        self.total_timesteps = given["total_timesteps"]
        self.resume = given["resume"]
        self.on_update, self.load_path = given["on_update"], given["load_path"]
        if mpi.size > 1 and not learn.mpi:
            raise UserValueError(
                f"{name} trains in one process; leave out mpiexec, and set num_env for "
                "more environments"
            )
        self.seed = make_seed(given["seed"])
        self.env = as_vec_env(env, self.seed)
        if given["normalize_rewards"] and not normalizes(self.env, "rewards"):
            # With gamma 0.99, whatever the algorithm's is, as in OpenAI Baselines.
            self.env = VecNormalize(self.env, ob=False)
        self.envs = [self.env]  # whose state is saved
        if not isinstance(self.env.action_space, learn.actions):
            kinds = " or ".join(kind.__name__ for kind in learn.actions)
            raise UserTypeError(
                f"the action space {self.env.action_space} is not supported: {name} "
                f"needs a {kinds} one"
            )
        self.evaluation = make_evaluation(given, self.env, self.seed)
        if self.evaluation is not None:
            self.envs.append(self.evaluation.env)
        for each in self.envs:
            if isinstance(each, VecEnv):
                each.unwrapped.warn = logger.warn
        self.clock = Clock()
        self.episodes = EpisodeResults()
        self.new_episodes = []
        self.num_timesteps = self.previous_timesteps = self.checkpoint_interval = 0
        self.model = self.status = self.row = None
        self.stop = self.reached_score = self.has_row = self.has_loaded = False
        self.signals = StopSignals()

    def make_model(self, kind: Callable[..., M], *arguments, **keywords) -> M:
        """Returns a model for the run's environment, such as a ``Policy``.

        Args:
            kind: its class, called with the spaces of observations and actions, the
                ``arguments`` and ``keywords``, a seed and the algorithm's name.
        """
        spaces = self.env.observation_space, self.env.action_space
        names = dict(seed=self.seed, algorithm=self.learn.__module__)
        return kind(*spaces, *arguments, **keywords, **names)

    def load(self, model: Any, target: Any = None) -> None:
        """Loads the saved model of ``load_path``, if there is one.

        Args:
            model: what is trained.
            target: a model whose variables are set to those of ``model``.

        Raises:
            UserFileError, UserValueError: as ``Model.load`` does.
            UserTypeError: if the two share variables.
        """
        self.has_loaded = True
        if self.load_path is not None:
            model.load(self.load_path, self.arguments.of_model_parts)
        if target is not None:
            check_separate(model, target)
            move_towards(target.variables, model.variables, 1)

    def start(self, nsteps: int, model: Any, **parts) -> "Run":
        """Restores the run that is resumed, or opens the log of a new one.

        Args:
            nsteps: steps of each environment in an update.
            model: what is trained; has ``description``.
            parts: everything else that has a state, by name: objects with ``get_state``
                and ``set_state``, or Keras optimisers.

        Raises:
            UserError: if no update fits into ``total_timesteps``, if the
                run to resume does not exist or does not match this one, or if ``load``
                was not called.
        """
        if not self.has_loaded:
            raise UserTypeError(f"learn() of {self.name} has to call run.load(model)")
        self.model = model
        self.batch_size = mpi.size * self.env.num_envs * nsteps
        self.num_updates = count_updates(self.total_timesteps, self.batch_size)
        model.arguments = self.arguments.for_model
        folder = logger.get_dir()
        interval = self.arguments["checkpoint_interval"]
        self.checkpoint_interval = interval = interval if folder else 0
        description = model.description | self.arguments.fixed
        description["num_envs"] = self.env.num_envs
        mpi.check_same(
            description
            | {
                "total_timesteps": self.total_timesteps,
                "checkpoint_interval (0 without a log folder)": interval,
            }
        )
        if self.evaluation is not None:
            self.evaluation.start(model, folder)
            parts["evaluation"] = self.evaluation
        # The log comes last, because restoring anything else may still fail.
        parts |= {"episodes": self.episodes, "clock": self.clock, "logger": logger}
        folder = folder and os.path.join(folder, "checkpoints")
        self.checkpoints = Checkpoints(folder, description, {"model": model, **parts})
        try:
            (self.begin if self.resume is None else self.restore)()
        except BaseException:
            logger.current.end_run()
            raise
        if not (self.stop or self.is_last):
            for line in find_warnings(self):
                logger.warn(line)
            self.status = begin_status(
                self.name, self.env, self.num_timesteps, self.total_timesteps
            )
        self.first_timestep = self.num_timesteps
        self.start_time = time.perf_counter()
        return self

    def begin(self) -> None:
        """Opens the log of a new run."""
        if not self.total_timesteps:
            return  # Only a model is loaded.
        self.clock.begin()
        if self.checkpoint_interval:
            check_writable(self.checkpoints.folder)
        overwrite = self.arguments["overwrite"]
        if overwrite and logger.get_dir():
            check_may_overwrite(logger.get_dir(), self.load_path)
        logger.current.begin_run(self.make_config, overwrite)
        mpi.wait()  # until rank 0 has removed the files of an earlier run
        if self.checkpoint_interval and not all(map(is_resumable, self.envs)):
            self.checkpoint_interval = 0
            logger.warn(f"no checkpoints are written: {NOT_RESUMABLE}")

    def make_config(self) -> dict:
        """Returns the content of ``config.json``."""
        alg = self.learn.__module__.rpartition(".")[0].removeprefix("baselines.")
        made = {"alg": alg, "env": None, "num_env": self.env.num_envs}
        spec, kwargs = getattr(self.env, "spec", None), {}
        if spec is not None:  # also of environments that were made in Python
            made |= dict(env=spec.id, env_type=find_env_type(spec))
            kwargs = changed_kwargs(spec)
        stored = made | self.arguments.stored | {"seed": self.seed}
        return make_config(stored, self.arguments.command) | {
            "sources": self.arguments.sources,
            "env_kwargs": kwargs,
            "update_size": self.batch_size,
        }

    def resumed_config(self) -> dict:
        """Returns the content of ``config.json`` of the run that is resumed."""
        config = read_config(self.resume)
        before = config["arguments"]
        # A random seed, and the model that it began with, are not given again.
        kept = {name: before.get(name) for name in ("seed", "load_path")}
        stored = before | self.arguments.stored | kept
        start = describe_start(stored, self.arguments.command)
        return config | {"arguments": stored, "resumed": [*config["resumed"], start]}

    def restore(self) -> None:
        """Continues a run and its log from the newest intact checkpoint."""
        if not all(map(is_resumable, self.envs)):
            raise UserTypeError(NOT_RESUMABLE)
        folder, total = logger.get_dir(), self.total_timesteps
        before, seed = read_config(folder)["arguments"]["seed"], self.arguments["seed"]
        logger.current.lock()
        if seed not in (None, before):
            raise UserValueError(
                f"cannot resume {folder}: its seed is {before}, not {seed}"
            )
        found = self.checkpoints.restore(folder, total)
        if found is None:
            interval = self.arguments["checkpoint_interval"]
            check_may_restart(folder, interval + self.batch_size if interval else 0)
            mpi.wait()  # until all ranks have looked
            self.clock.begin()
            logger.current.begin_again()
            logger.current.describe(self.resumed_config)
            mpi.wait()  # until rank 0 has removed the monitor files
            logger.log(f"{folder} has no checkpoint yet: starting from its beginning")
            return
        self.num_timesteps, old_total, damaged = found
        self.model.num_timesteps = self.num_timesteps
        logger.current.describe(self.resumed_config)
        if damaged:
            logger.warn(f"{damaged}; resumed from the one before it")
        logger.log(f"resuming {folder} at {self.num_timesteps} of {total} agent steps")
        if self.is_last:
            name = "--num_timesteps" if self.arguments.command else "total_timesteps"
            logger.log(f"It is finished; a larger {name} trains it longer.")
        if total != old_total:
            logger.log(
                f"It was meant to have {old_total}. Schedules now span {total}: "
                f"{self.num_timesteps / total:.0%} of training is done."
            )
        else:
            self.stop_at_score()  # where it may have ended

    def __enter__(self):
        if self.checkpoint_interval:
            self.signals.catch()
        return self

    def __exit__(self, kind, error, traceback):
        self.signals.release()
        if self.status is not None:
            self.status.close()
        if self.status is not None and error is None:
            logger.log(
                f"trained {self.name} up to {self.num_timesteps:,} agent steps in "
                f"{duration(self.clock.seconds)}: {self.status.score(self.episodes)}\n"
                f"time: {self.clock.shares()}"
            )
            if not (self.has_row or self.first_timestep):
                logger.warn(
                    f"no row was logged: {self.episodes.count} episodes ended (as a "
                    "Monitor reports them), and off policy, rows come every print_freq"
                )
        newest = "there is no checkpoint"
        if manifests := list_manifests(self.checkpoints.folder):
            newest = f"the last good checkpoint is {manifests[-1]}"
        # A mistake before any checkpoint would only be repeated.
        may_help = manifests or not isinstance(error, UserError)
        if isinstance(error, (DivergedError, UserFileError)):
            error.args = (f"{error}; {newest}",)
        elif self.checkpoint_interval and error is not None and may_help:
            number = 0 if isinstance(error, Exception) else self.signals.number
            name = signal.Signals(number).name if number else kind.__name__
            config = self.make_config() | {"log_formats": logger.current.formats}
            resume = resume_command(logger.get_dir(), config)
            if manifests:
                trust = ", trust=True" * bool(trust_flag(config))
                load = f"baselines.load({logger.get_dir()!r}{trust})"
                logger.log(f"{load} returns the model")
            logger.log(f"{name}: {newest}; continue with {resume}")
        if self.total_timesteps:
            logger.current.end_run()

    def updates(self) -> Iterator[tuple[int, int]]:
        """Yields ``nupdates``, from 1, and ``num_timesteps`` of each update to make.

        An update ends, with its row and checkpoint, when the next one is requested.
        """
        done = self.num_timesteps // self.batch_size
        for nupdates in range(done + 1, self.num_updates + 1):
            if self.stop:
                return
            self.previous_timesteps = self.num_timesteps
            if mpi.size == 1:
                self.episodes.previous = self.episodes.count
            self.num_timesteps = self.model.num_timesteps = nupdates * self.batch_size
            yield nupdates, self.num_timesteps
            self.end_update()

    def due(self, every: int, after: int = 0) -> int:
        """Returns how many times something is due in this update.

        Args:
            every: agent steps from one time to the next.
            after: agent steps up to which nothing is due.
        """
        return count_due(self.previous_timesteps, self.num_timesteps, every, after)

    @property
    def progress(self) -> float:
        """Share of training done before this update, for schedules."""
        return self.previous_timesteps / self.total_timesteps

    @property
    def progress_by_updates(self) -> float:
        """The same, of the updates that fit into training: what ppo2 reads."""
        return self.previous_timesteps // self.batch_size / self.num_updates

    @property
    def progress_at_last_step(self) -> float:
        """Share of training before this update's last step: what a2c and acktr read."""
        return (self.num_timesteps - 1) / self.total_timesteps

    @property
    def is_last(self) -> bool:
        """Whether no other update fits into ``total_timesteps``."""
        return self.num_timesteps == self.num_updates * self.batch_size

    def add_episodes(self, results: list) -> None:
        """Adds the results (``info["episode"]``) of episodes that ended."""
        self.new_episodes += results
        if mpi.size == 1:  # With more, end_update() adds those of all ranks.
            self.episodes.extend(results)

    def episodes_due(self, print_freq: int) -> bool:
        """Whether an update has a row: the last, and one every ``print_freq`` episodes.

        With several ranks, this is about the previous update, as their episodes are
        counted when an update ends.
        """
        before, now = self.episodes.previous, self.episodes.count
        return count_due(before, now, print_freq) > 0 or (self.is_last and now > 0)

    def row_due(self, log_interval: int) -> bool:
        """Whether an update has a row: first, last, and every ``log_interval``-th."""
        nupdates = self.num_timesteps // self.batch_size
        return nupdates == 1 or nupdates % log_interval == 0 or self.is_last

    def log(self, metrics: dict, **columns) -> None:
        """Makes the row of this update, which is written when the update ends.

        It also gets ``total_timesteps``, ``time_elapsed``, ``fps`` (agent steps per
        second), and the means of the last 100 episodes, such as ``eprewmean``.

        Args:
            metrics: of the loss; arrays are replaced by their means.
            columns: other numbers.
        """
        self.row = columns | {k: float(np.mean(v)) for k, v in metrics.items()}

    def end_update(self) -> None:
        """Writes the row and checkpoint that are due; ranks agree on whether to stop.

        Raises:
            KeyboardInterrupt, SystemExit: if SIGINT or SIGTERM was received.
        """
        if self.evaluation and (self.is_last or self.due(self.evaluation.interval)):
            start = time.perf_counter()
            with timed("evaluations"):
                self.evaluation.run(self.num_timesteps)
            self.row = (self.row or {}) | self.evaluation.columns
            self.start_time += time.perf_counter() - start  # not in fps
        if self.on_update is not None and self.on_update(self):
            self.stop = True
        ranks = mpi.gather((self.new_episodes, bool(self.stop), self.signals.number))
        if mpi.size > 1:
            self.episodes.previous = self.episodes.count
            for new_episodes, _, _ in ranks:
                self.episodes.extend(new_episodes)
        self.new_episodes = []
        self.stop = any(stop for _, stop, _ in ranks)
        # A signal may have reached only one rank, or this one since it was read.
        number = max(number for *_, number in ranks)
        self.signals.number = number or self.signals.number
        self.stop_at_score()
        self.status.update(self.num_timesteps, self.episodes, self.row is not None)
        if self.row is not None:
            logger.logkvs(self._shared_columns() | self.row)
            logger.dumpkvs()
            self.row, self.has_row = None, True
        if not self.checkpoint_interval:
            return
        with timed("checkpoints"):
            self.checkpoints.write_segments()
            due = self.due(self.checkpoint_interval) or self.is_last
            if due or number or self.stop:
                self.checkpoints.save(self.num_timesteps, self.total_timesteps)
        if number:
            stop(number)

    def stop_at_score(self) -> None:
        """Ends training if the mean return has reached ``stop_at``."""
        stop_at = self.arguments["stop_at"]
        score = None
        if self.evaluation is not None:
            score = self.evaluation.score_at(self.num_timesteps)
        elif self.episodes.count >= 100:
            score = self.episodes.mean("r")
        if None not in (stop_at, score) and score >= stop_at:
            logger.log(
                f"mean return {score:g} after {self.num_timesteps} agent steps: "
                f"training ends, as stop_at is {stop_at:g}"
            )
            self.stop = self.reached_score = True

    def _shared_columns(self) -> dict:
        seconds = time.perf_counter() - self.start_time
        return {
            "total_timesteps": self.num_timesteps,
            "time_elapsed": round(self.clock.seconds, 3),
            "fps": int((self.num_timesteps - self.first_timestep) / seconds),
            **self.episodes.columns(),
        }


def changed_kwargs(spec) -> dict:
    """Returns what an environment was made with, besides how it is registered.

    It leaves out what JSON cannot hold, and how it is drawn.
    """
    registered = gym.registry.get(spec.id)
    before = dict(registered.kwargs) if registered else {}
    left_out = "render_mode", "obs_type", "use_restricted_actions", "frameskip"
    kwargs = {
        name: value
        for name, value in spec.kwargs.items()
        if name not in left_out and before.get(name) != value and is_json(value)
    }
    if registered and spec.max_episode_steps != registered.max_episode_steps:
        kwargs["max_episode_steps"] = spec.max_episode_steps
    return kwargs
