"""What a kind of environment changes in the defaults of ``learn()``.

A function for each environment type. The key ``env`` holds what the algorithm needs of
the environment; all others are arguments of ``learn()`` or of the network.
"""


def atari():
    # The batch of 640 that OpenAI Baselines had on 32 cores.
    return dict(env=dict(num_env=32))


def retro():
    return atari()  # OpenAI Baselines had none.


def mujoco():
    # OpenAI Baselines' acktr/defaults.py; its wrapper normalised observations and
    # rewards.
    return dict(
        env=dict(normalize_rewards=True),
        nsteps=2500,
        value_network="copy",
        normalize_observations=True,
    )


def classic_control():
    # OpenAI Baselines' test on CartPole had a value network of its own, too.
    return dict(env=dict(num_env=8), nsteps=16, value_network="copy", lr=0.25)


def small():
    """Settings for tests: short updates, and rows often."""
    return dict(nsteps=4, log_interval=5)
