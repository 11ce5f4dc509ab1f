"""Replay memory that is sampled in sequences, with the probabilities of actions."""

from typing import NamedTuple

import numpy as np

from baselines.common.base.errors import UserValueError
from baselines.common.data.off_policy import make_memory
from baselines.common.data.replay_buffer import ReplayBuffer


class Sequences(NamedTuple):
    """T successive steps of N environments, which need not start at the same time."""

    obs: np.ndarray  # [T + 1, N, *observation shape], the last after the last step
    actions: np.ndarray  # [T, N, *action shape]
    # [T, N, A] float32, of all actions, at the time of acting
    probabilities: np.ndarray
    rewards: np.ndarray  # [T, N] float32
    dones: np.ndarray  # [T, N] bool: the episode ended with this step
    last_obs: dict  # by (t, n): an episode's last observation, if a time limit ended it


class SequenceReplayBuffer(ReplayBuffer):
    """A replay memory of Discrete actions and the probabilities of all of them.

    Args:
        observation_space: of the observations.
        action_space: a Discrete space.
        arguments, keywords: of ReplayBuffer.
    """

    fields = *ReplayBuffer.fields, "probabilities"

    def __init__(self, observation_space, action_space, *arguments, **keywords):
        num_actions = int(action_space.n)
        self.other_bytes = ReplayBuffer.other_bytes + 4 * num_actions
        super().__init__(observation_space, action_space, *arguments, **keywords)
        rows = self.num_rows, self.num_envs
        self.probabilities = np.zeros((*rows, num_actions), np.float32)

    def add_probabilities(self, probabilities) -> None:
        """Stores the probabilities [N, A] that the next actions are drawn with."""
        self.probabilities[self.count % self.num_rows] = probabilities

    def newest(self, steps) -> Sequences:
        """Returns the newest steps of all environments."""
        return self._sequences(np.full(self.num_envs, self.count - steps), steps)

    def sample_sequences(self, steps) -> Sequences:
        """Samples one sequence per environment; at least ``steps`` have to be stored.

        A sequence begins anywhere, and may continue into the next episode.
        """
        stop = self.count - steps + 1
        first_rows = self.rng.integers(self.first_row, stop, self.num_envs)
        return self._sequences(first_rows, steps)

    def _sequences(self, first_rows, steps):
        rows = first_rows + np.arange(steps + 1)[:, None]
        envs = np.broadcast_to(np.arange(self.num_envs), rows.shape)
        obs = self._obs(rows, envs)
        at = rows[:-1] % self.num_rows, envs[:-1]
        return Sequences(
            obs,
            self.actions[at],
            self.probabilities[at],
            self.rewards[at],
            self.dones[at],
            {
                (t, env): self._last_obs(rows[t, env], env)
                for t, env in zip(*np.nonzero(self.truncated[at]))
            },
        )


def make_sequence_memory(run, size, steps) -> SequenceReplayBuffer:
    """Returns a memory for the steps of a run, see ``make_memory``.

    Args:
        run: as in ``make_memory``.
        size: number of transitions to store.
        steps: length of the sequences that are sampled.

    Raises:
        UserValueError: if one sequence from each environment does not fit.
    """
    if run.total_timesteps and size < run.env.num_envs * steps:
        raise UserValueError(
            f"buffer_size has to be at least num_env {run.env.num_envs} x nsteps "
            f"{steps}, received {size}"
        )
    return make_memory(run, size, kind=SequenceReplayBuffer)


def values_at_limits(model, sequences):
    """Returns the values [T, N] of ``last_obs``, 0 elsewhere.

    Args:
        model: has ``value``, which is called with N observations at a time: with any
            other number it would be compiled again.
        sequences: a ``Sequences``.
    """
    values = np.zeros_like(sequences.rewards)
    for t in sorted({t for t, _ in sequences.last_obs}):
        obs = sequences.obs[t].copy()
        limits = [n for at, n in sequences.last_obs if at == t]
        obs[limits] = [sequences.last_obs[t, n] for n in limits]
        values[t, limits] = model.value(obs)[limits]
    return values
