"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type. The key ``env`` holds settings of the
environment itself; all other keys are arguments of ``learn()`` or of the network.
"""


def atari():
    return dict(
        # Found on Pong: fewer mean more updates per agent step. Mnih et al. 2016 had
        # 16 actors; OpenAI Baselines one per core, so it depended on the machine.
        env=dict(num_env=4),
    )


def mujoco():
    # OpenAI Baselines normalised both in a wrapper, for every algorithm.
    return dict(env=dict(normalize_rewards=True), normalize_observations=True)


def classic_control():
    # Found on CartPole, tried on Acrobot and Pendulum: see docs/algorithms/a2c.md.
    return dict(env=dict(num_env=2), ent_coef=0.0, lr=5e-3, value_network="copy")


def retro():
    # OpenAI Baselines used one environment per core here as well.
    return atari()


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(nsteps=4, log_interval=20)
