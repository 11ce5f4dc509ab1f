"""Code that algorithms, environments and commands share."""

from baselines.common.base.lazy import exports

# Lazily, because it imports Keras.
__getattr__, __dir__ = exports(__name__, set_global_seeds="backend.seeding")
