"""CrossQ: soft actor-critic with batch renormalisation, without target critics.

Bhatt et al. 2024, "CrossQ: Batch Normalization in Deep Reinforcement Learning for
Greater Sample Efficiency and Simplicity".
"""

from baselines.common.run.algorithm import preset
from baselines.sac import sac

learn = preset(
    sac.learn,
    critic="joint",
    optimizer="adam",
    beta_1=0.5,
    batch_renorm=True,
    lr=1e-3,
    policy_delay=3,
)
learn.mpi = False  # Each rank would have its own moments.
