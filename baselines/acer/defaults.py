"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def atari():
    return dict(
        # The paper's 16 actors. OpenAI Baselines used one per core, so its results
        # depended on the machine.
        num_env=16,
        lrschedule="constant",  # As in OpenAI Baselines.
        # As in dqn. The paper's 50,000 per actor would take 5.6 GB.
        buffer_size=100_000,
    )


retro = atari


def classic_control():
    # Tried on CartPole-v1 and Acrobot-v1. Action values reach 100 and -100; with 0.5 as
    # q_coef, their loss outweighs the policy's, and Acrobot is not learned.
    return dict(
        total_timesteps=200_000, num_env=2, lr=5e-3, q_coef=0.005, replay_start=1000
    )


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(
        nsteps=8, replay_start=100, replay_ratio=2, buffer_size=1000, log_interval=20
    )
