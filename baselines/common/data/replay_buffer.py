"""Replay memory: the most recent transitions, each frame stored once."""

from typing import NamedTuple

import numpy as np

from baselines.common.base.machine import array_bytes, check_memory
from baselines.common.vec_env.vec_frame_stack import stack_frames

SEGMENT_SIZE = 2048  # transitions in an immutable part of a checkpoint


class Transitions(NamedTuple):
    """K batches of B transitions, each with a return of up to n steps from obs on."""

    obs: np.ndarray  # [K, B, *observation shape], in the space's own dtype
    actions: np.ndarray  # [K, B, *action shape]
    returns: np.ndarray  # [K, B] float32: sum of γ^i r_i
    next_obs: np.ndarray  # [K, B, *observation shape], after the last of those steps
    # Factor on the value of next_obs: γ^steps, 0 where the episode has ended.
    discounts: np.ndarray  # [K, B] float32
    weights: np.ndarray  # [K, B] float32: weight of each in the loss
    indices: np.ndarray  # [K, B] where they are stored
    # [K, ...] random numbers for the loss, if the algorithm draws any
    noise: np.ndarray | tuple = ()


class ReplayBuffer:
    """The last transitions of N environments, sampled uniformly.

    Steps are stored in rows [N, ...]; row ``count`` has the newest observations, whose
    actions are not known yet. Memory is allocated as rows are written, not all at once.
    Returns stop at the end of an episode and at the newest step, which can be sampled
    as well; at a time limit they bootstrap from the episode's last observation.

    Args:
        observation_space: a Box, Discrete or MultiDiscrete space.
        action_space: of the actions.
        size: how many transitions to store, rounded up to a multiple of ``num_envs``.
        num_envs: number of environments that step together (N).
        n_step: maximum number of steps in a return (Sutton 1988).
        gamma: discount factor per step (γ).
        frame_stack: frames that a VecFrameStack has stacked in the last axis of each
            observation; only the newest is stored.
        seed: of the random generator used for sampling.
    """

    fields = "frames", "actions", "rewards", "starts", "dones", "truncated"  # of a row

    def __init__(
        self,
        observation_space,
        action_space,
        size,
        num_envs=1,
        n_step=1,
        gamma=0.99,
        frame_stack=1,
        seed=None,
    ):
        self.num_envs = num_envs
        self.n_step = n_step
        self.gamma = gamma
        self.frame_stack = frame_stack
        self.rng = np.random.default_rng(seed)
        shape = observation_space.shape
        if frame_stack > 1:
            shape = (*shape[:-1], shape[-1] // frame_stack)
        # Besides the rows that can be sampled: the one without actions, and the oldest
        # ones, whose stacks have lost frames.
        self.num_rows = -(-size // num_envs) + frame_stack
        rows = self.num_rows, num_envs
        check_memory(
            f"a replay memory of {self.num_rows * num_envs:,} transitions",
            array_bytes((*rows, *shape), observation_space.dtype),
            "buffer_size",
        )
        # Zeros come from the operating system, which maps pages when they are written.
        self.frames = np.zeros((*rows, *shape), observation_space.dtype)
        self.actions = np.zeros((*rows, *action_space.shape), action_space.dtype)
        self.rewards = np.zeros(rows, np.float32)
        self.starts = np.zeros(rows, bool)  # whether the frame is an episode's first,
        self.dones = np.zeros(rows, bool)  # the step is its last,
        self.truncated = np.zeros(rows, bool)  # and a time limit ended it
        self.last_frames = {}  # by (row % num_rows, env): the frame at a time limit
        self.count = 0  # rows with a step, overwritten ones included

    def __len__(self):
        return (self.count - self.first_row) * self.num_envs

    @property
    def first_row(self) -> int:
        """The oldest row that can be sampled."""
        return max(0, self.count - self.num_rows + self.frame_stack)

    def start(self, obs) -> None:
        """Stores the observations [N, *observation shape] of a reset."""
        row = self.count % self.num_rows
        self.frames[row] = self._newest(obs)
        self.starts[row] = True

    def add(self, actions, rewards, dones, obs, last_obs, truncated) -> None:
        """Stores one step of every environment.

        Args:
            actions: [N, *action shape]
            rewards: [N]
            dones: [N] bool
            obs: [N, *observation shape]; where ``dones``, the next episode's first one
            last_obs: episodes' last observations, by environment, where ``dones``
            truncated: indices of environments whose episode a time limit ended
        """
        row = self.count % self.num_rows
        for env in np.flatnonzero(self.truncated[row]):
            del self.last_frames[row, env]
        self.actions[row] = actions
        self.rewards[row] = rewards
        self.dones[row] = dones
        self.truncated[row] = False
        for env in truncated:
            self.truncated[row, env] = True
            self.last_frames[row, env] = np.array(self._newest(last_obs[env]))
        self.count += 1
        row = self.count % self.num_rows
        self.frames[row] = self._newest(obs)
        self.starts[row] = dones

    def _newest(self, obs):
        if self.frame_stack == 1:
            return obs
        return obs[..., -self.frames.shape[-1] :]

    def sample(self, num_batches, batch_size) -> Transitions:
        """Samples batches; ``start`` and ``add`` have to be called first."""
        shape = num_batches, batch_size
        rows = self.draw_rows(shape)
        envs = self.rng.integers(self.num_envs, size=shape)
        indices = rows % self.num_rows * self.num_envs + envs
        return self._transitions(indices, np.ones(shape, np.float32))

    def draw_rows(self, shape) -> np.ndarray:
        """Returns rows [K, B] to sample, from ``first_row`` to ``count`` - 1."""
        return self.rng.integers(self.first_row, self.count, shape)

    def update_priorities(self, indices, priorities) -> None:
        """Does nothing: all transitions are equally likely."""

    def _rows(self, slots):
        """Returns the newest rows that are stored in slots."""
        return self.count - (self.count - slots) % self.num_rows

    def _transitions(self, indices, weights, rewards_at=None):
        rewards_at = rewards_at or self.rewards.__getitem__
        slots, envs = np.divmod(indices, self.num_envs)
        rows = self._rows(slots)
        returns = np.zeros(rows.shape, np.float32)
        discounts = np.ones(rows.shape, np.float32)
        next_rows = rows
        continues = np.ones(rows.shape, bool)
        truncated = np.zeros(rows.shape, bool)
        for k in range(self.n_step):
            if not continues.any():
                break
            at = (rows + k) % self.num_rows, envs
            continues = continues & (rows + k < self.count)
            returns += np.where(continues, discounts * rewards_at(at), 0)
            next_rows = np.where(continues, rows + k + 1, next_rows)
            discounts[continues] *= np.float32(self.gamma)
            ended = continues & self.dones[at]
            truncated |= ended & self.truncated[at]
            discounts[ended & ~self.truncated[at]] = 0
            continues = continues & ~ended
        next_obs = self._obs(next_rows, envs)
        for i in zip(*np.nonzero(truncated)):
            next_obs[i] = self._last_obs(next_rows[i] - 1, envs[i])
        return Transitions(
            self._obs(rows, envs),
            self.actions[slots, envs],
            returns,
            next_obs,
            discounts,
            weights,
            indices,
        )

    def _obs(self, rows, envs):
        """Returns observations, stacked with the frames before them."""
        slots = rows % self.num_rows
        if self.frame_stack == 1:
            return self.frames[slots, envs]
        newest_first, same_episode = [], np.ones(rows.shape, bool)
        for k in range(self.frame_stack):
            slots = (rows - k) % self.num_rows
            frames = self.frames[slots, envs]
            frames[~same_episode] = 0
            newest_first.append(frames)
            same_episode = same_episode & ~self.starts[slots, envs]
        return stack_frames(newest_first[::-1])

    def _last_obs(self, row, env):
        """Returns the last observation of an episode that a time limit ended."""
        last = self.last_frames[row % self.num_rows, env]
        if self.frame_stack == 1:
            return last
        before = self._obs(np.array([row]), np.array([env]))[0]
        return np.concatenate([before[..., last.shape[-1] :], last], axis=-1)

    # A checkpoint consists of segments, which are written once and never changed, and
    # a state with everything else.

    @property
    def segment_rows(self) -> int:
        return -(-SEGMENT_SIZE // self.num_envs)

    def segments(self) -> range:
        """Returns the numbers of the segments that a checkpoint needs now."""
        size = self.segment_rows
        return range(self.oldest_row // size, self.count // size)

    def get_segment(self, number) -> dict:
        """Returns arrays of those rows of a segment that are still stored."""
        first = number * self.segment_rows
        return self._get_rows(first, first + self.segment_rows)

    def set_segment(self, number, arrays) -> None:
        """Restores what ``get_segment`` returned; the state has to be set first."""
        self._set_rows(arrays)

    @property
    def oldest_row(self) -> int:
        """The oldest row that is stored."""
        return max(0, self.count - self.num_rows + 1)

    def _set_rows(self, arrays):
        """Restores what ``_get_rows`` returned at the checkpoint or earlier."""
        rows = arrays["rows"]
        slots = rows % self.num_rows
        # Older rows were overwritten after their segment was written.
        stored = rows >= self.oldest_row
        where = zip(*np.nonzero(arrays["truncated"]))
        for (i, env), frame in zip(where, arrays["last_frames"], strict=True):
            if stored[i]:
                self.last_frames[slots[i], env] = frame
        for name in self.fields:
            getattr(self, name)[slots[stored]] = arrays[name][stored]

    def _get_rows(self, first, stop):
        rows = np.arange(max(first, self.oldest_row), stop)
        slots = rows % self.num_rows
        truncated = self.truncated[slots]
        # The newest row has no actions yet, so nothing has ended in it.
        truncated[rows == self.count] = False
        last_frames = [
            self.last_frames[slots[i], env] for i, env in zip(*np.nonzero(truncated))
        ]
        shape = len(last_frames), *self.frames.shape[2:]
        return {name: getattr(self, name)[slots] for name in self.fields} | {
            "rows": rows,
            "truncated": truncated,
            "last_frames": np.array(last_frames, self.frames.dtype).reshape(shape),
        }

    def get_state(self) -> dict:
        """Returns what is in no segment: the newest rows and the generator's state."""
        first = self.segments().stop * self.segment_rows
        return {
            "count": self.count,
            "generator": self.rng.bit_generator.state,
            "newest": self._get_rows(first, self.count + 1),
        }

    def set_state(self, state) -> None:
        """Restores what ``get_state`` returned; segments have to be set afterwards."""
        self.count = state["count"]
        self.last_frames = {}
        self.rng.bit_generator.state = state["generator"]
        self._set_rows(state["newest"])
