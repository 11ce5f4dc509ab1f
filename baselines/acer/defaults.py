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
    # Tried on CartPole-v1. Rewards as they are, 1 or -1 a step, make action values of
    # 100, whose errors keep the layers shared with the policy from learning Acrobot.
    return dict(
        total_timesteps=200_000,
        num_env=2,
        reward_scale=0.1,
        lr=5e-3,
        replay_start=1000,
    )


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(
        nsteps=8, replay_start=100, replay_ratio=2, buffer_size=1000, log_interval=20
    )
