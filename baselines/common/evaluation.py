"""Models play episodes in environments of their own, which they do not learn from."""

import os

import numpy as np

from baselines import logger
from baselines.common import mpi
from baselines.common.envs import as_vec_env
from baselines.common.episodes import result_of
from baselines.common.errors import UserValueError
from baselines.common.machine import check_memory
from baselines.common.saving.log_folder import BEST_MODEL_FILE
from baselines.common.saving.states import check_like, check_number
from baselines.common.vec_env.vec_video_recorder import VecFilm

RESULT_BYTES = 250  # of the result of an episode, a dict of three numbers


def play_steps(model, env, deterministic=False):
    """Yields actions, dones and infos of each step of a VecEnv, after a reset.

    Args:
        model: has ``step`` and ``initial_state``.
        env: a VecEnv.
        deterministic: whether the model takes the most likely or best actions.
    """
    obs, states = env.reset(), model.initial_state
    dones = np.zeros(env.num_envs, bool)
    while True:
        actions, _, states, _ = model.step(
            obs, S=states, M=dones, deterministic=deterministic
        )
        obs, _, dones, infos = env.step(actions)
        yield actions, dones, infos


def evaluate(model, env, episodes, deterministic=False, actions=None) -> list:
    """Returns the results (see ``result_of``) of episodes, in the order they ended.

    Each environment plays as many as the others, or one more: those that end first are
    not counted more often.

    Args:
        model, env, deterministic: as in ``play_steps``; the VecEnv, or the environments
            in it, have a monitor.
        episodes: how many.
        actions: a list to add those of these episodes to, as arrays [n, *shape].

    Raises:
        UserValueError: if episodes end and no monitor says so.
    """
    left = [len(range(i, episodes, env.num_envs)) for i in range(env.num_envs)]
    results, ends = [], 0
    for taken, dones, infos in play_steps(model, env, deterministic):
        if actions is not None:
            actions.append(taken[np.array(left) > 0])
        ends += np.sum(dones)
        # A game of several lives has more ends than episodes.
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
    """Returns mean, deviation, minimum and maximum of the returns, and mean length.

    Also ``success_rate``, if results have ``success``.
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
    """Writes a histogram of actions [n, *shape], or one for each of their parts."""
    parts = actions.reshape(len(actions), -1).T
    for i, part in enumerate(parts):
        name = "eval_actions" if len(parts) == 1 else f"eval_actions/{i}"
        logger.write_histogram(name, part, num_timesteps)


def check_results(episodes, argument) -> None:
    """Raises UserValueError if the results of so many do not fit into memory.

    Args:
        episodes: how many.
        argument: that says so.
    """
    check_memory(
        f"the results of {episodes:,} episodes", episodes * RESULT_BYTES, argument
    )


class Evaluation:
    """Evaluates the model of a run at intervals, and keeps the best one in a file.

    The model takes the most likely or best actions. With several MPI ranks each plays
    ``episodes``, and results are those of all.

    Args:
        env: a VecEnv of its own.
        interval: agent steps of training from one to the next.
        episodes: to an evaluation.
    """

    def __init__(self, env, interval, episodes):
        check_results(episodes, "eval_episodes")
        self.env = env
        self.interval = interval
        self.episodes = episodes
        self.model = self.folder = None
        self.best = None  # highest mean return
        self.columns = {}  # of the log, since the last evaluation

    def start(self, model, folder) -> None:
        """Takes the model, and the folder of its best version, None for no file.

        Raises:
            UserValueError: if its spaces are not those of the environment.
        """
        model.check_spaces(self.env)
        self.env.reset()  # So that it has a state for checkpoints.
        self.model, self.folder = model, folder

    def run(self, num_timesteps) -> float:
        """Evaluates the model, which training does not notice; returns its mean return.

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
            # Not kept until the next evaluation.
            frames, self.env.frames = self.env.frames, []
            fps = self.env.frames_per_second
            logger.write_video("eval_video", frames, fps, num_timesteps)
        return found["mean"]

    def get_state(self) -> dict:
        return {"best": self.best, "env": self.env.get_state()}

    def set_state(self, state) -> None:
        check_like(state, {"best": ..., "env": ...})
        if state["best"] is not None:
            check_number(state["best"], "best")
        self.best = state["best"]
        self.env.set_state(state["env"])


def make_evaluation(arguments, seed):
    """Returns the Evaluation that arguments of ``learn()`` ask for, None for none.

    Args:
        arguments: all of them, by name.
        seed: of the environment, unless it is a VecEnv.

    Raises:
        UserValueError: for an environment without an interval, or the reverse.
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
    return Evaluation(as_vec_env(env, seed), interval, arguments["eval_episodes"])
