"""TRPO under its name in OpenAI Baselines."""

from baselines.common.run.algorithm import preset
from baselines.trpo import trpo

learn = preset(trpo.learn)
