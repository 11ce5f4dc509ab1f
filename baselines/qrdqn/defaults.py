"""Defaults of ``learn()`` that depend on the kind of environment."""

from baselines.dqn import defaults

atari = retro = defaults.atari
toy_text = defaults.toy_text


def classic_control():
    # RL Baselines3 Zoo's quantiles for Acrobot-v1 and MountainCar-v0, which take less
    # time than the paper's 200.
    return dict(defaults.classic_control(), num_quantiles=25)


TASKS = defaults.TASKS
small = defaults.small
