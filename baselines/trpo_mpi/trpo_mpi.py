"""TRPO by the name that OpenAI Baselines gave it."""

from baselines.common.algorithm import preset
from baselines.trpo import trpo

learn = preset(trpo.learn)
