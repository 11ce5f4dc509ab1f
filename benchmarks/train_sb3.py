"""Trains Stable-Baselines3 on a game with the settings of our algorithm.

    python -m benchmarks.train_sb3 --log_path=FOLDER --alg=a2c --env=PongNoFrameskip-v4

Takes the arguments of ``baselines.run``, for a2c or ppo2, and needs ``pip install
stable-baselines3``. FOLDER gets a config.json, files of all games (with lengths in
frames), a row of progress.csv every 16,000 agent steps and a model every 96,000. The
same command continues an interrupted run from its last model, with new games, whose
times count from then on.
"""

import csv
import json
import os
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

from baselines.common.arguments import cli
from baselines.common.base.errors import UserValueError
from baselines.common.saving.config import add_start
from benchmarks import sb3, tables

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
        mode = "a" if self.num_timesteps else "w"
        self.file = open(self.folder / "progress.csv", mode, newline="")
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
            path = self.folder / f"{self.num_timesteps:012d}.zip"
            self.model.save(self.folder / "new.zip")
            os.replace(self.folder / "new.zip", path)  # complete, or not there

    def _on_step(self):
        return True


def write_config(folder, config, command, continued) -> None:
    """Writes a run's config.json.

    Args:
        folder: the run's folder.
        config: its content if the run starts now.
        command: the command of this program.
        continued: whether the run started before.
    """
    if continued:
        config = tables.read_json(folder / "config.json")
        add_start(config, None, None)
    start = config["resumed"][-1] if continued else config
    start["command"] = command
    for name in ("stable-baselines3", "torch"):
        start["versions"][name] = metadata.version(name)
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def restore(model, path, progress) -> None:
    """Restores the saved model of a run, and removes the later rows of its progress."""
    model.set_parameters(path)
    model.num_timesteps = int(path.stem)
    header, *rows = tables.read_lines(progress)
    kept = [row for row in rows if int(row.split(",")[0]) <= model.num_timesteps]
    progress.write_text("\n".join([header, *kept, ""]))


def read_config(argv) -> dict:
    """Returns the config.json that a command line of ``baselines.run`` would have."""
    # Not in this process, because PyTorch crashes beside TensorFlow.
    command = [sys.executable, "-m", "benchmarks.print_config", *argv, "--overwrite"]
    found = subprocess.run(command, stdout=subprocess.PIPE)
    if found.returncode:
        sys.exit(found.returncode)
    return json.loads(found.stdout)


def train(argv) -> None:
    """Trains as a command line of ``baselines.run`` says."""
    if not any(word.split("=")[0] == "--log_path" for word in argv):
        raise UserValueError("--log_path=FOLDER is missing")
    config = read_config(argv)
    arguments = config["arguments"]
    if arguments["alg"] not in ("a2c", "ppo2") or arguments["env_type"] != "atari":
        raise UserValueError(
            "--alg has to be a2c or ppo2, and --env a game of ALE; received "
            f"{arguments['alg']} and {arguments['env']}"
        )
    folder = Path(arguments["log_path"]).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.train_sb3", *argv])
    path = folder / "config.json"
    if path.exists() and (there := tables.read_json(path)["command"]) != command:
        raise UserValueError(f"{folder} has another run: {there}")
    saved = sorted(folder.glob("*[0-9].zip"))
    write_config(folder, config, command, bool(saved))
    env = make_atari_env(
        arguments["env"],
        arguments["num_env"],
        seed=arguments["seed"],
        monitor_dir=str(folder),
        vec_env_cls=SubprocVecEnv,
        monitor_kwargs=dict(override_existing=not saved),
    )
    make_model = sb3.ALGORITHMS[arguments["alg"]]
    env = VecFrameStack(env, 4)
    model = make_model(stable_baselines3, "CnnPolicy", env, config["settings"])
    model.set_random_seed(arguments["seed"])
    if saved:
        restore(model, saved[-1], folder / "progress.csv")
    left = arguments["num_timesteps"] - model.num_timesteps
    model.learn(left, Rows(folder), reset_num_timesteps=not saved)


if __name__ == "__main__":
    with cli.one_line_errors():
        train(sys.argv[1:])
