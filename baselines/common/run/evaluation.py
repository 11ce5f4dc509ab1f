"""Evaluates models in episodes of separate environments, without learning from them."""

import os
from typing import Any

import gymnasium as gym
import numpy as np

from baselines import logger
from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.data.episodes import result_of
from baselines.common.envs import as_vec_env
from baselines.common.envs.spaces import check_spaces, clip_actions
from baselines.common.saving.log_folder import BEST_MODEL_FILE
from baselines.common.vec_env.vec_normalize import normalizes
from baselines.common.vec_env.vec_video_recorder import VecFilm

SEED_OFFSET = 5000  # added to a run's seed for its evaluations


def play_steps(model, env, deterministic=False):
    """Yields observations, actions, dones and infos of each step of a VecEnv.

    It is reset first; observations are those before the step.

    Args:
        model: an object with ``step`` and ``initial_state``.
        env: a VecEnv.
        deterministic: whether the model takes the most likely or best actions.
    """
    obs, states = env.reset(), model.initial_state
    dones = np.zeros(env.num_envs, bool)
    while True:
        actions, _, states, _ = model.step(
            obs, S=states, M=dones, deterministic=deterministic
        )
        actions = clip_actions(actions, env.action_space)
        seen = obs
        obs, _, dones, infos = env.step(actions)
        yield seen, actions, dones, infos


def how_to_act(deterministic: bool) -> str:
    """Returns how actions were chosen, and how to choose them otherwise."""
    done = "deterministic actions" if deterministic else "sampled actions"
    return f"{done} (--deterministic={not deterministic} for the others)"


def evaluate(
    model: Any,
    env: Any,
    episodes: int,
    deterministic: bool = False,
    actions: list | None = None,
) -> list:
    """Returns the results (see ``result_of``) of episodes, in the order they ended.

    Environments play equally many episodes, or some of them one more, so that short
    episodes are not counted more often than long ones.

    Args:
        model, deterministic: as in ``play_steps``.
        env: an environment, or a VecEnv that has a monitor, or has one around each
            environment.
        episodes: number of episodes.
        actions: a list to append these episodes' actions to, as arrays [n, *shape].

    Raises:
        UserValueError: if episodes end but no monitor reports their results.
    """
    if isinstance(env, gym.Env):
        env = as_vec_env(env)
    left = [len(range(i, episodes, env.num_envs)) for i in range(env.num_envs)]
    results, ends = [], 0
    for _, taken, dones, infos in play_steps(model, env, deterministic):
        if actions is not None:
            actions.append(taken[np.array(left) > 0])
        ends += np.sum(dones)
        # With several lives, dones outnumber the results of games.
        if ends > 100 * env.num_envs and not results:
            raise UserValueError(
                "episodes end, but no info has their results: put a Monitor around "
                "each environment, or a VecMonitor around all"
            )
        for i, info in enumerate(infos):
            if left[i] and "episode" in info:
                left[i] -= 1
                results.append(result_of(info))
        if not any(left):
            return results


def summary(results) -> dict:
    """Returns mean, standard deviation and range of the returns, and the mean length.

    It includes ``success_rate`` if results have ``success``.
    """
    returns = [result["r"] for result in results]
    successes = [result["success"] for result in results if "success" in result]
    return {
        "episodes": len(results),
        "mean": float(np.mean(returns)),
        "std": float(np.std(returns)),
        "min": float(np.min(returns)),
        "max": float(np.max(returns)),
        "mean_length": float(np.mean([result["l"] for result in results])),
        **({"success_rate": float(np.mean(successes))} if successes else {}),
    }


def write_actions(actions, num_timesteps) -> None:
    """Writes a histogram of actions [n, *shape], or one for each component."""
    parts = actions.reshape(len(actions), -1).T
    for i, part in enumerate(parts):
        name = "eval_actions" if len(parts) == 1 else f"eval_actions/{i}"
        logger.write_histogram(name, part, num_timesteps)


