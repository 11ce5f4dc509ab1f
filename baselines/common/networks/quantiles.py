"""Losses of quantiles."""

import numpy as np
from keras import ops


def quantile_losses(outputs, targets):
    """Returns the quantile Huber loss of each quantile, [..., N], a mean over targets.

    Dabney et al. 2018, equation 10, with κ = 1.

    Args:
        outputs: [..., N] quantiles at (i + 1/2) / N
        targets: [..., M] samples of what they are quantiles of
    """
    size = outputs.shape[-1]
    middles = (np.arange(size, dtype=np.float32)[:, None] + 0.5) / size
    errors = ops.stop_gradient(targets[..., None, :] - outputs[..., :, None])
    clipped = ops.clip(errors, -1.0, 1.0)  # the derivative of Huber's loss
    slopes = clipped * ops.where(errors < 0, 1 - middles, middles)
    losses = ops.mean(slopes * (errors - clipped / 2), axis=-1)
    # The gradient by hand takes a quarter of the time: N M errors fill the memory.
    return losses - ops.mean(slopes, axis=-1) * (outputs - ops.stop_gradient(outputs))
