"""Networks by name: functions that build the trunk of a policy.

``--network=cnn`` calls ``cnn()`` and ``--network=my_module:my_function`` calls
yours, with the network arguments of the command line or of ``learn()``. A
builder returns a Keras layer (or Model) that maps a batch of observations to
features [B, F]. Observations arrive as float32, images [B, height, width,
channels] already scaled to [0, 1]: a network never divides by 255.
"""

import importlib
import inspect

import keras
from keras import layers

from baselines.common.envs import is_image
from baselines.common.errors import UserTypeError, UserValueError, suggest

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


NETWORKS = {fn.__name__: fn for fn in (mlp, cnn, cnn_small, conv_only)}


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
        return getattr(importlib.import_module(module), function)
    except (ModuleNotFoundError, AttributeError) as error:
        raise UserValueError(f"network {network!r}: {error}") from None
    except (TypeError, ValueError):  # of import_module, for no or a relative name
        raise UserValueError(
            f"network {network!r}: {module!r} is not the name of a module"
        ) from None


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
