"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def atari():
    # The batch of 640 that OpenAI Baselines had on 32 cores.
    return dict(num_env=32)


retro = atari  # OpenAI Baselines had no defaults for it.


def mujoco():
    # OpenAI Baselines' acktr/defaults.py; its wrapper normalised observations and
    # rewards. An update of 2500 steps takes much longer than a decomposition.
    return dict(
        normalize_rewards=True,
        nsteps=2500,
        kfac_update=1,
        value_network="copy",
        normalize_observations=True,
    )


def classic_control():
    # OpenAI Baselines' test on CartPole had a separate value network, too.
    return dict(
        total_timesteps=200_000, num_env=8, nsteps=16, value_network="copy", lr=0.25
    )


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(nsteps=4, log_interval=5)
