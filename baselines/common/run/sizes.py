"""Checks whether what a run needs fits into memory, before it is allocated.

What only one part needs, such as a replay memory or ppo2's epochs, is checked there.
The sizes are lower bounds: for example, they leave out what layers compute in between.
"""

import contextlib
import math

import keras

from baselines.common.arguments.types import Batch, Batches
from baselines.common.base.errors import UserValueError
from baselines.common.base.machine import array_bytes, check_memory

STEP_BYTES = 5000  # per step of a rollout, for the objects that its arrays are
TRANSITION_BYTES = 28  # per transition in a batch, besides observations
# A weight, its gradient, and what an optimiser such as Adam stores for it.
TRAINED_COPIES = 4


def check_sizes(env, nsteps, arguments) -> None:
    """Raises UserValueError if a rollout or a batch does not fit into memory.

    Args:
        env: the VecEnv.
        nsteps: steps of each environment in an update.
        arguments: the ``Arguments`` of ``learn()``.
    """
    if not arguments["total_timesteps"]:
        return  # Only a model is loaded.
    observation = array_bytes(env.observation_space.shape, env.observation_space.dtype)
    check_memory(
        f"a rollout of {nsteps:,} steps in {env.num_envs:,} environments",
        # Each observation as it arrives, and again stacked with the others.
        nsteps * (STEP_BYTES + 2 * env.num_envs * observation),
        "nsteps" if "nsteps" in arguments.declared else "rollout",
    )
    # Batch before Batches, so that the message names the argument that is too large.
    for marker in Batch, Batches:
        for name, argument in arguments.declared.items():
            if marker in argument.markers:
                count = arguments[name] or 0
                if marker is Batches:
                    count *= arguments["batch_size"]
                # With the next observation of each.
                size = count * (TRANSITION_BYTES + 2 * observation)
                check_memory(f"a batch of {count:,} transitions", size, name)


@contextlib.contextmanager
def checked_weights():
    """Raises UserValueError if layers that are built in a block do not fit into memory.

    Each weight has to fit into the memory that those before it have left.
    """
    add_weight, refusal = keras.Layer.add_weight, None

    def checked(layer, shape=None, *arguments, **keywords):
        nonlocal refusal
        what = f"a weight of shape {tuple(shape or ())} in the network"
        size = TRAINED_COPIES * array_bytes(shape or (), "float32")
        try:
            check_memory(what, size, "network")
        except UserValueError as error:
            refusal = error
            raise
        return add_weight(layer, shape, *arguments, **keywords)

    keras.Layer.add_weight = checked
    try:
        yield
    except UserValueError:
        if refusal is None:
            raise
        # Without the lines that Keras adds to exceptions inside a layer.
        raise refusal from None
    finally:
        keras.Layer.add_weight = add_weight


def check_optimizer(variables) -> None:
    """Raises UserValueError if an optimiser and gradients do not fit into memory.

    Args:
        variables: the variables that it trains, which are in memory already.
    """
    count = sum(math.prod(variable.shape) for variable in variables)
    size = (TRAINED_COPIES - 1) * array_bytes([count], "float32")
    check_memory(f"the training of {count:,} weights", size, "network")
