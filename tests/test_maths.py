"""Returns, losses, distributions, schedules and RMSProp against numbers by hand."""

import math

import keras
import numpy as np
import pytest
from gymnasium import spaces
from keras import ops

from baselines.a2c.a2c import a2c_loss
from baselines.common import backend
from baselines.common.arguments.schedules import SCHEDULES, make_schedule
from baselines.common.base.errors import UserValueError
from baselines.common.data.returns import explained_variance, gae, n_step
from baselines.common.data.runners import Batch
from baselines.common.envs.spaces import clip_actions
from baselines.common.networks.distributions import (
    Categorical,
    make_distribution,
)
from baselines.common.updates.optimizers import Adam, RMSprop
from baselines.ppo2.ppo2 import ppo2_loss

LOG_2, LOG_3 = math.log(2), math.log(3)
LOGITS = np.array([[0, LOG_3], [0, 0]], np.float32)  # p = 1/4, 3/4 and 1/2, 1/2
ENTROPY = (math.log(4) / 4 + 3 / 4 * math.log(4 / 3) + LOG_2) / 2  # their mean
SETTINGS = dict(distribution=Categorical(spaces.Discrete(2)), vf_coef=0.5, ent_coef=0.1)


def test_n_step_returns():
    # One environment continues, one terminates at its second step, one is truncated
    # there in a state of value 4.
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
    pi = Categorical(spaces.Discrete(3))
    # p = 1/4, 1/4, 1/2 and 1/3, 1/3, 1/3
    logits = np.array([[0, 0, LOG_2], [5, 5, 5]], np.float32)
    actions = np.array([2, 0])
    np.testing.assert_allclose(pi.neglogp(logits, actions), [LOG_2, LOG_3], rtol=1e-6)
    # 2 * 1/4 * log 4 + 1/2 * log 2 = 1.5 log 2
    np.testing.assert_allclose(pi.entropy(logits), [1.5 * LOG_2, LOG_3], rtol=1e-6)
    assert list(np.asarray(pi.mode(logits))) == [2, 0]


def test_categorical_samples_have_their_probabilities():
    pi = Categorical(spaces.Discrete(3))
    logits = np.tile(np.array([0, 0, LOG_2], np.float32), (20_000, 1))
    noise = pi.noise(np.random.default_rng(0), len(logits))
    counts = np.bincount(np.asarray(pi.sample(logits, noise)), minlength=3)
    # Standard deviation of a share is under 0.0036.
    np.testing.assert_allclose(counts / 20_000, [0.25, 0.25, 0.5], atol=0.015)


def test_categorical_counts_from_the_start_of_its_space():
    pi = Categorical(spaces.Discrete(2, start=5))
    logits = np.array([[0, LOG_3]], np.float32)
    assert np.asarray(pi.mode(logits)) == [6]
    neglogp = pi.neglogp(logits, np.array([5]))
    np.testing.assert_allclose(neglogp, [math.log(4)], rtol=1e-6)


def test_multi_categorical_is_independent_categoricals():
    pi = make_distribution(spaces.MultiDiscrete([2, 3], start=[0, 7]))
    # p = 1/4, 3/4 and 1/4, 1/4, 1/2
    logits = np.array([[0, LOG_3, 0, 0, LOG_2]], np.float32)
    actions = np.array([[1, 9]])
    entropy = math.log(4) / 4 + 3 / 4 * math.log(4 / 3) + 1.5 * LOG_2
    expected = [math.log(4 / 3) + LOG_2]
    np.testing.assert_allclose(pi.neglogp(logits, actions), expected, rtol=1e-6)
    np.testing.assert_allclose(pi.entropy(logits), [entropy], rtol=1e-6)
    np.testing.assert_array_equal(pi.mode(logits), actions)


def test_bernoulli_is_independent_bits():
    pi = make_distribution(spaces.MultiBinary(2))
    logits = np.array([[0, LOG_3]], np.float32)  # p = 1/2, 3/4
    actions = np.array([[1, 0]], np.int8)
    entropy = LOG_2 + math.log(4) / 4 + 3 / 4 * math.log(4 / 3)
    expected = [LOG_2 + math.log(4)]
    np.testing.assert_allclose(pi.neglogp(logits, actions), expected, rtol=1e-6)
    np.testing.assert_allclose(pi.entropy(logits), [entropy], rtol=1e-6)
    many = np.tile(logits, (20_000, 1))
    noise = pi.noise(np.random.default_rng(0), len(many))
    samples = np.asarray(pi.sample(many, noise))
    np.testing.assert_allclose(samples.mean(axis=0), [0.5, 0.75], atol=0.015)


