"""Replay memory against a plain history of all steps."""

import sys

import numpy as np
import psutil
import pytest
from gymnasium import spaces
from memory_checks import check_memory, check_tree

from baselines.common.base.machine import available_memory
from baselines.common.data.hindsight_replay import HindsightReplayBuffer
from baselines.common.data.prioritized_replay import PrioritizedReplayBuffer, SumTree
from baselines.common.data.replay_buffer import ReplayBuffer
from baselines.common.data.sequence_replay import SequenceReplayBuffer
from baselines.common.envs.goals import Goals
from baselines.common.vec_env.vec_frame_stack import stack_frames

PIXELS = spaces.Box(0, 255, (5, 4, 8), np.uint8)  # 4 frames of 2 channels
GREY_PIXELS = spaces.Box(0, 255, (5, 4, 4), np.uint8)
VECTOR = spaces.Box(-np.inf, np.inf, (3,), np.float32)
ACTIONS = spaces.Discrete(7)
GOALS = Goals(slice(0, 1), slice(1, 2), lambda achieved, _: achieved[:, 0] / 256)
KEYWORDS = {
    ReplayBuffer: {},
    PrioritizedReplayBuffer: dict(alpha=0.6, beta=0.4, beta_iters=1000, eps=1e-6),
    HindsightReplayBuffer: dict(goals=GOALS, replay_k=0),
    SequenceReplayBuffer: {},
}
IMAGES = PIXELS, 4, (5, 4, 2)
VECTORS = VECTOR, 1, (3,)
KINDS = [
    (ReplayBuffer, *IMAGES),
    (ReplayBuffer, GREY_PIXELS, 4, (5, 4, 1)),
    (ReplayBuffer, *VECTORS),
    (PrioritizedReplayBuffer, *IMAGES),
    (PrioritizedReplayBuffer, *VECTORS),
    (HindsightReplayBuffer, *VECTORS),
    (SequenceReplayBuffer, *IMAGES),
]
each_kind = pytest.mark.parametrize(("kind", "space", "stack", "shape"), KINDS)


def floats(*values):
    return np.array(values, np.float32)


class History:
    """Stores random episodes in a buffer, and all their steps in a list."""

    def __init__(self, buffer, num_envs, stack, shape, seed=0):
        self.buffer = buffer
        self.rng = np.random.default_rng(seed)
        self.stack = stack
        self.shape = shape
        self.steps = []  # a row: (obs, actions, rewards, dones, last_obs at limits)
        self.stacks = [self.new_stack() for _ in range(num_envs)]
        self.obs = self.show()
        buffer.start(self.obs)

    def frame(self):
        return self.rng.integers(1, 255, self.shape)

    def new_stack(self):
        return [np.zeros(self.shape)] * (self.stack - 1) + [self.frame()]

    def show(self):
        return np.array([np.concatenate(stack, axis=-1) for stack in self.stacks])

    def play(self, steps):
        for _ in range(steps):
            num_envs = len(self.stacks)
            actions = self.rng.integers(7, size=num_envs)
            rewards = np.zeros(num_envs, np.float32)
            dones = self.rng.random(num_envs) < 0.2
            last_obs, truncated = {}, []
            for i, stack in enumerate(self.stacks):
                self.stacks[i] = stack[1:] + [self.frame()]
                rewards[i] = self.stacks[i][-1].flat[0] / 256
                if dones[i]:
                    last_obs[i] = np.concatenate(self.stacks[i], axis=-1)
                    if self.rng.random() < 0.5:
                        truncated.append(i)
                    self.stacks[i] = self.new_stack()
            limits = {i: last_obs[i] for i in truncated}
            self.steps.append((self.obs, actions, rewards, dones, limits))
            self.obs = self.show()
            self.buffer.add(actions, rewards, dones, self.obs, last_obs, truncated)
            check_memory(self.buffer)

    def transition(self, row, env, n_step, gamma):
        """Returns the expected obs, action, return, next_obs, discount."""
        obs, action = self.steps[row][0][env], self.steps[row][1][env]
        total, discount = 0.0, 1.0
        for k in range(row, min(row + n_step, len(self.steps))):
            _, _, rewards, dones, last_obs = self.steps[k]
            total += discount * rewards[env]
            discount *= gamma
            if dones[env]:
                if env not in last_obs:
                    return obs, action, total, None, 0.0
                return obs, action, total, last_obs[env], discount
        following = self.steps[k + 1][0] if k + 1 < len(self.steps) else self.obs
        return obs, action, total, following[env], discount


