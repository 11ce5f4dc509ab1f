"""What a kind of environment changes in the defaults of ``learn()``.

A function for each environment type. The key ``env`` holds what the algorithm needs of
the environment; all others are arguments of ``learn()`` or of the network.
"""


def atari():
    return dict(
        # 16 actors, as in Mnih et al. 2016. OpenAI Baselines took one for each
        # core, so that its results depended on the machine.
        env=dict(num_env=16),
    )


def mujoco():
    # OpenAI Baselines normalised them by a wrapper, for every algorithm.
    return dict(env=dict(normalize_rewards=True), normalize_observations=True)


def retro():
    # OpenAI Baselines had one environment for each core here as well.
    return atari()


def small():
    """Settings for tests: short updates, and rows often."""
    return dict(nsteps=4, log_interval=20)
