"""The trust region and trpo, against numbers by hand."""

from typing import Annotated

import keras
import numpy as np
import pytest
from conftest import cartpoles, slow
from gymnasium import spaces
from test_algorithms import read_rows

from baselines import trpo
from baselines.common.base.errors import DivergedError
from baselines.common.data.runners import Batch
from baselines.common.networks.distributions import make_distribution
from baselines.common.networks.policies import Policy
from baselines.common.updates.trust_region import (
    conjugate_gradient,
    fisher_product,
    line_search,
    natural_step,
)
from baselines.trpo.trpo import standardize, trpo_loss

LOG_2, LOG_3 = np.log(2), np.log(3)


def times(*rows):
    """Returns a function from a vector to its product with a matrix."""
    return np.float32(rows).__matmul__


def test_conjugate_gradient():
    matrix, b = times([4, 1], [1, 3]), np.float32([1, 2])
    # A b = (6, 7): the first step is b (b . b) / (b . A b) = b 5 / 20.
    np.testing.assert_allclose(conjugate_gradient(matrix, b, 1), [0.25, 0.5])
    # (4 + 7, 1 + 21) / 11 = (1, 2): two steps are exact, and no more are made.
    for iterations in (2, 20):
        x = conjugate_gradient(matrix, b, iterations)
        np.testing.assert_allclose(x, [1 / 11, 7 / 11], rtol=1e-5)


def test_natural_step_has_the_divergence_that_is_asked_for():
    # x = (1, 1), and 10 = x . A x: sqrt(2 * 0.05 / 10) = 0.1
    matrix = times([2, 0], [0, 8])
    step = natural_step(matrix, np.float32([2, 8]), 10, max_kl=0.05)
    np.testing.assert_allclose(step, [0.1, 0.1], rtol=1e-5)
    np.testing.assert_array_equal(natural_step(matrix, np.zeros(2), 10, 0.05), 0)
    with pytest.raises(DivergedError, match="is nan; a smaller vf_stepsize"):
        natural_step(matrix, np.float32([np.nan, 1]), 10, 0.05)


def search(found):
    """Returns result and last fraction of a search where the loss was 1 before.

    Args:
        found: loss and KL divergence by fraction of the step.
    """
    fractions = []

    def evaluate(fraction):
        fractions.append(fraction)
        loss, kl = found[fraction] if fraction else (1.0, 0.0)
        return loss, {"kl": kl}

    return line_search(evaluate, max_kl=0.01), fractions[-1]


def test_line_search_takes_the_first_that_is_near_and_no_worse():
    found = {1.0: (0.5, 0.02), 0.5: (1.1, 0.001), 0.25: (np.nan, np.nan)}
    found[0.125] = 1.0, 0.015
    assert search(found) == ({"kl": 0.015, "halvings": 3}, 0.125)
    assert search({1.0: (0.9, 0.01)}) == ({"kl": 0.01, "halvings": 0}, 1.0)


def test_line_search_goes_back_if_nothing_is_accepted():
    found = {0.5**n: (1.1, 0.0) for n in range(10)}
    assert search(found) == ({"kl": 0.0, "halvings": 10}, 0.0)


def test_fisher_product():
    """Of two actions with logits k x + b, every fifth x of a sequence."""
    policy = Policy(
        spaces.Box(-9, 9, (1,)), spaces.Discrete(2), keras.layers.Identity, seed=0
    )
    kernel, bias = policy.policy_variables
    kernel.assign([[0, 0]])
    bias.assign([0, LOG_3])
    obs = np.float32([2, 9, 9, 9, 9, 4]).reshape(6, 1, 1)
    product = fisher_product(policy)

    def times(*vector):
        return product(np.float32(vector), Batch(obs))

    # p = (1/4, 3/4), and diag(p) - p pᵀ = 3/16 [[1, -1], [-1, 1]]; mean x² = 10,
    # mean x = 3
    expected = np.array([3, -3, 1, -1]) * 3 / 16
    np.testing.assert_allclose(times(0, 0, 1, 0), expected, rtol=1e-5)
    expected = np.array([10, -10, 3, -3]) * 3 / 16
    np.testing.assert_allclose(times(1, 0, 0, 0), expected, rtol=1e-5)
    np.testing.assert_allclose(times(0, 0, 1, 1), 0, atol=1e-6)