def test_gaussian_log_probability_and_entropy():
    pi = make_distribution(spaces.Box(-1, 1, (2,)))
    params = np.array([[0, 1, 0, LOG_2]], np.float32)  # means 0, 1; deviations 1, 2
    actions = np.array([[1, 3]], np.float32)  # one deviation off each
    expected = [0.5 + 0.5 + LOG_2 + math.log(2 * math.pi)]
    np.testing.assert_allclose(pi.neglogp(params, actions), expected, rtol=1e-6)
    expected = [LOG_2 + math.log(2 * math.pi * math.e)]
    np.testing.assert_allclose(pi.entropy(params), expected, rtol=1e-6)
    np.testing.assert_array_equal(pi.mode(params), [[0, 1]])
    many = np.tile(params, (20_000, 1))
    noise = pi.noise(np.random.default_rng(0), len(many))
    samples = np.asarray(pi.sample(many, noise))
    np.testing.assert_allclose(samples.mean(axis=0), [0, 1], atol=0.05)
    np.testing.assert_allclose(samples.std(axis=0), [1, 2], atol=0.05)


def test_clip_actions_clips_to_the_bounds_of_a_box():
    space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 2], np.float32))
    actions = np.array([[-3, -3], [0.5, 9]], np.float32)
    np.testing.assert_array_equal(clip_actions(actions, space), [[-1, 0], [0.5, 2]])
    actions = np.array([3])
    assert clip_actions(actions, spaces.Discrete(5)) is actions


def test_gae():
    # As above: one continues, one terminates at its second step, one is truncated there
    # in a state of value 6. All values are 1, and 4 after the last step.
    rewards = np.array([[1, 1, 1], [2, 2, 2], [3, 3, 3]], np.float32)
    dones = np.array([[0, 0, 0], [0, 1, 1], [0, 0, 0]], bool)
    values = np.ones((3, 3), np.float32)
    next_values = np.array([[1, 1, 1], [1, 0, 6], [4, 4, 4]], np.float32)
    advantages = gae(rewards, dones, values, next_values, gamma=0.5, lam=0.5)
    # Errors: 3 + 2 - 1 = 4 at the end; 2 + .5 - 1 = 1.5, 2 - 1 = 1, 2 + 3 - 1 = 4
    # before it; 1 + .5 - 1 = .5 at first.
    expected = [
        [0.5 + 0.25 * 2.5, 0.5 + 0.25 * 1, 0.5 + 0.25 * 4],
        [1.5 + 0.25 * 4, 1, 4],
        [4, 4, 4],
    ]
    np.testing.assert_allclose(advantages, expected)
    # A user's rewards may be of another type than what is trained on.
    doubles = gae(rewards.astype(float), dones, values, next_values, 0.5, 0.5)
    assert doubles.dtype == np.float32


def test_ratio_that_overflows_has_a_finite_gradient():
    """Its clipped branch has a gradient of 0."""
    logits = keras.Variable(np.zeros((2, 2), np.float32))
    ones = np.ones(2, np.float32)

    def loss():
        batch = Batch(
            obs=None,
            actions=np.array([0, 1]),
            neglogps=np.float32([LOG_2, 200]),
            values=ones,
            advantages=np.float32([1, 3]),
            returns=ones,
        )
        settings = SETTINGS | dict(ent_coef=0.0)
        return ppo2_loss(logits, ones, batch, np.float32(0.2), **settings)

    gradient = backend.value_and_grad(loss, [logits])()[1][0]
    # Advantages are -1 and 1: of max(ratio, 0.8) / 2 at the ratio 1, and of a constant.
    np.testing.assert_allclose(gradient, [[0.25, -0.25], [0, 0]], atol=1e-6)


# Values clipped to 1.3 and 1.7, max(1, .49) and max(4, 5.29); or as they are.
@pytest.mark.parametrize(("clip_values", "squares"), [(True, 1 + 5.29), (False, 1 + 4)])
def test_ppo2_loss(clip_values, squares):
    batch = Batch(
        obs=None,
        actions=np.array([0, 1]),
        neglogps=np.array([LOG_2, math.log(4)], np.float32),  # ratios 1/2 and 2
        values=np.array([1.5, 1.5], np.float32),
        advantages=np.array([1, 3], np.float32),  # normalised: -1 and 1
        returns=np.array([2, 4], np.float32),
    )
    inputs = LOGITS, np.array([1, 2], np.float32), batch, np.float32(0.2)
    # max(1/2, 4/5) and max(-2, -6/5)
    policy_loss = (0.8 - 1.2) / 2
    value_loss = 0.5 * squares / 2
    expected = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "policy_entropy": ENTROPY,
        "approxkl": LOG_2**2 / 2,
        "clipfrac": 1.0,
    }
    expected_total = policy_loss - 0.1 * ENTROPY + 0.5 * value_loss
    total, metrics = ppo2_loss(*inputs, **SETTINGS, clip_values=clip_values)
    assert {k: float(v) for k, v in metrics.items()} == pytest.approx(expected)
    assert float(total) == pytest.approx(expected_total)


