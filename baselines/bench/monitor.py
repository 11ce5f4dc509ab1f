"""Episode results of one environment, written to a CSV file."""

import contextlib
import csv
import glob
import gzip
import json
import os
import time
from collections.abc import Sequence

import gymnasium as gym

from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.base.lazy import import_extra
from baselines.common.base.tables import read_table
from baselines.common.saving.files import open_text, synced_size, writing
from baselines.common.saving.log_folder import check_no_run

PACKED = "games.csv.gz"  # the episodes of all environments


class Monitor(gym.Wrapper):
    """Records the return, length and time of every episode.

    The result is put in ``info["episode"]`` of the last step and, if a file name is
    given, appended to ``<filename>.monitor.csv``. The format is that of OpenAI
    Baselines, which many tools read: a comment line of JSON, the header ``r,l,t``, and
    one row per episode.

    Args:
        env: the environment; rewards are recorded as it returns them.
        filename: path without ``.monitor.csv``, a folder to write ``monitor.csv`` in,
            or None for no file. The file is created at the first step.
        allow_early_resets: whether ``reset`` may be called between an episode's first
            step and its end, which evaluations do. The unfinished episode is then not
            recorded. In OpenAI Baselines, the default is false.
        info_keywords: keys of the last step's info to record as well.

    Raises:
        WriteError: if the file cannot be written.
        RuntimeError: from ``step`` after the end of an episode, and from ``reset``
            during an episode if ``allow_early_resets`` is false.
    """

    EXT = "monitor.csv"
    records = True  # whether steps create files and write rows

    @staticmethod
    @contextlib.contextmanager
    def without_files():
        """Lets Monitors write nothing, and allow any reset, inside a ``with`` block."""
        before, Monitor.records = Monitor.records, False
        try:
            yield
        finally:
            Monitor.records = before

    def __init__(
        self,
        env: gym.Env,
        filename: str | None = None,
        allow_early_resets: bool = True,
        info_keywords: Sequence[str] = (),
    ):
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
        self.needs_reset = True

    def reset(self, **kwargs):
        begun = self.episode_length > 0 and not self.needs_reset
        if begun and not self.allow_early_resets and Monitor.records:
            raise RuntimeError(
                "reset() before the end of an episode, which this Monitor does not "
                "allow; make it without allow_early_resets=False if that is intended"
            )
        self.episode_return, self.episode_length = 0.0, 0
        self.needs_reset = False
        return self.env.reset(**kwargs)

    def step(self, action):
        if self.needs_reset:
            raise RuntimeError("step() after the end of an episode; reset() first")
        if self.writer and Monitor.records:
            self.writer.open()
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.episode_return += float(reward)
        self.episode_length += 1
        if terminated or truncated:
            result = episode_result(
                self.episode_return, self.episode_length, self.t_start
            )
            result |= {key: info[key] for key in self.info_keywords}
            self.needs_reset = True
            info = {**info, "episode": result}
            if self.writer and Monitor.records:
                self.writer.write_row(result)
        return obs, reward, terminated, truncated, info

    def get_state(self) -> dict:
        """Returns the episode so far, the elapsed time, and the size of the file."""
        return {
            "seconds": time.time() - self.t_start,
            "return": self.episode_return,
            "length": self.episode_length,
            "needs_reset": self.needs_reset,
            "file": self.writer and self.writer.get_state(),
        }

    def set_state(self, state) -> None:
        """Restores an episode, and truncates the file to its size at that time.

        ``t`` does not count the time between the two processes.
        """
        self.t_start = time.time() - state["seconds"]
        self.episode_return = state["return"]
        self.episode_length = state["length"]
        self.needs_reset = state["needs_reset"]
        if self.writer:
            self.writer.set_state(state["file"])

    def take_over(self) -> None:
        """Continues the file of a process that died."""
        t_start = self.writer and self.writer.take_over()
        if t_start is not None:
            self.t_start = t_start

    def close(self):
        if self.writer:
            self.writer.close()
        super().close()


