"""What off-policy algorithms share: filling a replay memory, keeping best weights."""

import copy
import os
from types import MappingProxyType

import numpy as np
from gymnasium import spaces

from baselines import logger
from baselines.common.base import mpi
from baselines.common.base.errors import (
    UserFileError,
    UserTypeError,
    UserValueError,
    shown,
)
from baselines.common.base.timing import timed
from baselines.common.data.episodes import ResultCollector, count_due
from baselines.common.data.hindsight_replay import HindsightReplayBuffer
from baselines.common.data.prioritized_replay import PrioritizedReplayBuffer
from baselines.common.data.replay_buffer import ReplayBuffer
from baselines.common.envs.goals import find_goals
from baselines.common.envs.spaces import clip_actions
from baselines.common.saving.files import check_writable
from baselines.common.vec_env.vec_env import VecEnvWrapper
from baselines.common.vec_env.vec_frame_stack import count_stacked
from baselines.common.vec_env.vec_normalize import VecNormalize

BEST_FILE = "best.safetensors"


def make_memory(
    run,
    size,
    prioritized=False,
    replay_k=0,
    kind=ReplayBuffer,
    *,
    prioritization=MappingProxyType({}),
    **settings,
):
    """Returns a replay memory for the steps of a run.

    With a VecFrameStack, each frame of its stacks is stored only once.

    Args:
        run: has ``env``, ``seed`` and ``total_timesteps``. If the latter is 0, a model
            is only loaded, and the memory has room for one transition.
        size: number of transitions to store.
        prioritized: whether it is a ``PrioritizedReplayBuffer``, in which β rises until
            the run ends unless ``prioritization`` has ``beta_iters``.
        replay_k: of a ``HindsightReplayBuffer``; 0 to leave goals unchanged.
        kind: class of the memory, if it is neither of these.
        prioritization: arguments of a ``PrioritizedReplayBuffer``.
        settings: other arguments of a ``ReplayBuffer``.

    Raises:
        UserTypeError, UserValueError: as ``find_goals``, if ``replay_k`` is not 0.
        UserValueError: if ``prioritized`` and ``replay_k`` are combined, or rewards are
            divided by a standard deviation that changes.
    """
    env, own = run.env, {}
    if not run.total_timesteps:
        size, prioritized, replay_k = 1, False, 0
    else:
        check_rewards_stay(env)
    if prioritized:
        kind, own = PrioritizedReplayBuffer, {"beta_iters": run.total_timesteps}
        own |= prioritization
    if replay_k:
        if prioritized:
            raise UserValueError(
                "prioritized_replay and replay_k cannot be combined, as a TD error is "
                f"for one goal and not for others; received replay_k={replay_k}"
            )
        kind = HindsightReplayBuffer
        own = dict(goals=find_goals(env), replay_k=replay_k)
    return kind(
        env.observation_space,
        env.action_space,
        size,
        num_envs=env.num_envs,
        frame_stack=count_stacked(env),
        seed=[run.seed, 1],  # not the stream that acting draws from
        **own,
        **settings,
    )


def check_rewards_stay(venv) -> None:
    """Raises UserValueError if a VecNormalize divides rewards, unless it is frozen.

    A memory would keep each reward as it was divided when it was collected, so that
    old ones and new ones would be in different units.
    """
    while isinstance(venv, VecEnvWrapper):
        if isinstance(venv, VecNormalize) and venv.ret_rms and venv.training:
            raise UserValueError(
                "a replay memory needs rewards in the same unit all the time, but "
                "normalize_rewards (VecNormalize) divides them by a running standard "
                "deviation; leave it out, or use reward_scale"
            )
        venv = venv.venv


def epsilon_at(step, num_steps, final) -> float:
    """Returns ε, which falls linearly from 1 to ``final`` over ``num_steps`` steps."""
    return max(final, 1.0 - (1.0 - final) * step / num_steps) if num_steps else final


