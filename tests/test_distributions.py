"""Kullback-Leibler divergences and squashed actions, with numbers typed by hand."""

import math

import numpy as np
from gymnasium import spaces

from baselines.common.networks.distributions import (
    Deterministic,
    DiagGaussian,
    SquashedGaussian,
    make_distribution,
)

BOX = spaces.Box(-1, 1, (1,))


def floats(*values):
    return np.array(values, np.float32)


def test_kl():
    half, quarter = np.log(floats([0.5, 0.5])), np.log(floats([0.25, 0.75]))
    of_half = 0.143841  # ½ log 2 + ½ log (2/3)
    for space, old, new, expected in (
        (spaces.Discrete(2), half, quarter, of_half),
        (spaces.MultiBinary(1), floats([0.0]), floats([-math.log(3)]), of_half),
        (spaces.MultiDiscrete([2, 2]), [half, half], [quarter, quarter], 2 * of_half),
        # N(0, 2²) and N(1, 4²): log 2 + (4 + 1) / 32 - ½
        (BOX, floats([0.0, math.log(2)]), floats([1.0, math.log(4)]), 0.349397),
    ):
        kl = make_distribution(space).kl(np.ravel(old)[None], np.ravel(new)[None])
        np.testing.assert_allclose(kl, [expected], atol=1e-6)


def test_likelihood_of_actions_in_float64():
    distribution = DiagGaussian(spaces.Box(-1, 1, (1,), np.float64))
    neglogp = distribution.neglogp(floats([0.0, 0.0]), np.array([[1.0]]))
    np.testing.assert_allclose(neglogp, [0.5 + 0.918939], atol=1e-6)


def test_state_dependent_deviations_come_from_the_features():
    box = spaces.Box(-1, 1, (2,))
    for state_dependent in (False, True):
        head = DiagGaussian(box, state_dependent).head()
        params = np.asarray(head(np.eye(3, dtype=np.float32)))
        assert params.shape == (3, 4)
        varies = bool(np.ptp(params[:, 2:], axis=0).any())
        assert varies == state_dependent


def test_squashed_gaussian():
    distribution = SquashedGaussian(spaces.Box(floats(-1, 0), floats(3, 1)))
    params = floats([0.0, 0.5, 0.0, math.log(2)])
    # u = (0 + 1 · 1, 0.5 + 2 · -0.25) = (1, 0); 1 + 2 tanh 1 and 0.5 + 0.5 tanh 0
    actions, neglogps = distribution.sample_with_neglogp(params, floats([1.0, -0.25]))
    np.testing.assert_allclose(actions, [[2.523188, 0.5]], rtol=1e-6)
    # Gaussian: ½ 1² + ½ log 2π and ½ 0.25² + log 2 + ½ log 2π; slopes of the
    # squashing to [-1, 1]: 1 - tanh² 1 = 0.4199743 and 1
    gaussian = 0.5 + 0.03125 + math.log(2) + math.log(2 * math.pi)
    expected = gaussian + math.log(0.4199743)
    np.testing.assert_allclose(neglogps, [expected], rtol=1e-5)
    np.testing.assert_allclose(distribution.neglogp(params, actions), neglogps, 1e-4)
    doubles = np.asarray(actions, np.float64)
    np.testing.assert_allclose(distribution.neglogp(params, doubles), neglogps, 1e-4)
    # 1 + 2 tanh 0 and 0.5 + 0.5 tanh 0.5
    mode = distribution.mode(params)
    np.testing.assert_allclose(mode, [[1.0, 0.7310586]], rtol=1e-6)


def test_squashed_likelihoods_stay_finite_at_the_bounds():
    distribution = SquashedGaussian(BOX)
    params = floats([0.0, 2.0], [100.0, 0.0])
    _, neglogps = distribution.sample_with_neglogp(params, floats([50.0], [0.0]))
    assert np.isfinite(neglogps).all()
    assert np.isfinite(distribution.neglogp(params, floats([1.0], [-1.0]))).all()


def test_deterministic_actions():
    distribution = Deterministic(spaces.Box(-1, 3, (1,)))
    # 1 + 2 tanh 1
    np.testing.assert_allclose(distribution.mode(floats([1.0])), [[2.523188]], 1e-6)


def test_variables_of_a_gaussian_head_keep_their_order():
    """By which saved models name them."""
    head = DiagGaussian(spaces.Box(-1, 1, (2,))).head()
    head(np.zeros((1, 3), np.float32))
    assert [(x.name, x.shape) for x in head.variables] == [
        ("logstd", (2,)),
        ("kernel", (3, 2)),
        ("bias", (2,)),
    ]