def episode_result(episode_return, length, t_start) -> dict:
    """Returns {"r": return, "l": agent steps, "t": seconds since ``t_start``}."""
    return {"r": float(episode_return), "l": int(length), "t": time.time() - t_start}


class ResultsWriter:
    """Writes a ``monitor.csv`` file for one environment or for a VecEnv."""

    def __init__(self, filename, header, extra_keys=()):
        # Now, as the current folder may change.
        self.filename = os.path.abspath(os.path.expanduser(os.fspath(filename)))
        self.header = header
        self.keys = ("r", "l", "t", *extra_keys)
        self.file = None
        self.continues = False  # whether an earlier process began the file

    def find_path(self) -> str:
        """Returns the path of the file: in ``filename``, if that is a folder."""
        if os.path.isdir(self.filename):
            return os.path.join(self.filename, Monitor.EXT)
        if self.filename.endswith(Monitor.EXT):
            return self.filename
        return f"{self.filename}.{Monitor.EXT}"

    def open(self):
        """Creates the file and its folders, unless it is already open.

        Raises:
            UserFileError: if the file exists and belongs to a run, or cannot be made.
        """
        if self.file:
            return
        path = self.find_path()
        if os.path.exists(path) and not self.continues:
            check_no_run(os.path.dirname(path))
        with writing(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._use(open_text(path))
            # The blank at the end of the first line is part of the format.
            self.file.write(f"# {json.dumps(self.header)} \n")
            self.csv.writeheader()
            self.file.flush()

    def _use(self, file):
        self.file, self.csv = file, csv.DictWriter(file, self.keys)

    def _check_removed(self):
        """Closes a file that a run with ``overwrite`` has removed."""
        if self.file and not os.path.exists(self.file.name):
            self.close()

    def write_row(self, row):
        """Writes the result of an episode; raises UserFileError if that fails."""
        self._check_removed()
        self.open()
        with writing(self.file.name):
            # As many decimals as in OpenAI Baselines.
            rounded = {key: round(row[key], 6) for key in ("r", "t")}
            self.csv.writerow(row | rounded)
            self.file.flush()

    def get_state(self) -> dict:
        """Returns the header and the size of the file, None if there is no file."""
        self._check_removed()
        size = synced_size(self.file) if self.file else None
        return {"header": self.header, "size": size}

    def set_state(self, state) -> None:
        """Opens the file of an earlier process, truncated to its size at that time.

        Raises:
            UserFileError: if the file is missing or shorter than that.
        """
        self.close()
        self.continues, self.header = True, state["header"]
        if state["size"] is not None:
            self._use(open_text(self.find_path(), state["size"]))

    def take_over(self):
        """Opens the file of a process that died, and drops an incomplete last row.

        Returns:
            the time from which its ``t`` counts, which is later than in the header if
            the run was resumed; None if there is no file with a row.
        """
        self.continues = True
        try:
            with open(self.find_path(), "rb") as file:
                text = file.read()
            header = json.loads(text.partition(b"\n")[0][1:])
            size = text.rindex(b"\n") + 1
            last_row = text[:size].splitlines()[-1].split(b",")
            t_start = os.path.getmtime(self.find_path()) - float(last_row[2])
        except (OSError, ValueError, IndexError):
            return None
        self.set_state({"header": header, "size": size})
        return t_start

    def close(self):
        if self.file:
            self.file.close()
            self.file = None


def load_results(folder):
    """Returns the episodes of all monitor files in a folder, as ``read_monitors`` does.

    If there are none, those in ``games.csv.gz``, which ``pack_monitors`` wrote.

    Raises:
        UserFileError: if there is neither.
        UserValueError: if a file is not in its format.
        MissingDependency: if pandas is not installed.
    """
    folder = os.path.expanduser(folder)
    if paths := find_monitors(folder):
        return read_monitors(paths)
    path = os.path.join(folder, PACKED)
    if not os.path.exists(path):
        raise UserFileError(f"there is no *.{Monitor.EXT} and no {PACKED} in {folder}")
    games = read_table(path, dtype={"env": str})  # 0.1 and 0.10 are two environments.
    tables = [
        # An environment without an episode has a row without numbers.
        rows[["r", "l", "t"]].dropna().astype({"l": int})
        for _, rows in games.groupby("env", sort=False)
    ]
    return merge_episodes([{"t_start": 0.0}], tables)


def find_monitors(folder) -> list:
    """Returns the paths of a folder's monitor files, sorted."""
    pattern = os.path.join(glob.escape(os.fspath(folder)), f"*{Monitor.EXT}")
    return sorted(glob.glob(pattern))


def pack_monitors(folder) -> bytes:
    """Returns the episodes of a run's environments as one CSV file, compressed by gzip.

    Its columns are ``env``, which is the beginning of the monitor file's name, ``r``,
    ``l`` and ``t``, in seconds since the first file was begun. The ``info_keywords``
    are left out.

    Args:
        folder: the log folder of a run whose environments stepped together.

    Raises:
        UserFileError: if it has no monitor files.
        UserValueError: if a file is not in their format.
        MissingDependency: if pandas is not installed.
    """
    pandas = import_extra("pandas")
    if not (paths := find_monitors(folder)):
        raise UserFileError(f"there is no *.{Monitor.EXT} in {folder}")
    headers, tables = zip(*map(read_monitor, paths))
    envs = [os.path.basename(path).removesuffix(f".{Monitor.EXT}") for path in paths]
    games = pandas.concat(
        table.assign(env=env) if len(table) else pandas.DataFrame({"env": [env]})
        for env, table in zip(envs, tables)
    )
    games["t"] = (games.t - min(header["t_start"] for header in headers)).round(6)
    games["l"] = games.l.astype("Int64")  # which may be missing
    text = games.to_csv(columns=["env", "r", "l", "t"], index=False)
    # Without a timestamp, so that the same episodes give the same file.
    return gzip.compress(text.encode(), mtime=0)


def read_monitors(paths):
    """Returns the episodes of monitor files in the order in which they ended.

    Args:
        paths: of files written by ``Monitor``, OpenAI Baselines or Stable-Baselines3.

    Returns:
        a ``pandas.DataFrame`` with the columns ``r``, ``l``, ``t`` (seconds since the
        first file was begun), those of ``info_keywords``, and ``agent_steps``: those
        over all environments at the end of each episode, also of episodes that had not
        ended by then, if each file is of one environment and all step together. Its
        ``attrs["headers"]`` are the JSON values in the first lines of the files.
    """
    return merge_episodes(*zip(*map(read_monitor, paths)))


def merge_episodes(headers, tables):
    """Returns what ``read_monitors`` does, from the results of ``read_monitor``."""
    pandas = import_extra("pandas")
    begun = max(header["t_start"] for header in headers)
    together = all(table.t.iloc[-1] >= begun for table in tables if len(table))
    tables = [x.assign(agent_steps=len(tables) * x.l.cumsum()) for x in tables]
    merged = pandas.concat(tables).sort_values("t", kind="stable", ignore_index=True)
    # Times are rounded, so two episodes may be in the wrong order.
    steps = merged.agent_steps.cummax() if together else merged.l.cumsum()
    merged["agent_steps"] = steps
    merged["t"] -= min(header["t_start"] for header in headers)
    merged.attrs["headers"] = list(headers)
    return merged


def read_monitor(path):
    """Returns the header of one monitor file, and its episodes with absolute times."""
    table = read_table(path, skiprows=1, dtype={"r": float, "l": int, "t": float})
    try:
        with open(path) as file:
            header = json.loads(file.readline().removeprefix("#"))
        table["t"] += header["t_start"]
    except (ValueError, TypeError, KeyError) as error:
        raise UserValueError(f"{path} is not a monitor file: {error!r}") from None
    return header, table
