"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def atari():
    # The authors' settings for Atari, with a quarter of their 128 environments.
    return dict(num_env=32, nsteps=32, layer_norm=True)


retro = atari


def other():
    # The authors' settings for CartPole-v1, with a quarter of their 32 environments,
    # half the steps of a rollout, five times the learning rate (found by five seeds of
    # 30,000 steps), and without their factor of 0.1 on rewards.
    return dict(
        num_env=8,
        nminibatches=16,
        noptepochs=4,
        lr="linear:5e-4",
        lam=0.95,
        exploration_fraction=0.2,
        exploration_final_eps=0.2,
        num_hidden=256,
        activation="relu",
        layer_norm=True,
    )


def classic_control():
    # The authors' steps for CartPole-v1.
    return dict(other(), total_timesteps=500_000)


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(nsteps=4, nminibatches=2, log_interval=20)
