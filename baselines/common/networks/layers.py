"""Layers that networks and heads are made of."""

import keras
import numpy as np
from keras import layers, ops

from baselines.common import backend

GAIN = 2**0.5  # of orthogonal weights for ReLU; as in OpenAI Baselines, for tanh too


class Scalar(layers.Layer):
    """A number, initially 0, in a variable that is saved with the model.

    Args:
        name: name of the variable.
        trainable: whether it is trained by gradients.
    """

    def __init__(self, name, trainable):
        super().__init__()
        self.value = self.add_weight(
            shape=(), initializer="zeros", trainable=trainable, name=name
        )


class Constant(layers.Layer):
    """Learned numbers [units] that are the same for all features [B, F].

    Args:
        units: how many numbers; they are initially 0.
        name: name of the variable.
    """

    def __init__(self, units, name):
        super().__init__()
        self.value = self.add_weight(shape=(units,), initializer="zeros", name=name)
        self.activation = keras.activations.linear  # Dense layers have one as well.

    def call(self, features):
        shape = *ops.shape(features)[:-1], self.value.shape[0]
        return self.activation(ops.broadcast_to(self.value, shape))


class Residual(layers.Layer):
    """x + two convolutions of x, each after a ReLU."""

    def __init__(self, depth):
        super().__init__()
        self.body = keras.Sequential(
            [layers.ReLU(), same_conv(depth), layers.ReLU(), same_conv(depth)]
        )

    def build(self, input_shape):
        self.body.build(input_shape)

    def call(self, x):
        return x + self.body(x)


class BatchRenorm(layers.Layer):
    """Batch renormalisation (Ioffe 2017), for features [B, F].

    In training, a batch is normalised by its own moments, corrected towards those of
    all batches, which are non-trainable variables; otherwise by the latter.

    Attributes:
        warm_up: batches that are not corrected, as their moments are not known yet.
    """

    warm_up, decay, most_scale, most_shift = 10_000, 0.99, 3.0, 5.0

    def build(self, shape):
        def weight(name, initial, shape=shape[-1:], trainable=False):
            return self.add_weight(
                shape=shape, initializer=initial, trainable=trainable, name=name
            )

        self.gain = weight("gain", "ones", trainable=True)
        self.bias = weight("bias", "zeros", trainable=True)
        self.mean, self.std = weight("mean", "zeros"), weight("std", "ones")
        self.count = weight("count", "zeros", ())

    def call(self, x, training=False):
        mean, std, scale, shift = self.mean, self.std, 1.0, 0.0
        if training:
            mean, variance = ops.moments(x, axes=0)
            std = ops.sqrt(variance + 1e-3)
            scale, shift = self.corrections(mean, std)
            for moving, new in (self.mean, mean), (self.std, std):
                moving.assign(
                    self.decay * moving + (1 - self.decay) * ops.stop_gradient(new)
                )
            self.count.assign(self.count + 1)
        slope = self.gain * scale / std
        return slope * x + (self.bias + self.gain * shift - slope * mean)

    def corrections(self, mean, std):
        """Returns r and d of a batch, [F], as constants (equation 5)."""
        scale = ops.clip(std / self.std, 1 / self.most_scale, self.most_scale)
        shift = (mean - self.mean) / self.std
        shift = ops.clip(shift, -self.most_shift, self.most_shift)
        known = ops.cast(self.count >= self.warm_up, mean.dtype)
        scale = 1.0 + known * (scale - 1.0)
        return ops.stop_gradient(scale), ops.stop_gradient(known * shift)


