"""Measures the parts of an update, and other ways to compute them.

``python -m benchmarks.kernels`` prints two tables of milliseconds, medians of
interleaved calls, below the versions that they depend on. The first has, for several
batch sizes: a whole update of the Nature network on A2C's loss, in each precision and
with other optimisers; acting; the first convolution, also on blocks of 4 x 4 pixels;
the gradient of the largest dense layer's input, also with the product transposed. The
second has each product in an update of 256 frames, in both precisions, and the product
of two large matrices for comparison.
"""

import statistics
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from gymnasium import spaces
from keras import ops

from baselines.a2c.a2c import a2c_loss
from baselines.common import backend
from baselines.common.backend.precision import computing_in
from baselines.common.data.runners import Batch
from baselines.common.networks.model import build_network
from baselines.common.networks.policies import Policy
from baselines.common.saving.config import versions
from baselines.common.updates.optimizers import Adam, RMSprop
from baselines.common.updates.update import Step, make_update
from benchmarks.faults import markdown

BATCHES = 16, 32, 80, 256
CALLS = 30
FRAMES = spaces.Box(0, 255, (84, 84, 4), np.uint8)
CONVOLUTIONS = {  # height, channels, filters, kernel size, stride
    "first convolution": (84, 4, 32, 8, 4),
    "second convolution": (20, 32, 64, 4, 2),
    "third convolution": (9, 64, 64, 3, 1),
}


def medians(functions) -> dict:
    """Returns the median milliseconds of each function, from interleaved calls."""
    seconds = {name: [] for name in functions}
    for call in range(CALLS + 3):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if call >= 3:  # The first ones compile.
                seconds[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(found) for name, found in seconds.items()}


def make_policy(precision):
    def network():
        with computing_in(precision):
            return build_network("cnn")

    return Policy(FRAMES, spaces.Discrete(6), network, seed=0)


def updates(batch, rng) -> dict:
    """Returns functions that train or act on ``batch`` frames, by name."""
    obs = rng.integers(256, size=(1, batch, 84, 84, 4), dtype=np.uint8)
    obs = backend.to_device(obs)
    actions = rng.integers(6, size=(1, batch))
    advantages, returns = rng.normal(size=(2, 1, batch)).astype(np.float32)
    samples = Batch(obs, actions=actions, advantages=advantages, returns=returns)

    def make(precision, optimizer):
        policy = make_policy(precision)

        def loss(batch):
            params, values, *_ = policy(batch)
            weights = dict(vf_coef=0.5, ent_coef=0.01)
            pi = policy.distribution
            return a2c_loss(params, values, batch.flat(), distribution=pi, **weights)

        step = Step(loss, optimizer, policy.trainable_variables)
        update = make_update(step, variables=policy.variables)
        return lambda: update(np.float32(1e-4), samples)

    def acting(precision):
        policy = make_policy(precision)
        return lambda: policy.step(obs[0])

    clip = dict(global_clipnorm=0.5)
    return {
        "float32, RMSprop": make("float32", RMSprop(**clip)),
        "the same, Keras' RMSprop": make("float32", keras.optimizers.RMSprop(**clip)),
        "float32, Adam": make("float32", Adam(**clip)),
        "the same, Keras' Adam": make("float32", keras.optimizers.Adam(**clip)),
        "bfloat16, RMSprop": make("bfloat16", RMSprop(**clip)),
        "acting, float32": acting("float32"),
        "acting, bfloat16": acting("bfloat16"),
    }


def first_convolutions(batch, rng) -> dict:
    """Returns functions for the first convolution and its gradient, by name."""
    frames = backend.to_device(
        rng.integers(256, size=(batch, 84, 84, 4), dtype=np.uint8)
    )
    kernel = keras.Variable(rng.normal(size=(8, 8, 4, 32)).astype(np.float32))
    errors = backend.to_device(rng.normal(size=(batch, 20, 20, 32)).astype("float32"))

    def plain(frames):
        return ops.conv(ops.cast(frames, "float32") / 255.0, kernel, 4)

    def on_blocks(frames):
        blocks = ops.reshape(frames, (batch, 21, 4, 21, 4, 4))
        blocks = ops.transpose(blocks, (0, 1, 3, 2, 4, 5))
        blocks = ops.reshape(blocks, (batch, 21, 21, 64))
        weights = ops.reshape(kernel, (2, 4, 2, 4, 4, 32))
        weights = ops.transpose(weights, (0, 2, 1, 3, 4, 5))
        weights = ops.reshape(weights, (2, 2, 64, 32))
        return ops.conv(ops.cast(blocks, "float32") / 255.0, weights, 1)

    functions = {}
    for name, forward in (("as it is", plain), ("on blocks", on_blocks)):
        compiled = backend.compile(forward, [kernel])
        differentiate = backend.value_and_grad(
            lambda x, forward=forward: (ops.sum(ops.square(forward(x) - errors)), {}),
            [kernel],
        )
        gradient = backend.compile(differentiate, [kernel])
        functions[f"first convolution {name}"] = lambda f=compiled: f(frames)
        functions[f"with its gradient, {name}"] = lambda f=gradient: f(frames)
    return functions


