"""Defaults of ``learn()`` that depend on the kind of environment."""

from baselines.dqn import defaults


def atari():
    # OpenAI Baselines' deepq/defaults.py, except for dqn's larger memory.
    return dict(
        defaults.atari(),
        network="conv_only",
        prioritized_replay=True,
        hiddens=[256],
    )


retro = atari  # As in OpenAI Baselines.


classic_control = defaults.classic_control
toy_text = defaults.toy_text
TASKS = defaults.TASKS


small = defaults.small
