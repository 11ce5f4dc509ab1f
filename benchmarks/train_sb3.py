"""Trains Stable-Baselines3 on a game with the settings of our algorithm.

    python -m benchmarks.train_sb3 --log_path=FOLDER --alg=a2c --env=PongNoFrameskip-v4

Takes the arguments of ``baselines.run``, for a2c or ppo2, and needs ``pip install
stable-baselines3``. FOLDER gets a config.json, files of all games (with lengths in
frames), and a row of progress.csv every 16,000 agent steps. An interrupted run begins
again.
"""

import csv
import json
import shlex
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import stable_baselines3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

from benchmarks import sb3

ROW_INTERVAL = 16_000  # agent steps
PRINT_CONFIG = """
import json, sys
from baselines.common.run.command_line import read_arguments
from baselines.common.saving.config import make_config
arguments = read_arguments(sys.argv[1:])
print(json.dumps(make_config(arguments.stored, arguments.command)))
"""


class Rows(BaseCallback):
    """Writes the mean return of the last 100 games."""

    def __init__(self, folder):
        super().__init__()
        self.file = open(folder / "progress.csv", "w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(["total_timesteps", "eprewmean", "fps"])
        self.number, self.start = 0, time.perf_counter()

    def _on_rollout_start(self):
        number = self.num_timesteps // ROW_INTERVAL
        if number > self.number:
            self.number = number
            games = [info["r"] for info in self.model.ep_info_buffer]
            fps = self.num_timesteps / (time.perf_counter() - self.start)
            mean = np.mean(games) if games else float("nan")
            self.writer.writerow([self.num_timesteps, mean, int(fps)])
            self.file.flush()

    def _on_step(self):
        return True


def train(argv) -> None:
    """Trains as a command line of ``baselines.run`` says."""
    # Not in this process, because PyTorch crashes beside TensorFlow.
    command = [sys.executable, "-c", PRINT_CONFIG, *argv, "--overwrite"]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    config = json.loads(run.stdout)
    config["command"] = shlex.join(["python", "-m", "benchmarks.train_sb3", *argv])
    for name in ("stable-baselines3", "torch"):
        config["versions"][name] = metadata.version(name)
    arguments = config["arguments"]
    folder = Path(arguments["log_path"]).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    env = make_atari_env(
        arguments["env"],
        arguments["num_env"],
        seed=arguments["seed"],
        monitor_dir=str(folder),
        vec_env_cls=SubprocVecEnv,
    )
    make_model = sb3.ALGORITHMS[arguments["alg"]]
    env = VecFrameStack(env, 4)
    model = make_model(stable_baselines3, "CnnPolicy", env, arguments)
    model.set_random_seed(arguments["seed"])
    model.learn(arguments["total_timesteps"], Rows(folder))


if __name__ == "__main__":
    train(sys.argv[1:])
