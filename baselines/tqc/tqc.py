"""Truncated quantile critics (TQC): soft actor-critic with distributions of returns.

Kuznetsov et al. 2020, "Controlling Overestimation Bias with Truncated Mixture of
Continuous Distributional Quantile Critics".
"""

from baselines.common.run.algorithm import preset
from baselines.sac import sac

learn = preset(sac.learn, critic="truncated_quantiles")
