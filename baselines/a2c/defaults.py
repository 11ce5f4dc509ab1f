"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def atari():
    return dict(
        # Found on Pong: fewer mean more updates per agent step. Mnih et al. 2016 had
        # 16 actors; OpenAI Baselines one per core, so it depended on the machine.
        num_env=4,
    )


def mujoco():
    # OpenAI Baselines normalised both in a wrapper, for every algorithm.
    return dict(normalize_rewards=True, normalize_observations=True)


def classic_control():
    # Found on CartPole, tried on Acrobot and Pendulum: see docs/algorithms/a2c.md.
    return dict(
        total_timesteps=200_000,
        num_env=2,
        ent_coef=0.0,
        lr=5e-3,
        value_network="copy",
    )


retro = atari  # OpenAI Baselines used one environment per core here as well.


def other():
    # Separate networks as for classic control, and as in Stable-Baselines3.
    return dict(value_network="copy")


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(nsteps=4, log_interval=20)
