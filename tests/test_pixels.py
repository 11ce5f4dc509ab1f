"""Every algorithm learns from pixels, with the optimiser of its own Atari settings.

The whole path is in it: uint8 frames, frame stack, cnn, replay memory. What is changed
are only numbers that are made for millions of agent steps.
"""

import pytest
from conftest import long, slow
from toy_envs import Catch

from baselines import a2c, dqn, ppo2, rainbow
from baselines.a2c import defaults as a2c_defaults
from baselines.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor
from baselines.dqn import defaults as dqn_defaults
from baselines.ppo2 import defaults as ppo2_defaults
from baselines.rainbow import defaults as rainbow_defaults

SHORT = dict(
    buffer_size=10_000,
    learning_starts=500,
    target_network_update_freq=500,
)


@pytest.mark.parametrize(
    ("learn", "settings", "total_timesteps"),
    [
        long(a2c.learn, a2c_defaults.atari(), 300_000),
        slow(ppo2.learn, ppo2_defaults.atari(), 60_000),
        (dqn.learn, dqn_defaults.atari() | SHORT, 10_000),
        long(rainbow.learn, rainbow_defaults.atari() | SHORT, 10_000),
    ],
    ids=["a2c", "ppo2", "dqn", "rainbow"],
)
def test_a_falling_ball_is_caught(learn, settings, total_timesteps):
    num_env = settings.pop("num_env")
    env = VecFrameStack(VecMonitor(DummyVecEnv([Catch] * num_env)), 4)
    seen = []

    def callback(local_variables, global_variables):
        episodes = local_variables["run"].episodes
        seen.append(episodes.mean("r") if episodes.count >= 100 else -1.0)
        return seen[-1] > 0.8

    learn(
        env=env,
        network="cnn",
        seed=0,
        total_timesteps=total_timesteps,
        callback=callback,
        **settings,
    )
    # Staying in the middle catches about one in three: a mean of -0.4.
    assert seen[-1] > 0.8
