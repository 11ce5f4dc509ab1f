"""Reinforcement-learning algorithms with the shape of OpenAI Baselines."""

import os
import sys

from baselines import moved
from baselines.common.lazy import exports

# TensorFlow's notes on drivers that it does not find; what fails still raises.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

__version__ = "0.1.0"

sys.meta_path.append(moved)
# Lazily, because it imports Keras.
__getattr__ = exports(__name__, load="common.loading")