def test_a2c_loss():
    batch = Batch(
        obs=None,
        actions=np.array([0, 1]),
        advantages=np.array([2, -1], np.float32),
        returns=np.array([2, 4], np.float32),
    )
    inputs = LOGITS, np.array([1, 2], np.float32), batch
    policy_loss, value_loss = (2 * math.log(4) - math.log(2)) / 2, (1 + 4) / 2
    expected = {
        "policy_loss": policy_loss,
        "policy_entropy": ENTROPY,
        "value_loss": value_loss,
    }
    expected_total = policy_loss - 0.1 * ENTROPY + 0.5 * value_loss
    total, metrics = a2c_loss(*inputs, **SETTINGS)
    found = {name: float(metrics[name]) for name in expected}
    assert found == pytest.approx(expected, rel=1e-6)
    assert float(total) == pytest.approx(expected_total, rel=1e-6)


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
    for schedule in (make_schedule(2.0, name), make_schedule(f"{name}:2")):
        found = [schedule(progress) / 2 for progress in (0, 0.2, 0.5, 0.9)]
        assert found == pytest.approx(factors)


def test_every_schedule_is_tested_and_what_is_none_is_refused():
    assert len(SCHEDULES) == 5
    for wrong in "liner:1", "linear:", "linear:inf", float("nan"), -1:
        with pytest.raises(UserValueError):
            make_schedule(wrong)


def test_value_and_grad():
    variable = keras.Variable([3.0])
    loss_and_gradients = backend.value_and_grad(
        lambda x: (ops.sum(variable * variable * x), {"x": ops.sum(x)}), [variable]
    )
    for fn in loss_and_gradients, backend.compile(loss_and_gradients, [variable]):
        (loss, metrics), gradients = fn(np.array([2.0], np.float32))
        assert float(loss) == 18
        assert float(metrics["x"]) == 2
        np.testing.assert_allclose(gradients[0], [12.0])


@pytest.mark.parametrize("kind", [Adam, RMSprop])
def test_norms_of_gradients_are_limited(kind):

    def step(first, second, **limit):
        """What a step with these gradients makes of zeros."""
        variables = [keras.Variable([0.0, 0.0]), keras.Variable([[0.0]])]
        # With such an epsilon a step is almost as long as the gradient.
        optimizer = kind(epsilon=1e6, **limit)
        optimizer.build(variables)
        optimizer.apply([ops.array(first), ops.array(second)], variables)
        return np.concatenate([np.ravel(variable) for variable in variables])

    gradients = [3.0, 4.0], [[12.0]]  # of norms 5 and 12, together 13
    for limit, limited in (
        (dict(clipnorm=10.0), ([3.0, 4.0], [[10.0]])),
        (dict(global_clipnorm=6.5), ([1.5, 2.0], [[6.0]])),
        (dict(global_clipnorm=13.5), gradients),
        ({}, gradients),
    ):
        found, expected = step(*gradients, **limit), step(*limited)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert np.all(found < 0)


def test_adam():
    variable = keras.Variable([1.0, -2.0])
    optimizer = Adam(learning_rate=0.1, epsilon=1e-8, beta_1=0.9, beta_2=0.99)
    optimizer.build([variable])
    step = backend.compile(lambda g: optimizer.apply([g], [variable]), [variable])
    step(np.array([3.0, -0.5], np.float32))
    # The first step is the learning rate, against the gradient's sign.
    np.testing.assert_allclose(variable, [0.9, -1.9], rtol=1e-5)
    step(np.array([1.0, 0.0], np.float32))
    # m = 0.9 * 0.3 + 0.1, v = 0.99 * 0.09 + 0.01; over 1 - 0.9^2 and 1 - 0.99^2
    m, v = 0.37 / 0.19, 0.0991 / 0.0199
    np.testing.assert_allclose(variable[0], 0.9 - 0.1 * m / v**0.5, rtol=1e-5)
    # m = 0.9 * -0.05, v = 0.99 * 0.0025
    m, v = -0.045 / 0.19, 0.002475 / 0.0199
    np.testing.assert_allclose(variable[1], -1.9 - 0.1 * m / v**0.5, rtol=1e-5)
