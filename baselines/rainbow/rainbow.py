"""Rainbow: all extensions of DQN combined.

Hessel et al. 2018, "Rainbow: Combining Improvements in Deep Reinforcement Learning".
"""

from baselines.common.run.algorithm import preset
from baselines.dqn import dqn

learn = preset(
    dqn.learn,
    double_q=True,
    dueling=True,
    prioritized_replay=True,
    prioritized_replay_alpha=0.5,
    n_step=3,
    noisy=True,
    values="categorical",
)
