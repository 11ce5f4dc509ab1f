"""Reinforcement-learning algorithms with the shape of OpenAI Baselines."""

import os
import platform
import sys
from typing import TYPE_CHECKING

from baselines import moved
from baselines.common.base.lazy import QuietTensorFlow, exports

if TYPE_CHECKING:  # for completion in editors
    from baselines.common.run.loading import load as load

# Hides TensorFlow's messages about missing drivers; what fails still raises.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# By default, TensorFlow uses oneDNN only where there is AVX512_VNNI or the like. It is
# faster elsewhere, too (docs/performance.md).
if platform.machine() in ("x86_64", "AMD64"):
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

__version__ = "0.1.0"

sys.meta_path.insert(0, QuietTensorFlow)
sys.meta_path.append(moved)
# Lazily, because it imports Keras.
__getattr__, __dir__ = exports(__name__, load="common.run.loading")
