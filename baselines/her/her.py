"""Hindsight experience replay on DDPG, as in OpenAI Baselines' her.

Andrychowicz et al. 2017, "Hindsight Experience Replay"; Plappert et al. 2018,
"Multi-Goal Reinforcement Learning". ``replay_k`` adds it to td3, sac and dqn.
"""

from baselines.common.run.algorithm import preset
from baselines.ddpg import ddpg

# The numbers of OpenAI Baselines' her/experiment/config.py for episodes of 50 steps: in
# each cycle, two environments play an episode each, and 40 optimiser steps follow. It
# moved the target network once per cycle, by 0.05.
learn = preset(
    ddpg.learn,
    replay_k=4,
    clip_return=True,
    normalize_observations=True,
    actor_lr=1e-3,
    critic_lr=1e-3,
    critic_l2_reg=0.0,
    action_l2=1.0,
    random_eps=0.3,
    noise_type="normal_0.2",
    nb_rollout_steps=100,
    nb_train_steps=40,
    batch_size=256,
    tau=0.05 / 40,
    gamma=0.98,
)
