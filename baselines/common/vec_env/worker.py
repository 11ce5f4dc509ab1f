"""The program that a SubprocVecEnv starts: it runs some of the environments.

``python -m baselines.common.vec_env.worker PIPE MEMORY``, where both arguments
are file descriptors inherited from the parent. Requests are answered in order:

    "make", env_fns         -> the observation and action space
    "share", layout         -> observations go to the shared memory from here on
    "reset"                 -> None
    "step", actions         -> rewards, dones, infos
    "render"                -> a list of RGB frames

The program ends when the pipe closes, however the parent ended.
"""

import mmap
import signal
import sys
import traceback
from multiprocessing.connection import Connection

import cloudpickle
import numpy as np

from baselines.common.vec_env.vec_env import step_and_reset


class Worker:
    """The environments of one process, and the slice of memory they write to."""

    def __init__(self, memory_fd):
        self.memory_fd = memory_fd
        self.envs = []
        self.obs = None
        self.current = 0  # which environment is being run, for error messages

    def make(self, env_fns):
        for i, env_fn in enumerate(cloudpickle.loads(env_fns)):
            self.current = i
            self.envs.append(env_fn())
        if "cv2" in sys.modules:
            # There is a worker for every core already.
            sys.modules["cv2"].setNumThreads(1)
        return [(env.observation_space, env.action_space) for env in self.envs]

    def share(self, shape, dtype, start):
        memory = mmap.mmap(self.memory_fd, 0)
        self.obs = np.ndarray(shape, dtype, memory)[start : start + len(self.envs)]

    def reset(self):
        for i, env in enumerate(self.envs):
            self.current = i
            self.obs[i], _ = env.reset()

    def step(self, actions):
        rewards = np.zeros(len(self.envs), np.float32)
        dones = np.zeros(len(self.envs), bool)
        infos = []
        for i, env in enumerate(self.envs):
            self.current = i
            self.obs[i], rewards[i], dones[i], info = step_and_reset(env, actions[i])
            infos.append(info)
        return rewards, dones, infos

    def render(self):
        return [env.render() for env in self.envs]

    def close(self):
        for env in self.envs:
            env.close()


def serve(pipe, worker):
    """Answers requests until the parent closes the pipe or a request fails."""
    try:
        while True:
            request, *arguments = pipe.recv()
            pipe.send(("ok", getattr(worker, request)(*arguments)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        worker.close()
    except Exception:
        pipe.send(("error", (worker.current, traceback.format_exc())))


if __name__ == "__main__":
    # Ctrl-C reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])), Worker(memory_fd=int(sys.argv[2])))
