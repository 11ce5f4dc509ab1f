"""OpenAI Baselines' name for the wrappers of Atari games."""

from baselines.common.envs.atari_wrappers import (
    ClipRewardEnv,
    EpisodicLifeEnv,
    FireResetEnv,
    FrameStack,
    MaxAndSkipEnv,
    NoopResetEnv,
    WarpFrame,
    make_atari,
    wrap_deepmind,
)

__all__ = [
    "ClipRewardEnv",
    "EpisodicLifeEnv",
    "FireResetEnv",
    "FrameStack",
    "MaxAndSkipEnv",
    "NoopResetEnv",
    "WarpFrame",
    "make_atari",
    "wrap_deepmind",
]
