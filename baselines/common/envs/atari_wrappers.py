"""DeepMind's preprocessing of Atari games, one wrapper per step (Mnih et al. 2015).

The order, from the emulator up: NoopResetEnv and MaxAndSkipEnv (from ``make_atari``),
then a Monitor, which therefore records full games and raw scores, then EpisodicLifeEnv,
FireResetEnv, WarpFrame and ClipRewardEnv (from ``wrap_deepmind``). Frames stay uint8;
the network scales them, once.
"""

import ale_py
import cv2
import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from baselines.common.base.errors import UserValueError

NOOP = 0
MAX_FRAMES = 108_000  # half an hour at 60 frames a second


def make_atari(
    env_id: str | EnvSpec, max_episode_steps: int | None = None, **env_kwargs
) -> gym.Env:
    """Returns an Atari game with no-op starts and a frame skip of 4.

    Observations are the emulator's greyscale screens, uint8 [210, 160], which
    saves the colour conversion that RGB frames need. A game is truncated after
    108,000 frames.

    Args:
        env_id: id or Gymnasium spec of a game without frame skip, such as
            ``PongNoFrameskip-v4``.
        max_episode_steps: agent steps after which to truncate a game, or None.
        env_kwargs: settings of the emulator, such as ``render_mode`` or ``difficulty``.

    Raises:
        UserValueError: if it is no Atari game, or repeats frames or actions itself.
    """
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    spec = gym.spec(env_id) if isinstance(env_id, str) else env_id
    if "frameskip" not in spec.kwargs:
        raise UserValueError(f"{spec.id} is not an Atari game")
    settings = {**spec.kwargs, **env_kwargs}
    if settings["frameskip"] != 1 or settings["repeat_action_probability"]:
        raise UserValueError(
            f"{spec.id} repeats frames or actions itself, and MaxAndSkipEnv skips 4 "
            "frames already; use the game's NoFrameskip-v4 id, such as "
            "PongNoFrameskip-v4, and do not change frameskip or "
            "repeat_action_probability"
        )
    emulator = {"obs_type": "grayscale", "max_num_frames_per_episode": MAX_FRAMES}
    env = gym.make(spec, disable_env_checker=True, **{**emulator, **env_kwargs})
    env = MaxAndSkipEnv(NoopResetEnv(env, noop_max=30), skip=4)
    if max_episode_steps is not None:
        env = gym.wrappers.TimeLimit(env, max_episode_steps)
    return env


def wrap_deepmind(
    env: gym.Env,
    episode_life: bool = True,
    clip_rewards: bool = True,
    frame_stack: bool = False,
    scale: bool = False,
) -> gym.Env:
    """Returns ``env`` with the observations of DeepMind's agents: uint8 [84, 84, 1].

    Args:
        env: an environment from ``make_atari``.
        episode_life: whether a lost life ends an episode.
        clip_rewards: whether rewards are replaced by their sign.
        frame_stack: whether to stack the last 4 frames here, [84, 84, 4]; leave it
            off if a VecFrameStack follows.
        scale: has to be false, as in most scripts for OpenAI Baselines.
    """
    if scale:
        raise UserValueError("leave out scale: networks divide uint8 frames by 255")
    if episode_life:
        env = EpisodicLifeEnv(env)
    if "FIRE" in env.unwrapped.get_action_meanings():
        env = FireResetEnv(env)
    env = WarpFrame(env)
    if clip_rewards:
        env = ClipRewardEnv(env)
    if frame_stack:
        env = FrameStack(env, 4)
    return env


class NoopResetEnv(gym.Wrapper):
    """Starts every game with 1 to ``noop_max`` no-op frames.

    The number is drawn from the environment's random generator (``np_random``).
    """

    def __init__(self, env, noop_max=30):
        super().__init__(env)
        self.noop_max = noop_max

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        for _ in range(self.unwrapped.np_random.integers(1, self.noop_max + 1)):
            obs, _, terminated, truncated, info = self.env.step(NOOP)
            if terminated or truncated:
                obs, info = self.env.reset()
        return obs, info


class MaxAndSkipEnv(gym.Wrapper):
    """Repeats each action ``skip`` times; returns the maximum of the last two frames.

    The maximum removes the flicker of games that draw an object only in every other
    frame. Rewards are summed. If a game ends before the last frame of the skip, the
    observation is its last frame.

    Games from ``make_atari`` are stepped directly in the emulator, because
    AtariEnv.step fetches a screen for every frame, and only two of each skip are
    needed. Any other environment is stepped through its own ``step``.
    """

    def __init__(self, env, skip=4):
        super().__init__(env)
        self.skip = skip
        self.ale = find_emulator(env)
        if self.ale is not None:
            meanings = env.unwrapped.get_action_meanings()
            self.ale_actions = [getattr(ale_py.Action, x) for x in meanings]
            self.frames = np.zeros((2, *env.observation_space.shape), np.uint8)

    def step(self, action):
        if self.ale is not None:
            return self._step_emulator(action)
        total_reward, obs = 0.0, None
        for i in range(self.skip):
            before = obs
            obs, reward, terminated, truncated, info = self.env.step(action)
            total_reward += float(reward)
            if terminated or truncated:
                break
        if i == self.skip - 1 and before is not None:
            obs = np.maximum(before, obs)
        return obs, total_reward, terminated, truncated, info

    def _step_emulator(self, action):
        ale_action = self.ale_actions[action]
        total_reward = 0.0
        for i in range(self.skip):
            total_reward += self.ale.act(ale_action)
            over = self.ale.game_over()
            if i >= self.skip - 2 or over:
                self.ale.getScreenGrayscale(self.frames[i % 2])
            if over:
                break
        complete = i == self.skip - 1
        obs = np.maximum(*self.frames) if complete else self.frames[i % 2].copy()
        terminated = self.ale.game_over(with_truncation=False)
        truncated = self.ale.game_truncated()
        return obs, total_reward, terminated, truncated, {"lives": self.ale.lives()}