def make(kind, space, size, num_envs, n_step, stack):
    return kind(
        space,
        ACTIONS,
        size,
        num_envs,
        n_step=n_step,
        gamma=0.9,
        frame_stack=stack,
        seed=0,
        **KEYWORDS[kind],
    )


@pytest.mark.parametrize("count", [2, 4, 128, 129])
def test_any_number_of_frames_is_stacked_in_order(count):
    frames = [np.full((2, 3, 1), i, np.uint8) for i in range(count)]
    stacked = stack_frames(frames)
    assert stacked.shape == (2, 3, count)
    assert (stacked == np.arange(count)).all()


@each_kind
@pytest.mark.parametrize("n_step", [1, 3, 10**15])
@pytest.mark.parametrize(("num_envs", "steps"), [(1, 9), (1, 200), (3, 150)])
def test_every_transition_is_that_of_the_history(
    kind, space, stack, shape, n_step, num_envs, steps
):
    size = 20 * num_envs
    buffer = make(kind, space, size, num_envs, n_step, stack)
    history = History(buffer, num_envs, stack, shape)
    history.play(steps)
    assert len(buffer) == min(size, steps * num_envs)
    drawn = set()
    batch = buffer.sample(40, 32)
    for i in np.ndindex(40, 32):
        slot, env = divmod(int(batch.indices[i]), num_envs)
        row = steps - 1 - (steps - 1 - slot) % buffer.num_rows
        drawn.add((row, env))
        expected = history.transition(row, env, n_step, 0.9)
        obs, action, total, next_obs, discount = expected
        np.testing.assert_array_equal(batch.obs[i], obs)
        assert batch.actions[i] == action
        assert batch.returns[i] == pytest.approx(total, abs=1e-5)
        assert batch.discounts[i] == pytest.approx(discount)
        if next_obs is not None:
            np.testing.assert_array_equal(batch.next_obs[i], next_obs)
    # Every stored transition can be sampled, the newest step included.
    rows = range(max(0, steps - 20), steps)
    assert drawn == {(row, env) for row in rows for env in range(num_envs)}


def test_returns_of_three_steps_across_both_kinds_of_end():
    buffer = make(ReplayBuffer, VECTOR, 20, 1, 3, 1)
    buffer.start(np.full((1, 3), 0.0, np.float32))
    # Observations count up; one episode ends truly, the next by a time limit at 7.5.
    ends = {2: {}, 5: {0: np.full(3, 7.5, np.float32)}}
    for step, reward in enumerate([1, 2, 3, 4, 5, 6, 7]):
        obs = np.full((1, 3), step + 1.0, np.float32)
        done = np.array([step in ends])
        last = ends.get(step, {})
        buffer.add(np.array([0]), floats(reward), done, obs, last, list(last))
    batch = buffer._transitions(np.arange(7)[None], np.ones((1, 7), np.float32))
    # gamma is 0.9: 1 + 1.8 + 2.43, 2 + 2.7, 3; 4 + 4.5 + 4.86, 5 + 5.4, 6; 7
    returns = [5.23, 4.7, 3, 13.36, 10.4, 6, 7]
    np.testing.assert_allclose(batch.returns[0], returns, rtol=1e-6)
    # Nothing follows a true end; 0.9^3, 0.9^2 and 0.9 of what a time limit cut off;
    # 0.9 after the newest step.
    discounts = [0, 0, 0, 0.729, 0.81, 0.9, 0.9]
    np.testing.assert_allclose(batch.discounts[0], discounts, rtol=1e-6)
    np.testing.assert_array_equal(batch.next_obs[0, 3:, 0], [7.5, 7.5, 7.5, 7])


@each_kind
def test_restored_from_segments_and_state(kind, space, stack, shape, monkeypatch):
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 16)
    for steps in (0, 5, 33, 90):
        arguments = kind, space, 120, 3, 3, stack
        buffer = make(*arguments)
        history = History(buffer, 3, stack, shape)
        segments = {}
        for _ in range(steps):
            history.play(1)
            # As soon as they are full; rows may be overwritten afterwards.
            for number in set(buffer.segments()) - set(segments):
                segments[number] = buffer.get_segment(number)
        segments = {number: segments[number] for number in buffer.segments()}
        state = buffer.get_state()
        # Later steps must not change what was returned.
        expected = [buffer.sample(3, 8) for _ in range(3)] if steps else []
        again = make(*arguments)
        again.set_state(state)
        for number, arrays in segments.items():
            again.set_segment(number, arrays)
        check_memory(again)
        for batch in expected:
            for field, other in zip(batch, again.sample(3, 8)):
                np.testing.assert_array_equal(field, other)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1024, 1025, 40_000])
