"""Rewards and returns of a rollout: functions of arrays, ``retrace`` also of tensors.

Shapes: T steps of N environments. ``dones[t]`` is true if the episode ended
with step t, and ``next_values[t]`` is the value of the state that actually
followed it (see ``runners.Rollout``): 0 after a true end, the value of the
last state after a time limit.
"""

import numpy as np
from keras import ops

from baselines.common.base.errors import UserValueError


def n_step(
    rewards: np.ndarray, dones: np.ndarray, next_values: np.ndarray, gamma: float
) -> np.ndarray:
    """Returns the n-step returns of a rollout, [T, N].

    R_t = r_t + γ R_{t+1}                 inside an episode
    R_t = r_t + γ next_value_t            at its end, and at the end of the rollout

    Mnih et al. 2016, algorithm S3.

    Args:
        rewards: [T, N]
        dones: [T, N] bool
        next_values: [T, N]
        gamma: discount of one agent step
    """
    returns = np.empty_like(next_values)
    following = next_values[-1]
    for t in reversed(range(len(rewards))):
        following = np.where(dones[t], next_values[t], following)
        returns[t] = following = rewards[t] + gamma * following
    return returns


def gae(
    rewards: np.ndarray,
    dones: np.ndarray,
    values: np.ndarray,
    next_values: np.ndarray,
    gamma: float,
    lam: float,
) -> np.ndarray:
    """Returns generalised advantage estimates, [T, N].

    δ_t = r_t + γ next_value_t - value_t
    A_t = δ_t + γ λ A_{t+1}, without the second term at an episode's end

    Schulman et al. 2016 (GAE), equation 16, truncated at the end of the rollout.

    Args:
        rewards: [T, N]
        dones: [T, N] bool
        values: [T, N]
        next_values: [T, N]
        gamma: discount of one agent step
        lam: λ, from 0 (one-step errors) to 1 (full returns)

    Raises:
        UserValueError: if rewards, which user code may compute, have another shape.
    """
    if np.shape(rewards) != values.shape:
        raise UserValueError(
            f"rewards of a rollout have to be [T, N], {values.shape}, received an "
            f"array of shape {np.shape(rewards)}"
        )
    deltas = rewards + gamma * next_values - values
    advantages = np.empty_like(values)
    following = 0.0
    for t in reversed(range(len(rewards))):
        following = deltas[t] + gamma * lam * np.where(dones[t], 0, following)
        advantages[t] = following
    return advantages


def retrace(rewards, dones, next_values, action_values, ratios, gamma):
    """Returns Retrace's targets for action values, [T, N], without gradients.

    Q_t = r_t + γ (v'_t + min(1, ρ_{t+1}) (Q_{t+1} - q_{t+1}))

    without the last term at the end of an episode or of the sequence. Munos et al.
    2016, "Safe and Efficient Off-Policy Reinforcement Learning", with λ = 1, as in
    equation 5 of Wang et al. 2017 (ACER).

    Args:
        rewards: [T, N]
        dones: [T, N] bool
        next_values: [T, N] v', of the state that followed: 0 after a true end
        action_values: [T, N] q, of the actions taken
        ratios: [T, N] ρ = π(a|s) / μ(a|s), where μ is the policy that drew a
        gamma: discount of one agent step
    """

    def step(correction, inputs):
        reward, continues, next_value, action_value, ratio = inputs
        target = reward + gamma * (next_value + continues * correction)
        return ratio * (target - action_value), target

    continues = ops.cast(ops.logical_not(dones), "float32")
    inputs = rewards, continues, next_values, action_values, ops.minimum(ratios, 1.0)
    _, targets = ops.scan(step, ops.zeros_like(rewards[0]), inputs, reverse=True)
    return ops.stop_gradient(targets)


def explained_variance(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Returns 1 - Var[target - prediction] / Var[target] over all elements.

    1 is a perfect prediction, 0 is no better than the mean, below 0 is worse; NaN if
    the targets do not vary.
    """
    variance = np.var(targets)
    if variance == 0:
        return float("nan")
    return float(1 - np.var(targets - predictions) / variance)
