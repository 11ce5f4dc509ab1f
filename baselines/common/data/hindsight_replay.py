"""Replay memory that relabels transitions with goals achieved after them."""

import functools

import numpy as np

from baselines.common.base.errors import UserValueError
from baselines.common.data.replay_buffer import ReplayBuffer


class HindsightReplayBuffer(ReplayBuffer):
    """Samples transitions as if a goal achieved later had been the desired one.

    Andrychowicz et al. 2017, "Hindsight Experience Replay", strategy "future": of k + 1
    transitions, on average k get a goal that was achieved in the same episode, after a
    step drawn uniformly from their own step onwards, and the rewards for that goal.
    Episodes still end where they did, whether or not the new goal was achieved there.

    Args:
        goals: ``Goals`` of the observations, which are vectors, see ``find_goals``.
        replay_k: k, relabelled transitions per transition that keeps its goal.
        arguments, keywords: other arguments of ReplayBuffer.
    """

    fields = *ReplayBuffer.fields, "achieved"

    def __init__(self, observation_space, *arguments, goals, replay_k, **keywords):
        self.goals = goals
        self.share = replay_k / (replay_k + 1)
        super().__init__(observation_space, *arguments, **keywords)
        # Goals achieved after each step, as frames lack the last one of an episode.
        shape = self.frames[..., goals.achieved].shape
        self.achieved = np.zeros(shape, self.frames.dtype)

    @functools.cached_property
    def episodes(self) -> tuple:
        """Where episodes stop, and where unfinished ones began, from the flags.

        Returns:
            [rows, N], the row after the last one of the episode, 0 if it is unfinished;
            and [N], the first stored row of the unfinished episode.
        """
        stops = np.zeros((self.num_rows, self.num_envs), np.int64)
        rows = np.arange(self.oldest_row, self.count + 1)[:, None]
        slots = rows[:, 0] % self.num_rows
        begun = np.where(self.starts[slots], rows, self.oldest_row).max(axis=0)
        ends = np.where(self.dones[slots[:-1]], rows[:-1] + 1, self.count + 1)
        ends = np.minimum.accumulate(ends[::-1])[::-1]
        stops[slots[:-1]] = np.where(ends > self.count, 0, ends)
        return stops, begun

    def add(self, actions, rewards, dones, obs, last_obs, truncated) -> None:
        """As in ReplayBuffer.

        Raises:
            UserValueError: if the first rewards are not those of ``compute_reward``.
        """
        stops, begun = self.episodes
        slot, ended = self.count % self.num_rows, np.flatnonzero(dones)
        following = np.array(obs)
        for env in ended:
            following[env] = last_obs[env]
        self.achieved[slot] = following[:, self.goals.achieved]
        if self.count == 0:
            self._check_rewards(rewards)
        super().add(actions, rewards, dones, obs, last_obs, truncated)
        stops[slot] = 0
        for env in ended:
            rows = np.arange(max(begun[env], self.oldest_row), self.count)
            stops[rows % self.num_rows, env] = begun[env] = self.count

    def _check_rewards(self, rewards):
        desired = self.frames[0][:, self.goals.desired]
        # Copies, as a function that mistakes components for goals would otherwise do
        # with as many goals as each has components.
        copies = desired.shape[-1] + 1
        goals = (np.repeat(x, copies, axis=0) for x in (self.achieved[0], desired))
        expected = self.goals.compute_reward(*goals)
        if not np.allclose(np.repeat(rewards, copies), expected, rtol=1e-4, atol=1e-5):
            raise UserValueError(
                "replay_k needs rewards that compute_reward returns as well: the first "
                f"steps gave {rewards[:3]}, compute_reward {expected[::copies][:3]}"
            )

    def _transitions(self, indices, weights):
        slots, envs = np.divmod(indices, self.num_envs)
        rows = self._rows(slots)
        stops = self.episodes[0][slots, envs]
        left = np.where(stops, stops, self.count) - rows
        later = rows + (self.rng.random(rows.shape) * left).astype(np.int64)
        goals = self.achieved[later % self.num_rows, envs]
        replaced = self.rng.random(rows.shape) < self.share
        goals = goals[replaced]

        def rewards_at(at):
            rewards = self.rewards[at]
            achieved = self.achieved[at][replaced]
            rewards[replaced] = self.goals.compute_reward(achieved, goals)
            return rewards

        batch = super()._transitions(indices, weights, rewards_at)
        for obs in batch.obs, batch.next_obs:
            obs[..., self.goals.desired][replaced] = goals
        return batch

    def set_state(self, state) -> None:
        """As in ReplayBuffer."""
        super().set_state(state)
        vars(self).pop("episodes", None)  # computed again once all flags are restored
