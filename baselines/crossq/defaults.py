"""Defaults of ``learn()`` that depend on the kind of environment."""

from baselines.sac import defaults

box2d = mujoco = defaults.mujoco
classic_control = other = defaults.classic_control

TASKS = {
    **defaults.TASKS,
    # Without sac's learning rate, which is not for crossq.
    "LunarLanderContinuous-v3": dict(total_timesteps=150_000, learning_starts=5000),
    # RL Baselines3 Zoo's gamma for SAC. A seed each was good after these steps.
    "BipedalWalker-v3": dict(total_timesteps=300_000, gamma=0.98),
    "Walker2d-v5": dict(total_timesteps=300_000),
}

small, tune = defaults.small, defaults.tune
