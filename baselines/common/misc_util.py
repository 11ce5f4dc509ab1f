"""OpenAI Baselines' name for seeding."""

from baselines.common.backend.seeding import (
    set_global_seeds,
)

__all__ = [
    "set_global_seeds",
]
