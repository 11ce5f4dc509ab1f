"""Environments whose state can be saved and restored."""

import gymnasium as gym
import numpy as np

from baselines.bench.monitor import Monitor
from baselines.common.base.errors import UserValueError
from baselines.common.envs.checked import CheckedEnv

# Gymnasium's wrappers whose state survives reset() and cannot be restored.
LASTING = gym.wrappers.NormalizeObservation, gym.wrappers.NormalizeReward


class Recorder(gym.Wrapper):
    """Records an episode, so that it can be replayed up to the same step.

    Stores the state of the environment's random generator (``np_random``) before
    the last reset, and the actions since. This is enough to restore any environment
    whose episodes depend on nothing else, without code for its simulator; for
    others, ``get_state`` or ``set_state`` raises.

    It has to sit where every ``reset`` starts a new episode: above NoopResetEnv and
    the frame skips, below EpisodicLifeEnv. A Monitor below it records no replay.
    """

    def __init__(self, env):
        super().__init__(env)
        self.name = str(env.spec.id if env.spec else env.unwrapped)
        self.actions = []  # since the last reset
        self.generator_state = None
        self.reset_arguments = {}
        self.last_obs = None
        self.total_reward = 0.0

    def reset(self, **kwargs):
        self.reset_arguments = {k: v for k, v in kwargs.items() if v is not None}
        if has_generator(self):
            self.generator_state = self.unwrapped.np_random.bit_generator.state
        self.actions = []
        self.total_reward = 0.0
        self.last_obs, info = self.env.reset(**kwargs)
        return self.last_obs, info

    def step(self, action):
        self.actions.append(np.array(action)[()])  # a copy, of one number as a scalar
        self.last_obs, reward, *results = self.env.step(action)
        self.total_reward += float(reward)
        return self.last_obs, reward, *results

    def get_state(self) -> dict:
        """Returns what ``set_state`` needs; the environment has to be reset first."""
        return {
            "env": self.name,
            "generator": self.generator_state,
            "reset_arguments": self.reset_arguments,
            "actions": np.array(self.actions),
            "last_obs": np.array(self.last_obs),
            "total_reward": self.total_reward,
        }

    def set_state(self, state) -> None:
        """Replays the recorded episode.

        Raises:
            UserValueError: if the environment is another one, or the replay differs.
        """
        if state["env"] != self.name:
            raise UserValueError(
                f"the checkpoint has environment {state['env']}, this run has "
                f"{self.name}"
            )
        self.unwrapped.np_random.bit_generator.state = state["generator"]
        with Monitor.without_files():
            self.reset(**state["reset_arguments"])
            # A reset with a seed draws from a new generator, as it did then.
            self.generator_state = state["generator"]
            for action in state["actions"]:
                self.step(action)
        same_obs = np.array_equal(self.last_obs, state["last_obs"], equal_nan=True)
        if self.total_reward != state["total_reward"] or not same_obs:
            raise UserValueError(
                f"{self.name} cannot be resumed: the same actions from the same random "
                "state gave another observation or return, so it must have hidden "
                "state that survives reset()"
            )


def with_recorder(env) -> gym.Env:
    """Returns ``env``, checked and in a Recorder, unless it has a Recorder already.

    The Recorder is put below wrappers that have a true attribute ``above_recorder``.
    """
    if has_wrapper(env, Recorder):
        return env
    env = env if has_wrapper(env, CheckedEnv) else CheckedEnv(env)
    above = [x for x in wrappers_of(env) if getattr(x, "above_recorder", False)]
    if not above:
        return Recorder(env)
    above[-1].env = Recorder(above[-1].env)
    return env


def has_wrapper(env, kind) -> bool:
    """Whether one of the wrappers of ``env`` is of that class."""
    return any(isinstance(wrapper, kind) for wrapper in wrappers_of(env))


def wrappers_of(env):
    """Yields the wrappers of ``env``, outermost first."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def has_generator(env) -> bool:
    """Whether an environment's ``np_random`` is of a kind whose state can be saved."""
    generator = getattr(env.unwrapped, "np_random", None)
    return isinstance(generator, np.random.Generator)


def is_resumable(env) -> bool:
    """Whether the Recorder and all wrappers above it can return their state.

    The environment needs a ``numpy.random.Generator``. Each wrapper needs ``get_state``
    unless it has no state, like those that only change observations, actions or
    rewards; other wrappers without state need a true attribute ``stateless``. Below the
    Recorder, no wrapper may be one of ``LASTING``, which a replay does not restore.
    """
    pure = gym.ObservationWrapper, gym.ActionWrapper, gym.RewardWrapper
    while not isinstance(env, Recorder):
        known = hasattr(env, "get_state") or getattr(env, "stateless", False)
        is_pure = isinstance(env, pure) and not isinstance(env, LASTING)
        if not (known or is_pure):
            return False
        env = env.env
    return has_generator(env) and not has_wrapper(env, LASTING)


def stateful_wrappers(env) -> list:
    """Returns the Recorder in ``env`` and the other wrappers with state.

    The Recorder is the first, as its replay changes the Monitors below it; then come
    these, and then the wrappers above it, innermost first.
    """
    wrappers = []
    while not isinstance(env, Recorder):
        if hasattr(env, "get_state"):
            wrappers.append(env)
        env = env.env
    monitors = [x for x in wrappers_of(env.env) if isinstance(x, Monitor)]
    return [env, *monitors, *reversed(wrappers)]


def get_env_state(env) -> list:
    """Returns the state of an environment that has a Recorder in it."""
    return [wrapper.get_state() for wrapper in stateful_wrappers(env)]


def set_env_state(env, state) -> None:
    """Restores an environment from what ``get_env_state`` returned.

    Raises:
        ValueError: if it had another number of wrappers with a state.
    """
    for wrapper, wrapper_state in zip(stateful_wrappers(env), state, strict=True):
        wrapper.set_state(wrapper_state)
