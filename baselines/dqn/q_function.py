"""Action values: network, streams, acting; as single numbers or as distributions."""

import keras
import numpy as np
from gymnasium import spaces
from keras import ops

from baselines.common import backend
from baselines.common.errors import UserTypeError
from baselines.common.model import Model
from baselines.common.models import build_network


class QFunction(Model):
    """Action values Q(s, a), and acting by them: the best action, or now and then any.

    Args:
        observation_space: a Box, Discrete or MultiDiscrete space.
        action_space: a Discrete space.
        network: name or builder of the network, see ``common/models.py``.
        network_kwargs: arguments of the builder.
        values: what a value is made of: ``ScalarValues`` or ``CategoricalValues``.
        hiddens: units of the layers between network and values.
        dueling: whether these are two streams, one for the value of a state and one
            for the advantages of actions (Wang et al. 2016, equation 9).
        noisy: whether their weights are noisy.
        seed: of the generator that acting draws from.
        algorithm: name of the module that trains it; saved with the model.

    Raises:
        UserTypeError: for spaces or networks that are not supported.
        UserValueError: if the network cannot take the observations.
    """

    initial_state = None

    def __init__(
        self,
        observation_space,
        action_space,
        network,
        network_kwargs,
        values,
        hiddens,
        dueling,
        noisy,
        seed=None,
        algorithm=None,
    ):
        super().__init__(observation_space, action_space, seed, algorithm)
        if not isinstance(action_space, spaces.Discrete):
            raise UserTypeError(
                f"the action space {type(action_space).__name__} is not supported: "
                "action values need a Discrete one"
            )
        self.values = values
        self.num_actions = int(action_space.n)
        self.parts["network"] = build_network(network, network_kwargs)
        if hasattr(self.parts["network"], "state_size"):
            raise UserTypeError(
                f"the network {network!r} has a memory, which replay does not support"
            )
        units = {"actions": self.num_actions * values.size}
        if dueling:
            units["state"] = values.size
        # TensorFlow adds gradients up in the order of names. Keras would number these
        # through, so that a second model in a process would learn slightly otherwise.
        self.streams = [Stream([*hiddens, n], noisy, name) for name, n in units.items()]
        self.parts |= zip(units, self.streams)
        self.parts["exploration"] = Exploration()
        self.make_variables(network, self._build)
        self.noise_sizes = [stream.noise_size for stream in self.streams]
        self._act = backend.compile(self._mean, self.variables)

    def _build(self, obs):
        features = self.parts["network"](self.scale(obs))
        for stream in self.streams:
            stream.build(features.shape)

    def noise(self, *shape):
        """Draws what ``__call__`` needs, [*shape, F]; F is 0 unless it is noisy."""
        return self.rng.standard_normal((*shape, sum(self.noise_sizes)), np.float32)

    def __call__(self, obs, noise):
        """Returns what ``values`` makes values of, [B, actions, values.size].

        Args:
            obs: [B, *observation shape]
            noise: [B or 1, F]
        """
        features = self.parts["network"](self.scale(obs))
        noise = split(noise, self.noise_sizes)
        outputs = [stream(features, x) for stream, x in zip(self.streams, noise)]
        shape = -1, self.num_actions, self.values.size
        actions = ops.reshape(outputs[0], shape)
        if len(outputs) == 1:
            return actions
        advantages = actions - ops.mean(actions, axis=1, keepdims=True)
        return ops.expand_dims(outputs[1], 1) + advantages

    def _mean(self, obs, noise):
        return self.values.mean(self(obs, noise))

    @property
    def epsilon(self) -> float:
        """How likely an action is drawn at random; saved with the model."""
        return float(self.parts["exploration"].epsilon.numpy())

    @epsilon.setter
    def epsilon(self, value):
        self.parts["exploration"].epsilon.assign(value)

    def step(self, obs, S=None, M=None, deterministic=False):
        """Chooses an action for each observation.

        Args:
            obs: [N, *observation shape], an array or a tensor on the device.
            S, M: not used: there is no recurrent state.
            deterministic: whether to take the best action, without noise.

        Returns:
            actions [N] and their best values [N], as NumPy arrays, and two times None,
            as there is neither a state nor a likelihood.
        """
        self.check_batch(obs)
        noise = self.noise(len(obs))
        if deterministic:
            noise[:] = 0
        values = np.asarray(self._act(obs, noise))
        actions = values.argmax(axis=1)
        if not deterministic:
            at_random = self.rng.random(len(obs)) < self.epsilon
            drawn = self.rng.integers(self.num_actions, size=len(obs))
            actions = np.where(at_random, drawn, actions)
        actions = actions + self.action_space.start
        return actions.astype(self.action_space.dtype), values.max(axis=1), None, None

    def value(self, obs, S=None, M=None):
        """Returns the values of the best actions, [N]; arguments as in ``step``."""
        self.check_batch(obs)
        noise = np.zeros((1, sum(self.noise_sizes)), np.float32)
        return np.asarray(self._act(obs, noise)).max(axis=1)


