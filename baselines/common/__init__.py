"""Code that algorithms, environments and commands share."""

from baselines.common.lazy import exports, moved_names

# Lazily, because it imports Keras.
get, __dir__ = exports(__name__, set_global_seeds="misc_util")
__getattr__ = moved_names(__name__, get)
