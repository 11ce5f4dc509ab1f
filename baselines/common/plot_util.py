"""OpenAI Baselines' name for loading and plotting results."""

from baselines.common.views.results import (
    Result,
    default_split_fn,
    default_xy_fn,
    load_result,
    load_results,
    one_sided_ema,
    plot_results,
    smooth,
    symmetric_ema,
)

__all__ = [
    "Result",
    "default_split_fn",
    "default_xy_fn",
    "load_result",
    "load_results",
    "one_sided_ema",
    "plot_results",
    "smooth",
    "symmetric_ema",
]
