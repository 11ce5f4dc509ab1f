"""K-FAC: natural-gradient steps with a Kronecker-factored Fisher matrix.

Martens and Grosse 2015, "Optimizing Neural Networks with Kronecker-factored Approximate
Curvature"; Wu et al. 2017 (ACKTR), whose trust region limits the steps.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from keras import ops

from baselines.common import backend
from baselines.common.base.errors import DivergedError
from baselines.common.base.timing import timed
from baselines.common.saving.states import VariableState
from baselines.common.updates.kronecker_factors import decompose, find_blocks, observed
from baselines.common.updates.update import check_finite

COLD_UPDATES = 10  # first updates: plain momentum, while statistics are gathered


class KFAC:
    """Optimises a model's Dense and Conv2D layers by the natural gradient.

        step = fraction (F + damping)⁻¹ ∇L     F: A ⊗ G for each layer, see ``Block``
        m    = momentum m + step
        w    = w - lr (1 - momentum) m

    where fraction, at most 1, limits lr² stepᵀ (F + damping) step to ``clip``. That is
    twice the KL divergence of a whole step, to second order (Wu et al. 2017, section
    3.2, without its factor of 2, as in OpenAI Baselines). A and G are running means.
    The first ten updates gather them, and take momentum steps along ∇L, whose norm is
    clipped at ``max_grad_norm``, without (1 - momentum), as in OpenAI Baselines.

    Every ``interval`` updates, a thread decomposes A and G while the next updates run.
    The result is used ``interval`` updates later, so that no update depends on how long
    it takes. The decomposition after the first ten is used at once, until the next one.

    Args:
        model: a ``Model``, whose ``parts`` are trained.
        clip: as above.
        seed: seed of ``rng``, for the noise of log-likelihoods.
        max_grad_norm: gradient norm limit of the first ten updates; None for no limit.
        interval: updates between decompositions.
        momentum, damping: as above.
        decay: decay of the running means.

    Raises:
        UserTypeError: if the model has other layers with weights.
    """

    def __init__(
        self,
        model,
        clip,
        seed,
        max_grad_norm=None,
        interval=20,
        momentum=0.9,
        damping=0.01,
        decay=0.99,
    ):
        self.blocks = find_blocks(model)
        self.model = model
        self.clip, self.max_grad_norm = clip, max_grad_norm
        self.interval = interval
        self.momentum, self.damping, self.decay = momentum, damping, decay
        self.rng = np.random.default_rng([seed, 5])  # a stream of its own
        self.count = 0  # updates so far
        self.thread = ThreadPoolExecutor(1)
        self.decomposition = None  # a future, or None
        self.state = VariableState([v for b in self.blocks for v in b.variables])

    def make_update(self, loss, log_likelihood):
        """Returns ``update(learning_rate, batch, noise) -> metrics``.

        Args:
            loss: function of ``batch`` that returns (loss, metrics).
            log_likelihood: function of ``batch`` and ``noise`` that returns the
                log-likelihood, summed over samples, of the model's outputs, such as the
                actions drawn from it. It calls each layer once with each sample.

        ``update`` raises DivergedError if a metric, or A or G of the decomposition that
        is due, is not finite.
        """
        weights = [weight for block in self.blocks for weight in block.weights]
        variables = [*self.model.variables, *self.state.variables]
        differentiate = backend.value_and_grad(loss, weights)

        def likelihood(watch, *inputs):
            with observed(self.blocks, watch) as calls:
                total = log_likelihood(*inputs)
            return total, calls

        observe = backend.watched_gradients(likelihood)

        def make(descend):
            def update(learning_rate, share, batch, noise):
                calls, of_sums = observe(batch, noise)
                (_, metrics), gradients = differentiate(batch)
                for block in self.blocks:
                    # Two calls, if the network computes a batch in halves.
                    found = [(x, g) for (b, x), g in zip(calls, of_sums) if b is block]
                    if found:
                        block.observe(*map(ops.concatenate, zip(*found)), share)
                return metrics | descend(learning_rate, gradients)

            return backend.compile(update, variables, side_by_side=True)

        cold, warm = make(self._descend), make(self._descend_naturally)

        @timed("updates")
        def update(learning_rate, batch, noise=None):
            step = cold if self.count < COLD_UPDATES else warm
            self.count += 1
            share = max(1 / self.count, 1 - self.decay)
            rate = np.float32(learning_rate)
            metrics = step(rate, np.float32(share), batch, noise)
            check_finite(metrics, self.count)
            self._decompose()
            return metrics

        return update

    def _split(self, gradients):
        """Returns each block's gradient as a matrix."""
        gradients = iter(gradients)
        return [b.matrix([next(gradients) for _ in b.weights]) for b in self.blocks]

    def _descend(self, learning_rate, gradients):
        """Takes a momentum step along the gradient."""
        matrices = self._split(gradients)
        norm = backend.norm(ops.stack([backend.norm(x) for x in matrices]))
        fraction = ops.ones(())
        if self.max_grad_norm is not None:
            fraction = self.max_grad_norm / ops.maximum(norm, self.max_grad_norm)
        self._move(learning_rate, fraction, matrices)
        return {"step_fraction": fraction}

    def _descend_naturally(self, learning_rate, gradients):
        """Takes a momentum step along the natural gradient."""
        matrices = self._split(gradients)
        pairs = zip(self.blocks, matrices)
        natural = [block.precondition(x, self.damping) for block, x in pairs]
        slope = sum(ops.sum(x * y) for x, y in zip(natural, matrices))
        divergence = ops.square(learning_rate) * slope
        fraction = ops.sqrt(self.clip / ops.maximum(divergence, self.clip))
        self._move(learning_rate * (1 - self.momentum), fraction, natural)
        return {"step_fraction": fraction}

    def _move(self, learning_rate, fraction, steps):
        for block, step in zip(self.blocks, steps):
            block.momentum.assign(self.momentum * block.momentum + fraction * step)
            block.descend(learning_rate * block.momentum)

    def _decompose(self):
        """Starts a decomposition, and applies one, if that is due."""
        if self.count == COLD_UPDATES:
            self._begin()
            for block in self.blocks:
                block.momentum.assign(ops.zeros_like(block.momentum))
        elif self.count < COLD_UPDATES or self.count % self.interval:
            return
        eigen = [variable for block in self.blocks for variable in block.eigen]
        for variable, array in zip(eigen, self._result(), strict=True):
            variable.assign(array)
        if self.count > COLD_UPDATES:
            self._begin()

    def _begin(self):
        factors = [np.asarray(x).copy() for block in self.blocks for x in block.factors]
        self.decomposition = self.thread.submit(decompose, factors)

    def _result(self):
        """Returns arrays of eigenvalues and eigenvectors of each factor, or None."""
        if self.decomposition is None:
            return None
        try:
            return self.decomposition.result()
        except np.linalg.LinAlgError as error:
            raise DivergedError(
                "the statistics of the Fisher matrix are not finite; a smaller lr or "
                "kfac_clip may help"
            ) from error

    def get_state(self) -> dict:
        return {
            "count": self.count,
            "generator": self.rng.bit_generator.state,
            "variables": self.state.get_state(),
            "decomposition": self._result(),
        }

    def set_state(self, state) -> None:
        self.state.set_state(state["variables"])
        self.rng.bit_generator.state = state["generator"]
        self.count = state["count"]
        self.decomposition = self.thread.submit(lambda: state["decomposition"])
