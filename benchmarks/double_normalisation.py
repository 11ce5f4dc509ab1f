"""Measures the cost of scaling frames twice, compared with keeping them uint8.

    python -m benchmarks.double_normalisation

Trains A2C on Pong both ways in turn and prints agent steps/s and bytes uploaded. "ours"
is the usual stack. "twice" does what OpenAI Baselines does for retro games: a wrapper
divides every frame by 255 and returns float32, which is stacked and sent to the device,
and the network divides by 255 again.
"""

import argparse
import json
import statistics
from pathlib import Path

import gymnasium as gym
import keras
import numpy as np

from baselines import logger
from baselines.a2c import learn
from baselines.common.envs import make_env
from baselines.common.networks.networks import cnn
from baselines.common.vec_env import SubprocVecEnv, VecFrameStack
from benchmarks.rates import Clock
from benchmarks.throughput import counted_uploads

NUM_ENV = 16


class ScaledFloatFrame(gym.ObservationWrapper):
    """Divides frames by 255 on the host."""

    def __init__(self, env):
        super().__init__(env)
        shape = env.observation_space.shape
        self.observation_space = gym.spaces.Box(0, 1, shape, np.float32)

    def observation(self, obs):
        return np.asarray(obs, np.float32) / 255.0


def cnn_that_scales_again():
    return keras.Sequential([keras.layers.Rescaling(1 / 255), cnn()])


def make_envs(wrapper):
    def env_fn(i):
        return lambda: wrapper(make_env("PongNoFrameskip-v4", seed=i))

    return VecFrameStack(SubprocVecEnv([env_fn(i) for i in range(NUM_ENV)]), 4)


def measure(env, network, seconds):
    """Returns (agent steps/s, bytes uploaded per agent step) of A2C."""
    clock, steps = Clock(seconds), []

    def callback(local_variables, global_variables):
        steps.append(local_variables["num_timesteps"])
        return clock.is_over(steps[-1])

    with counted_uploads() as uploaded:
        learn(
            env=env, network=network, seed=0, callback=callback, checkpoint_interval=0
        )
    return clock.rate, sum(uploaded) / steps[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", help="where to write the figures")
    args = parser.parse_args()
    ours = make_envs(lambda env: env), "cnn"
    twice = make_envs(ScaledFloatFrame), cnn_that_scales_again
    results = {"ours": [], "twice": []}
    with logger.scoped_configure(format_strs=[]):
        for _ in range(args.repeats):
            for found, (env, network) in zip(results.values(), (ours, twice)):
                found.append(measure(env, network, args.seconds))
    for name, figures in results.items():
        fps = statistics.median(fps for fps, _ in figures)
        print(f"{name:5}  {fps:,.0f} steps/s  {figures[0][1]:,.0f} bytes/step uploaded")
    ratios = [a[0] / b[0] for a, b in zip(results["ours"], results["twice"])]
    print(f"ours / twice: {statistics.median(ratios):.2f} (median of {len(ratios)})")
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
