"""Defaults of ``learn()`` that depend on the kind of environment."""

from baselines.trpo import defaults


def mujoco():
    # OpenAI Baselines' networks, which normalised observations.
    return dict(num_hidden=100, num_layers=2, normalize_observations=True)


def small():
    # Toy environments have no expert.
    return dict(defaults.small(), reward="environment")
