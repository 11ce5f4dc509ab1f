"""K-FAC: steps along the natural gradient, by a Kronecker-factored Fisher matrix.

Martens and Grosse 2015, "Optimizing Neural Networks with Kronecker-factored Approximate
Curvature"; Grosse and Martens 2016, "A Kronecker-factored Approximate Fisher Matrix for
Convolution Layers"; Wu et al. 2017 (ACKTR), whose trust region limits the steps.
"""

import contextlib
import math
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
from keras import layers, ops

from baselines.common import backend
from baselines.common.errors import DivergedError, UserTypeError
from baselines.common.layers import Constant
from baselines.common.machine import check_memory
from baselines.common.saving.states import (
    VariableState,
    blank,
    check_like,
    set_generator,
)
from baselines.common.timing import timed
from baselines.common.updates import check_finite

COLD_UPDATES = 10  # that gather statistics first, and are steps of plain momentum
INTERVAL = 20  # updates from one decomposition to the next
MIN_EIGENVALUE = 1e-6  # smaller ones are noise of the decomposition, and become 0


class Block:
    """The Fisher matrix of one layer's weights, A ⊗ G.

    A is the mean of x xᵀ over inputs x, in which a bias has a 1. G is the mean of g gᵀ,
    where g is the gradient of a sample's log-likelihood by what the layer computes
    before its activation. Of a convolution, x is what is under its kernel, at each
    place, and g gᵀ is summed over the places: Grosse and Martens 2016, section 3.1.

    Args:
        layer: a built Dense, Conv2D or Constant layer.
    """

    def __init__(self, layer):
        self.layer = layer
        self.weights = layer.trainable_variables
        self.units = self.weights[0].shape[-1]
        inputs = sum(math.prod(weight.shape) for weight in self.weights) // self.units
        # Statistics, momentum, and both factors' decompositions, one of them to come.
        size = 4 * (4 * (inputs**2 + self.units**2) + inputs * self.units)
        what = (
            f"the Fisher matrix of a layer of {inputs:,} inputs, {self.units:,} units"
        )
        check_memory(what, size, "network")
        sizes = inputs, self.units
        self.factors = [zeros(n, n) for n in sizes]
        self.values = [zeros(n) for n in sizes]
        self.vectors = [zeros(n, n) for n in sizes]
        self.momentum = zeros(inputs, self.units)

    @property
    def variables(self) -> list:
        return [*self.factors, *self.values, *self.vectors, self.momentum]

    def matrix(self, tensors):
        """Returns what belongs to each weight as one matrix [inputs, units]."""
        return ops.concatenate([ops.reshape(x, (-1, self.units)) for x in tensors])

    def descend(self, step) -> None:
        """Subtracts a matrix [inputs, units] from the weights."""
        first = 0
        for weight in self.weights:
            rows = math.prod(weight.shape) // self.units
            part = step[first : first + rows]
            weight.assign_sub(ops.reshape(part, weight.shape))
            first += rows

    def observe(self, x, gradients, share) -> None:
        """Moves the factors towards those of a batch.

        Args:
            x: [B, ...], the layer's inputs.
            gradients: [B, ..., units] of the sum of log-likelihoods.
            share: of the batch in the new means, from 0 to 1.
        """
        batch = x.shape[0]
        x = inputs_of(self.layer, x)
        gradients = ops.reshape(gradients, (-1, self.units))
        means = outer(x) / x.shape[0], outer(gradients) / batch
        for factor, mean in zip(self.factors, means):
            factor.assign(factor + share * (mean - factor))

    def precondition(self, gradient, damping):
        """Returns (A ⊗ G + damping)⁻¹ gradient, [inputs, units]."""
        left, right = self.vectors
        values = ops.expand_dims(self.values[0], 1) * self.values[1]
        projected = ops.matmul(ops.matmul(ops.transpose(left), gradient), right)
        projected = projected / (values + damping)
        return ops.matmul(ops.matmul(left, projected), ops.transpose(right))


def zeros(*shape):
    """Returns a new variable."""
    return keras.Variable(np.zeros(shape, np.float32), trainable=False)


def outer(rows):
    """Returns the sum of x xᵀ over rows [B, n]."""
    return ops.matmul(ops.transpose(rows), rows)


