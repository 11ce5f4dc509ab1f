"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def mujoco():
    # From the code of Fujimoto et al. 2018.
    return dict(
        # Four play while one optimiser trains; updates per agent step stay the same.
        num_env=4,
        num_layers=2,
        num_hidden=256,
        activation="relu",
        learning_starts=25_000,
    )


box2d = mujoco  # BipedalWalker and LunarLander are of a similar size.


def classic_control():
    # The same, with fewer random actions: 1000 are five episodes of Pendulum.
    return dict(mujoco(), learning_starts=1000)


other = classic_control

TASKS = {
    # Steps and noise of RL Baselines3 Zoo, whose car takes 300,000 steps.
    "Pendulum-v1": dict(total_timesteps=20_000),
    "MountainCarContinuous-v0": dict(total_timesteps=60_000, noise_type="ou_0.5"),
    # A small robot needs fewer steps than the million of others; one seed was tried.
    "InvertedPendulum-v5": dict(total_timesteps=60_000),
}


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(learning_starts=100, buffer_size=1000, batch_size=32, print_freq=1)
