"""Defaults of ``learn()`` that depend on the kind of environment."""

from baselines.ddpg import defaults


def gymnasium_robotics():
    # OpenAI Baselines' networks. Each of its 19 ranks had two environments.
    return dict(
        num_env=2,
        num_layers=3,
        num_hidden=256,
        activation="relu",
    )


def small():
    # In the contract tests, environments have no goals, rewards are positive, and some
    # observations are images.
    return dict(
        defaults.small(), replay_k=0, clip_return=False, normalize_observations=False
    )
