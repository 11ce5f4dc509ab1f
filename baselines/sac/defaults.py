"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def mujoco():
    # Haarnoja et al. 2018, table 1. Initial random actions as in the authors' code.
    return dict(
        # Four play while one optimiser trains; updates per agent step stay the same.
        num_env=4,
        num_layers=2,
        num_hidden=256,
        activation="relu",
        learning_starts=10_000,
    )


box2d = mujoco  # BipedalWalker and LunarLander are of a similar size.


def classic_control():
    # The same, with fewer random actions: 1000 are five episodes of Pendulum.
    return dict(mujoco(), learning_starts=1000)


other = classic_control

TASKS = {
    # RL Baselines3 Zoo's, whose lander takes 500,000 steps, the first 10,000 at random.
    "Pendulum-v1": dict(total_timesteps=20_000),
    "LunarLanderContinuous-v3": dict(
        total_timesteps=150_000, lr="linear:7.3e-4", tau=0.01, learning_starts=5000
    ),
    # Small robots need fewer steps than the million of others.
    "InvertedPendulum-v5": dict(total_timesteps=60_000),
    "InvertedDoublePendulum-v5": dict(total_timesteps=100_000),
    "Reacher-v5": dict(total_timesteps=200_000),
    "Pusher-v5": dict(total_timesteps=200_000),
}


def tune():
    """Ranges for ``baselines.tune``, around the settings for the kinds above."""
    return dict(
        lr="log:1e-5..1e-2",
        batch_size="[64,128,256,512]",
        tau="log:1e-3..1e-1",
        gamma="[0.9,0.98,0.99,0.999]",
    )


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(learning_starts=100, buffer_size=1000, batch_size=32, print_freq=1)