class Player:
    """Steps environments, stores the steps, and says when to train on them.

    ``step_async`` begins a step; ``step_wait`` waits for it and stores it. Whatever
    runs in between, such as an optimiser step, overlaps with the worker processes.

    Args:
        env: a VecEnv; it is reset before the first step.
        memory: a ``ReplayBuffer``.
        explore: function of observations [N, *observation shape] that returns actions
            [N, *action shape]. Actions of a Box are clipped to it before they are
            played and stored.
        learning_starts: agent steps at the start, over all environments and ranks,
            in which no optimiser step is due.
        random_seed: if given, actions are drawn uniformly from the action space in
            these steps, instead of by ``explore``.

    Attributes:
        obs: the newest observations [N, *observation shape]; None before the first.
        actions: the newest actions, as played.
        last_metrics: metrics of the newest optimiser steps, a dict; set by ``learn()``.
            They are saved, so that a row has them even if nothing was trained since the
            last row, or since resuming.

    Raises:
        UserTypeError: from ``step_async``, if ``explore`` returns anything else.
    """

    def __init__(self, env, memory, explore, learning_starts=0, random_seed=None):
        self.env = env
        self.memory = memory
        self.explore = explore
        # At least one step, so that every rank has something in its memory.
        self.untrained_until = max(learning_starts, mpi.size * env.num_envs)
        self.random_steps = 0
        self.space = copy.deepcopy(env.action_space)
        if random_seed is not None:
            self.random_steps = learning_starts
            # A stream of its own: the environment is given the same seed.
            sequence = np.random.SeedSequence([random_seed, 3])
            self.space.seed(int(sequence.generate_state(1)[0]))
        self.num_timesteps = 0
        self.last_metrics = {}
        self.results = ResultCollector()
        self.obs = None
        self.actions = None
        # How often each Discrete action was taken since the last row of the log.
        discrete = isinstance(self.space, spaces.Discrete)
        self.counts = np.zeros(int(self.space.n) if discrete else 0, int)

    def step_async(self) -> None:
        """Chooses actions and sends them to the environments."""
        if self.obs is None:
            self.obs = self.env.reset()
            self.memory.start(self.obs)
        if self.num_timesteps < self.random_steps:
            actions = [self.space.sample() for _ in range(self.env.num_envs)]
            self.actions = np.stack(actions)
        else:
            with timed("acting"):
                actions = self.explore(self.obs)
            expected = self.env.num_envs, *self.space.shape
            if getattr(actions, "shape", None) != expected:
                raise UserTypeError(
                    f"explore has to return an array of actions {list(expected)}, "
                    f"returned {shown(actions)}"
                )
            actions = clip_actions(actions, self.space)
            self.actions = np.asarray(actions, self.space.dtype)
        if self.counts.size:
            taken = self.actions - self.space.start
            self.counts += np.bincount(taken, minlength=self.counts.size)
        with timed("environments"):
            self.env.step_async(self.actions)

    def training_due(self, run, every) -> int:
        """Returns how many times training is due in this update of a run.

        The first update warns if that is never the case before the run ends.

        Args:
            run: a ``Run``.
            every: agent steps from one time to the next.
        """
        after, steps = self.untrained_until, run.num_updates * run.batch_size
        is_first = run.previous_timesteps == run.first_timestep
        if is_first and not count_due(0, steps, every, after):
            logger.warn(
                "nothing will be trained: total_timesteps (num_timesteps) is enough "
                f"for {steps} agent steps, and optimiser steps are due every {every} "
                f"agent steps after the first {after}"
            )
        return run.due(every, after)

    def action_entropy(self) -> float:
        """Returns the entropy, in nats, of the Discrete actions since the last call.

        It is ln(n) while all n actions are equally frequent, and 0 once exploration has
        collapsed to a single one.
        """
        shares = self.counts[self.counts > 0] / self.counts.sum()
        self.counts[:] = 0
        return float(np.sum(shares * np.log(1 / shares)))

    def step_wait(self) -> list:
        """Waits for the environments and stores their step.

        Returns:
            the results (``info["episode"]``) of episodes that ended.
        """
        with timed("environments"):
            self.obs, rewards, dones, infos = self.env.step_wait()
        self.num_timesteps += mpi.size * self.env.num_envs
        ended = np.flatnonzero(dones)
        last_obs = {i: infos[i]["terminal_observation"] for i in ended}
        truncated = [i for i in ended if infos[i].get("TimeLimit.truncated")]
        self.memory.add(self.actions, rewards, dones, self.obs, last_obs, truncated)
        return self.results.collect(dones, infos)

    def get_state(self) -> dict:
        metrics = self.last_metrics.items()
        return {
            "obs": self.obs,
            "num_timesteps": self.num_timesteps,
            "generator": self.space.np_random.bit_generator.state,
            "counts": self.counts,
            "last_metrics": {name: float(np.mean(value)) for name, value in metrics},
            "env": self.env.get_state(),
        }

    def set_state(self, state) -> None:
        self.env.set_state(state["env"])
        self.obs = state["obs"]
        self.num_timesteps = state["num_timesteps"]
        self.space.np_random.bit_generator.state = state["generator"]
        self.counts = state["counts"].copy()
        self.last_metrics = state["last_metrics"]


