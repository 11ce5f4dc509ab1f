"""What algorithms, environments and commands share."""

from baselines.common.lazy import exports

# Lazily, because it imports Keras.
__getattr__, __dir__ = exports(__name__, set_global_seeds="misc_util")
