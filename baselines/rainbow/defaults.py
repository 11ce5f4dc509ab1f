"""What a kind of environment changes in the defaults of ``learn()``."""

from baselines.dqn import defaults


def atari():
    # Hessel et al. 2018, table 1, with the smaller memory of dqn's preset. The paper's
    # streams of 512 units begin at the convolutions; these stand behind the Nature
    # network's dense layer, which they share.
    return dict(
        defaults.atari(),
        lr=6.25e-5,
        adam_epsilon=1.5e-4,
        target_network_update_freq=8000,
        learning_starts=20_000,
        hiddens=[256],
    )


def retro():
    return atari()


small = defaults.small
