"""Returns, losses, distributions, schedules and RMSProp against numbers by hand."""

import math

import keras
import numpy as np
import pytest
from gymnasium import spaces
from keras import ops

from baselines.a2c.a2c import a2c_loss
from baselines.common import backend
from baselines.common.distributions import Categorical, make_distribution
from baselines.common.errors import UserTypeError, UserValueError
from baselines.common.optimizers import RMSprop
from baselines.common.returns import explained_variance, n_step
from baselines.common.schedules import SCHEDULES, find_schedule

LOG_2, LOG_3 = math.log(2), math.log(3)


def compiled_and_plain(fn):
    return [fn, backend.compile(fn, [])]


def test_n_step_returns():
    # One environment goes on, one ends at its second step, one is cut short
    # there in a state worth 4.
    rewards = np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3]], np.float32)
    dones = np.array([[0, 0, 0], [0, 1, 1], [0, 0, 0]], bool)
    next_values = np.array([[9, 9, 9], [9, 0, 4], [8, 8, 8]], np.float32)
    returns = n_step(rewards, dones, next_values, gamma=0.5)
    # 3 + .5 * 8 = 7; 2 + .5 * 7 = 5.5; 1 + .5 * 5.5 = 3.75
    # 2 + 0 = 2; 1 + .5 * 2 = 2
    # 2 + .5 * 4 = 4; 1 + .5 * 4 = 3
    expected = [[3.75, 2, 3], [5.5, 2, 4], [7, 7, 7]]
    np.testing.assert_allclose(returns, expected)


def test_explained_variance():
    targets = np.array([1.0, 2.0, 3.0])
    assert explained_variance(targets, targets) == 1
    assert explained_variance(np.full(3, 2.0), targets) == 0
    assert explained_variance(-targets, targets) == -3
    assert math.isnan(explained_variance(targets, np.ones(3)))


def test_categorical_log_probability_and_entropy():
    distribution = Categorical(spaces.Discrete(3))
    # p = 1/4, 1/4, 1/2 and 1/3, 1/3, 1/3
    logits = np.array([[0, 0, LOG_2], [5, 5, 5]], np.float32)
    actions = np.array([2, 0])
    for neglogp in compiled_and_plain(distribution.neglogp):
        np.testing.assert_allclose(neglogp(logits, actions), [LOG_2, LOG_3], rtol=1e-6)
    for entropy in compiled_and_plain(distribution.entropy):
        # 2 * 1/4 * log 4 + 1/2 * log 2 = 1.5 log 2
        np.testing.assert_allclose(entropy(logits), [1.5 * LOG_2, LOG_3], rtol=1e-6)
    assert list(np.asarray(distribution.mode(logits))) == [2, 0]


def test_categorical_samples_have_their_probabilities():
    distribution = Categorical(spaces.Discrete(3))
    logits = np.tile(np.array([0, 0, LOG_2], np.float32), (20_000, 1))
    noise = distribution.noise(np.random.default_rng(0), len(logits))
    counts = np.bincount(np.asarray(distribution.sample(logits, noise)), minlength=3)
    # Standard deviation of a share is under 0.0036.
    np.testing.assert_allclose(counts / 20_000, [0.25, 0.25, 0.5], atol=0.015)


def test_categorical_counts_from_the_start_of_its_space():
    distribution = Categorical(spaces.Discrete(2, start=5))
    logits = np.array([[0, LOG_3]], np.float32)
    assert np.asarray(distribution.mode(logits)) == [6]
    neglogp = distribution.neglogp(logits, np.array([5]))
    np.testing.assert_allclose(neglogp, [math.log(4)], rtol=1e-6)


def test_unsupported_action_space_is_named():
    with pytest.raises(UserTypeError, match="Box.*Discrete"):
        make_distribution(spaces.Box(-1, 1, (2,)))


def test_a2c_loss():
    def loss(params, values, actions, advantages, returns):
        return a2c_loss(
            params,
            values,
            actions,
            advantages,
            returns,
            distribution=Categorical(spaces.Discrete(2)),
            c_v=0.5,
            c_e=0.1,
        )

    batch = (
        np.array([[0, LOG_3], [0, 0]], np.float32),  # p = 1/4, 3/4 and 1/2, 1/2
        np.array([1, 2], np.float32),
        np.array([0, 1]),
        np.array([2, -1], np.float32),
        np.array([2, 4], np.float32),
    )
    policy_loss = (2 * math.log(4) - math.log(2)) / 2
    first_entropy = math.log(4) / 4 + 3 / 4 * math.log(4 / 3)
    entropy = (first_entropy + LOG_2) / 2
    value_loss = (1 + 4) / 2
    for fn in compiled_and_plain(loss):
        total, metrics = fn(*batch)
        assert float(metrics["policy_loss"]) == pytest.approx(policy_loss, rel=1e-6)
        assert float(metrics["policy_entropy"]) == pytest.approx(entropy, rel=1e-6)
        assert float(metrics["value_loss"]) == pytest.approx(value_loss, rel=1e-6)
        expected = policy_loss - 0.1 * entropy + 0.5 * value_loss
        assert float(total) == pytest.approx(expected, rel=1e-6)


def test_rmsprop_is_that_of_tensorflow_1():
    variable = keras.Variable([1.0])
    optimizer = RMSprop(learning_rate=0.1, rho=0.9, epsilon=0.01)
    optimizer.build([variable])
    # Mean square 0.9 * 1 + 0.1 * 4 = 1.3; 1 - 0.1 * 2 / sqrt(1.3 + 0.01)
    optimizer.apply([ops.convert_to_tensor([2.0])], [variable])
    first = 1 - 0.2 / math.sqrt(1.31)
    np.testing.assert_allclose(variable, [first], rtol=1e-6)
    # 0.9 * 1.3 + 0.1 * 1 = 1.27
    optimizer.apply([ops.convert_to_tensor([-1.0])], [variable])
    np.testing.assert_allclose(variable, [first + 0.1 / math.sqrt(1.28)], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "factors"),  # at 0, 0.2, 0.5 and 0.9 of training
    [
        ("constant", [1, 1, 1, 1]),
        ("linear", [1, 0.8, 0.5, 0.1]),
        ("middle_drop", [1, 0.8, 0.075, 0.075]),
        ("double_linear_con", [1, 0.6, 0.125, 0.125]),
        ("double_middle_drop", [1, 0.8, 0.075, 0.125]),
    ],
)
def test_schedule(name, factors):
    schedule = find_schedule(name)
    assert [schedule(p) for p in (0, 0.2, 0.5, 0.9)] == pytest.approx(factors)


def test_every_schedule_is_tested_and_unknown_ones_are_refused():
    assert len(SCHEDULES) == 5
    with pytest.raises(UserValueError, match="did you mean 'linear'"):
        find_schedule("liner")


def test_value_and_grad():
    variable = keras.Variable([3.0])
    loss_and_gradients = backend.value_and_grad(
        lambda x: (ops.sum(variable * variable * x), {"x": ops.sum(x)}), [variable]
    )
    for fn in compiled_and_plain(loss_and_gradients):
        (loss, metrics), gradients = fn(np.array([2.0], np.float32))
        assert float(loss) == 18
        assert float(metrics["x"]) == 2
        np.testing.assert_allclose(gradients[0], [12.0])
