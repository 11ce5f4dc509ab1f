"""What a kind of environment changes in the defaults of ``learn()``.

A function for each environment type. The key ``env`` holds what the algorithm needs of
the environment; all others are arguments of ``learn()`` or of the network.
"""


def atari():
    return dict(
        # Eight play while one optimiser trains; updates to an agent step are the same.
        env=dict(num_env=8),
        # Numbers of OpenAI Baselines' deepq/defaults.py, but for the memory, which is
        # that of RL Baselines3 Zoo: ten times as large.
        buffer_size=100_000,
        learning_starts=10_000,
        lr=1e-4,
        batch_size=32,
        train_freq=4,
        target_network_update_freq=1000,
        gamma=0.99,
        exploration_fraction=0.1,
        exploration_final_eps=0.01,
        # The Nature network ends in 512 units of its own.
        hiddens=[],
        print_freq=10,
    )


def retro():
    return atari()  # As in OpenAI Baselines.


def small():
    """Settings for tests: short updates, and rows often."""
    return dict(learning_starts=100, buffer_size=1000, print_freq=5)
