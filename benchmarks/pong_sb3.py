"""Stable-Baselines3 on Pong with the settings of our algorithms, for comparison.

    python -m benchmarks.pong_sb3 ALG NUM_TIMESTEPS FOLDER

ALG is a2c or ppo2, with our defaults for Atari; needs pip install stable-baselines3.
Writes a row of FOLDER/progress.csv every 16,000 agent steps and saves the model every
96,000. If it is started again with the same arguments, it continues from the last saved
model, with new games.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

from baselines.common.parsing import parse
from benchmarks import sb3

ROW_INTERVAL = 16_000  # agent steps
SAVE_INTERVAL = 6  # rows


class Rows(BaseCallback):
    """Writes the mean return of the last 100 games, and saves the model."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def _on_training_start(self):
        self.start = time.perf_counter(), self.num_timesteps
        self.number = self.num_timesteps // ROW_INTERVAL
        self.file = open(self.folder / "progress.csv", "a", newline="")
        self.writer = csv.writer(self.file)
        if self.num_timesteps == 0:
            self.writer.writerow(["total_timesteps", "eprewmean", "fps"])

    def _on_rollout_start(self):
        number = self.num_timesteps // ROW_INTERVAL
        if number == self.number:
            return
        self.number = number
        games = [info["r"] for info in self.model.ep_info_buffer]
        seconds = time.perf_counter() - self.start[0]
        fps = (self.num_timesteps - self.start[1]) / seconds
        mean = np.mean(games) if games else float("nan")
        self.writer.writerow([self.num_timesteps, mean, int(fps)])
        self.file.flush()
        if number % SAVE_INTERVAL == 0:
            self.model.save(self.folder / f"{self.num_timesteps:012d}.zip")

    def _on_step(self):
        return True


def main(alg, num_timesteps, folder):
    folder, total = Path(folder), int(float(num_timesteps))
    folder.mkdir(parents=True, exist_ok=True)
    argv = [f"--alg={alg}", "--env=PongNoFrameskip-v4", f"--num_timesteps={total}"]
    settings = parse(argv)
    env = make_atari_env(
        settings.env, settings.num_env, seed=0, vec_env_cls=SubprocVecEnv
    )
    make_model = sb3.ALGORITHMS[alg]
    model = make_model("CnnPolicy", VecFrameStack(env, 4), settings.learn_arguments)
    model.set_random_seed(0)
    saved = sorted(folder.glob("*.zip"))
    if saved:
        model.set_parameters(saved[-1])
        model.num_timesteps = int(saved[-1].stem)
        path = folder / "progress.csv"
        header, *rows = path.read_text().splitlines()
        kept = [row for row in rows if int(row.split(",")[0]) <= model.num_timesteps]
        path.write_text("\n".join([header, *kept, ""]))
    left = total - model.num_timesteps
    model.learn(left, Rows(folder), reset_num_timesteps=not saved)


if __name__ == "__main__":
    main(*sys.argv[1:])
