"""Kinds of critics Q(s, a) of sac: their values, targets and losses.

``--critic=truncated_quantiles`` calls ``truncated_quantiles()``, and
``--critic=my_module:my_function`` calls yours. Such a function returns an object with

    num_critics, size
        how many networks there are, and how many outputs each has
    value(outputs)
        values [B] of outputs [critics, B, size], which the policy maximises
    targets(outputs, bonus, returns, discounts)
        what critics should predict, as constants; the outputs given are the target
        critics' for the next state and an action of the policy, and bonus [B] is
        -alpha log pi of that action
    losses(outputs, targets)
        the loss of each transition [critics, B], and its priority [B]
    joint
        whether there are no target critics: values of a transition and of the next one
        come from one batch

where returns and discounts are as in ``values.py``.
"""

from typing import Annotated

from keras import ops

from baselines.common.arguments.types import Count, CountOrZero
from baselines.common.base.errors import UserValueError
from baselines.common.networks.quantiles import quantile_losses


def minimum():
    """Two critics, of which the lower one counts (Fujimoto et al. 2018)."""
    return Minimum()


def joint():
    """Two critics without targets (CrossQ, Bhatt et al. 2024)."""
    return Minimum(joint=True)


def truncated_quantiles(
    num_critics: Annotated[Count, "number of critics"] = 5,
    num_quantiles: Annotated[Count, "quantiles of returns of each critic"] = 25,
    dropped_quantiles: Annotated[
        CountOrZero, "highest quantiles of each target critic that are left out"
    ] = 2,
):
    """Distributions of returns without their tops (TQC, Kuznetsov et al. 2020)."""
    if dropped_quantiles >= num_quantiles:
        raise UserValueError(
            f"dropped_quantiles {dropped_quantiles} has to be below num_quantiles "
            f"{num_quantiles}"
        )
    return TruncatedQuantiles(num_critics, num_quantiles, dropped_quantiles)


class Minimum:
    """Expected returns by several critics, of which the lowest one counts.

    Args:
        num_critics: number of critics.
        joint: see above.
    """

    size = 1

    def __init__(self, num_critics=2, joint=False):
        self.num_critics, self.joint = num_critics, joint

    def value(self, outputs):
        """Returns values [B] of outputs [critics, B, 1]."""
        return ops.min(outputs[..., 0], axis=0)

    def targets(self, outputs, bonus, returns, discounts):
        """Returns R + γ^n (min_i Q_i(s', a') - α log π(a'|s')), [B].

        Haarnoja et al. 2018, equations 5 and 6, without the entropies of the steps
        within R.
        """
        soft = self.value(outputs) + bonus
        return ops.stop_gradient(returns + discounts * soft)

    def losses(self, outputs, targets):
        """Returns half of squared errors [critics, B], and priorities [B]."""
        errors = outputs[..., 0] - targets
        return 0.5 * ops.square(errors), ops.mean(ops.abs(errors), axis=0)


class TruncatedQuantiles:
    """Truncated mixture of distributional critics.

    Kuznetsov et al. 2020, "Controlling Overestimation Bias with Truncated Mixture of
    Continuous Distributional Quantile Critics" (TQC).

    Args:
        num_critics: N.
        size: M, quantiles of each critic.
        dropped: d, of the highest ones of each target critic.
    """

    def __init__(self, num_critics, size, dropped):
        self.num_critics, self.size, self.joint = num_critics, size, False
        self.kept = num_critics * (size - dropped)

    def value(self, outputs):
        """Returns the mean of all quantiles, [B] (equation 12)."""
        return ops.mean(outputs, axis=(0, 2))

    def targets(self, outputs, bonus, returns, discounts):
        """Returns R + γ^n (z - α log π(a'|s')) of the lowest quantiles z, [B, kept].

        Those of all critics are sorted together (equations 8 to 10).
        """
        atoms = ops.reshape(ops.transpose(outputs, (1, 0, 2)), (outputs.shape[1], -1))
        atoms = ops.sort(atoms, axis=-1)[:, : self.kept] + bonus[:, None]
        return ops.stop_gradient(returns[:, None] + discounts[:, None] * atoms)

    def losses(self, outputs, targets):
        """Returns quantile losses [N, B] (equation 11), and priorities [B]."""
        # One after another, as the errors of all do not fit into a cache.
        each = [quantile_losses(x, targets) for x in ops.unstack(outputs)]
        losses = ops.mean(ops.stack(each), axis=-1)
        errors = ops.abs(self.value(outputs) - ops.mean(targets, axis=-1))
        return losses / self.num_critics, errors
