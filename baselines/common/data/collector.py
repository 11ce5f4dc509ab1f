"""Steps environments and fills a replay memory."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from baselines import logger
from baselines.common.base import mpi
from baselines.common.base.timing import timed
from baselines.common.data.episodes import count_due, results_of
from baselines.common.envs.spaces import clip_actions


class Collector:
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
    """

    def __init__(
        self,
        env: Any,
        memory: Any,
        explore: Callable,
        learning_starts: int = 0,
        random_seed: int | None = None,
    ):
        self.env = env
        self.memory = memory
        self.explore = explore
        # At least one step, so that every rank has something in its memory.
        self.untrained_until = max(learning_starts, mpi.size * env.num_envs)
        self.random_steps = 0
        self.space = copy.deepcopy(env.action_space)
        if random_seed is not None:
            self.random_steps = learning_starts
            # Not the stream of the environment, which has the same seed.
            sequence = np.random.SeedSequence([random_seed, 3])
            self.space.seed(int(sequence.generate_state(1)[0]))
        self.num_timesteps = 0
        self.last_metrics = {}
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
            actions = clip_actions(actions, self.space)
            self.actions = np.asarray(actions, self.space.dtype)
        if self.counts.size:
            taken = self.actions - self.space.start
            self.counts += np.bincount(taken, minlength=self.counts.size)
        with timed("environments"):
            self.env.step_async(self.actions)

    def training_due(self, run: Any, every: int) -> int:
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
        return results_of(infos)

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
