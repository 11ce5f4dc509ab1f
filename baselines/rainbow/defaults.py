"""Defaults of ``learn()`` that depend on the kind of environment."""

from baselines.dqn import defaults


def atari():
    # Numbers for runs below a million agent steps. Those of Hessel et al. 2018, table
    # 1, are for 50 million: with them, nothing was learned on Pong in 300,000. Half the
    # paper's range of returns is enough for such runs, and is learned sooner. The
    # paper's streams of 512 units begin at the convolutions; these follow the Nature
    # network's dense layer, which they share.
    return dict(defaults.atari(), lr=2.5e-4, hiddens=[256], v_min=-5.0, v_max=5.0)


retro = atari


def classic_control():
    # Rewards of 1 or -1 a step, discounted by 0.99, add up to 100 at most.
    return dict(defaults.classic_control(), v_min=-100.0, v_max=100.0)


small = defaults.small
