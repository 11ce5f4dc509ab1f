"""Goals in flattened observations, and the rewards for other goals."""

from collections.abc import Callable
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.envs.nests import FlatBox
from baselines.common.vec_env.vec_env import venvs_of
from baselines.common.vec_env.vec_normalize import VecNormalize

KEYS = "achieved_goal", "desired_goal"
UNCHANGED = "replay_k needs rewards and observations as they are"
NEEDED = (
    "replay_k needs environments in a DummyVecEnv or SubprocVecEnv, with Dict "
    "observations of observation, achieved_goal and desired_goal, and "
    "compute_reward(achieved_goal, desired_goal, info)"
)


class Goals(NamedTuple):
    """Where the goals are in a flattened observation, and how they are rewarded.

    G is the size of a goal.
    """

    achieved: slice  # of an observation: the goal that its state achieves
    desired: slice  # of an observation: the goal to be achieved
    compute_reward: Callable  # of achieved and desired goals [B, G]; float32 [B]


def find_goals(venv) -> Goals:
    """Returns the goals of a VecEnv whose Dict observations were flattened.

    Environments are like gymnasium-robotics' ``GoalEnv``, whose ``compute_reward`` also
    takes batches of goals, [B, ...]. It is called in this process, because workers may
    be in the middle of a step. Reward wrappers are applied to the rewards it returns.

    Raises:
        UserTypeError: if the environments have no goals.
        UserValueError: if a wrapper may change observations, or a VecEnv wrapper
            rewards.
    """
    *wrappers, venv = venvs_of(venv)
    for wrapper in wrappers:
        if isinstance(wrapper, VecNormalize) or not wrapper.keeps_observations:
            raise UserValueError(f"{UNCHANGED}, without a {type(wrapper).__name__}")
    if not hasattr(venv, "local_env"):
        raise UserTypeError(f"{NEEDED}; received a {type(venv).__name__}")
    env, reward_functions = venv.local_env(), []
    while isinstance(env, gym.Wrapper) and not hasattr(env, "compute_reward"):
        if isinstance(env, gym.RewardWrapper):
            reward_functions.insert(0, env.reward)
        flattens = isinstance(env, gym.wrappers.FlattenObservation)
        if isinstance(env, gym.ObservationWrapper) and not flattens:
            raise UserValueError(f"{UNCHANGED}, without a {type(env).__name__}")
        env = env.env
    space = env.observation_space
    if not (hasattr(env, "compute_reward") and has_goals(space, venv)):
        name = env.spec.id if env.spec else type(env).__name__
        raise UserTypeError(f"{name} has no goals, but {space}; {NEEDED}")
    goal_space = space["desired_goal"]

    def compute_reward(achieved, desired):
        achieved, desired = (
            goals.reshape(len(goals), *goal_space.shape).astype(goal_space.dtype)
            for goals in (achieved, desired)
        )
        rewards = env.compute_reward(achieved, desired, {})
        for change in reward_functions:
            rewards = change(rewards)
        rewards = np.asarray(rewards, np.float32)
        if rewards.size != len(desired):
            raise UserValueError(
                f"compute_reward({len(desired)} goals, ...) returned rewards of shape "
                f"{rewards.shape}: replay_k needs one reward for each goal [B, ...]"
            )
        return rewards.reshape(len(desired))

    return Goals(*map(FlatBox(space).parts.get, KEYS), compute_reward)


def has_goals(space, venv) -> bool:
    """Whether a Dict space has goals, and ``venv`` flattens it."""
    return (
        isinstance(space, gym.spaces.Dict)
        and space.keys() >= {*KEYS}
        and gym.spaces.flatten_space(space) == venv.observation_space
    )
