"""What a kind of environment changes in the defaults of ``learn()``.

A function for each environment type. The key ``env`` holds what the algorithm needs of
the environment; all others are arguments of ``learn()`` or of the network.
"""


def atari():
    return dict(
        # The paper's 16 actors. OpenAI Baselines took one for each core, so that its
        # results depended on the machine.
        env=dict(num_env=16),
        lrschedule="constant",  # As in OpenAI Baselines.
        # As dqn. The paper's 50,000 for each actor would take 5.6 GB.
        buffer_size=100_000,
    )


def retro():
    return atari()


def small():
    """Settings for tests: short updates, and rows often."""
    settings = dict(replay_start=100, replay_ratio=2, buffer_size=1000)
    return dict(settings, nsteps=8, log_interval=20)
