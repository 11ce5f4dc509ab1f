"""Environments that can be put back where they were."""

import gymnasium as gym
import numpy as np

from baselines.common.envs.checked import CheckedEnv
from baselines.common.errors import UserValueError


class Recorder(gym.Wrapper):
    """Remembers an episode, so that it can be played again up to the same point.

    Keeps the state of the environment's generator (``np_random``) before the
    last reset, and the actions since. That restores any environment whose
    episodes follow from these alone, without code for its simulator; where they
    do not, ``set_state`` notices.

    It has to sit where every ``reset`` starts a new episode: above NoopResetEnv
    and the frame skips, below Monitor and EpisodicLifeEnv.
    """

    def __init__(self, env):
        super().__init__(env)
        self.actions = []
        self.generator_state = None
        self.reset_arguments = {}
        self.last_obs = None
        self.total_reward = 0.0

    def reset(self, **kwargs):
        self.reset_arguments = {k: v for k, v in kwargs.items() if v is not None}
        self.generator_state = self.unwrapped.np_random.bit_generator.state
        self.actions = []
        self.total_reward = 0.0
        self.last_obs, info = self.env.reset(**kwargs)
        return self.last_obs, info

    def step(self, action):
        # A copy: the caller may write the next action into the same array.
        self.actions.append(np.array(action))
        self.last_obs, reward, *results = self.env.step(action)
        self.total_reward += float(reward)
        return self.last_obs, reward, *results

    def get_state(self) -> dict:
        """Returns what ``set_state`` needs; the environment has to be reset first."""
        return {
            "env": str(self.spec.id if self.spec else self.unwrapped),
            "generator": self.generator_state,
            "reset_arguments": self.reset_arguments,
            "actions": np.array(self.actions),
            "last_obs": np.array(self.last_obs),
            "total_reward": self.total_reward,
        }

    def set_state(self, state) -> None:
        """Plays the remembered episode again.

        Raises:
            UserValueError: if the environment is another, or arrives elsewhere.
        """
        name = str(self.spec.id if self.spec else self.unwrapped)
        if state["env"] != name:
            raise UserValueError(
                f"the checkpoint has environment {state['env']}, this run has {name}"
            )
        self.unwrapped.np_random.bit_generator.state = state["generator"]
        self.reset(**state["reset_arguments"])
        # A reset with a seed draws from a new generator, as it did then.
        self.generator_state = state["generator"]
        for action in state["actions"]:
            self.step(action)
        arrived = [(self.last_obs, state["last_obs"])]
        arrived.append((self.total_reward, state["total_reward"]))
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in arrived):
            raise UserValueError(
                f"{name} cannot be resumed: playing the same actions from the same "
                "random state led elsewhere, so it must have a state of its own that "
                "outlives a reset"
            )


def with_recorder(env) -> gym.Env:
    """Returns ``env``, checked and in a Recorder unless it is already."""
    if has_wrapper(env, Recorder):
        return env
    return Recorder(env if has_wrapper(env, CheckedEnv) else CheckedEnv(env))


def has_wrapper(env, kind) -> bool:
    """Whether a wrapper of that class is among those of ``env``."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, kind):
            return True
        env = env.env
    return False


def is_resumable(env) -> bool:
    """Whether all above the Recorder in ``env`` can hand over its state or has none.

    A wrapper that only changes observations, actions or rewards has none, and one of
    another kind that has none says so by an attribute ``stateless``.
    """
    pure = gym.ObservationWrapper, gym.ActionWrapper, gym.RewardWrapper
    while not isinstance(env, Recorder):
        known = hasattr(env, "get_state") or getattr(env, "stateless", False)
        if not (known or isinstance(env, pure)):
            return False
        env = env.env
    return True


def stateful_wrappers(env) -> list:
    """Returns the Recorder in ``env`` and what keeps state above it, inside first."""
    wrappers = []
    while not isinstance(env, Recorder):
        if hasattr(env, "get_state"):
            wrappers.append(env)
        env = env.env
    return [env, *reversed(wrappers)]


def get_env_state(env) -> list:
    """Returns the state of an environment that has a Recorder in it."""
    return [wrapper.get_state() for wrapper in stateful_wrappers(env)]


def set_env_state(env, state) -> None:
    """Puts an environment where it was when ``get_env_state`` was called."""
    for wrapper, wrapper_state in zip(stateful_wrappers(env), state, strict=True):
        wrapper.set_state(wrapper_state)
