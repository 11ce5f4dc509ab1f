"""Stable-Baselines3's A2C on Pong with the settings of ours, as a control.

    python results/a2c_pong_sb3.py progress.csv     (pip install stable-baselines3)

The same network, optimiser (RMSpropTFLike), coefficients, 16 environments, and a
learning rate that falls to 0 over 10 million agent steps. Writes a row for each 16,000.
"""

import csv
import sys
import time

import ale_py
import gymnasium as gym
import numpy as np
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

gym.register_envs(ale_py)


class Rows(BaseCallback):
    """Writes the mean return of the last 100 games."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.writer = csv.writer(file)
        self.writer.writerow(["total_timesteps", "eprewmean", "fps"])
        self.start = time.perf_counter()

    def _on_step(self):
        if self.num_timesteps % 16_000 == 0:
            games = [info["r"] for info in self.model.ep_info_buffer]
            mean = np.mean(games) if games else float("nan")
            fps = self.num_timesteps / (time.perf_counter() - self.start)
            self.writer.writerow([self.num_timesteps, mean, int(fps)])
            self.file.flush()
        return True


def main(path):
    env = make_atari_env("PongNoFrameskip-v4", 16, seed=0, vec_env_cls=SubprocVecEnv)
    model = A2C(
        "CnnPolicy",
        VecFrameStack(env, 4),
        learning_rate=lambda remaining: 7e-4 * remaining,
        n_steps=5,
        gamma=0.99,
        vf_coef=0.5,
        ent_coef=0.01,
        max_grad_norm=0.5,
        seed=0,
        policy_kwargs=dict(
            optimizer_class=RMSpropTFLike,
            optimizer_kwargs=dict(alpha=0.99, eps=1e-5),
        ),
    )
    with open(path, "w", newline="") as file:
        model.learn(10_000_000, Rows(file))


if __name__ == "__main__":
    main(sys.argv[1])