def old_names(run) -> dict:
    """Returns the variables that callbacks written for OpenAI Baselines' deepq read.

    ``t`` is the number of agent steps so far; ``episode_rewards`` has the returns of
    the last 100 episodes, and a 0 for the current one.
    """
    returns = [result["r"] for result in run.episodes.results]
    return {"t": run.num_timesteps, "episode_rewards": [*returns, 0.0]}


def return_limits(clip_return, gamma) -> tuple:
    """Returns the lowest and the highest target that is possible.

    Args:
        clip_return: whether rewards lie between -1 and 0; otherwise all are possible.
        gamma: discount factor.
    """
    if not clip_return:
        return -np.inf, np.inf
    return (-1 / (1 - gamma) if gamma < 1 else -np.inf), 0.0


def check_returns(returns, gamma, n_step) -> None:
    """Raises UserValueError unless returns can come of rewards between -1 and 0.

    Args:
        returns: discounted sums of up to ``n_step`` rewards.
        gamma: discount factor.
        n_step: most rewards in a sum.
    """
    lowest = -(1 - gamma**n_step) / (1 - gamma) if gamma < 1 else -n_step
    for value in returns.min(), returns.max():
        if not lowest - 1e-3 <= value <= 1e-3:
            raise UserValueError(
                f"clip_return needs rewards from -1 to 0, received {value:.4g}"
                f"{f' as the sum of up to {n_step}' if n_step > 1 else ''}; with "
                "clip_return=False, they may have any size"
            )


class BestWeights:
    """The weights with which the last 100 episodes had the highest mean return.

    Args:
        run: a ``Run``, which may replace a file if resumed or with ``overwrite``.
        model: a ``Model``.
        folder: where to save it as ``best.safetensors``; None for memory only.

    Raises:
        UserFileError: if an existing file may not be replaced, or cannot be written.
    """

    def __init__(self, run, model, folder=None):
        self.model = model
        self.path = folder and os.path.join(os.path.expanduser(folder), BEST_FILE)
        if folder is not None:
            check_writable(os.path.dirname(os.path.abspath(self.path)))
            replaces = run.resume is not None or run.arguments["overwrite"]
            if os.path.lexists(self.path) and not replaces:
                raise UserFileError(
                    f"checkpoint_path has the best model of another run, {self.path}: "
                    "give another path, or replace it with overwrite"
                )
        self.mean = None
        self.variables = {}

    def update_best(self, episodes) -> None:
        """Stores the current weights if ``episodes`` have the best mean return so far.

        Args:
            episodes: ``EpisodeResults``; fewer than 100 are not compared.
        """
        if episodes.count < 100 or (
            self.mean is not None and episodes.mean("r") <= self.mean
        ):
            return
        self.mean = episodes.mean("r")
        self.variables = self.model.get_state()["variables"]
        if self.path is not None:
            self.model.save(self.path)

    def restore(self) -> None:
        """Restores the best weights in the model, if any were stored."""
        for name, value in self.variables.items():
            self.model.named_variables[name].assign(value)

    def get_state(self) -> dict:
        return {"mean": self.mean, "variables": self.variables}

    def set_state(self, state) -> None:
        self.mean, self.variables = state["mean"], state["variables"]
