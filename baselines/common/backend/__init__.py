"""The one place that knows which tensor framework runs underneath Keras.

Networks and losses are written in ``keras`` and ``keras.ops``. For what Keras does
not cover (compiling, gradients, copies to the device) there is one file for each
framework, all with these functions:

    HALVES                              into how many parts networks divide batches
    compile(fn, variables)              fn as one call of the framework
    scan(fn, variables)                 fn on one slice after another, in one call
    sequence_of_states(fn, state, xs)   the states of a recurrent layer
    value_and_grad(loss_fn, variables)  -> ((loss, metrics), gradients)
    unknown_reads(fn, variables)        -> (result, names of other weights read)
    watched_gradients(fn)               gradients w.r.t. intermediate tensors
    argmax(tensor)                      index of the largest of the last axis
    adam_step(variable, ...)            a step of Adam on one variable, in place
    rmsprop_step(variable, ...)         the same for RMSProp
    extract_patches(x, size, ...)       the windows that a convolution sees
    floats_of_bytes(tensor)             float32 [...] of their bytes [..., 4]
    norm(tensor)                        Euclidean norm of all numbers
    to_device(array)                    a copy of a NumPy array on the device
    gpu_has_bfloat16()                  whether the GPU has it; None without a GPU
    uses_cpu_bfloat16()                 whether it may use a processor's bfloat16

``variables`` are all Keras variables that the function reads or writes; for
``value_and_grad``, those to differentiate with respect to.
"""

import keras

from baselines.common.base.errors import UserValueError

if keras.backend.backend() != "tensorflow":
    raise UserValueError(
        f"the Keras backend {keras.backend.backend()!r} is not supported yet: run "
        "with KERAS_BACKEND=tensorflow, or add a file to baselines/common/backend"
    )

from baselines.common.backend.tensorflow import *  # noqa: F403
