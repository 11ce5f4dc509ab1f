"""What a kind of environment changes in the defaults of ``learn()``."""

from baselines.dqn import defaults


def atari():
    # Hessel et al. 2018, table 1, with the smaller memory of dqn's preset.
    return dict(
        defaults.atari(),
        lr=6.25e-5,
        adam_epsilon=1.5e-4,
        target_network_update_freq=8000,
    )


def retro():
    return atari()
