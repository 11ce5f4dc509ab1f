"""Preprocessing of stable-retro games, as in OpenAI Baselines.

The order, from the emulator up: StochasticFrameSkip, a time limit (both by
``make_retro``), then a Monitor, which therefore records raw scores, then Atari's
WarpFrame and ClipRewardEnv (by ``wrap_deepmind_retro``). Frames stay uint8; the
network scales them, once.
"""

import gymnasium as gym
import numpy as np
import stable_retro
from gymnasium.envs.registration import EnvSpec

from baselines.common.base.errors import UserFileError, UserValueError, suggest
from baselines.common.envs.atari_wrappers import ClipRewardEnv, FrameStack, WarpFrame
from baselines.common.envs.registry import find_spec


def make_retro(
    env_id: str | EnvSpec,
    state: str | None = None,
    max_episode_steps: int | None = 10_000,
    **env_kwargs,
) -> gym.Env:
    """Returns a retro game with a stochastic frame skip of 4.

    Observations are the console's screens, uint8 [height, width, 3]. Actions are
    Discrete, one for each combination of buttons that makes sense on the console.

    Args:
        env_id: id of a game of stable-retro, such as ``Airstriker-Genesis-v0``, or its
            Gymnasium spec.
        state: name of the saved state that every episode starts in; None for the
            game's default.
        max_episode_steps: agent steps after which to truncate a game (10,000 in OpenAI
            Baselines), or None.
        env_kwargs: for ``stable_retro.make``, such as ``render_mode`` or ``scenario``.

    Raises:
        UserValueError: if there is no such game or state.
        UserFileError: if the game's ROM is missing.
        RuntimeError: if this process runs an emulator already.
    """
    spec = find_spec(env_id)
    if "game" not in spec.kwargs:
        raise UserValueError(f"{spec.id} is not a retro game")
    if state is not None:
        states = stable_retro.data.list_states(spec.kwargs["game"])
        if state not in states:
            raise UserValueError(
                f"{spec.id} has no state {state!r}{suggest(state, states)} "
                f"(known: {', '.join(states)})"
            )
        env_kwargs["state"] = state
    actions = stable_retro.Actions.DISCRETE
    emulator = {"render_mode": "rgb_array", "use_restricted_actions": actions}
    try:
        env = gym.make(spec, disable_env_checker=True, **{**emulator, **env_kwargs})
    except FileNotFoundError:
        raise UserFileError(
            f"the ROM of {spec.id} is missing: stable-retro includes that of "
            "Airstriker-Genesis-v0 only; import yours with "
            "python -m stable_retro.import FOLDER"
        ) from None
    env = StochasticFrameSkip(env, n=4, stickprob=0.25)
    if max_episode_steps is not None:
        env = gym.wrappers.TimeLimit(env, max_episode_steps)
    return env


def wrap_deepmind_retro(env: gym.Env, frame_stack: bool = False) -> gym.Env:
    """Returns ``env`` with observations uint8 [84, 84, 1] and clipped rewards.

    Args:
        env: an environment from ``make_retro``.
        frame_stack: whether to stack the last 4 frames here, [84, 84, 4]; not to
            be combined with a VecFrameStack.
    """
    env = ClipRewardEnv(WarpFrame(env))
    if frame_stack:
        env = FrameStack(env, 4)
    return env


class StochasticFrameSkip(gym.Wrapper):
    """Repeats each action for ``n`` frames, sometimes starting one frame late.

    With probability ``stickprob`` the first frame repeats the previous action; an
    episode's first action is never late. Rewards are summed; the observation is
    that of the last frame. Random numbers come from the environment's generator
    (``np_random``).
    """

    def __init__(self, env, n, stickprob):
        super().__init__(env)
        self.n = n
        self.stickprob = stickprob
        self.last_action = None

    def reset(self, **kwargs):
        self.last_action = None
        return self.env.reset(**kwargs)

    def step(self, action):
        # A copy, as the caller may use the array again; [()] turns an array without
        # dimensions into a number, because RetroEnv would change it in place.
        action = np.array(action)[()]
        late = (
            self.last_action is not None
            and self.unwrapped.np_random.random() < self.stickprob
        )
        total_reward = 0.0
        for i in range(self.n):
            obs, reward, terminated, truncated, info = self.env.step(
                self.last_action if late and i == 0 else action
            )
            total_reward += reward
            if terminated or truncated:
                break
        self.last_action = action
        return obs, total_reward, terminated, truncated, info
