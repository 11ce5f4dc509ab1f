"""Networks by name: functions that build the trunk of a policy.

``--network=cnn`` calls ``cnn()`` and ``--network=my_module:my_function`` calls
yours, with the network arguments of the command line or of ``learn()``. A
builder returns a Keras layer (or Model) that maps a batch of observations to
features [B, F]. Observations arrive as float32, images [B, height, width,
channels] already scaled to [0, 1]: a network never divides by 255.

A recurrent network is a layer with an attribute ``state_size`` that is called as
``Recurrent`` is.
"""

import importlib
import inspect

import keras
from keras import layers, ops

from baselines.common.envs import first_line, is_image
from baselines.common.errors import (
    UserError,
    UserTypeError,
    UserValueError,
    suggest,
)

GAIN = 2**0.5  # of orthogonal weights before a ReLU; OpenAI Baselines' for tanh too


def mlp(
    num_layers: int = 2,
    num_hidden: int = 64,
    activation: str = "tanh",
    layer_norm: bool = False,
):
    """Fully connected layers.

    Args:
        num_layers: how many layers
        num_hidden: units in each
        activation: name of a Keras activation
        layer_norm: whether to normalise each layer before its activation
    """
    stack = [layers.Flatten(data_format="channels_last")]
    for _ in range(num_layers):
        stack.append(dense(num_hidden))
        if layer_norm:
            stack.append(layers.LayerNormalization())
        stack.append(layers.Activation(activation))
    return keras.Sequential(stack)


def cnn():
    """The network of DeepMind's Nature paper (Mnih et al. 2015)."""
    return keras.Sequential(
        [
            conv(32, 8, 4),
            conv(64, 4, 2),
            conv(64, 3, 1),
            layers.Flatten(data_format="channels_last"),
            dense(512, "relu"),
        ]
    )


def cnn_small():
    """Two small convolutions and one dense layer."""
    return keras.Sequential(
        [
            conv(8, 8, 4),
            conv(16, 4, 2),
            layers.Flatten(data_format="channels_last"),
            dense(128, "relu"),
        ]
    )


def conv_only(convs: list = [(32, 8, 4), (64, 4, 2), (64, 3, 1)]):  # noqa: B006
    """Convolutions alone, padded to keep the border, without a dense layer.

    Args:
        convs: (filters, kernel size, stride) of each convolution
    """
    stack = [
        layers.Conv2D(
            filters,
            kernel_size,
            strides,
            padding="same",
            activation="relu",
            data_format="channels_last",
        )
        for filters, kernel_size, strides in convs
    ]
    return keras.Sequential([*stack, layers.Flatten(data_format="channels_last")])


def impala_cnn(depths: list = [16, 32, 32]):  # noqa: B006
    """The deep residual network of the IMPALA paper (Espeholt et al. 2018).

    Args:
        depths: filters of each stage, which has two residual blocks
    """
    stack = []
    for depth in depths:
        pool = layers.MaxPooling2D(3, 2, "same", data_format="channels_last")
        stack += [same_conv(depth), pool, Residual(depth), Residual(depth)]
    flatten = layers.Flatten(data_format="channels_last")
    return keras.Sequential([*stack, layers.ReLU(), flatten, dense(256, "relu")])


def lstm(nlstm: int = 128, layer_norm: bool = False):
    """An LSTM on the observations as they are.

    Args:
        nlstm: size of its memory
        layer_norm: whether to normalise inside it
    """
    flatten = layers.Flatten(data_format="channels_last")
    return Recurrent(flatten, nlstm, layer_norm)


def lnlstm(nlstm: int = 128):
    """An LSTM with layer normalisation.

    Args:
        nlstm: size of its memory
    """
    return lstm(nlstm, layer_norm=True)


def cnn_lstm(nlstm: int = 128, layer_norm: bool = False):
    """The network of the Nature paper with an LSTM behind it.

    Args:
        nlstm: size of its memory
        layer_norm: whether to normalise inside the LSTM
    """
    return Recurrent(cnn(), nlstm, layer_norm)


def cnn_lnlstm(nlstm: int = 128):
    """The network of the Nature paper with a layer-normalised LSTM behind it.

    Args:
        nlstm: size of its memory
    """
    return cnn_lstm(nlstm, layer_norm=True)


def impala_cnn_lstm(nlstm: int = 256):
    """The network of the IMPALA paper with an LSTM behind it.

    Args:
        nlstm: size of its memory
    """
    return Recurrent(impala_cnn(), nlstm, layer_norm=False)


class Residual(layers.Layer):
    """x + two convolutions of x, each behind a ReLU."""

    def __init__(self, depth):
        super().__init__()
        self.body = keras.Sequential(
            [layers.ReLU(), same_conv(depth), layers.ReLU(), same_conv(depth)]
        )

    def build(self, input_shape):
        self.body.build(input_shape)

    def call(self, x):
        return x + self.body(x)


