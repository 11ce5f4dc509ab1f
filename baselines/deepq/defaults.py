"""What a kind of environment changes in the defaults of ``learn()``."""

from baselines.dqn import defaults


def atari():
    # OpenAI Baselines' deepq/defaults.py, but for dqn's larger memory.
    return dict(
        defaults.atari(),
        network="conv_only",
        prioritized_replay=True,
        hiddens=[256],
    )


def retro():
    return atari()  # As in OpenAI Baselines.


small = defaults.small
