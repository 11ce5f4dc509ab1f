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


def classic_control():
    # Tried on CartPole-v1: three seeds balance it for 500 steps after 30,000.
    return dict(env=dict(num_env=2), lr=5e-3, replay_start=1000)


def small():
    """Settings for tests: short updates, and rows often."""
    return dict(
        nsteps=8, replay_start=100, replay_ratio=2, buffer_size=1000, log_interval=20
    )
