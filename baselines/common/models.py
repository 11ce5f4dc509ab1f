"""OpenAI Baselines' name for the networks."""

from baselines.common.networks.networks import *  # noqa: F403
