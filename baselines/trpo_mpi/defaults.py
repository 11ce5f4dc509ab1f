"""Those of trpo, under the path of OpenAI Baselines."""

from baselines.trpo.defaults import *  # noqa: F403
