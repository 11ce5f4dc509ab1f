"""TensorFlow under Keras."""

import tensorflow as tf

# XLA fuses what a GPU would launch one by one; on a CPU it is twice as slow as
# TensorFlow's own kernels.
USE_XLA = bool(tf.config.list_physical_devices("GPU"))


def compile(fn, variables):
    """Returns ``fn`` as one compiled call; new array shapes compile it again.

    Args:
        fn: a function of arrays (or nested tuples and dicts of them).
        variables: not needed here; TensorFlow finds them itself.
    """
    return tf.function(fn, jit_compile=USE_XLA)


def value_and_grad(loss_fn, variables):
    """Returns a function like ``loss_fn`` that also differentiates.

    Args:
        loss_fn: returns ``(loss, metrics)``.
        variables: the Keras variables to differentiate by.

    Returns:
        A function that returns ``((loss, metrics), gradients)``, a gradient for
        each variable.
    """

    def loss_and_gradients(*args):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([variable.value for variable in variables])
            loss, metrics = loss_fn(*args)
        return (loss, metrics), tape.gradient(loss, [v.value for v in variables])

    return loss_and_gradients


def to_device(array):
    """Returns a tensor that holds a copy of a NumPy array."""
    return tf.convert_to_tensor(array)
