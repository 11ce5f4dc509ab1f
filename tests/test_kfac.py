"""K-FAC and acktr, against numbers by hand."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from gymnasium import spaces
from keras import layers, ops

from baselines.acktr.acktr import log_likelihood
from baselines.common import backend
from baselines.common.backend.precision import computing_in
from baselines.common.base.errors import UserTypeError
from baselines.common.data.runners import Batch
from baselines.common.networks.distributions import make_distribution
from baselines.common.networks.policies import Policy
from baselines.common.updates.kfac import COLD_UPDATES, KFAC
from baselines.common.updates.kronecker_factors import Block, decompose, inputs_of

LOG_2 = np.log(2)
ONE = np.ones((1, 1), np.float32)


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


def test_factors_of_a_convolution_with_channels_strides_and_a_bias():
    """Of one position, the gradient of the weights is the patch times that of sums."""
    layer = layers.Conv2D(3, 2, strides=2, padding="same")
    block = make_block(layer, (3, 3, 2))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 3, 3, 2), np.float32)
    # 2 x 2 positions, padded below and to the right: the second one of the first row.
    gradients = np.zeros((1, 2, 2, 3), np.float32)
    gradients[0, 0, 1] = 1, 2, -1
    found = backend.value_and_grad(
        lambda: (ops.sum(layer(x) * gradients), {}), layer.trainable_variables
    )()[1]
    patch = np.array([*x[0, 0, 2], 0, 0, *x[0, 1, 2], 0, 0, 1])
    expected = np.outer(patch, [1, 2, -1])
    np.testing.assert_allclose(block.matrix(found), expected, atol=1e-6)

    rows = np.asarray(inputs_of(layer, x))
    np.testing.assert_allclose(rows[1], patch, atol=1e-6)
    block.observe(x, gradients, 1.0)
    np.testing.assert_allclose(block.factors[0], rows.T @ rows / 4, atol=1e-6)
    expected = [[1, 2, -1], [2, 4, -2], [-1, -2, 1]]
    np.testing.assert_allclose(block.factors[1], expected)


def test_preconditioned_gradient():
    block = make_block(layers.Dense(2), (1,))
    # A has eigenvalue 3 along (1, 1) and 1 along (1, -1).
    factors = [np.float32([[2, 1], [1, 2]]), np.float32([[1, 0], [0, 2]])]
    for variable, array in zip(block.eigen, decompose(factors), strict=True):
        variable.assign(array)
    found = block.precondition(np.float32([[1, 0], [0, 0]]), 1.0)
    # Of each half: 1 / (3 + 1) and 1 / (1 + 1).
    np.testing.assert_allclose(found, [[3 / 8, 0], [-1 / 8, 0]], atol=1e-6)


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
        lambda x: (3.0 * layer.kernel[0, 0], {}), lambda x, noise: ops.sum(layer(x))
    )
    return optimizer, layer.kernel, update


def test_steps_are_limited_in_divergence():
    optimizer, w, update = make_linear_update(clip=0.0075, damping=1.0)
    optimizer.count = COLD_UPDATES
    for variable, value in zip(optimizer.blocks[0].eigen, (2.0, 1.0, 1.0, 1.0)):
        variable.assign(np.full(variable.shape, value))
    metrics = update(0.1, ONE)
    # F^-1 g = 3 / (2 + 1) = 1, of which lr² 3 = 0.03 is four times the limit.
    assert float(metrics["step_fraction"]) == pytest.approx(0.5)
    assert float(w[0, 0]) == pytest.approx(1 - 0.1 * (1 - 0.9) * 0.5)
    update(0.01, ONE)  # 0.0003 is within it.
    momentum = 0.9 * 0.5 + 1
    assert float(w[0, 0]) == pytest.approx(1 - 0.005 - 0.01 * 0.1 * momentum)


def make_two_weights(**settings):
    """K-FAC of two layers of one weight each, the loss 3 w + 4 v, and an update."""
    (model, w), (other, v) = make_linear(), make_linear()
    for name in "parts", "variables", "trainable_variables":
        mine, theirs = getattr(model, name), getattr(other, name)
        both = mine | {"other": theirs["layer"]} if name == "parts" else mine + theirs
        setattr(model, name, both)
    optimizer = KFAC(model, seed=0, **settings)
    update = optimizer.make_update(
        lambda x: (3.0 * w.kernel[0, 0] + 4.0 * v.kernel[0, 0], {}),
        lambda x, noise: ops.sum(w(x) + v(x)),
    )
    return optimizer, (w.kernel, v.kernel), lambda lr: update(lr, ONE)


def test_all_layers_share_one_trust_region():
    optimizer, weights, update = make_two_weights(clip=0.01, damping=1.0)
    optimizer.count = COLD_UPDATES
    for block, value in zip(optimizer.blocks, (2.0, 1.0)):
        for variable, x in zip(block.eigen, (value, 1.0, 1.0, 1.0)):
            variable.assign(np.full(variable.shape, x))
    # Steps 3 / (2 + 1) = 1 and 4 / (1 + 1) = 2: lr² (3 + 8) = 0.11, 11 times the limit.
    metrics = update(0.1)
    fraction = 1 / np.sqrt(11)
    assert float(metrics["step_fraction"]) == pytest.approx(fraction)
    moved = [1 - float(w[0, 0]) for w in weights]
    assert moved == pytest.approx([0.01 * fraction, 0.02 * fraction], rel=1e-4)


def test_first_gradient_is_limited_over_all_layers():
    _, weights, update = make_two_weights(clip=1.0, max_grad_norm=0.5)
    assert float(update(0.1)["step_fraction"]) == pytest.approx(0.1)  # norm 5
    assert [float(w[0, 0]) for w in weights] == pytest.approx([0.97, 0.96])


@pytest.mark.parametrize(("limit", "step"), [(None, 3.0), (0.5, 0.5)])
def test_first_updates_are_of_momentum(limit, step):
    optimizer, w, update = make_linear_update(clip=1.0, max_grad_norm=limit)
    for _ in range(2):
        update(0.1, np.full((1, 1), 2, np.float32))
    assert float(w[0, 0]) == pytest.approx(1 - 0.1 * step - 0.1 * 1.9 * step)
    assert not np.any(optimizer.blocks[0].eigen[0])
    for _ in range(COLD_UPDATES - 2):
        update(0.1, np.full((1, 1), 2, np.float32))
    assert float(optimizer.blocks[0].eigen[0][0]) == pytest.approx(4)
    assert not np.any(optimizer.blocks[0].momentum)


def test_decompositions_are_used_when_they_are_due_also_after_resuming():
    """The inputs of updates 1, 2, 3, ... are 0, 1, 2, ..."""

    def x(i):
        return np.full((1, 1), i, np.float32)

    optimizer, w, update = make_linear_update(clip=1.0, interval=20)
    used = [0]
    for i in range(61):
        if i == 35:
            state, weight = optimizer.get_state(), float(w[0, 0])
        update(0.1, x(i))
        used.append(float(optimizer.blocks[0].eigen[0][0]))
    # Of update 10, (0² + ... + 9²) / 10; those of updates 20 and 40 likewise.
    np.testing.assert_allclose(used[1:10], 0)
    np.testing.assert_allclose(used[10:40], 28.5, rtol=1e-5)
    np.testing.assert_allclose(used[40:60], 123.5, rtol=1e-5)
    np.testing.assert_allclose(used[60:], 513.5, rtol=1e-5)

    other, other_w, other_update = make_linear_update(clip=1.0, interval=20)
    other.set_state(state)
    other_w.assign([[weight]])
    for i in range(35, 61):
        other_update(0.1, x(i))
        assert float(other.blocks[0].eigen[0][0]) == used[i + 1]
    assert float(other_w[0, 0]) == float(w[0, 0])


def gaussian_policy(network="mlp", **settings):
    box = spaces.Box(-1, 1, (2,), np.float32)
    return Policy(box, box, network, **settings)


def test_factors_of_one_sample_are_those_of_its_gradient():
    policy = gaussian_policy(value_network="copy", seed=0)
    optimizer = KFAC(policy, clip=1.0, seed=0)
    batch = Batch(np.ones((1, 1, 2), np.float32), actions=np.float32([[[1, -2]]]))

    def likelihood(batch, noise=None):
        params, values, *_ = policy(batch)
        neglogps = policy.distribution.neglogp(params, batch.flat().actions)
        return ops.sum(values) - ops.sum(neglogps)

    def loss(batch):
        return likelihood(batch), {}

    optimizer.make_update(loss, likelihood)(0.0, batch)
    for block in optimizer.blocks:
        a, g = (np.trace(np.asarray(factor)) for factor in block.factors)
        # Momentum has the gradient, x gT, whose squares add up to |x|² |g|².
        np.testing.assert_allclose(a * g, np.sum(np.square(block.momentum)), rtol=1e-4)
    units = sorted(block.units for block in optimizer.blocks)
    assert units == [1, 2, 2, 64, 64, 64, 64]  # with the log deviations


def test_layers_that_are_not_trained_are_left_out():
    def frozen():
        layer = layers.Dense(4, trainable=False)
        return keras.Sequential([layers.Flatten(), layer, layers.Dense(3)])

    optimizer = KFAC(gaussian_policy(frozen), clip=1.0, seed=0)
    assert sorted(block.units for block in optimizer.blocks) == [1, 2, 2, 3]


def test_other_layers_are_refused():
    def normalized():
        return keras.Sequential([layers.Flatten(), layers.LayerNormalization()])

    for network in "lstm", normalized:
        with pytest.raises(UserTypeError, match="K-FAC is for"):
            KFAC(gaussian_policy(network), clip=1.0, seed=0)


def test_log_likelihood():
    found = log_likelihood(
        np.zeros((2, 2), np.float32),
        values=np.float32([5, 7]),
        actions=np.array([0, 1]),
        noise=np.float32([1, -2]),
        distribution=make_distribution(spaces.Discrete(2)),
        vf_fisher_coef=0.5,
    )
    np.testing.assert_allclose(found, -2 * LOG_2 - 0.5 * (1 + 4), rtol=1e-6)
