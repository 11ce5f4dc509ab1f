"""OpenAI Baselines' name for the wrappers of retro games."""

from baselines.common.envs.retro_wrappers import (
    StochasticFrameSkip,
    make_retro,
    wrap_deepmind_retro,
)

__all__ = [
    "StochasticFrameSkip",
    "make_retro",
    "wrap_deepmind_retro",
]
