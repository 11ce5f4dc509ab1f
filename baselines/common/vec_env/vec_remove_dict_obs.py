"""Picks one part of observations that are dicts."""

import numpy as np

from baselines.common.vec_env.vec_env import VecEnv, VecEnvWrapper


class VecExtractDictObs(VecEnvWrapper):
    """Returns one part of the observations.

    Args:
        venv: a VecEnv that returns a dict of arrays [N, *shape], such as one of
            Stable-Baselines3. DummyVecEnv and SubprocVecEnv return arrays: with them,
            use a Gymnasium wrapper in each environment to pick the part.
        key: of the part.
    """

    def __init__(self, venv: VecEnv, key: str):
        super().__init__(venv, venv.observation_space[key])
        self.key = key

    def reset(self):
        return self.venv.reset()[self.key]

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        for i in np.flatnonzero(dones):
            last = infos[i]["terminal_observation"][self.key]
            infos[i] = {**infos[i], "terminal_observation": last}
        return obs[self.key], rewards, dones, infos
