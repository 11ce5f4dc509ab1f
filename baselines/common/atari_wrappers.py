"""OpenAI Baselines' name for the wrappers of Atari games."""

from baselines.common.envs.atari_wrappers import *  # noqa: F403