class Recurrent(layers.Layer):
    """A trunk with an LSTM behind it, on sequences.

    Hochreiter and Schmidhuber 1997. The state [B, 2 nlstm] is memory and output,
    side by side; it is zero where an episode begins.

    Args:
        trunk: a layer from observations to features
        nlstm: size of the memory
        layer_norm: whether to normalise the sums behind each matrix and the memory
    """

    def __init__(self, trunk, nlstm, layer_norm):
        super().__init__()
        self.trunk = trunk
        self.nlstm = nlstm
        self.state_size = 2 * nlstm
        orthogonal = keras.initializers.Orthogonal
        self.input_gates = layers.Dense(
            4 * nlstm, use_bias=not layer_norm, kernel_initializer=orthogonal(1.0)
        )
        self.output_gates = layers.Dense(
            4 * nlstm, use_bias=False, kernel_initializer=orthogonal(1.0)
        )
        self.norms = [layers.LayerNormalization() for _ in range(3 * layer_norm)]

    def call(self, obs, states, masks):
        """Goes through sequences.

        Args:
            obs: [T, B, *observation shape]
            states: [B, 2 nlstm], before the first step
            masks: [T, B], true where a new episode begins with that observation

        Returns:
            features [T, B, nlstm] and states [B, 2 nlstm] after the last step.
        """
        length, batch = obs.shape[:2]
        x = self.trunk(ops.reshape(obs, (length * batch, *obs.shape[2:])))
        # One product for all steps; only the recurrent one has to wait its turn.
        x = self._norm(0, self.input_gates(x))
        x = ops.reshape(x, (length, batch, 4 * self.nlstm))
        going_on = ops.expand_dims(1.0 - ops.cast(masks, "float32"), -1)
        # The weights' gradients of an unrolled loop would be added up in an order
        # that differs from run to run on TensorFlow.
        last_states, all_states = ops.scan(self._step, states, (x, going_on))
        return all_states[..., self.nlstm :], last_states

    def _step(self, state, inputs):
        """Returns the next state, to carry on and to collect."""
        x, going_on = inputs
        memory, output = ops.split(state * going_on, 2, axis=-1)
        gates = x + self._norm(1, self.output_gates(output))
        i, f, o, candidate = ops.split(gates, 4, axis=-1)
        memory = ops.sigmoid(f) * memory + ops.sigmoid(i) * ops.tanh(candidate)
        output = ops.sigmoid(o) * ops.tanh(self._norm(2, memory))
        state = ops.concatenate([memory, output], axis=-1)
        return state, state

    def _norm(self, i, x):
        return self.norms[i](x) if self.norms else x


def same_conv(filters):
    """Returns a 3 x 3 convolution that keeps the size."""
    return layers.Conv2D(filters, 3, padding="same", data_format="channels_last")


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


NETWORKS = {
    fn.__name__: fn
    for fn in (
        mlp,
        cnn,
        cnn_small,
        conv_only,
        impala_cnn,
        lstm,
        lnlstm,
        cnn_lstm,
        cnn_lnlstm,
        impala_cnn_lstm,
    )
}


def default_network(observation_space) -> str:
    """Returns the name of the network for a kind of observation."""
    return "cnn" if is_image(observation_space) else "mlp"


def find_network(network):
    """Returns the builder that ``network`` names.

    Args:
        network: a name from this file, ``module:function``, or a builder.

    Raises:
        UserValueError: if there is none of that name.
        UserTypeError: if it is neither text nor callable.
    """
    if callable(network):
        return network
    if not isinstance(network, str):
        raise UserTypeError(
            "network has to be a name, 'module:function' or a function, received "
            f"{network!r}"
        )
    if network in NETWORKS:
        return NETWORKS[network]
    module, colon, function = network.rpartition(":")
    if not colon:
        raise UserValueError(
            f"unknown network {network!r}{suggest(network, NETWORKS)} (known: "
            f"{', '.join(NETWORKS)}; one of your own: module:function)"
        )
    try:
        builder = getattr(importlib.import_module(module), function)
    except (ModuleNotFoundError, AttributeError) as error:
        raise UserValueError(f"network {network!r}: {error}") from None
    except (TypeError, ValueError):  # of import_module, for no or a relative name
        raise UserValueError(
            f"network {network!r}: {module!r} is not the name of a module"
        ) from None
    if not callable(builder):
        raise UserTypeError(f"network {network!r} is not a function but {builder!r}")
    return builder


def build_network(network, keywords):
    """Returns a new network.

    Args:
        network: as in ``find_network``.
        keywords: a dict of the builder's arguments, or None.

    Raises:
        UserValueError: if the builder fails.
    """
    try:
        return find_network(network)(**keywords or {})
    except UserError:
        raise
    except Exception as error:
        raise UserValueError(
            f"the network {network!r} cannot be built: {first_line(error)}"
        ) from error


def check_separate(network, other) -> None:
    """Raises UserTypeError if two networks that should differ share variables."""
    if {id(v) for v in network.variables} & {id(v) for v in other.variables}:
        raise UserTypeError(
            "network has to build a new network at each call; received a function that "
            "returns one with the same variables"
        )


def check_keywords(network, keywords, learn) -> None:
    """Raises if the network's builder does not take one of ``keywords``.

    Args:
        network: as in ``find_network``.
        keywords: what ``learn`` was given beyond its own arguments.
        learn: the function they were given to, for the nearest known name.

    Raises:
        UserTypeError: names the keyword and the nearest known one.
    """
    builder = inspect.signature(find_network(network)).parameters
    if any(p.kind is p.VAR_KEYWORD for p in builder.values()):
        return
    for keyword in keywords:
        if keyword not in builder:
            known = [*inspect.signature(learn).parameters, *builder]
            raise UserTypeError(
                f"neither learn() nor the network {network!r} has an argument "
                f"{keyword!r}{suggest(keyword, known)}"
            )
