"""ACER: its targets, loss and trust region by hand, sequences of its memory."""

import numpy as np
import pytest
from keras import Variable, ops
from memory_checks import check_memory
from toy_envs import CounterEnv

from baselines import acer
from baselines.acer.acer import acer_loss
from baselines.common import backend
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.data.collector import Collector
from baselines.common.data.returns import retrace
from baselines.common.data.sequence_replay import SequenceReplayBuffer, Sequences
from baselines.common.updates.trust_region import limit_gradients
from baselines.common.vec_env import DummyVecEnv, VecFrameStack


def floats(*values):
    return np.array(values, np.float32)


def test_retrace():
    """Two steps; their columns are sequences that differ in ratio, and in their end."""
    targets = retrace(
        rewards=floats([1, 1, 1, 1], [2, 2, 2, 2]),
        dones=np.array([[False, False, True, True], [False] * 4]),
        next_values=floats([4, 4, 0, 4], [6, 6, 6, 6]),
        action_values=floats([7, 7, 7, 7], [3, 3, 3, 3]),
        ratios=floats([9, 9, 9, 9], [0.5, 2, 0.5, 0.5]),
        gamma=0.5,
    )
    # 2 + 3 at last. Before it 1 + (4 + 0.5 (5 - 3)) / 2, with a ratio of at most 1;
    # 1 at a true end; 1 + 4 / 2 at a time limit.
    np.testing.assert_allclose(targets, [[3.5, 4, 1, 3], [5, 5, 5, 5]], rtol=1e-6)


# Two steps in one environment, and what follows: two actions, of which the first and
# then the second is taken. The second ratio is 1, the first 4, which c = 2 truncates.
PI = floats([[1 / 4, 3 / 4]], [[1 / 2, 1 / 2]], [[1 / 2, 1 / 2]])
Q = floats([[4, 0]], [[2, 6]], [[8, 4]])
BATCH = Sequences(
    obs=None,
    actions=np.array([[0], [1]]),
    probabilities=floats([[1 / 16, 15 / 16]], [[1 / 2, 1 / 2]]),
    rewards=floats([-5], [2]),
    dones=np.zeros((2, 1), bool),
    limit_values=np.zeros((2, 1), np.float32),
)
SETTINGS = dict(gamma=0.5, c=2.0, q_coef=0.5, ent_coef=0.0, delta=1.0)
AVERAGE = np.zeros((2, 1, 2), np.float32)  # logits of 1/2 and 1/2


def find_gradients(part=None, **settings):
    """Returns the gradients of the loss, or of a function of its parts."""
    logits, q = Variable(np.log(PI)), Variable(Q)

    def loss():
        loss, metrics = acer_loss(
            logits.value, q.value, AVERAGE, BATCH, **SETTINGS | settings
        )
        return (loss if part is None else part(metrics)), metrics

    _, gradients = backend.value_and_grad(loss, [logits, q])()
    return [np.asarray(gradient) for gradient in gradients]


def test_parts_of_the_loss():
    loss, metrics = acer_loss(np.log(PI), Q, AVERAGE, BATCH, **SETTINGS)
    # Values are 1, 4 and 6. Retrace: 2 + 6 / 2, and -5 + (4 + (5 - 6)) / 2.
    np.testing.assert_allclose(metrics["targets"], [[-3.5], [5]], rtol=1e-6)
    np.testing.assert_allclose(metrics["q_taken"], [[4], [6]])
    # Factors of the logarithms: 2 (-3.5 - 1) + (1 - 2 / 4) 1/4 (4 - 1) of the first
    # action at first, then 1 (5 - 4) of the second.
    expected = -(-8.625 * np.log(1 / 4) + np.log(1 / 2)) / 2
    np.testing.assert_allclose(metrics["policy_loss"], expected, rtol=1e-4)
    # ((4 + 3.5)² + (6 - 5)²) / 4
    np.testing.assert_allclose(metrics["q_loss"], 14.3125, rtol=1e-6)
    # 1/4 log 4 + 3/4 log 4/3, and log 2
    np.testing.assert_allclose(metrics["policy_entropy"], 0.627741, rtol=1e-5)
    # 1/2 log 2 + 1/2 log 2/3, and 0
    np.testing.assert_allclose(metrics["kl"], 0.143841 / 2, rtol=1e-5)