def inputs_of(layer, x):
    """Returns what a layer's matrix of weights is multiplied by, [B T, inputs]."""
    if isinstance(layer, Constant):
        return ops.ones((x.shape[0], 1))
    if isinstance(layer, layers.Conv2D):
        size, strides = layer.kernel_size, layer.strides
        x = ops.image.extract_patches(
            x, size, strides, padding=layer.padding, data_format="channels_last"
        )
    x = ops.cast(ops.reshape(x, (-1, x.shape[-1])), "float32")
    if not layer.use_bias:
        return x
    return ops.concatenate([x, ops.ones((x.shape[0], 1))], axis=-1)


@contextlib.contextmanager
def observed(blocks, watch):
    """Keeps the inputs of layers that are called in a ``with`` block.

    Args:
        blocks: of the layers.
        watch: function that is given what a layer computes before its activation, and
            returns it.

    Yields:
        (block, inputs) of each call so far.
    """
    calls = []
    with contextlib.ExitStack() as stack:
        for block in blocks:
            stack.callback(observe_calls(block, watch, calls))
        yield calls


def observe_calls(block, watch, calls):
    """Makes a layer report its calls; returns a function that ends it."""
    layer, call = block.layer, block.layer.call
    activation = getattr(layer, "activation", lambda sums: sums)

    def reporting(x):
        calls.append((block, x))
        outputs = call(x)
        return outputs if hasattr(layer, "activation") else watch(outputs)

    def end():
        del layer.call
        if hasattr(layer, "activation"):
            layer.activation = activation

    layer.call = reporting
    if hasattr(layer, "activation"):
        layer.activation = lambda sums: activation(watch(sums))
    return end


