"""QR-DQN: DQN with quantiles of returns.

Dabney et al. 2018, "Distributional Reinforcement Learning with Quantile Regression".
"""

from baselines.common.run.algorithm import preset
from baselines.dqn import dqn

learn = preset(dqn.learn, values="quantiles")