def dense_gradients(batch, rng) -> dict:
    """Returns functions for the gradient of a dense layer's input, by name."""
    kernel = tf.constant(rng.normal(size=(3136, 512)).astype(np.float32))
    errors = tf.constant(rng.normal(size=(batch, 512)).astype(np.float32))
    plain = backend.compile(lambda x: tf.matmul(x, kernel, transpose_b=True), [])
    transposed = backend.compile(
        lambda x: tf.transpose(tf.matmul(kernel, x, transpose_b=True)), []
    )
    return {
        "dense layer's gradient": lambda: plain(errors),
        "the same, transposed": lambda: transposed(errors),
    }


def products(batch, rng, dtype):
    """Returns functions for the products of an update, and their GFLOP, by name."""

    def numbers(*shape):
        return tf.cast(rng.standard_normal(shape, np.float32), dtype)

    found = {}

    def add(name, flop, **functions):
        for what, function in functions.items():
            label = f"{name}, {what.replace('_', ' ')}"
            found[label] = backend.compile(function, []), 1e-9 * flop

    for name, (height, channels, filters, size, stride) in CONVOLUTIONS.items():
        side = (height - size) // stride + 1
        images = numbers(batch, height, height, channels)
        kernel = numbers(size, size, channels, filters)
        errors = numbers(batch, side, side, filters)
        how = dict(strides=[1, stride, stride, 1], padding="VALID")

        def output(x=images, w=kernel, how=how):
            return tf.nn.conv2d(x, w, **how)

        def gradient_of_input(x=images, w=kernel, e=errors, how=how):
            return tf.raw_ops.Conv2DBackpropInput(
                input_sizes=x.shape, filter=w, out_backprop=e, **how
            )

        def gradient_of_weights(x=images, w=kernel, e=errors, how=how):
            return tf.raw_ops.Conv2DBackpropFilter(
                input=x, filter_sizes=w.shape, out_backprop=e, **how
            )

        functions = dict(output=output, gradient_of_weights=gradient_of_weights)
        if name != "first convolution":
            functions["gradient_of_input"] = gradient_of_input
        flop = 2 * batch * side**2 * filters * size**2 * channels
        add(name, flop, **functions)
    features, weights, errors = (
        numbers(*shape) for shape in ((batch, 3136), (3136, 512), (batch, 512))
    )
    add(
        "dense layer",
        2 * batch * 3136 * 512,
        output=lambda: tf.matmul(features, weights),
        gradient_of_input=lambda: tf.matmul(errors, weights, transpose_b=True),
        gradient_of_weights=lambda: tf.matmul(features, errors, transpose_a=True),
    )
    square = numbers(2048, 2048)
    add("two matrices", 2 * 2048**3, product_of_2048=lambda: tf.matmul(square, square))
    return found


def print_products(batch, rng) -> None:
    """Prints the table of products, with their speed in both precisions."""
    found = {dtype: products(batch, rng, dtype) for dtype in ("float32", "bfloat16")}
    functions = {
        (dtype, name): function
        for dtype, of_dtype in found.items()
        for name, (function, _) in of_dtype.items()
    }
    times = medians(functions)
    rows = []
    for name, (_, gflop) in found["float32"].items():
        row = [name, f"{gflop:.2f}"]
        for dtype in found:
            ms = times[dtype, name]
            row += [f"{ms:.1f}", f"{1e3 * gflop / ms:.0f}"]
        rows.append(row)
    columns = ["float32, ms", "GFLOP/s", "bfloat16, ms", "GFLOP/s"]
    print(markdown([f"{batch} frames", "GFLOP", *columns], rows), end="")


def main():
    """Measures, and prints the tables below the versions that they depend on."""
    print(*(f"{name} {version}" for name, version in versions().items()), sep="\n")
    print()
    rng = np.random.default_rng(0)
    columns = {}
    for batch in BATCHES:
        columns[batch] = {}
        for make in (updates, first_convolutions, dense_gradients):
            columns[batch] |= medians(make(batch, rng))
        print(f"measured {batch} frames", file=sys.stderr, flush=True)
    rows = [
        [name, *(f"{columns[batch][name]:.1f}" for batch in BATCHES)]
        for name in columns[BATCHES[0]]
    ]
    print(markdown(["ms, of a batch of", *map(str, BATCHES)], rows))
    print_products(BATCHES[-1], rng)


if __name__ == "__main__":
    main()
