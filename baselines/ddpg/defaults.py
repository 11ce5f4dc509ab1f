"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def mujoco():
    # "Our DDPG" of Fujimoto et al. 2018, with networks and batches as in td3. OpenAI
    # Baselines had no defaults besides those of ``learn()``.
    return dict(
        # Four play while one optimiser trains; updates per agent step stay the same.
        num_env=4,
        num_layers=2,
        num_hidden=256,
        activation="relu",
        actor_lr=1e-3,
        critic_lr=1e-3,
        critic_l2_reg=0.0,
        nb_rollout_steps=1,
        nb_train_steps=1,
        noise_type="normal_0.1",
        batch_size=256,
        learning_starts=25_000,
        tau=0.005,
    )


box2d = mujoco  # BipedalWalker and LunarLander are of a similar size.


def classic_control():
    # Fewer random actions, as 1000 are five episodes of Pendulum, and OpenAI Baselines'
    # noise: with less, some seeds never swing up from every state.
    return dict(mujoco(), learning_starts=1000, noise_type="normal_0.2")


other = classic_control

TASKS = {
    # Steps and noise of RL Baselines3 Zoo, whose car takes 300,000 steps.
    "Pendulum-v1": dict(total_timesteps=20_000),
    "MountainCarContinuous-v0": dict(total_timesteps=60_000, noise_type="ou_0.5"),
    # Small robots need fewer steps than the million of others; one seed was tried.
    "InvertedPendulum-v5": dict(total_timesteps=60_000),
    "InvertedDoublePendulum-v5": dict(total_timesteps=100_000),
}


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(
        learning_starts=100,
        buffer_size=1000,
        batch_size=32,
        nb_rollout_steps=2,
        nb_train_steps=2,
        print_freq=1,
    )
