"""DQN as OpenAI Baselines' deepq had it: double and dueling."""

from baselines.common.algorithm import preset
from baselines.dqn import dqn

learn = preset(dqn.learn, double_q=True, dueling=True)
