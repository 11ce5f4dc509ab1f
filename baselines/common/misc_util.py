"""OpenAI Baselines' name for seeding."""

from baselines.common.backend.seeding import *  # noqa: F403
