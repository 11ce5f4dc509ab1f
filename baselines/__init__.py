"""Reinforcement-learning algorithms with the shape of OpenAI Baselines."""

import os

# TensorFlow writes a dozen lines on how it was built; what fails still raises.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

__version__ = "0.1.0"
