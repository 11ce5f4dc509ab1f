"""Makes the replay memory of a run."""

from collections.abc import Callable
from typing import Any

from baselines.common.base.errors import UserValueError
from baselines.common.data.hindsight_replay import HindsightReplayBuffer
from baselines.common.data.prioritized_replay import PrioritizedReplayBuffer
from baselines.common.data.replay_buffer import ReplayBuffer
from baselines.common.envs.goals import find_goals
from baselines.common.vec_env.vec_frame_stack import count_stacked
from baselines.common.vec_env.vec_normalize import normalizes


def make_memory(
    run: Any,
    size: int,
    prioritized: bool = False,
    replay_k: int = 0,
    build: Callable | None = None,
    **settings,
) -> Any:
    """Returns a replay memory for the steps of a run.

    With a VecFrameStack, each frame of its stacks is stored only once.

    Args:
        run: has ``env``, ``seed`` and ``total_timesteps``. If the latter is 0, a model
            is only loaded, and the memory has room for one transition.
        size: number of transitions to store.
        prioritized: whether it is a ``PrioritizedReplayBuffer``, in which β rises until
            the run ends unless ``settings`` has ``beta_iters``.
        replay_k: of a ``HindsightReplayBuffer``; 0 to leave goals unchanged.
        build: function or class that returns the memory, in place of all of these.
        settings: other arguments of the memory.

    Raises:
        UserTypeError, UserValueError: as ``find_goals``, if ``replay_k`` is not 0.
        UserValueError: if ``prioritized`` and ``replay_k`` are combined, or rewards are
            divided by a standard deviation that changes.
    """
    env = run.env
    if not run.total_timesteps:
        size, replay_k = 1, 0
    elif normalizes(env, "rewards"):
        raise UserValueError(
            "a replay memory needs rewards in the same unit all the time, but "
            "a wrapper (normalize_rewards, VecNormalize, NormalizeReward) divides them "
            "by a running standard deviation; leave it out, or use reward_scale"
        )
    if prioritized and replay_k:
        raise UserValueError(
            "prioritized_replay and replay_k cannot be combined, as a TD error is for "
            f"one goal and not for others; received replay_k={replay_k}"
        )
    if build is not None and (prioritized or replay_k):
        raise UserValueError(
            "a memory of your own takes the place of prioritized_replay and replay_k"
        )
    kind = build or ReplayBuffer
    if prioritized:
        kind = PrioritizedReplayBuffer
        settings = {"beta_iters": run.total_timesteps} | settings
    if replay_k:
        kind = HindsightReplayBuffer
        settings |= dict(goals=find_goals(env), replay_k=replay_k)
    return kind(
        env.observation_space,
        env.action_space,
        size,
        num_envs=env.num_envs,
        frame_stack=count_stacked(env),
        seed=[run.seed, 1],  # not the stream that acting draws from
        **settings,
    )
