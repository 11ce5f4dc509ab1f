"""OpenAI Baselines' name for the wrappers of retro games."""

from baselines.common.envs.retro_wrappers import *  # noqa: F403
