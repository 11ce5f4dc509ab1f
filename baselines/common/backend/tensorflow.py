"""TensorFlow under Keras."""

import contextlib
import os

import keras
import tensorflow as tf

from baselines.common.base import mpi

gpus = tf.config.list_physical_devices("GPU")
# On a CPU, networks compute the halves of a batch of images side by side: small
# operations lose time if all cores share each of them.
HALVES = 1 if gpus or mpi.available_cores() == 1 else 2
if "TF_NUM_INTRAOP_THREADS" not in os.environ:
    with contextlib.suppress(RuntimeError):  # The program has used TensorFlow already.
        tf.config.threading.set_intra_op_parallelism_threads(
            -(-mpi.available_cores() // HALVES)
        )
# XLA fuses kernels that a GPU would launch one by one; on a CPU it is twice as slow as
# TensorFlow's own kernels.
USE_XLA = bool(gpus)
if gpus:
    # By default, TensorFlow allocates all memory of a GPU, which runs may share.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    # XLA fails to compile some of its own matrix products after convolutions, a2c's
    # among them (github.com/openxla/xla/pull/36792). cuBLAS computes them instead. Of
    # a flag that is given twice, the second counts, so that the user's does; where the
    # user names a file of flags, XLA would read only ours.
    of_user = os.environ.get("XLA_FLAGS", "")
    if not os.path.isfile(of_user):
        flags = f"--xla_gpu_enable_triton_gemm=false {of_user}"
        os.environ["XLA_FLAGS"] = flags.rstrip()
if gpus and mpi.local_size > 1:
    tf.config.set_visible_devices(gpus[mpi.local_rank % len(gpus)], "GPU")


def compile(fn, variables, side_by_side=False):
    """Returns ``fn`` as one compiled call; it is recompiled for new array shapes.

    Args:
        fn: a function of arrays (or nested tuples and dicts of them, or None). An
            argument that it returns unchanged may share memory with the result.
            Gradients do not flow through the compiled call.
        variables: not needed here; TensorFlow finds them itself.
        side_by_side: whether operations that do not need each other run at the same
            time, which takes longer to start.
    """
    # Keyed by the arguments' shapes: tf.function takes longer to find the right one
    # than a small network takes to act.
    functions = {}

    def call(*args):
        arrays = [x for x in tf.nest.flatten(args) if x is not None]
        key = describe(args)
        if key not in functions:
            functions[key] = trace(fn, args, arrays, side_by_side)
        return functions[key](*arrays)

    return call


def describe(x):
    """Returns the structure, shapes and types of an argument as a dictionary key."""
    if isinstance(x, (tuple, list)):
        return type(x), *map(describe, x)
    if isinstance(x, dict):
        return tuple((key, describe(value)) for key, value in x.items())
    return getattr(x, "shape", None), getattr(x, "dtype", type(x))


def trace(fn, args, arrays, side_by_side):
    """Returns ``fn``, compiled for arguments like these, as a function of arrays."""

    def of_tensors(*tensors):
        return fn(*fill(args, iter(tensors)))

    if side_by_side and HALVES > 1:
        # The operation below runs those of its function in one thread; but not those of
        # functions that the function calls.
        called = tf.function(
            of_tensors, autograph=False, experimental_attributes={"_noinline": True}
        )

        def of_tensors(*tensors):
            return called(*tensors)

    signature = map(tf.TensorSpec.from_tensor, map(tf.convert_to_tensor, arrays))
    # Losses hold no Python conditions on tensors, for which AutoGraph would translate
    # their source: that takes longer than tracing them.
    compiled = tf.function(of_tensors, jit_compile=USE_XLA, autograph=False)
    compiled = compiled.get_concrete_function(*signature)
    if USE_XLA:
        return compiled
    types = [x.dtype for x in compiled.outputs]

    def call(*arrays):
        # The same as calling ``compiled``, without its checks of the arguments, which
        # take longer than a small network takes to act.
        outputs = tf.raw_ops.StatefulPartitionedCall(
            args=[*arrays, *compiled.captured_inputs], Tout=types, f=compiled
        )
        return fill(compiled.structured_outputs, iter(outputs))

    return call


def fill(structure, tensors):
    """Returns a structure with its leaves, except None, taken from an iterator."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        # In the order in which TensorFlow flattens a dict.
        items = {key: fill(structure[key], tensors) for key in sorted(structure)}
        return {key: items[key] for key in structure}
    if isinstance(structure, (tuple, list)):
        items = [fill(x, tensors) for x in structure]
        if hasattr(structure, "_fields"):
            return type(structure)(*items)
        return tuple(items) if isinstance(structure, tuple) else items
    return next(tensors)


def scan(fn, variables, until=None):
    """Returns one compiled call that applies ``fn`` to one slice after another.

    Args:
        fn: a function of a slice and of other arguments that returns arrays, or nested
            tuples and dicts of them.
        variables: not needed here; TensorFlow finds them itself.
        until: function of a result that says whether the other slices are left out;
            None for never.

    Returns:
        A function of an array [K, ...] (or a nest of them) and of the other arguments.
        It calls ``fn`` with each of the K slices in turn, and with the other arguments
        every time. It returns the stacked results: arrays with a first axis K; and, if
        ``until`` is given, which of them were made, [K] bool.
    """
    ended = None if until is None else tf.Variable(False)

    def scanned(xs, *args):
        first = keras.tree.map_structure(lambda x: x[0], xs)
        traced = tf.function(fn, autograph=False).get_concrete_function(first, *args)
        signature = keras.tree.map_structure(
            lambda x: tf.TensorSpec(x.shape, x.dtype), traced.structured_outputs
        )

        def unless_ended(x):
            def make():
                result = traced(x, *args)
                ended.assign(until(result))
                return result

            def leave_out():
                return keras.tree.map_structure(
                    lambda s: tf.zeros(s.shape, s.dtype), signature
                )

            due = tf.logical_not(ended)
            return tf.cond(due, make, leave_out), due

        each, outputs = lambda x: traced(x, *args), signature
        if until is not None:
            ended.assign(False)
            each, outputs = unless_ended, (signature, tf.TensorSpec((), tf.bool))
        # One at a time, because each reads the variables that the one before wrote.
        return tf.map_fn(each, xs, parallel_iterations=1, fn_output_signature=outputs)

    return compile(scanned, variables)


def sequence_of_states(fn, state, xs):
    """Returns the states [T, ...] of a recurrent layer after each step.

    Args:
        fn: a function of the state before a step, and of the step's inputs, that
            returns the state after it.
        state: before the first step.
        xs: a nest of inputs, each [T, ...].
    """
    # XLA has to know how long the loop is at most, which the loop of keras.ops.scan
    # does not say.
    return tf.scan(fn, xs, state, parallel_iterations=1)


def value_and_grad(loss_fn, variables):
    """Returns a function like ``loss_fn`` that also returns gradients of the loss.

    Args:
        loss_fn: returns ``(loss, metrics)``.
        variables: the Keras variables to differentiate with respect to.

    Returns:
        A function that returns ``((loss, metrics), gradients)``, with a gradient for
        each variable.
    """

    def loss_and_gradients(*args):
        values = [variable.value for variable in variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            loss, metrics = loss_fn(*args)
        # For variables that the loss does not depend on.
        zero = tf.UnconnectedGradients.ZERO
        return (loss, metrics), tape.gradient(loss, values, unconnected_gradients=zero)

    return loss_and_gradients


def unknown_reads(fn, variables):
    """Returns a function like ``fn`` that also says which other weights it reads.

    Args:
        fn: the function.
        variables: the Keras variables that it may read.

    Returns:
        A function that returns the result of ``fn`` and the names of all trainable
        variables that it read and that are not among ``variables``.
    """
    known = {id(variable.value) for variable in variables}

    def call(*args):
        with tf.GradientTape() as tape:
            result = fn(*args)
        read = tape.watched_variables()
        return result, [variable.name for variable in read if id(variable) not in known]

    return call


def watched_gradients(fn):
    """Returns a function that differentiates ``fn`` by its intermediate tensors.

    Args:
        fn: function of ``watch`` and of other arguments that returns ``(scalar,
            others)``. ``watch(tensor)`` returns the tensor to continue with.

    Returns:
        A function of the other arguments that returns ``others``, and the gradient of
        the scalar by each watched tensor, in the order of the calls of ``watch``.
    """

    def differentiate(*args):
        tensors = []

        def watch(tensor):
            tensors.append(tensor)
            return tensor

        with tf.GradientTape() as tape:
            scalar, others = fn(watch, *args)
        return others, tape.gradient(scalar, tensors)

    return differentiate


def adam_step(
    variable, momentum, velocity, gradient, learning_rate, step, beta_1, beta_2, epsilon
) -> None:
    """Takes one step of Adam (Kingma and Ba 2015) on one variable, in place.

    Args:
        variable, momentum, velocity: variables of Keras or of TensorFlow.
        step: number of the step, counted from 1.
    """
    step = tf.cast(step, gradient.dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=handle(variable),
        m=handle(momentum),
        v=handle(velocity),
        beta1_power=tf.pow(beta_1, step),
        beta2_power=tf.pow(beta_2, step),
        lr=learning_rate,
        beta1=beta_1,
        beta2=beta_2,
        epsilon=epsilon,
        grad=gradient,
    )


def rmsprop_step(
    variable, mean_square, update, gradient, learning_rate, rho, epsilon
) -> None:
    """Takes one step of RMSProp (Tieleman and Hinton 2012) on one variable, in place.

    Args:
        variable, mean_square: variables of Keras or of TensorFlow.
        update: another of that shape; set to what is subtracted from ``variable``.
        epsilon: added inside the square root.
    """
    tf.raw_ops.ResourceApplyRMSProp(
        var=handle(variable),
        ms=handle(mean_square),
        mom=handle(update),
        lr=learning_rate,
        rho=rho,
        momentum=0.0,
        epsilon=epsilon,
        grad=gradient,
    )


def handle(variable):
    """Returns the handle of a Keras or TensorFlow variable, for raw operations."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return variable.handle


def extract_patches(x, size, strides, padding):
    """Returns the windows of images [B, H, W, C], [B, H', W', size[0] size[1] C].

    Keras' function of that name is a convolution with an identity matrix, which takes
    two to five times as long on the CPU.

    Args:
        x: the images.
        size, strides: pairs, of height and width.
        padding: ``valid`` or ``same``, as of a convolution.
    """
    return tf.image.extract_patches(
        x, (1, *size, 1), (1, *strides, 1), (1, 1, 1, 1), padding.upper()
    )


def norm(tensor):
    """Returns the Euclidean norm of all numbers of a tensor, in one pass."""
    return tf.sqrt(2.0 * tf.nn.l2_loss(tensor))


def argmax(tensor):
    """Returns the index of the largest number of the last axis.

    Keras' own distinguishes -0 from 0, by operations that ONNX and TFLite lack.
    """
    return tf.argmax(tensor, axis=-1, output_type=tf.int32)


def floats_of_bytes(tensor):
    """Returns float32 [...] of their bytes [..., 4]."""
    return tf.bitcast(tensor, tf.float32)


def to_device(array):
    """Returns a tensor that holds a copy of a NumPy array."""
    return tf.convert_to_tensor(array)


def gpu_has_bfloat16():
    """Returns whether the GPU computes in bfloat16; None if there is no GPU."""
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return None
    details = tf.config.experimental.get_device_details(gpus[0])
    return details.get("compute_capability", (0, 0)) >= (8, 0)


def uses_cpu_bfloat16():
    """Returns whether TensorFlow uses a processor's bfloat16: by oneDNN only."""
    return os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1").lower() not in ("0", "false")
