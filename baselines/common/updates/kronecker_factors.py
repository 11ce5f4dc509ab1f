"""The Fisher matrix of each layer's weights: a Kronecker product of two small matrices.

Martens and Grosse 2015, "Optimizing Neural Networks with Kronecker-factored Approximate
Curvature"; Grosse and Martens 2016, "A Kronecker-factored Approximate Fisher Matrix for
Convolution Layers".
"""

import contextlib
import math

import keras
import numpy as np
from keras import layers, ops

from baselines.common import backend
from baselines.common.base.errors import UserTypeError
from baselines.common.networks.layers import Constant
from baselines.common.updates.update import from_vector

MIN_EIGENVALUE = 1e-6  # smaller ones are numerical noise, and become 0


class Block:
    """The Fisher matrix of one layer's weights, A ⊗ G.

    A is the mean of x xᵀ over inputs x, with a 1 appended for the bias. G is the mean
    of g gᵀ, where g is the gradient of a sample's log-likelihood with respect to the
    layer's pre-activations. For a convolution, x is the patch under its kernel at each
    position, and g gᵀ is summed over positions (Grosse and Martens 2016, section 3.1).

    Args:
        layer: a built Dense, Conv2D or Constant layer.
    """

    def __init__(self, layer):
        self.layer = layer
        self.weights = layer.trainable_variables
        self.units = self.weights[0].shape[-1]
        inputs = sum(math.prod(weight.shape) for weight in self.weights) // self.units
        self.factors = [zeros(n, n) for n in (inputs, self.units)]  # A, G
        # Their eigenvalues and eigenvectors, see ``decompose``.
        self.eigen = [zeros(*x.shape[i:]) for x in self.factors for i in (1, 0)]
        self.momentum = zeros(inputs, self.units)

    @property
    def variables(self) -> list:
        return [*self.factors, *self.eigen, self.momentum]

    def matrix(self, tensors):
        """Returns tensors with the weights' shapes as one matrix [inputs, units]."""
        return ops.concatenate([ops.reshape(x, (-1, self.units)) for x in tensors])

    def descend(self, step) -> None:
        """Subtracts a matrix [inputs, units] from the weights."""
        parts = from_vector(ops.reshape(step, (-1,)), self.weights)
        for weight, part in zip(self.weights, parts):
            weight.assign_sub(part)

    def observe(self, x, gradients, share) -> None:
        """Moves the factors towards those of a batch.

        Args:
            x: [B, ...], the layer's inputs.
            gradients: [B, ..., units], of the sum of log-likelihoods.
            share: weight of the batch in the new means, from 0 to 1.
        """
        batch = x.shape[0]
        x = inputs_of(self.layer, x)
        gradients = ops.cast(ops.reshape(gradients, (-1, self.units)), "float32")
        means = gram(x) / x.shape[0], gram(gradients) / batch
        for factor, mean in zip(self.factors, means):
            factor.assign(factor + share * (mean - factor))

    def precondition(self, gradient, damping):
        """Returns (A ⊗ G + damping)⁻¹ gradient, [inputs, units]."""
        left_values, left, right_values, right = self.eigen
        values = ops.expand_dims(left_values, 1) * right_values
        projected = ops.matmul(ops.matmul(ops.transpose(left), gradient), right)
        projected = projected / (values + damping)
        return ops.matmul(ops.matmul(left, projected), ops.transpose(right))


def zeros(*shape):
    """Returns a new variable of zeros."""
    return keras.Variable(np.zeros(shape, np.float32), trainable=False)


def gram(rows):
    """Returns the sum of x xᵀ over rows [B, n]."""
    return ops.matmul(ops.transpose(rows), rows)


def inputs_of(layer, x):
    """Returns the rows that a layer multiplies by its weight matrix, [B T, inputs]."""
    if isinstance(layer, Constant):
        return ops.ones((x.shape[0], 1))
    if isinstance(layer, layers.Conv2D):
        x = backend.extract_patches(x, layer.kernel_size, layer.strides, layer.padding)
    x = ops.cast(ops.reshape(x, (-1, x.shape[-1])), "float32")
    if not layer.use_bias:
        return x
    return ops.concatenate([x, ops.ones((x.shape[0], 1))], axis=-1)


@contextlib.contextmanager
def observed(blocks, watch):
    """Records the inputs of layers that are called in a ``with`` block.

    Args:
        blocks: the layers' blocks.
        watch: function that is called with a layer's pre-activations, and returns
            those to continue with.

    Yields:
        A list of (block, inputs), one for each call so far.
    """
    calls = []
    with contextlib.ExitStack() as stack:
        for block in blocks:
            stack.callback(observe_calls(block, watch, calls))
        yield calls


def observe_calls(block, watch, calls):
    """Makes a layer report its calls; returns a function that undoes that."""
    layer, call = block.layer, block.layer.call
    activation = layer.activation

    def reporting(x):
        calls.append((block, x))
        return call(x)

    def end():
        del layer.call
        layer.activation = activation

    layer.call = reporting
    layer.activation = lambda sums: activation(watch(sums))
    return end


def find_blocks(model) -> list:
    """Returns a ``Block`` for each layer of a model that has weights to train.

    Raises:
        UserTypeError: if a layer is not supported, or the network is recurrent.
    """
    if model.initial_state is not None:
        raise UserTypeError(
            "the network is recurrent, and K-FAC is for Dense and Conv2D layers alone"
        )
    supported = [
        layer
        for part in model.parts.values()
        for layer in part._flatten_layers()
        if is_plain(layer) and layer.trainable_variables
    ]
    known = {id(weight) for layer in supported for weight in layer.trainable_variables}
    for weight in model.trainable_variables:
        if id(weight) not in known:
            raise UserTypeError(
                f"the weight {weight.path} of the network is of another kind of layer, "
                "and K-FAC is for Dense and Conv2D layers alone (in channels_last, "
                "without groups and dilation)"
            )
    return [Block(layer) for layer in supported]


def is_plain(layer) -> bool:
    """Whether a layer is of a supported kind."""
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
        if not np.isfinite(factor).all():  # NumPy raises only for larger ones.
            raise np.linalg.LinAlgError
        values, vectors = np.linalg.eigh(factor)
        values[values < MIN_EIGENVALUE] = 0
        arrays += [values, vectors]
    return arrays
