"""Episode results of a VecEnv."""

import time
from collections.abc import Sequence

import numpy as np

from baselines.bench.monitor import ResultsWriter, episode_result
from baselines.common.vec_env.vec_env import VecEnv, VecEnvWrapper


class VecMonitor(VecEnvWrapper):
    """Adds ``info["episode"]`` at the end of every episode of any VecEnv.

    For environments without a Monitor; rewards are recorded as this VecEnv
    returns them, after all wrappers below.

    Args:
        venv: the VecEnv.
        filename: path of one file for all environments, without
            ``.monitor.csv``, or None.
        info_keywords: names in the last step's info to record as well.
    """

    keeps_observations = True

    def __init__(
        self,
        venv: VecEnv,
        filename: str | None = None,
        info_keywords: Sequence[str] = (),
    ):
        super().__init__(venv)
        self.info_keywords = info_keywords
        self.t_start = time.time()
        self.writer = None
        if filename is not None:
            header = {"t_start": self.t_start}
            self.writer = ResultsWriter(filename, header, info_keywords)
        self.returns = np.zeros(venv.num_envs)
        self.lengths = np.zeros(venv.num_envs, int)

    def reset(self):
        self.returns[:] = 0
        self.lengths[:] = 0
        return self.venv.reset()

    def step_wait(self):
        if self.writer:
            self.writer.open()
        obs, rewards, dones, infos = self.venv.step_wait()
        self.returns += rewards
        self.lengths += 1
        for i in np.flatnonzero(dones):
            if "worker_lost" not in infos[i]:
                result = episode_result(self.returns[i], self.lengths[i], self.t_start)
                result |= {key: infos[i][key] for key in self.info_keywords}
                infos[i] = {**infos[i], "episode": result}
                if self.writer:
                    self.writer.write_row(result)
            self.returns[i] = self.lengths[i] = 0
        return obs, rewards, dones, infos

    def get_state(self) -> dict:
        return {
            "venv": self.venv.get_state(),
            "seconds": time.time() - self.t_start,
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "file": self.writer and self.writer.get_state(),
        }

    def set_state(self, state) -> None:
        self.venv.set_state(state["venv"])
        self.t_start = time.time() - state["seconds"]  # as in Monitor
        self.returns = state["returns"].copy()
        self.lengths = state["lengths"].copy()
        if self.writer:
            self.writer.set_state(state["file"])

    def close(self):
        if self.writer:
            self.writer.close()
        self.venv.close()
