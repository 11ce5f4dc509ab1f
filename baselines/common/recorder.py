"""Environments that can be put back where they were."""

import gymnasium as gym
import numpy as np

from baselines.common.errors import UserValueError


class Recorder(gym.Wrapper):
    """Remembers an episode, so that it can be played again up to the same point.

    Keeps the state of the environment's generator (``np_random``) before the
    last reset, and the actions since. That restores any environment whose
    episodes follow from these alone, without code for its simulator; where they
    do not, ``set_state`` notices.

    It has to sit where every ``reset`` starts a new episode: above NoopResetEnv
    and MaxAndSkipEnv, below Monitor and EpisodicLifeEnv.
    """

    def __init__(self, env):
        super().__init__(env)
        self.actions = []
        self.generator_state = None
        self.reset_arguments = {}
        self.last_obs = None

    def reset(self, **kwargs):
        self.reset_arguments = {k: v for k, v in kwargs.items() if v is not None}
        self.generator_state = self.unwrapped.np_random.bit_generator.state
        self.actions = []
        self.last_obs, info = self.env.reset(**kwargs)
        return self.last_obs, info

    def step(self, action):
        self.actions.append(action)
        self.last_obs, *results = self.env.step(action)
        return self.last_obs, *results

    def get_state(self) -> dict:
        """Returns what ``set_state`` needs; the environment has to be reset first."""
        return {
            "env": str(self.spec.id if self.spec else self.unwrapped),
            "generator": self.generator_state,
            "reset_arguments": self.reset_arguments,
            "actions": np.array(self.actions),
            "last_obs": np.array(self.last_obs),
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
        if not np.array_equal(self.last_obs, state["last_obs"]):
            raise UserValueError(
                f"{name} cannot be resumed: playing the same actions from the same "
                "random state led elsewhere, so it must have a state of its own that "
                "outlives a reset"
            )


def with_recorder(env) -> gym.Env:
    """Returns ``env`` if there is a Recorder in it, else a Recorder around it."""
    inner = env
    while isinstance(inner, gym.Wrapper):
        if isinstance(inner, Recorder):
            return env
        inner = inner.env
    return Recorder(env)


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