def test_values_after_ends():
    for limit_value, expected in (0, -5), (10, 0):  # -5 + 10 / 2
        ends = dict(
            dones=np.array([[True], [False]]), limit_values=floats([limit_value], [0])
        )
        batch = BATCH._replace(**ends)
        _, metrics = acer_loss(np.log(PI), Q, AVERAGE, batch, **SETTINGS)
        np.testing.assert_allclose(metrics["targets"], [[expected], [5]], atol=1e-6)


def test_trust_region():
    # k · g = 69 is 68 too much: g - 68 / (40 / 9) k. The second is within the limit.
    gradients = floats([-34.5, 0], [0, 2])
    directions = floats([-2, -2 / 3], [-1, -1])
    limited = limit_gradients(gradients, directions, 1.0)
    np.testing.assert_allclose(limited, [[-3.9, 10.2], [0, 2]], rtol=1e-5)
    # Of these, the gradient for logits is π (z - Σ π z), and -1/2 of it in the mean.
    of_logits, of_q = find_gradients()
    expected = [[[1.321875, -1.321875]], [[0.25, -0.25]], [[0, 0]]]
    np.testing.assert_allclose(of_logits, expected, rtol=1e-3, atol=1e-6)
    # c_q (q - Q) / 2 of the actions taken; nothing else that depends on q is trained.
    expected = [[[1.875, 0]], [[0, 0.25]], [[0, 0]]]
    np.testing.assert_allclose(of_q, expected, rtol=1e-4, atol=1e-6)


def test_without_a_limit_the_gradient_is_that_of_the_parts():
    def parts(x):
        return x["policy_loss"] - 0.3 * x["policy_entropy"] + 0.5 * x["q_loss"]

    found = find_gradients(delta=np.inf, ent_coef=0.3)
    for gradient, expected in zip(found, find_gradients(parts, ent_coef=0.3)):
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
    # -8.625 / (1/4), of which 1/4 is taken off; and 2.
    np.testing.assert_allclose(
        find_gradients(delta=np.inf)[0][:, 0, 0], [3.234375, 0.25, 0], rtol=1e-4
    )


def value(obs):
    """Returns ten times the newest frames of observations."""
    return 10 * obs[:, -1]


def play(size, steps):
    """Returns a memory of stacks of two, and all observations, after some steps."""
    env = VecFrameStack(
        DummyVecEnv(
            [
                lambda: CounterEnv(terminate_after=3),
                lambda: CounterEnv(truncate_after=4),
            ]
        ),
        2,
    )
    spaces = env.observation_space, env.action_space
    memory = SequenceReplayBuffer(*spaces, size, num_envs=2, frame_stack=2, seed=0)
    rng = np.random.default_rng(0)
    history = []

    def explore(obs):
        probabilities = rng.dirichlet(np.ones(3), 2).astype(np.float32)
        memory.add_probabilities(probabilities)
        actions = rng.integers(3, size=2)
        history.append((obs, actions, probabilities))
        return actions

    collector = Collector(env, memory, explore)
    for _ in range(steps):
        collector.step_async()
        collector.step_wait()
        check_memory(memory)
    return memory, history