class Evaluation:
    """Evaluates the model of a run at intervals, and keeps the best one in a file.

    The model takes the most likely or best actions. With several MPI ranks, each plays
    ``episodes`` episodes, and the results of all ranks are combined.

    Args:
        env: a VecEnv, not the one that is used for training.
        interval: agent steps of training between evaluations.
        episodes: episodes per evaluation.
    """

    def __init__(self, env, interval, episodes):
        self.env = env
        self.interval = interval
        self.episodes = episodes
        self.model = self.folder = None
        self.best = None  # highest mean return
        self.mean = None  # mean return of the last evaluation
        self.num_timesteps = 0  # agent steps of training before it
        self.columns = {}  # of the log, from the last evaluation

    def start(self, model, folder) -> None:
        """Sets the model, and the folder for its best version, None for no file.

        Raises:
            UserValueError: if its spaces are not those of the environment.
        """
        check_spaces(model, self.env)
        self.model, self.folder = model, folder

    def score_at(self, num_timesteps):
        """Returns the mean return after so many agent steps; None if not evaluated."""
        return self.mean if num_timesteps == self.num_timesteps else None

    def run(self, num_timesteps) -> None:
        """Evaluates the model without affecting training.

        Args:
            num_timesteps: agent steps of training so far, for the log.
        """
        generator, self.model.rng = self.model.rng, np.random.default_rng(0)
        actions = []
        try:
            results = evaluate(self.model, self.env, self.episodes, True, actions)
        finally:
            self.model.rng = generator
        ranks = mpi.gather((results, np.concatenate(actions)))
        found = summary([result for results, _ in ranks for result in results])
        self.mean, self.num_timesteps = found["mean"], num_timesteps
        if self.best is None or found["mean"] > self.best:
            self.best = found["mean"]
            if self.folder is not None:
                self.model.save(os.path.join(self.folder, BEST_MODEL_FILE))
        self.columns = {
            "eval_eprewmean": found["mean"],
            "eval_eprewstd": found["std"],
            "eval_eplenmean": found["mean_length"],
        }
        if "success_rate" in found:
            self.columns["eval_success_rate"] = found["success_rate"]
        logger.log(
            f"evaluated at {num_timesteps} agent steps: mean return {found['mean']:g} "
            f"({found['min']:g} to {found['max']:g}) of {found['episodes']} episodes; "
            f"the best mean so far is {self.best:g}"
        )
        write_actions(np.concatenate([actions for _, actions in ranks]), num_timesteps)
        if isinstance(self.env, VecFilm):
            # Frames are not kept until the next evaluation.
            frames, self.env.frames = self.env.frames, []
            fps = self.env.frames_per_second
            logger.write_video("eval_video", frames, fps, num_timesteps)

    def get_state(self) -> dict:
        return {
            "best": self.best,
            "mean": self.mean,
            "num_timesteps": self.num_timesteps,
            # Before a reset it has no state, and its files may be an earlier run's.
            "env": self.env.get_state() if self.num_timesteps else None,
        }

    def set_state(self, state) -> None:
        self.best, self.mean = state["best"], state["mean"]
        self.num_timesteps = state["num_timesteps"]
        if state["env"] is not None:
            self.env.set_state(state["env"])


def make_evaluation(arguments, train_env, seed):
    """Returns the Evaluation that arguments of ``learn()`` ask for, or None.

    Args:
        arguments: all arguments of ``learn()``, by name.
        train_env: the VecEnv that is used for training.
        seed: of the run; sets the environment's, unless it is a VecEnv.

    Raises:
        UserValueError: if only one of ``eval_env`` and ``eval_interval`` is given, or
            ``eval_env`` is ``env``, or observations are normalised in one of them.
    """
    env, interval = arguments["eval_env"], arguments["eval_interval"]
    if arguments["total_timesteps"] == 0 or (env is None and not interval):
        return None
    if env is None or not interval:
        raise UserValueError(
            f"eval_interval and eval_env belong together; received {interval} and {env}"
        )
    if env is arguments["env"]:
        raise UserValueError(
            "eval_env is env, which evaluations would reset; make another one"
        )
    env = as_vec_env(env, seed_of_evaluation(seed))
    if any(normalizes(x, "observations") for x in (train_env, env)):
        raise UserValueError(
            "a wrapper of env or eval_env normalises observations, so evaluations see "
            "others than training: leave it out (VecNormalize: ob=False), and give "
            "normalize_observations=True, whose statistics are in the model"
        )
    return Evaluation(env, interval, arguments["eval_episodes"])


def seed_of_evaluation(seed) -> int:
    """Returns the seed of evaluations, whose episodes are not those trained on.

    Args:
        seed: of the run; the seeds of its environments count up from it.
    """
    return (seed + SEED_OFFSET) % 2**32