def call_in_halves(network, inputs, **modes):
    """Returns what a network makes of a batch, of images in halves, see ``backend``.

    A batch stays whole if the network has variables that are not trained, such as
    statistics of the batch.
    """
    parts = backend.HALVES
    size = None if isinstance(inputs, dict) else inputs.shape[0]
    small = size is None or len(inputs.shape) != 4 or size < 2 * parts
    if parts == 1 or small or network.non_trainable_variables:
        return network(inputs, **modes)
    ends = [size * i // parts for i in range(parts + 1)]
    halves = [network(inputs[a:b], **modes) for a, b in zip(ends, ends[1:])]
    return ops.concatenate(halves)


class Joined(layers.Layer):
    """Features of each image and of all vectors in a dict, concatenated.

    Args:
        make_image_network: function that returns a new network for one image.
        vector_network: for the vectors, concatenated in the order of their names.
    """

    def __init__(self, make_image_network, vector_network):
        super().__init__()
        self.make_image_network = make_image_network
        self.vector_network = vector_network
        self.image_networks = {}

    def build(self, shapes):
        images = sorted(name for name, shape in shapes.items() if len(shape) == 4)
        for name in images:
            self.image_networks[name] = self.make_image_network()

    def call(self, parts):
        networks = self.image_networks.items()
        features = [call_in_halves(layer, parts[name]) for name, layer in networks]
        vectors = [parts[x] for x in sorted(parts) if x not in self.image_networks]
        if vectors:
            features.append(self.vector_network(ops.concatenate(vectors, axis=-1)))
        return ops.concatenate(features, axis=-1)


class Recurrent(layers.Layer):
    """A trunk followed by an LSTM, on sequences.

    Hochreiter and Schmidhuber 1997. The state [B, 2 nlstm] is the cell state and the
    output, concatenated; it is zero where an episode begins.

    Args:
        trunk: a layer that maps observations to features
        nlstm: number of LSTM units
        layer_norm: whether to normalise the output of each matrix, and the cell state
    """

    def __init__(self, trunk, nlstm, layer_norm):
        # In lower precision, the state would be rounded at each step.
        super().__init__(dtype="float32")
        self.trunk = trunk
        self.nlstm = nlstm
        self.state_size = 2 * nlstm
        self.input_gates, self.output_gates = (
            layers.Dense(
                4 * nlstm,
                use_bias=use_bias,
                kernel_initializer=keras.initializers.Orthogonal(1.0),
                dtype="float32",
            )
            for use_bias in (not layer_norm, False)
        )
        self.norms = [
            layers.LayerNormalization(epsilon=1e-5, dtype="float32")
            for _ in range(3 * layer_norm)
        ]

    def call(self, obs, states, masks):
        """Processes sequences.

        Args:
            obs: [T, B, *observation shape], or a dict of such
            states: [B, 2 nlstm], before the first step
            masks: [T, B], true where a new episode begins with that observation

        Returns:
            features [T, B, nlstm] and states [B, 2 nlstm] after the last step.
        """
        x = call_in_halves(self.trunk, reshape_first(obs, 2, (-1,)))
        # One product for all steps; only the recurrent one is computed step by step.
        x = self._norm(0, self.input_gates(x))
        x = ops.reshape(x, (masks.shape[0], -1, 4 * self.nlstm))
        continues = ops.expand_dims(1.0 - ops.cast(masks, "float32"), -1)
        # With an unrolled loop, TensorFlow would sum the weights' gradients in an order
        # that differs from run to run.
        all_states = backend.sequence_of_states(self._step, states, (x, continues))
        return all_states[..., self.nlstm :], all_states[-1]

    def _step(self, state, inputs):
        x, continues = inputs
        cell, output = ops.split(state * continues, 2, axis=-1)
        gates = x + self._norm(1, self.output_gates(output))
        i, f, o, candidate = ops.split(gates, 4, axis=-1)
        cell = ops.sigmoid(f) * cell + ops.sigmoid(i) * ops.tanh(candidate)
        output = ops.sigmoid(o) * ops.tanh(self._norm(2, cell))
        return ops.concatenate([cell, output], axis=-1)

    def _norm(self, i, x):
        return self.norms[i](x) if self.norms else x


def same_conv(filters, kernel_size=3, strides=1, activation=None):
    """Returns a padded convolution, which keeps the size if ``strides`` is 1."""
    layout = dict(padding="same", data_format="channels_last")
    return layers.Conv2D(filters, kernel_size, strides, activation=activation, **layout)


def dense(units, activation=None, gain=GAIN):
    """Returns a dense layer with orthogonal weights of the given gain."""
    return layers.Dense(
        units, activation, kernel_initializer=keras.initializers.Orthogonal(gain)
    )


def conv(filters, kernel_size, strides):
    """Returns an unpadded convolution with ReLU and orthogonal weights."""
    return layers.Conv2D(
        filters,
        kernel_size,
        strides,
        activation="relu",
        # A user's keras.json may say channels_first.
        data_format="channels_last",
        kernel_initializer=keras.initializers.Orthogonal(GAIN),
    )


def normalized(stack):
    """Returns layers with layer normalisation before each of their activations."""
    result = []
    for layer in stack:
        result.append(layer)
        if activation := getattr(layer, "activation", None):
            layer.activation = keras.activations.linear
            norm = layers.LayerNormalization(epsilon=1e-6)
            result += [norm, layers.Activation(activation)]
    return result


class Stream(keras.layers.Layer):
    """Dense layers, with or without noise on their weights, with ReLU between them.

    It is called with features [B, F] and noise [B or 1, ``noise_size``].

    Args:
        units: units of each layer; the last one has no activation.
        sigma: initial standard deviation of the noise, see ``NoisyDense``; None for no
            noise.
        name: name of this layer.
    """

    def __init__(self, units, sigma, name=None):
        super().__init__(name=name)
        self.dense = [
            PlainDense(n) if sigma is None else NoisyDense(n, sigma) for n in units
        ]

    def build(self, input_shape):
        for layer in self.dense:
            layer.build(input_shape)
            input_shape = (*input_shape[:-1], layer.units)
        self.noise_size = sum(layer.noise_size for layer in self.dense)

    def call(self, x, noise):
        noise = split_last(noise, [layer.noise_size for layer in self.dense])
        for layer, layer_noise in zip(self.dense[:-1], noise):
            x = ops.relu(layer(x, layer_noise))
        return self.dense[-1](x, noise[-1])


def reshape_first(parts, count, shape):
    """Returns a tensor, or a dict of tensors, with other first axes.

    Args:
        parts: the tensor or tensors.
        count: how many axes are replaced.
        shape: the axes in their place.
    """
    return keras.tree.map_structure(
        lambda x: ops.reshape(x, (*shape, *x.shape[count:])), parts
    )


def split_last(x, sizes):
    """Splits the last axis of ``x`` into parts of the given sizes."""
    ends = np.cumsum(sizes)
    return [x[..., end - size : end] for size, end in zip(sizes, ends)]


class PlainDense(keras.layers.Dense):
    """A dense layer without noise: its noise is [B, 0]."""

    noise_size = 0

    def call(self, x, noise):
        return super().call(x)


class NoisyDense(keras.layers.Layer):
    """A dense layer that learns the scale of the noise on its weights.

    Fortunato et al. 2018, "Noisy Networks for Exploration", factorised Gaussian noise
    (equations 10 and 11). Each sample of a batch may have its own noise.

    Args:
        units: how many outputs.
        sigma: initial standard deviation of the noise, in units of 1 / √inputs; the
            paper's σ0.
    """

    def __init__(self, units, sigma):
        super().__init__()
        self.units = units
        self.sigma = sigma

    def build(self, input_shape):
        self.inputs = input_shape[-1]
        self.noise_size = self.inputs + self.units
        bound = self.inputs**-0.5
        constant = keras.initializers.Constant(self.sigma * bound)
        shapes = {"kernel": (self.inputs, self.units), "bias": (self.units,)}
        for name, shape in shapes.items():
            # A shared initialiser would draw the same numbers for both.
            uniform = keras.initializers.RandomUniform(-bound, bound)
            for x, initial in (name, uniform), (f"{name}_sigma", constant):
                weight = self.add_weight(shape=shape, initializer=initial, name=x)
                setattr(self, x, weight)

    def call(self, x, noise):
        noise = ops.sign(noise) * ops.sqrt(ops.abs(noise))
        noise_in, noise_out = split_last(noise, [self.inputs, self.units])
        mean = ops.matmul(x, self.kernel) + self.bias
        noisy = ops.matmul(x * noise_in, self.kernel_sigma) + self.bias_sigma
        return mean + noisy * noise_out
