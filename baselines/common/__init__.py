"""Code that algorithms, environments and commands share."""

from baselines.common.lazy import exports, names_of

# Lazily, because it imports Keras.
get, __dir__ = exports(__name__, set_global_seeds="misc_util")
__getattr__ = names_of(__name__, get)
