"""Networks by name: functions that build the trunk of a model.

``--network=cnn`` calls ``cnn()`` and ``--network=my_module:my_function`` calls yours,
with the network arguments of the command line or of ``learn()``. Every function of this
file is a network. It returns a Keras layer (or Model) that maps a batch of observations
to features [B, F]. Observations arrive as float32, images [B, height, width, channels]
already scaled to [0, 1]: a network never divides by 255. Of a Dict or Tuple with
images, it gets a dict of images and vectors [B, D].

A recurrent network is a layer with an attribute ``state_size`` that is called in the
same way as ``layers.Recurrent``.
"""

from typing import Annotated, Literal

import keras
from annotated_types import Interval
from keras import layers

from baselines.common.arguments.types import Layers, Units
from baselines.common.networks.layers import (
    BatchRenorm,
    Joined,
    Recurrent,
    Residual,
    conv,
    dense,
    normalized,
    same_conv,
)

StateSize = Annotated[Units, "units in the LSTM"]
LayerNorm = Annotated[bool, "whether the LSTM has layer normalisation"]


def mlp(
    num_layers: Annotated[Layers, "number of layers"] = 2,
    num_hidden: Annotated[Units, "units in each layer"] = 64,
    activation: Annotated[str, "name of a Keras activation"] = "tanh",
    layer_norm: Annotated[
        bool, "whether to apply layer normalisation before each activation"
    ] = False,
    batch_renorm: Annotated[
        bool, "whether to apply batch renormalisation before each layer, for crossq"
    ] = False,
):
    """Fully connected layers."""
    stack = [layers.Flatten(data_format="channels_last")]
    if batch_renorm:
        stack.append(BatchRenorm())
    for _ in range(num_layers):
        stack.append(dense(num_hidden))
        if layer_norm:
            stack.append(layers.LayerNormalization(epsilon=1e-12))
        stack.append(layers.Activation(activation))
        if batch_renorm:
            stack.append(BatchRenorm())
    return keras.Sequential(stack)


def cnn(
    width: Annotated[
        float,
        Interval(ge=1 / 32, le=32),
        "factor for the number of filters and units in each layer",
    ] = 1.0,
    dense_layer: Annotated[
        bool, "whether the dense layer of 512 units follows the convolutions"
    ] = True,
    layer_norm: Annotated[
        bool, "whether to apply layer normalisation before each ReLU"
    ] = False,
):
    """The network of DeepMind's Nature paper (Mnih et al. 2015)."""
    stack = [
        conv(round(32 * width), 8, 4),
        conv(round(64 * width), 4, 2),
        conv(round(64 * width), 3, 1),
        layers.Flatten(data_format="channels_last"),
    ]
    if dense_layer:
        stack.append(dense(round(512 * width), "relu"))
    return keras.Sequential(normalized(stack) if layer_norm else stack)


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


def conv_only(
    convs: Annotated[
        list[list[Units]],
        "(filters, kernel size, stride) of each convolution",
    ] = [(32, 8, 4), (64, 4, 2), (64, 3, 1)],  # noqa: B006
):
    """Convolutions with ``padding="same"``, without a dense layer."""
    stack = [
        same_conv(filters, kernel_size, strides, "relu")
        for filters, kernel_size, strides in convs
    ]
    return keras.Sequential([*stack, layers.Flatten(data_format="channels_last")])


def impala_cnn(
    depths: Annotated[
        list[Units],
        "filters of each stage, which has two residual blocks",
    ] = [16, 32, 32],  # noqa: B006
):
    """The deep residual network of the IMPALA paper (Espeholt et al. 2018)."""
    stack = []
    for depth in depths:
        pool = layers.MaxPooling2D(3, 2, "same", data_format="channels_last")
        stack += [same_conv(depth), pool, Residual(depth), Residual(depth)]
    flatten = layers.Flatten(data_format="channels_last")
    return keras.Sequential([*stack, layers.ReLU(), flatten, dense(256, "relu")])


def multi(
    image_network: Annotated[
        Literal["cnn", "cnn_small", "impala_cnn"], "network for each image"
    ] = "cnn",
    num_layers: Annotated[Layers, "number of layers for the vectors"] = 2,
    num_hidden: Annotated[Units, "units in each of these layers"] = 64,
    activation: Annotated[str, "name of a Keras activation"] = "tanh",
):
    """For Dicts and Tuples: a network for each image, and an MLP for all vectors."""
    image_networks = dict(cnn=cnn, cnn_small=cnn_small, impala_cnn=impala_cnn)
    vectors = mlp(num_layers, num_hidden, activation)
    return Joined(image_networks[image_network], vectors)


def lstm(nlstm: StateSize = 128, layer_norm: LayerNorm = False):
    """An LSTM directly on the observations."""
    # In bfloat16 it would round them, for an LSTM that computes in float32.
    flatten = layers.Flatten(data_format="channels_last", dtype="float32")
    return Recurrent(flatten, nlstm, layer_norm)


def lnlstm(nlstm: StateSize = 128):
    """An LSTM with layer normalisation."""
    return lstm(nlstm, layer_norm=True)


def cnn_lstm(nlstm: StateSize = 128, layer_norm: LayerNorm = False):
    """The network of the Nature paper, followed by an LSTM."""
    return Recurrent(cnn(), nlstm, layer_norm)


def cnn_lnlstm(nlstm: StateSize = 128):
    """The network of the Nature paper, followed by a layer-normalised LSTM."""
    return cnn_lstm(nlstm, layer_norm=True)


def impala_cnn_lstm(nlstm: StateSize = 256):
    """The network of the IMPALA paper, followed by an LSTM."""
    return Recurrent(impala_cnn(), nlstm, layer_norm=False)