def test_trpo_loss():
    loss, metrics = trpo_loss(
        np.float32([[0, LOG_3], [0, LOG_3]]),  # probabilities 1/4 and 3/4
        Batch(
            obs=None,
            actions=np.array([0, 1]),
            neglogps=np.float32([LOG_2, LOG_2]),
            advantages=np.float32([1, 2]),
        ),
        old_params=np.zeros((2, 2), np.float32),
        distribution=make_distribution(spaces.Discrete(2)),
        ent_coef=0.1,
    )
    # ratios 1/2 and 3/2: (1/2 * 1 + 3/2 * 2) / 2
    np.testing.assert_allclose(metrics["surrogate_gain"], 1.75, rtol=1e-6)
    entropy = 2 * LOG_2 - 0.75 * LOG_3
    np.testing.assert_allclose(metrics["policy_entropy"], entropy, rtol=1e-6)
    # 1/2 log (1/2 / 1/4) + 1/2 log (1/2 / 3/4)
    np.testing.assert_allclose(metrics["kl"], LOG_2 - LOG_3 / 2, rtol=1e-5)
    np.testing.assert_allclose(loss, -1.75 - 0.1 * entropy, rtol=1e-6)


def test_advantages_are_standardized_also_where_they_do_not_vary():
    np.testing.assert_allclose(standardize(np.float32([[1], [3]])), [[-1], [1]])
    np.testing.assert_array_equal(standardize(np.full((2, 2), 3.0)), 0)


@pytest.mark.parametrize("network", ["mlp", slow("lstm")])
def test_steps_stay_in_the_trust_region(log_folder, network):
    trpo.learn(
        env=cartpoles(num_env=3),
        network=network,
        value_network="shared" if network == "lstm" else "copy",
        timesteps_per_batch=190,
        max_kl=0.02,
        total_timesteps=192 * 6,
        seed=0,
        defaults=False,
    )
    rows = read_rows(log_folder)
    # 190 is rounded up to a multiple of 3.
    assert [int(row["total_timesteps"]) for row in rows] == [
        192 * n for n in range(1, 7)
    ]
    divergences = [float(row["kl"]) for row in rows]
    assert all(0 <= kl <= 0.03 for kl in divergences)
    # Most full steps have nearly that which is asked for.
    full = [kl for kl, row in zip(divergences, rows) if float(row["halvings"]) == 0]
    assert len(full) >= 3 and np.median(full) > 0.01
    assert all(float(row["surrogate_gain"]) > 0 for row in rows)


class Constant:
    """Rewards that are all the same."""

    variables = ()
    begun = 0

    def __init__(self, size):
        self.size = size

    def begin(self):
        Constant.begun += 1

    def __call__(self, rollout):
        return np.full_like(rollout.rewards, self.size), {"paid": self.size}


def constant(run, policy, size: Annotated[float, "of each reward"] = 0.0):
    return Constant(size)


def test_rewards_are_a_part_and_scores_are_those_of_the_environment(
    log_folder, monkeypatch
):
    monkeypatch.setattr(Constant, "begun", 0)
    settings = dict(reward=constant, size=11.0, timesteps_per_batch=64, seed=0)
    settings |= dict(gamma=0.0, vf_stepsize=0.0)  # so that returns are rewards
    trpo.learn(cartpoles(), "mlp", total_timesteps=0, **settings)
    assert Constant.begun == 0
    trpo.learn(cartpoles(), "mlp", total_timesteps=128, **settings)
    assert Constant.begun == 1
    *_, row = read_rows(log_folder)
    assert float(row["paid"]) == 11 and float(row["eprewmean"]) > 13  # of CartPole
    # Values stay near 0.
    assert float(row["value_loss"]) == pytest.approx(11**2, rel=0.2)


def test_value_loss_trains_no_part_of_the_policy():
    def train(**settings):
        return trpo.learn(
            env=cartpoles(),
            network="mlp",
            value_network="shared",
            max_kl=1e-30,  # As good as no step.
            timesteps_per_batch=64,
            seed=0,
            **settings,
        )

    before, after = train(total_timesteps=0), train(total_timesteps=128)
    for a, b in zip(before.policy_variables, after.policy_variables):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    for a, b in zip(before.value_variables, after.value_variables):
        assert np.any(np.asarray(a) != np.asarray(b))
