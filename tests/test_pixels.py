"""Every algorithm learns from pixels, with the optimiser of its own Atari settings.

The whole path is in it: uint8 frames, frame stack, cnn, replay memory. What is changed
are only numbers that are made for millions of agent steps.
"""

import pytest
from conftest import long, slow
from toy_envs import Catch

from baselines.common.arguments.discovery import find_algorithm, find_defaults
from baselines.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor

SHORT = dict(
    buffer_size=10_000,
    learning_starts=500,
    target_network_update_freq=500,
)


@pytest.mark.parametrize(
    ("alg", "settings", "total_timesteps"),
    [
        long("a2c", {}, 300_000),
        slow("ppo2", {}, 60_000),
        ("dqn", SHORT, 10_000),
        long("rainbow", SHORT, 10_000),
    ],
    scope="module",
)
def test_a_falling_ball_is_caught(alg, learn, settings, total_timesteps):
    settings = find_defaults(find_algorithm(alg), "atari") | settings
    num_env = settings.pop("num_env")
    env = VecFrameStack(VecMonitor(DummyVecEnv([Catch] * num_env)), 4)
    runs = []
    learn(
        env=env,
        network="cnn",
        seed=0,
        total_timesteps=total_timesteps,
        stop_at=0.81,
        on_update=runs.append,
        **settings,
    )
    # Staying in the middle catches about one in three: a mean of -0.4.
    assert runs[-1].episodes.mean("r") > 0.8
