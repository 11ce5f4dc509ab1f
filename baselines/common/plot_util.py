"""OpenAI Baselines' name for loading and plotting results."""

from baselines.common.views.results import *  # noqa: F403
