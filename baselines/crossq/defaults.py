"""Defaults of ``learn()`` that depend on the kind of environment."""

from baselines.sac import defaults

box2d = mujoco = defaults.mujoco
classic_control = other = defaults.classic_control

TASKS = {
    "Pendulum-v1": dict(total_timesteps=20_000),
    # RL Baselines3 Zoo's gamma for SAC. A seed each was good after these steps.
    "BipedalWalker-v3": dict(total_timesteps=300_000, gamma=0.98),
    "Walker2d-v5": dict(total_timesteps=300_000),
    # As in sac.
    "InvertedPendulum-v5": dict(total_timesteps=50_000),
    "InvertedDoublePendulum-v5": dict(total_timesteps=100_000),
    "Reacher-v5": dict(total_timesteps=200_000),
}

small, tune = defaults.small, defaults.tune
