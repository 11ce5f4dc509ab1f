"""Kinds of action values: their targets, their losses and their means.

``--values=categorical`` calls ``categorical()`` and ``--values=my_module:my_function``
calls yours. Such a function returns an object with

    size
        how many outputs of the network make one value
    mean(outputs)
        values [...] of outputs [..., size]
    targets(outputs, returns, discounts)
        what the outputs [B, size] for the action taken should have been; the outputs
        given are the target network's for the next state and its best action
    losses(outputs, targets)
        the loss of each transition [B], and its priority [B] in a prioritised memory

where returns [B] are the discounted rewards of n steps, and discounts [B] the factor on
the next state's value, 0 where the episode had ended.
"""

from typing import Annotated

import keras
import numpy as np
from annotated_types import Interval
from keras import ops

from baselines.common.arguments.types import MOST, Count
from baselines.common.base.errors import UserValueError
from baselines.common.networks.quantiles import quantile_losses


def scalar():
    """Values as expected returns."""
    return ScalarValues()


def categorical(
    atoms: Annotated[
        int, Interval(ge=2, le=MOST), "atoms of the distribution of returns"
    ] = 51,
    v_min: Annotated[float, "lowest return of the distribution"] = -10.0,
    v_max: Annotated[float, "highest return of the distribution"] = 10.0,
):
    """Values as distributions of returns (C51, Bellemare et al. 2017)."""
    if v_min >= v_max:
        raise UserValueError(f"v_min {v_min} has to be below v_max {v_max}")
    return CategoricalValues(atoms, v_min, v_max)


def quantiles(
    num_quantiles: Annotated[Count, "quantiles of the distribution of returns"] = 200,
):
    """Values as quantiles of returns (QR-DQN, Dabney et al. 2018)."""
    return QuantileValues(num_quantiles)


class ScalarValues:
    """Values as expected returns; the loss is Huber's (Mnih et al. 2015)."""

    size = 1

    def mean(self, outputs):
        """Returns values [B, actions] of outputs [B, actions, 1]."""
        return outputs[..., 0]

    def targets(self, outputs, returns, discounts):
        """Returns [B, 1]: returns [B] + discounts [B] x next values [B, 1]."""
        return returns[:, None] + discounts[:, None] * outputs

    def losses(self, outputs, targets):
        """Returns losses [B] of outputs [B, 1], and priorities [B]: TD errors."""
        errors = ops.abs(outputs - targets)[:, 0]
        return keras.losses.huber(targets, outputs), errors


class CategoricalValues:
    """Values as distributions of returns over fixed atoms.

    Bellemare et al. 2017, "A Distributional Perspective on Reinforcement Learning"
    (C51). Outputs are logits.

    Args:
        atoms: how many atoms.
        v_min, v_max: the lowest and the highest return.
    """

    def __init__(self, atoms, v_min, v_max):
        self.size = atoms
        self.v_min = v_min
        self.v_max = v_max
        self.support = np.linspace(v_min, v_max, atoms, dtype=np.float32)

    def mean(self, outputs):
        """Returns values [B, actions] of outputs [B, actions, atoms]."""
        return ops.sum(ops.softmax(outputs) * self.support, axis=-1)

    def targets(self, outputs, returns, discounts):
        """Returns probabilities [B, atoms] of returns + discounts x next values.

        The next state's distribution is shifted and scaled, and each of its atoms is
        divided between the two atoms nearest to where it lands (equation 7).
        """
        moved = returns[:, None] + discounts[:, None] * self.support
        moved = ops.expand_dims(ops.clip(moved, self.v_min, self.v_max), 1)
        distance = ops.abs(moved - self.support[None, :, None])
        step = (self.v_max - self.v_min) / (self.size - 1)
        shares = ops.clip(1.0 - distance / step, 0.0, 1.0)  # [B, to, from]
        return ops.sum(shares * ops.softmax(outputs)[:, None, :], axis=-1)

    def losses(self, outputs, targets):
        """Returns cross entropies [B] of outputs [B, atoms], and priorities [B].

        These are Kullback-Leibler divergences: the cross entropy minus the entropy of
        the targets (Hessel et al. 2018, "Rainbow", section "The integrated agent").
        """
        losses = -ops.sum(targets * ops.log_softmax(outputs), axis=-1)
        entropies = -ops.sum(targets * ops.log(targets + 1e-8), axis=-1)
        return losses, ops.maximum(losses - entropies, 0.0)


class QuantileValues(ScalarValues):
    """Values as quantiles of returns, at the middles of N equal shares.

    Dabney et al. 2018, "Distributional Reinforcement Learning with Quantile Regression"
    (QR-DQN).

    Args:
        size: N.
    """

    def __init__(self, size):
        self.size = size

    def mean(self, outputs):
        """Returns values [B, actions] of outputs [B, actions, N]."""
        return ops.mean(outputs, axis=-1)

    def losses(self, outputs, targets):
        """Returns losses [B] of outputs [B, N], and priorities [B], errors of means."""
        errors = ops.abs(ops.mean(targets - outputs, axis=-1))
        return ops.sum(quantile_losses(outputs, targets), axis=-1), errors
