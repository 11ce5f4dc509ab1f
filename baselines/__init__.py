"""Reinforcement-learning algorithms with the shape of OpenAI Baselines."""

import os

# TensorFlow's notes on drivers that it does not find; what fails still raises.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

__version__ = "0.1.0"