def test_newest_steps_of_an_environment_that_counts():
    memory, history = play(size=12, steps=10)
    sequences = memory.newest(5, value)
    # The first environment ends after 3, the second by a time limit after 4.
    first = [[1, 2], [0, 0], [0, 1], [1, 2], [0, 0], [0, 1]]
    second = [[0, 1], [1, 2], [2, 3], [0, 0], [0, 1], [1, 2]]
    np.testing.assert_array_equal(sequences.obs[:, 0], first)
    np.testing.assert_array_equal(sequences.obs[:, 1], second)
    np.testing.assert_array_equal(sequences.rewards[:, 0], [3, 1, 2, 3, 1])
    np.testing.assert_array_equal(sequences.rewards[:, 1], [2, 3, 4, 1, 2])
    np.testing.assert_array_equal(sequences.dones[:, 0], [1, 0, 0, 1, 0])
    np.testing.assert_array_equal(sequences.dones[:, 1], [0, 0, 1, 0, 0])
    for t, (_, actions, probabilities) in enumerate(history[5:]):
        np.testing.assert_array_equal(sequences.actions[t], actions)
        np.testing.assert_array_equal(sequences.probabilities[t], probabilities)
    # The time limit cut off the observation 3, 4.
    expected = np.zeros((5, 2))
    expected[2, 1] = 40
    np.testing.assert_array_equal(sequences.limit_values, expected)


@pytest.mark.parametrize("steps", [5, 40])
def test_sampled_sequences_begin_anywhere_in_each_environment(steps):
    memory, history = play(size=20, steps=steps)
    begun = set()
    for _ in range(60):
        sequences = memory.sample_sequences(4, value)
        for env in range(2):
            probabilities = sequences.probabilities[0, env]
            (row,) = [
                i for i, x in enumerate(history) if (x[2][env] == probabilities).all()
            ]
            begun.add((row, env))
            for t in range(4):
                obs, actions, probabilities = (x[env] for x in history[row + t])
                np.testing.assert_array_equal(sequences.obs[t, env], obs)
                assert sequences.actions[t, env] == actions
                np.testing.assert_array_equal(
                    sequences.probabilities[t, env], probabilities
                )
    rows = range(max(0, steps - 10), steps - 3)
    assert begun == {(row, env) for row in rows for env in range(2)}


def train(**settings):
    """Returns the optimiser's iterations after each update of 2 x 4 agent steps."""
    iterations = []

    def callback(names, _):
        iterations.append(int(names["optimizer"].iterations))

    env = DummyVecEnv([lambda: CounterEnv(truncate_after=5)] * 2)
    settings = dict(nsteps=4, total_timesteps=80, seed=0, buffer_size=80) | settings
    acer.learn(env, "mlp", callback=callback, **settings)
    return iterations


def test_replays_begin_after_replay_start():
    iterations = train(replay_start=40, replay_ratio=9)
    assert iterations[:4] == [1, 2, 3, 4]
    replays = np.diff(iterations[3:]) - 1
    assert len(set(replays)) > 1 and 6 < np.mean(replays) < 12
    assert train(replay_start=0, replay_ratio=0) == list(range(1, 11))


def test_average_policy_follows_with_decay_alpha():
    weights = []

    def callback(names, _):
        pair = names["average"].variables[0], names["model"].variables[0]
        weights.append([ops.convert_to_numpy(x).copy() for x in pair])

    env = DummyVecEnv([lambda: CounterEnv(truncate_after=5)] * 2)
    settings = dict(nsteps=4, seed=0, buffer_size=80, replay_ratio=0, alpha=0.75)
    untrained = acer.learn(env, "mlp", total_timesteps=0, seed=0)
    expected = ops.convert_to_numpy(untrained.variables[0])
    acer.learn(env, "mlp", callback=callback, total_timesteps=16, **settings)
    for average, model in weights:
        assert np.abs(model - expected).max() > 1e-4
        expected = 0.75 * expected + 0.25 * model
        np.testing.assert_allclose(average, expected, atol=1e-6)


def test_what_cannot_be_done_is_refused():
    for wrong in dict(buffer_size=7), dict(lr="linear:1e-3", lrschedule="middle_drop"):
        with pytest.raises(UserValueError):
            train(**wrong)
    with pytest.raises(UserTypeError):
        acer.learn(DummyVecEnv([CounterEnv]), "lstm")