def find_emulator(env):
    """Returns a game's emulator if stepping it directly is the same as ``env.step``.

    This holds for greyscale screens without a frame skip, below wrappers that do not
    change steps. Otherwise returns None.
    """
    while type(env) in (NoopResetEnv, gym.wrappers.OrderEnforcing):
        env = env.env
    same = (
        type(env) is ale_py.AtariEnv
        and len(env.observation_space.shape) == 2
        and isinstance(env.action_space, spaces.Discrete)
        and env._frameskip == 1
    )
    return env.ale if same else None


class EpisodicLifeEnv(gym.Wrapper):
    """Ends an episode at each lost life, but starts a new game only after game over.

    This helps value estimation (Mnih et al. 2015). A ``reset`` right after a lost life
    continues the same game with one no-op step, unless it is given a seed. Any reset
    before game over does so too if the Monitor below does not allow early resets.
    """

    above_recorder = True  # as some resets continue a game

    def __init__(self, env):
        super().__init__(env)
        self.lives = 0
        self.life_lost = False
        self.game_over = True
        name = "allow_early_resets"
        self.early_resets = not env.has_wrapper_attr(name) or env.get_wrapper_attr(name)

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        lives = self.unwrapped.ale.lives()
        # Some games show 0 lives for a few frames before they are over: that is not
        # another lost life.
        self.life_lost = 0 < lives < self.lives
        self.game_over = terminated or truncated
        self.lives = lives
        return obs, reward, terminated or self.life_lost, truncated, info

    def reset(self, **kwargs):
        new_game = self.game_over or kwargs.get("seed") is not None
        new_game = new_game or (self.early_resets and not self.life_lost)
        if not new_game:
            obs, _, terminated, truncated, info = self.env.step(NOOP)
            new_game = terminated or truncated
        if new_game:
            obs, info = self.env.reset(**kwargs)
        self.life_lost = self.game_over = False
        self.lives = self.unwrapped.ale.lives()
        return obs, info

    def get_state(self) -> dict:
        return {
            "lives": int(self.lives),
            "life_lost": bool(self.life_lost),
            "game_over": bool(self.game_over),
        }

    def set_state(self, state) -> None:
        self.lives, self.life_lost = state["lives"], state["life_lost"]
        self.game_over = state["game_over"]


class FireResetEnv(gym.Wrapper):
    """Presses FIRE, action 1, after a reset, for games that start only then."""

    stateless = True

    def reset(self, **kwargs):
        self.env.reset(**kwargs)
        for action in (1, 2):
            obs, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                obs, info = self.env.reset()
        return obs, info


class WarpFrame(gym.ObservationWrapper):
    """Resizes frames by area to greyscale uint8 [84, 84, 1] (Mnih et al. 2015)."""

    def __init__(self, env, width=84, height=84):
        super().__init__(env)
        self.size = (width, height)
        self.observation_space = spaces.Box(0, 255, (height, width, 1), np.uint8)

    def observation(self, obs):
        if obs.ndim == 3:
            obs = cv2.cvtColor(obs, cv2.COLOR_RGB2GRAY)
        return cv2.resize(obs, self.size, interpolation=cv2.INTER_AREA)[..., None]


class ClipRewardEnv(gym.RewardWrapper):
    """Replaces every reward by its sign."""

    def reward(self, reward):
        return float(np.sign(reward))


class FrameStack(gym.ObservationWrapper):
    """Stacks the last ``k`` frames along the last axis; a reset repeats the first."""

    def __init__(self, env, k):
        super().__init__(env)
        self.k = k
        height, width, channels = env.observation_space.shape
        self.observation_space = spaces.Box(
            0, 255, (height, width, channels * k), env.observation_space.dtype
        )
        self.frames = None

    def reset(self, **kwargs):
        obs, info = self.env.reset(**kwargs)
        self.frames = [obs] * self.k
        return np.concatenate(self.frames, axis=-1), info

    def observation(self, obs):
        self.frames = [*self.frames[1:], obs]
        return np.concatenate(self.frames, axis=-1)

    def get_state(self) -> dict:
        return {"frames": np.array(self.frames)}

    def set_state(self, state) -> None:
        self.frames = list(state["frames"])
