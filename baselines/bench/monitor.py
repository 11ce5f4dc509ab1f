"""Episode results of one environment, written to a CSV file."""

import csv
import json
import os
import time

import gymnasium as gym


class Monitor(gym.Wrapper):
    """Records return, length and time of every episode.

    The result is put in ``info["episode"]`` of the last step and, where there
    is a file name, appended to ``<filename>.monitor.csv``. The format is that
    of OpenAI Baselines, which many tools read: a comment line of JSON, the
    header ``r,l,t``, and a row an episode.

    Args:
        env: the environment; rewards are recorded as it gives them.
        filename: path without ``.monitor.csv``, or None for no file. The file
            appears with the first reset.
        allow_early_resets: whether ``reset`` may come before an episode ends.
            The unfinished episode is then not recorded.
        info_keywords: names in the last step's info to record as well.

    Raises:
        RuntimeError: from ``reset``, before the end of an episode, if
            ``allow_early_resets`` is false.
    """

    EXT = "monitor.csv"

    def __init__(self, env, filename, allow_early_resets=False, info_keywords=()):
        super().__init__(env)
        self.allow_early_resets = allow_early_resets
        self.info_keywords = info_keywords
        self.t_start = time.time()
        self.writer = None
        if filename is not None:
            env_id = env.spec.id if env.spec else None
            header = {"t_start": self.t_start, "env_id": env_id}
            self.writer = ResultsWriter(filename, header, info_keywords)
        self.episode_return = 0.0
        self.episode_length = 0

    def reset(self, **kwargs):
        if self.episode_length and not self.allow_early_resets:
            raise RuntimeError(
                "reset() before the end of an episode; pass allow_early_resets=True "
                "to Monitor if that is meant"
            )
        self.episode_return, self.episode_length = 0.0, 0
        obs, info = self.env.reset(**kwargs)
        if self.writer:
            self.writer.open()
        return obs, info

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.episode_return += float(reward)
        self.episode_length += 1
        if terminated or truncated:
            result = episode_result(
                self.episode_return, self.episode_length, self.t_start
            )
            self.episode_return, self.episode_length = 0.0, 0
            info = {**info, "episode": result}
            if self.writer:
                extra = {key: info[key] for key in self.info_keywords}
                self.writer.write_row({**result, **extra})
        return obs, reward, terminated, truncated, info

    def close(self):
        if self.writer:
            self.writer.close()
        super().close()


def episode_result(episode_return, length, t_start) -> dict:
    """Returns {"r": return, "l": agent steps, "t": seconds since ``t_start``}."""
    return {
        "r": round(float(episode_return), 6),
        "l": int(length),
        "t": round(time.time() - t_start, 6),
    }


class ResultsWriter:
    """Writes a ``monitor.csv`` file, of one environment or of a whole VecEnv."""

    def __init__(self, filename, header, extra_keys=()):
        if not filename.endswith(Monitor.EXT):
            filename = f"{filename}.{Monitor.EXT}"
        self.filename = filename
        self.header = header
        self.keys = ("r", "l", "t", *extra_keys)
        self.file = None

    def open(self):
        """Creates the file, folders included, unless it is open already."""
        if self.file:
            return
        os.makedirs(os.path.dirname(self.filename) or ".", exist_ok=True)
        self.file = open(self.filename, "w", newline="")
        # The blank at the end of the first line is part of the format.
        self.file.write(f"# {json.dumps(self.header)} \n")
        self.csv = csv.DictWriter(self.file, self.keys)
        self.csv.writeheader()
        self.file.flush()

    def write_row(self, row):
        self.open()
        self.csv.writerow(row)
        self.file.flush()

    def close(self):
        if self.file:
            self.file.close()
            self.file = None
