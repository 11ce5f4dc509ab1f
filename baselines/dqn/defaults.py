"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def atari():
    return dict(
        # Eight play while one optimiser trains; updates per agent step stay the same.
        num_env=8,
        # The numbers of OpenAI Baselines' deepq/defaults.py, except for the memory: its
        # size is RL Baselines3 Zoo's, ten times as large.
        buffer_size=100_000,
        learning_starts=10_000,
        lr=1e-4,
        batch_size=32,
        train_freq=4,
        target_network_update_freq=1000,
        gamma=0.99,
        exploration_fraction=0.1,
        exploration_final_eps=0.01,
        # The Nature network already ends in a layer of 512 units.
        hiddens=[],
        print_freq=10,
    )


retro = atari  # As in OpenAI Baselines.


def classic_control():
    # RL Baselines3 Zoo's settings for CartPole-v1, with twice the steps, and a lower
    # learning rate that falls: with 2.3e-3, some seeds end below 100.
    return dict(
        total_timesteps=100_000,
        num_hidden=256,
        activation="relu",
        hiddens=[],
        buffer_size=100_000,
        learning_starts=1000,
        lr="linear:1e-3",
        batch_size=64,
        train_freq=256,
        gradient_steps=128,
        target_network_update_freq=10,
        exploration_fraction=0.16,
        exploration_final_eps=0.04,
    )


def toy_text():
    # Found by one seed of each of Gymnasium's four.
    return dict(
        classic_control(),
        total_timesteps=300_000,
        num_layers=1,
        num_hidden=128,
        double_q=True,
        train_freq=4,
        gradient_steps=2,
        target_network_update_freq=500,
        exploration_fraction=0.5,
        exploration_final_eps=0.05,
    )


# RL Baselines3 Zoo's settings, with more steps, a larger memory and a learning rate
# that falls; that of LunarLander is higher as well.
TASKS = {
    # On top of classic_control(), and with three-step double Q-learning.
    "MountainCar-v0": dict(
        total_timesteps=200_000,
        double_q=True,
        n_step=3,
        batch_size=128,
        train_freq=16,
        gradient_steps=8,
        target_network_update_freq=600,
        exploration_fraction=0.2,
        exploration_final_eps=0.07,
    ),
    "LunarLander-v3": dict(
        classic_control(),
        total_timesteps=200_000,
        batch_size=128,
        train_freq=4,
        gradient_steps=4,
        target_network_update_freq=250,
        exploration_fraction=0.12,
        exploration_final_eps=0.1,
    ),
}


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(
        learning_starts=100,
        buffer_size=1000,
        batch_size=32,
        train_freq=1,
        gradient_steps=1,
        print_freq=5,
    )
