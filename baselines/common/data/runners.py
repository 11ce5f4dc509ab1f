"""Rollouts of a model in its environments."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from baselines.common import backend
from baselines.common.base.machine import array_bytes, check_memory
from baselines.common.base.timing import timed
from baselines.common.data.episodes import results_of
from baselines.common.envs.spaces import clip_actions

STEP_BYTES = 5000  # per step of a rollout, for the objects that its arrays are


class Batch(NamedTuple):
    """What losses read of T successive steps of B environments, by name."""

    obs: Any  # [T, B, *observation shape], raw
    states: Any = None  # [B, S] recurrent state before the first step; None if none
    masks: Any = None  # [T, B], true where a new episode begins with obs[t]
    actions: Any = None  # [T, B, *action shape]
    neglogps: Any = None  # [T, B] -log p(actions), at the time of acting
    values: Any = None  # [T, B] at the time of acting
    advantages: Any = None  # [T, B]
    returns: Any = None  # [T, B]

    def flat(self) -> "Batch":
        """Returns the batch as T * B samples, as a policy returns them."""
        fields = self._replace(states=None)._asdict().items()
        return self._replace(**{k: flatten(x) for k, x in fields if x is not None})

    def take(self, indices: Any) -> "Batch":
        """Returns a minibatch of some samples, or of some environments.

        Args:
            indices: [B'] of samples, from 0 to T B - 1; of environments if there is a
                recurrent state, as each sequence begins with its own state. The result
                is [1, B', ...] or [T, B', ...].
        """

        def taken(name, x):
            if x is None:
                return None
            if self.states is None:
                return ops.expand_dims(ops.take(flatten(x), indices, axis=0), 0)
            return ops.take(x, indices, axis=0 if name == "states" else 1)

        return Batch(*map(taken, self._fields, self))


class Rollout(NamedTuple):
    """T successive steps of N environments."""

    obs: Any  # [T, N, *observation shape], on the device, in the space's own dtype
    actions: np.ndarray  # [T, N, *action shape], as sampled: not clipped to the space
    rewards: np.ndarray  # [T, N] float32
    dones: np.ndarray  # [T, N] bool: the episode ended with this step
    values: np.ndarray  # [T, N] float32: value of obs[t]
    # Value of the state that actually followed: values[t + 1] inside an episode,
    # that of the terminal observation at a time limit, 0 at an end.
    next_values: np.ndarray  # [T, N] float32
    neglogps: np.ndarray  # [T, N] float32: -log p(actions[t])
    states: Any  # [N, S] recurrent state before the first step; None if none
    # A new episode begins with obs[t]. False at the first step of a run, when the
    # recurrent state is 0 anyway.
    masks: np.ndarray  # [T, N] bool
    episodes: list  # info["episode"] of every episode that ended, in order

    def batch(self, advantages: np.ndarray, returns: np.ndarray) -> Batch:
        """Returns what losses read, with advantages and returns [T, N]."""
        fields = self.obs, self.states, self.masks, self.actions
        return Batch(*fields, self.neglogps, self.values, advantages, returns)


class Runner:
    """Steps ``env`` with ``model``, ``nsteps`` at a time, without a reset in between.

    Args:
        env: a VecEnv; it is reset by the first ``run``.
        model: has ``step``, ``value`` and ``initial_state``.
        nsteps: steps of each environment in a rollout (T).

    Raises:
        UserValueError: if a rollout does not fit into memory.
    """

    def __init__(self, env: Any, model: Any, nsteps: int):
        space = env.observation_space
        # Each observation as it arrives, and again stacked with the others.
        size = STEP_BYTES + 2 * env.num_envs * array_bytes(space.shape, space.dtype)
        check_memory(f"a rollout of {nsteps:,} steps", nsteps * size, "rollout")
        self.env = env
        self.model = model
        self.nsteps = nsteps
        self.obs = None
        self.states = model.initial_state
        self.dones = np.zeros(env.num_envs, bool)

    def run(self) -> Rollout:
        """Takes ``nsteps`` steps and returns them."""
        if self.obs is None:
            self.obs = backend.to_device(self.env.reset())
        steps, episodes, truncated = [], [], []
        first_states = self.states
        if first_states is not None:
            shape = self.env.num_envs, first_states.shape[1]
            first_states = np.broadcast_to(first_states, shape)
        for t in range(self.nsteps):
            obs, masks = self.obs, self.dones
            with timed("acting"):
                actions, values, self.states, neglogps = self.model.step(
                    obs, S=self.states, M=masks
                )
            with timed("environments"):
                taken = clip_actions(actions, self.env.action_space)
                next_obs, rewards, self.dones, infos = self.env.step(taken)
            self.obs = backend.to_device(next_obs)
            steps.append((obs, actions, rewards, self.dones, values, neglogps, masks))
            episodes += results_of(infos)
            ended = np.flatnonzero(self.dones)
            limits = [i for i in ended if infos[i].get("TimeLimit.truncated")]
            if limits:
                last_obs = np.array(next_obs)
                last_obs[limits] = [infos[i]["terminal_observation"] for i in limits]
                no_masks = np.zeros_like(self.dones)
                values = self.model.value(last_obs, S=self.states, M=no_masks)
                truncated.append((t, limits, values[limits]))
        obs, actions, rewards, dones, values, neglogps, masks = zip(*steps)
        dones = np.stack(dones)
        last_values = self.model.value(self.obs, S=self.states, M=self.dones)
        next_values = np.where(dones, 0, np.stack([*values[1:], last_values]))
        for t, limits, limit_values in truncated:
            next_values[t, limits] = limit_values
        return Rollout(
            ops.stack(obs),
            np.stack(actions),
            np.stack(rewards),
            dones,
            np.stack(values),
            next_values,
            np.stack(neglogps),
            first_states,
            np.stack(masks),
            episodes,
        )

    def get_state(self) -> dict:
        return {
            "obs": ops.convert_to_numpy(self.obs),
            "states": self.states,
            "dones": self.dones,
            "env": self.env.get_state(),
        }

    def set_state(self, state) -> None:
        self.env.set_state(state["env"])
        self.obs = backend.to_device(state["obs"])
        self.states = state["states"]
        self.dones = state["dones"]


def flatten(x):
    """Returns a field of a rollout, [T, N, ...], as [T * N, ...]."""
    return ops.reshape(x, (-1, *x.shape[2:]))


class Shuffler:
    """Draws the minibatches of updates, each epoch's in a new random order.

    Args:
        size: of a rollout, in samples, or in environments if sequences stay whole.
        minibatches: how many an epoch has.
        epochs: how many an update has.
        seed: of the order.
    """

    def __init__(self, size: int, minibatches: int, epochs: int, seed: int):
        self.size, self.minibatches, self.epochs = size, minibatches, epochs
        # A stream of its own: the policy is given the same seed.
        self.rng = np.random.default_rng([seed, 1])

    def draw(self) -> np.ndarray:
        """Returns indices from 0 to ``size`` - 1 for each minibatch of an update.

        Returns:
            [epochs * minibatches, size // minibatches]; in an epoch, no index occurs
            twice, and all occur if ``minibatches`` divides ``size``.
        """
        length = self.size // self.minibatches
        orders = [self.rng.permutation(self.size) for _ in range(self.epochs)]
        used = [order[: self.minibatches * length] for order in orders]
        return np.concatenate(used).reshape(-1, length)

    def get_state(self) -> dict:
        return self.rng.bit_generator.state

    def set_state(self, state) -> None:
        self.rng.bit_generator.state = state
