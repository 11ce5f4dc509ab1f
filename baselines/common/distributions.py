"""A distribution over actions for each kind of action space.

A distribution is a set of pure functions of ``params`` [B, num_params], the
output of a policy's last layer. It draws no random numbers itself: sampling
takes noise, made beforehand by ``noise``.
"""

import numpy as np
from gymnasium import spaces
from keras import ops

from baselines.common.errors import UserTypeError


class Categorical:
    """Discrete actions with unnormalised log-probabilities (logits) [B, n]."""

    def __init__(self, space):
        self.num_params = int(space.n)
        self.start = int(space.start)

    def noise(self, rng, batch):
        """Returns standard Gumbel noise [batch, n] from a NumPy generator."""
        return rng.gumbel(size=(batch, self.num_params)).astype(np.float32)

    def sample(self, logits, noise):
        """Returns actions [B]: argmax(logits + Gumbel noise) is a sample."""
        return self.mode(logits + noise)

    def mode(self, logits):
        """Returns the most likely actions [B]."""
        return ops.argmax(logits, axis=-1) + self.start

    def neglogp(self, logits, actions):
        """Returns -log p(action), [B]."""
        one_hot = ops.one_hot(actions - self.start, self.num_params)
        return -ops.sum(one_hot * ops.log_softmax(logits), axis=-1)

    def entropy(self, logits):
        """Returns -Σ p log p, [B]."""
        log_p = ops.log_softmax(logits)
        return -ops.sum(ops.exp(log_p) * log_p, axis=-1)


def make_distribution(space) -> Categorical:
    """Returns the distribution for an action space.

    Raises:
        UserTypeError: if there is none for it.
    """
    if isinstance(space, spaces.Discrete):
        return Categorical(space)
    raise UserTypeError(
        f"the action space {space} is not supported yet; it has to be Discrete"
    )