def test_sum_tree_finds_what_a_search_in_the_cumulative_sum_finds(size):
    rng = np.random.default_rng(size)
    tree, expected = SumTree(size), np.zeros(size)
    for count in (1, 2, 50, size, 7 * size):  # so that indices occur several times
        indices = rng.integers(size, size=count)
        # Eighths, whose sums are exact, and many zeros.
        values = rng.integers(1, 100, count) * rng.integers(2, size=count) / 8
        values[-1] = 0.125
        tree.set(indices, values)
        expected[indices] = values
        check_tree(tree)
        np.testing.assert_array_equal(tree.get(np.arange(size)), expected)
        ends = np.cumsum(expected)
        assert tree.total == ends[-1]
        points = rng.uniform(0, tree.total, (3, 40))
        # A point where one number ends belongs to the next that is not zero.
        points[0] = rng.choice(np.append(0, ends[ends < tree.total]), 40)
        found = np.searchsorted(ends, points, side="right")
        np.testing.assert_array_equal(tree.find(points), found)
        # Rounded past the end, it belongs to the last.
        assert tree.find(np.array([tree.total])) == np.flatnonzero(expected)[-1]


def test_prioritized_frequencies_and_weights():
    buffer = make(PrioritizedReplayBuffer, VECTOR, 4, 1, 1, 1)
    History(buffer, 1, 1, (3,)).play(4)
    # 1, 1.51572, 1.93318 and 2.29740, which are p^0.6, over their sum, 6.74630
    buffer.update_priorities(np.array([[0, 1, 2, 3]]), np.array([[1.0, 2, 3, 4]]))
    check_memory(buffer)
    expected = np.array([0.14823, 0.22467, 0.28655, 0.34054])
    batch = buffer.sample(1, 100_000)
    drawn = np.bincount(batch.indices[0], minlength=4) / 100_000
    np.testing.assert_allclose(drawn[:4], expected, atol=1e-4)
    # beta is 0.4 + 0.6 * 4 / 1000, weights relative to that of the rarest
    weights = {int(i): w for i, w in zip(batch.indices[0], batch.weights[0])}
    for i in range(4):
        assert weights[i] == pytest.approx((expected[i] / expected[0]) ** -0.4024, 1e-4)
    # The largest of each batch is 1, also without the rarest.
    assert (buffer.sample(50, 4).weights.max(axis=1) == 1).all()


def test_new_transitions_have_the_largest_priority():
    buffer = make(PrioritizedReplayBuffer, VECTOR, 50, 1, 1, 1)
    history = History(buffer, 1, 1, (3,))
    history.play(2)
    buffer.update_priorities(np.array([[0, 1]]), np.array([[9.0, 0.0]]))
    check_memory(buffer)
    history.play(1)
    drawn = np.bincount(buffer.sample(1, 1000).indices[0], minlength=3)
    assert drawn[1] <= 1
    assert abs(drawn[2] - drawn[0]) <= 2


def test_memory_grows_as_it_fills():
    process = psutil.Process()
    before = process.memory_info().rss
    space = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    buffer = make(ReplayBuffer, space, 100_000, 8, 1, 4)
    assert process.memory_info().rss - before < 10e6
    obs = np.ones((8, 84, 84, 4), np.uint8)
    buffer.start(obs)
    for _ in range(5000):
        buffer.add(np.zeros(8, int), np.zeros(8), np.zeros(8, bool), obs, {}, [])
    # 40,000 frames of 7,056 bytes: a million in under 7.6 GB.
    assert 270e6 < process.memory_info().rss - before < 304e6


@pytest.mark.skipif(sys.platform != "linux", reason="reads files of Linux")
def test_memory_left_in_a_container(tmp_path):
    outside = available_memory(tmp_path)
    assert outside > 2**20
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text(
        "anon 100000\nactive_file 200000\ninactive_file 400000\n"
    )
    assert available_memory(tmp_path) > 2**20  # no limit
    (tmp_path / "memory.max").write_text("1000000\n")
    # 600,000 of the bytes used are cached files, which the kernel can drop.
    assert available_memory(tmp_path) == 900_000
