"""OpenAI Baselines' name for environments and command lines of scripts."""

from baselines.common.run.cmd_util import *  # noqa: F403
