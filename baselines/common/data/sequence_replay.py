"""Replay memory that is sampled in sequences, with the probabilities of actions."""

from typing import NamedTuple

import numpy as np

from baselines.common.data.replay_buffer import ReplayBuffer


class Sequences(NamedTuple):
    """T successive steps of N environments, which need not start at the same time."""

    obs: np.ndarray  # [T + 1, N, *observation shape], the last after the last step
    actions: np.ndarray  # [T, N, *action shape]
    # [T, N, A] float32, of all actions, at the time of acting
    probabilities: np.ndarray
    rewards: np.ndarray  # [T, N] float32
    dones: np.ndarray  # [T, N] bool: the episode ended with this step
    # [T, N] float32: value of the last observation, where a time limit ended the
    # episode, 0 elsewhere
    limit_values: np.ndarray


class SequenceReplayBuffer(ReplayBuffer):
    """A replay memory of Discrete actions and the probabilities of all of them.

    Args:
        observation_space: of the observations.
        action_space: a Discrete space.
        arguments, keywords: of ReplayBuffer.
    """

    fields = *ReplayBuffer.fields, "probabilities"

    def __init__(self, observation_space, action_space, *arguments, **keywords):
        super().__init__(observation_space, action_space, *arguments, **keywords)
        shape = self.num_rows, self.num_envs, int(action_space.n)
        self.probabilities = np.zeros(shape, np.float32)

    def add_probabilities(self, probabilities) -> None:
        """Stores the probabilities [N, A] that the next actions are drawn with."""
        self.probabilities[self.count % self.num_rows] = probabilities

    def newest(self, steps, value) -> Sequences:
        """Returns the newest steps of all environments; arguments as below."""
        return self._sequences(np.full(self.num_envs, self.count - steps), steps, value)

    def sample_sequences(self, steps, value) -> Sequences:
        """Samples one sequence per environment; at least ``steps`` have to be stored.

        A sequence begins anywhere, and may continue into the next episode.

        Args:
            steps: T.
            value: function that returns the values [N] of N observations.
        """
        stop = self.count - steps + 1
        first_rows = self.rng.integers(self.first_row, stop, self.num_envs)
        return self._sequences(first_rows, steps, value)

    def _sequences(self, first_rows, steps, value):
        rows = first_rows + np.arange(steps + 1)[:, None]
        envs = np.broadcast_to(np.arange(self.num_envs), rows.shape)
        obs = self._obs(rows, envs)
        at = rows[:-1] % self.num_rows, envs[:-1]
        truncated = self.truncated[at]
        limit_values = np.zeros(truncated.shape, np.float32)
        for t in np.flatnonzero(truncated.any(axis=1)):
            last_obs, limits = obs[t].copy(), np.flatnonzero(truncated[t])
            for env in limits:
                last_obs[env] = self._last_obs(rows[t, env], env)
            # Always of N observations: another number would be compiled separately.
            limit_values[t, limits] = value(last_obs)[limits]
        return Sequences(
            obs,
            self.actions[at],
            self.probabilities[at],
            self.rewards[at],
            self.dones[at],
            limit_values,
        )
