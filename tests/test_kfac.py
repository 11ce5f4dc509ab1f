"""K-FAC and acktr, against numbers by hand."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from gymnasium import spaces
from keras import layers, ops

from baselines.acktr.acktr import acktr_loss, log_likelihood
from baselines.common.distributions import make_distribution
from baselines.common.errors import UserTypeError
from baselines.common.kfac import COLD_UPDATES, INTERVAL, KFAC
from baselines.common.kronecker_factors import Block, decompose
from baselines.common.policies import Policy
from baselines.common.precision import computing_in

LOG_2 = np.log(2)


def make_block(layer, shape):
    layer(np.zeros((1, *shape), np.float32))
    return Block(layer)


def test_factors_of_a_dense_layer():
    block = make_block(layers.Dense(2), (1,))
    x, gradients = np.float32([[1], [3]]), np.float32([[1, 0], [1, 2]])
    block.observe(x, gradients, 1.0)
    # Means of x xT with a 1 for the bias, and of g gT.
    a, g = block.factors
    np.testing.assert_array_equal(a, [[5, 2], [2, 1]])
    np.testing.assert_array_equal(g, [[1, 1], [1, 2]])
    block.observe(np.float32([[2]]), np.float32([[0, 0]]), 0.25)
    np.testing.assert_array_equal(a, [[4.75, 2], [2, 1]])
    np.testing.assert_array_equal(g, [[0.75, 0.75], [0.75, 1.5]])


def test_factors_are_float32_where_the_network_is_bfloat16():
    with computing_in("bfloat16"):
        block = make_block(layers.Dense(1, use_bias=False), (1,))
    x = ops.cast([[1.0078125]], "bfloat16")  # 1 + 2 ** -7, whose square it rounds
    block.observe(x, x, 1.0)
    for factor in block.factors:
        np.testing.assert_array_equal(factor, [[1.01568603515625]])


def test_factors_of_a_convolution():
    block = make_block(layers.Conv2D(1, (1, 2), use_bias=False), (1, 3, 1))
    x = np.float32([1, 2, 3]).reshape(1, 1, 3, 1)
    gradients = np.float32([1, 2]).reshape(1, 1, 2, 1)
    block.observe(x, gradients, 1.0)
    # The kernel is at (1, 2) and (2, 3).
    np.testing.assert_array_equal(block.factors[0], [[2.5, 4], [4, 6.5]])
    np.testing.assert_array_equal(block.factors[1], [[5]])


def test_preconditioned_gradient():
    block = make_block(layers.Dense(2), (1,))
    # A has eigenvalue 3 along (1, 1) and 1 along (1, -1).
    factors = [np.float32([[2, 1], [1, 2]]), np.float32([[1, 0], [0, 2]])]
    for variable, array in zip(block.eigen, decompose(factors), strict=True):
        variable.assign(array)
    found = block.precondition(np.float32([[1, 0], [0, 0]]), 1.0)
    # Of each half: 1 / (3 + 1) and 1 / (1 + 1).
    np.testing.assert_allclose(found, [[3 / 8, 0], [-1 / 8, 0]], atol=1e-6)


def test_eigenvalues_that_are_noise_become_0():
    values, _ = decompose([np.float32([[1, 1], [1, 1]])])
    assert values[0] == 0 and values[1] == pytest.approx(2)


def make_linear():
    """A model y = w x, with w = 1, and its layer."""
    layer = layers.Dense(1, use_bias=False, kernel_initializer="ones")
    layer(np.zeros((1, 1), np.float32))
    parts = {"layer": layer}
    return SimpleNamespace(
        parts=parts,
        variables=layer.variables,
        trainable_variables=layer.variables,
        initial_state=None,
    ), layer


def make_linear_update(**settings):
    """K-FAC of w x, the loss 3 w, and an update of both."""
    model, layer = make_linear()
    optimizer = KFAC(model, seed=0, **settings)
    update = optimizer.make_update(
        lambda: (3.0 * layer.kernel[0, 0], {}), lambda x: ops.sum(layer(x))
    )
    return optimizer, layer.kernel, update


def test_steps_are_limited_in_divergence():
    optimizer, w, update = make_linear_update(clip=0.0075, damping=1.0)
    optimizer.count = COLD_UPDATES
    for variable, value in zip(optimizer.blocks[0].eigen, (2.0, 1.0, 1.0, 1.0)):
        variable.assign(np.full(variable.shape, value))
    metrics = update(0.1, (np.ones((1, 1), np.float32),))
    # F^-1 g = 3 / (2 + 1) = 1, of which lr² 3 = 0.03 is four times the limit.
    assert float(metrics["step_fraction"]) == pytest.approx(0.5)
    assert float(w[0, 0]) == pytest.approx(1 - 0.1 * (1 - 0.9) * 0.5)
    update(0.01, (np.ones((1, 1), np.float32),))  # 0.0003 is within it.
    momentum = 0.9 * 0.5 + 1
    assert float(w[0, 0]) == pytest.approx(1 - 0.005 - 0.01 * 0.1 * momentum)


@pytest.mark.parametrize(("limit", "step"), [(None, 3.0), (0.5, 0.5)])
def test_first_updates_are_of_momentum(limit, step):
    optimizer, w, update = make_linear_update(clip=1.0, max_grad_norm=limit)
    for _ in range(2):
        update(0.1, (np.full((1, 1), 2, np.float32),))
    assert float(w[0, 0]) == pytest.approx(1 - 0.1 * step - 0.1 * 1.9 * step)
    assert not np.any(optimizer.blocks[0].eigen[0])
    for _ in range(COLD_UPDATES - 2):
        update(0.1, (np.full((1, 1), 2, np.float32),))
    assert float(optimizer.blocks[0].eigen[0][0]) == pytest.approx(4)
    assert not np.any(optimizer.blocks[0].momentum)


def test_decompositions_are_used_when_they_are_due_also_after_resuming():
    def x(i):
        return (np.full((1, 1), i, np.float32),)

    optimizer, w, update = make_linear_update(clip=1.0)
    used = []
    for i in range(3 * INTERVAL + 1):
        if i == 2 * INTERVAL - 5:
            state, weight = optimizer.get_state(), float(w[0, 0])
        update(0.1, x(i))
        used.append(float(optimizer.blocks[0].eigen[0][0]))
    assert len({*used[COLD_UPDATES : 2 * INTERVAL - 1]}) == 1
    assert used[2 * INTERVAL - 1] != used[2 * INTERVAL - 2]

    other, other_w, other_update = make_linear_update(clip=1.0)
    other.set_state(state)
    other_w.assign([[weight]])
    for i in range(2 * INTERVAL - 5, 3 * INTERVAL + 1):
        other_update(0.1, x(i))
        assert float(other.blocks[0].eigen[0][0]) == used[i]
    assert float(other_w[0, 0]) == float(w[0, 0])


def gaussian_policy(network="mlp", **settings):
    box = spaces.Box(-1, 1, (2,), np.float32)
    return Policy(box, box, network, **settings)


def test_factors_of_one_sample_are_those_of_its_gradient():
    policy = gaussian_policy(value_network="copy", seed=0)
    optimizer = KFAC(policy, clip=1.0, seed=0)
    obs, actions = np.ones((1, 1, 2), np.float32), np.float32([[1, -2]])

    def likelihood(obs, actions):
        params, values = policy(obs)
        return ops.sum(values) - ops.sum(policy.distribution.neglogp(params, actions))

    def loss(obs, actions):
        return likelihood(obs, actions), {}

    optimizer.make_update(loss, likelihood)(0.0, (obs, actions), obs, actions)
    for block in optimizer.blocks:
        a, g = (np.trace(np.asarray(factor)) for factor in block.factors)
        # Momentum has the gradient, x gT, whose squares add up to |x|² |g|².
        np.testing.assert_allclose(a * g, np.sum(np.square(block.momentum)), rtol=1e-4)
    units = sorted(block.units for block in optimizer.blocks)
    assert units == [1, 2, 2, 64, 64, 64, 64]  # with the log deviations


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("lstm", "the network is recurrent, and K-FAC is for"),
        (
            lambda: keras.Sequential([layers.Flatten(), layers.LayerNormalization()]),
            "the weight .* is of another kind of layer, and K-FAC is for Dense",
        ),
    ],
    ids=["lstm", "layer_norm"],
)
def test_other_layers_are_refused(network, message):
    with pytest.raises(UserTypeError, match=message):
        KFAC(gaussian_policy(network), clip=1.0, seed=0)


def test_loss_is_that_of_a2c():
    loss, metrics = acktr_loss(
        np.zeros((2, 2), np.float32),  # two actions of probability 1/2
        values=np.float32([1, 1]),
        actions=np.array([0, 1]),
        advantages=np.float32([3, -1]),
        returns=np.float32([3, 0]),
        distribution=make_distribution(spaces.Discrete(2)),
        c_v=0.5,
        c_e=0.1,
    )
    # (3 log 2 - log 2) / 2, log 2, and ((1 - 3)² + (1 - 0)²) / 2
    np.testing.assert_allclose(loss, LOG_2 - 0.1 * LOG_2 + 0.5 * 2.5, rtol=1e-6)
    np.testing.assert_allclose(metrics["policy_loss"], LOG_2, rtol=1e-6)


def test_log_likelihood():
    found = log_likelihood(
        np.zeros((2, 2), np.float32),
        values=np.float32([5, 7]),
        actions=np.array([0, 1]),
        noise=np.float32([1, -2]),
        distribution=make_distribution(spaces.Discrete(2)),
        c_f=0.5,
    )
    np.testing.assert_allclose(found, -2 * LOG_2 - 0.5 * (1 + 4), rtol=1e-6)