class KFAC:
    """An optimiser of a model's Dense and Conv2D layers by their natural gradient.

        step = fraction (F + damping)⁻¹ ∇L     F: of each layer A ⊗ G, see ``Block``
        m    = momentum m + step
        w    = w - lr (1 - momentum) m

    where fraction, at most 1, limits the KL divergence that lr step would cause, to
    second order, to ``clip``: Wu et al. 2017, section 3.3. A and G are running means.
    The first ten updates gather them and are steps of momentum along ∇L, of a norm of
    at most ``max_grad_norm``, without (1 - momentum), as in OpenAI Baselines.

    Each 20 updates A and G are decomposed, in a thread, beside the next updates. The
    result is used 20 updates later, so that no number depends on how long it takes.

    Args:
        model: a ``Model``; ``parts`` of it are what is trained.
        clip: limit of the KL divergence of an update.
        seed: of ``rng``, for the noise of log-likelihoods.
        max_grad_norm: of the first ten updates; None for no limit.
        momentum, damping: as above.
        decay: of the running means.

    Raises:
        UserTypeError: if the model has other layers with weights.
        UserValueError: if the matrices do not fit into memory.
    """

    def __init__(
        self,
        model,
        clip,
        seed,
        max_grad_norm=None,
        momentum=0.9,
        damping=0.01,
        decay=0.99,
    ):
        self.blocks = find_blocks(model)
        self.model = model
        self.clip, self.max_grad_norm = clip, max_grad_norm
        self.momentum, self.damping, self.decay = momentum, damping, decay
        self.rng = np.random.default_rng([seed, 5])  # No other part has these numbers.
        self.count = 0  # updates so far
        self.thread = ThreadPoolExecutor(1)
        self.decomposition = None  # a future, or None
        self.state = VariableState([v for b in self.blocks for v in b.variables])

    def make_update(self, loss, log_likelihood):
        """Returns ``update(learning_rate, observed, *batch) -> metrics``.

        Args:
            loss: function of ``batch`` that returns (loss, metrics).
            log_likelihood: function of the arrays in ``observed`` that returns the sum
                over samples of the log-likelihood of what the model gave: the actions
                that were drawn from it, say. It calls each layer once.

        ``update`` raises DivergedError if a metric is not finite, or A and G are not.
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
            def update(learning_rate, share, inputs, *batch):
                calls, of_sums = observe(*inputs)
                (_, metrics), gradients = differentiate(*batch)
                for (block, x), gradient in zip(calls, of_sums):
                    block.observe(x, gradient, share)
                return metrics | descend(learning_rate, gradients)

            return backend.compile(update, variables)

        cold, warm = make(self._descend), make(self._descend_naturally)

        @timed("updates")
        def update(learning_rate, inputs, *batch):
            step = cold if self.count < COLD_UPDATES else warm
            self.count += 1
            share = max(1 / self.count, 1 - self.decay)
            rate = np.float32(learning_rate)
            metrics = step(rate, np.float32(share), inputs, *batch)
            check_finite(metrics, self.count)
            self._decompose()
            return metrics

        return update

    def _split(self, gradients):
        """Returns each block's gradient as a matrix."""
        gradients = iter(gradients)
        return [b.matrix([next(gradients) for _ in b.weights]) for b in self.blocks]

    def _descend(self, learning_rate, gradients):
        """Makes a step of momentum along the gradient."""
        matrices = self._split(gradients)
        norm = backend.norm(ops.stack([backend.norm(x) for x in matrices]))
        limit = norm if self.max_grad_norm is None else self.max_grad_norm
        fraction = limit / ops.maximum(norm, limit)
        self._move(learning_rate, fraction, matrices)
        return {"step_fraction": fraction}

    def _descend_naturally(self, learning_rate, gradients):
        """Makes a step of momentum along the natural gradient."""
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
        """Begins a decomposition, or puts one to use, if that is due."""
        if self.count == COLD_UPDATES:
            self._begin()
            for block in self.blocks:
                block.momentum.assign(ops.zeros_like(block.momentum))
        elif self.count < COLD_UPDATES or self.count % INTERVAL:
            return
        self._use(self._result())
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

    def _use(self, result):
        if result is not None:
            for variable, array in zip(self._decomposed(), result, strict=True):
                variable.assign(array)

    def _decomposed(self) -> list:
        """Returns the variables that a decomposition goes to, in its order."""
        return [
            variable
            for block in self.blocks
            for pair in zip(block.values, block.vectors)
            for variable in pair
        ]

    def get_state(self) -> dict:
        return {
            "count": self.count,
            "generator": self.rng.bit_generator.state,
            "variables": self.state.get_state(),
            "decomposition": self._result(),
        }

    def set_state(self, state) -> None:
        result = None
        if state["decomposition"] is not None:
            result = [blank(v.shape, v.dtype) for v in self._decomposed()]
        others = dict.fromkeys(("variables", "generator"), ...)
        check_like(state, {"count": 0, "decomposition": result, **others})
        self.state.set_state(state["variables"])
        set_generator(self.rng, state["generator"])
        self.count = state["count"]
        self.decomposition = self.thread.submit(lambda: state["decomposition"])


def find_blocks(model) -> list:
    """Returns a ``Block`` for each layer of a model that has weights to train.

    Raises:
        UserTypeError: if there is none for a layer.
    """
    if model.initial_state is not None:
        raise UserTypeError(
            "the network is recurrent, and K-FAC is for Dense and Conv2D layers alone"
        )
    found = [
        layer
        for part in model.parts.values()
        for layer in part._flatten_layers()
        if not layer._layers and layer.trainable_variables
    ]
    for layer in found:
        if not is_plain(layer):
            raise UserTypeError(
                f"the network has a {type(layer).__name__} layer, and K-FAC is for "
                "Dense and Conv2D layers alone (in channels_last, without groups and "
                "dilation)"
            )
    return [Block(layer) for layer in found]


def is_plain(layer) -> bool:
    """Whether a layer is a kind of which the Fisher matrix is known."""
    if type(layer) is layers.Conv2D:
        plain = layer.data_format == "channels_last" and layer.groups == 1
        return plain and set(layer.dilation_rate) == {1}
    return type(layer) in (layers.Dense, Constant)


def decompose(factors) -> list:
    """Returns eigenvalues [n] and eigenvectors [n, n] of each factor [n, n].

    Raises:
        numpy.linalg.LinAlgError: if they are not finite.
    """
    arrays = []
    for factor in factors:
        values, vectors = np.linalg.eigh(factor)
        values[values < MIN_EIGENVALUE] = 0
        arrays += [values, vectors]
    return arrays