class ScalarValues:
    """Values as expected returns; the loss is Huber's (Mnih et al. 2015)."""

    size = 1

    def mean(self, outputs):
        """Returns values [B, actions] of outputs [B, actions, 1]."""
        return outputs[..., 0]

    def targets(self, outputs, returns, discounts):
        """Returns [B, 1]: returns [B] + discounts [B] x what follows [B, 1]."""
        return returns[:, None] + discounts[:, None] * outputs

    def losses(self, outputs, targets):
        """Returns the loss of each [B, 1] and how far it was off, [B]: its priority."""
        errors = ops.abs(outputs - targets)[:, 0]
        return ops.where(errors < 1.0, 0.5 * ops.square(errors), errors - 0.5), errors


class CategoricalValues:
    """Values as distributions of returns over fixed atoms.

    Bellemare et al. 2017, "A Distributional Perspective on Reinforcement Learning"
    (C51). Outputs are logits.

    Args:
        atoms: how many.
        v_min, v_max: the lowest and the highest.
    """

    def __init__(self, atoms, v_min, v_max):
        self.size = atoms
        self.v_min = v_min
        self.v_max = v_max
        self.support = np.linspace(v_min, v_max, atoms, dtype=np.float32)

    def mean(self, outputs):
        """Returns values [B, actions] of outputs [B, actions, atoms]."""
        return ops.sum(ops.softmax(outputs) * self.support, axis=-1)

    def targets(self, outputs, returns, discounts):
        """Returns probabilities [B, atoms] of returns + discounts x what follows.

        The following distribution [B, atoms] is moved, and each of its atoms is shared
        out to the two that it comes to lie between (equation 7).
        """
        moved = (
            ops.expand_dims(returns, -1) + ops.expand_dims(discounts, -1) * self.support
        )
        moved = ops.expand_dims(ops.clip(moved, self.v_min, self.v_max), 1)
        distance = ops.abs(moved - self.support[None, :, None])
        step = (self.v_max - self.v_min) / (self.size - 1)
        shares = ops.clip(1.0 - distance / step, 0.0, 1.0)  # [B, to, from]
        return ops.sum(shares * ops.softmax(outputs)[:, None, :], axis=-1)

    def losses(self, outputs, targets):
        """Returns the cross entropy of each [B, atoms], and its priority, [B].

        That is the Kullback-Leibler divergence: the cross entropy less the targets'
        own entropy (Hessel et al. 2018, "Rainbow", section "The integrated agent").
        """
        losses = -ops.sum(targets * ops.log_softmax(outputs), axis=-1)
        entropies = -ops.sum(targets * ops.log(targets + 1e-8), axis=-1)
        return losses, ops.maximum(losses - entropies, 0.0)


class Stream(keras.layers.Layer):
    """Dense layers with ReLU between them.

    Args:
        units: of each layer, the last one without an activation.
        noisy: whether they are ``NoisyDense``.
        name: of the layer.
    """

    def __init__(self, units, noisy, name=None):
        super().__init__(name=name)
        kind = NoisyDense if noisy else Dense
        self.dense = [kind(n) for n in units]

    def build(self, input_shape):
        for layer in self.dense:
            layer.build(input_shape)
            input_shape = (*input_shape[:-1], layer.units)
        self.noise_size = sum(layer.noise_size for layer in self.dense)

    def call(self, x, noise):
        noise = split(noise, [layer.noise_size for layer in self.dense])
        for layer, its_noise in zip(self.dense[:-1], noise):
            x = ops.relu(layer(x, its_noise))
        return self.dense[-1](x, noise[-1])


def split(x, sizes):
    """Returns parts of the last axis of ``x``, as long as ``sizes`` say."""
    ends = np.cumsum(sizes)
    return [x[..., end - size : end] for size, end in zip(sizes, ends)]


class Dense(keras.layers.Dense):
    """A dense layer that needs no noise, [B, 0]."""

    noise_size = 0

    def call(self, x, noise):
        return super().call(x)


class NoisyDense(keras.layers.Layer):
    """A dense layer that learns how much noise its weights should have.

    Fortunato et al. 2018, "Noisy Networks for Exploration", factorised Gaussian noise
    (equations 10 and 11). Each sample of a batch may have noise of its own.
    """

    SIGMA = 0.5  # initial deviation, in units of 1 / √inputs

    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, input_shape):
        self.inputs = input_shape[-1]
        self.noise_size = self.inputs + self.units
        bound = self.inputs**-0.5
        constant = keras.initializers.Constant(self.SIGMA * bound)
        shapes = {"kernel": (self.inputs, self.units), "bias": (self.units,)}
        for name, shape in shapes.items():
            # One that both shared would draw the same numbers for both.
            uniform = keras.initializers.RandomUniform(-bound, bound)
            mean = self.add_weight(shape=shape, initializer=uniform, name=name)
            sigma = self.add_weight(
                shape=shape, initializer=constant, name=f"{name}_sigma"
            )
            setattr(self, name, mean)
            setattr(self, f"{name}_sigma", sigma)

    def call(self, x, noise):
        noise = ops.sign(noise) * ops.sqrt(ops.abs(noise))
        noise_in, noise_out = split(noise, [self.inputs, self.units])
        mean = ops.matmul(x, self.kernel) + self.bias
        noisy = ops.matmul(x * noise_in, self.kernel_sigma) + self.bias_sigma
        return mean + noisy * noise_out


class Exploration(keras.layers.Layer):
    """Keeps ε as a variable, so that it is saved with the model."""

    def __init__(self):
        super().__init__()
        self.epsilon = self.add_weight(
            shape=(), initializer="zeros", trainable=False, name="epsilon"
        )
