"""Environments in worker processes, a few in each."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection

import cloudpickle
import numpy as np

from baselines.common.errors import UserValueError
from baselines.common.vec_env.vec_env import VecEnv


class WorkerError(RuntimeError):
    """An environment raised in its worker process, or the process died."""


class SubprocVecEnv(VecEnv):
    """Runs environments in parallel, about one worker process for each core.

    Each worker steps its environments in series and writes observations
    straight into memory that it shares with this process; only actions,
    rewards and flags travel through pipes. What comes back does not depend on
    the number of workers.

    A worker is a program of its own (see ``worker.py``), not a copy of the
    caller's: the caller's script is not imported again and needs no
    ``__main__`` guard.

    Args:
        env_fns: functions without arguments, each of which makes a Gymnasium
            environment. They are sent by cloudpickle.
        num_workers: how many processes; by default as many as there are cores.

    Raises:
        WorkerError: here or in any later call, if an environment raises (with
            the traceback from the worker) or a worker dies.
    """

    def __init__(self, env_fns, num_workers=None):
        self.closed = False
        self._waiting = False
        self._workers = []
        env_fns = list(env_fns)
        num_workers = min(num_workers or available_cores(), len(env_fns))
        self._slices = split_evenly(len(env_fns), num_workers)
        self._memory = tempfile.TemporaryFile(dir=shared_memory_folder())
        try:
            for part in self._slices:
                self._workers.append(WorkerProcess(self._memory.fileno()))
                self._workers[-1].send(("make", cloudpickle.dumps(env_fns[part])))
            spaces = [pair for pairs in self._receive() for pair in pairs]
            check_equal(spaces)
            super().__init__(len(env_fns), *spaces[0])
            self._obs = self._map_observations()
        except BaseException:
            self.close()
            raise

    def _map_observations(self):
        space = self.observation_space
        shape = (self.num_envs, *space.shape)
        size = max(1, int(np.prod(shape)) * space.dtype.itemsize)
        # Written rather than only sized, so that full memory is an error here
        # and not a bus error in a worker.
        self._memory.write(bytes(size))
        self._memory.flush()
        obs = np.memmap(self._memory, space.dtype, "r+", shape=shape)
        for worker, part in zip(self._workers, self._slices):
            worker.send(("share", shape, space.dtype, part.start))
        self._receive()
        return obs

    def reset(self):
        self._finish_step()
        self._send([("reset",)] * len(self._workers))
        self._receive()
        return np.array(self._obs)

    def step_async(self, actions):
        self._finish_step()
        actions = np.asarray(actions)
        self._send([("step", actions[part]) for part in self._slices])
        self._waiting = True

    def step_wait(self):
        self._waiting = False
        rewards, dones, infos = zip(*self._receive())
        return (
            np.array(self._obs),
            np.concatenate(rewards),
            np.concatenate(dones),
            [info for part in infos for info in part],
        )

    def get_images(self):
        self._finish_step()
        self._send([("render",)] * len(self._workers))
        return [image for images in self._receive() for image in images]

    def _finish_step(self):
        if self._waiting:
            self.step_wait()

    def _send(self, requests):
        if self.closed:
            raise WorkerError("this SubprocVecEnv is closed")
        for worker, request in zip(self._workers, requests):
            worker.send(request)

    def _receive(self):
        answers = []
        for worker, part in zip(self._workers, self._slices):
            status, answer = worker.receive()
            if status == "ok":
                answers.append(answer)
                continue
            self.close()
            if status == "died":
                raise WorkerError(
                    f"the worker process of environments {part.start} to "
                    f"{part.stop - 1} died with exit status {answer}"
                )
            index, trace = answer
            raise WorkerError(f"environment {part.start + index} raised\n{trace}")
        return answers

    def close(self):
        if self.closed:
            return
        self.closed = True
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.end()
        self._memory.close()

    def __del__(self):
        if not getattr(self, "closed", True):
            self.close()


class WorkerProcess:
    """A running worker program and the pipe to it."""

    def __init__(self, memory_fd):
        ours, theirs = socket.socketpair()
        fds = (theirs.fileno(), memory_fd)
        command = [sys.executable, "-m", "baselines.common.vec_env.worker"]
        search_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self.process = subprocess.Popen(
            [*command, *map(str, fds)],
            stdin=subprocess.DEVNULL,
            pass_fds=fds,
            env={**os.environ, "PYTHONPATH": search_path, "OMP_NUM_THREADS": "1"},
        )
        theirs.close()
        self.pipe = Connection(ours.detach())

    def send(self, request):
        # If the worker died, receive() says so, with its exit status.
        with contextlib.suppress(ConnectionError):
            self.pipe.send(request)

    def receive(self):
        """Returns ("ok", answer), ("error", (index, traceback)) or ("died", status)."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            return "died", self.process.wait()

    def end(self, patience=5.0):
        """Waits for the worker to end by itself, seconds at most, then kills it."""
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def check_equal(spaces):
    """Raises if the environments' (observation, action) spaces are not all alike."""
    for i, (observation_space, action_space) in enumerate(spaces):
        if (observation_space, action_space) != spaces[0]:
            raise UserValueError(
                "all environments need the same spaces: environment 0 has "
                f"{spaces[0][0]} and {spaces[0][1]}, environment {i} has "
                f"{observation_space} and {action_space}"
            )


def available_cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split_evenly(count, parts) -> list[slice]:
    """Cuts range(count) into ``parts`` slices whose lengths differ by one at most."""
    bounds = [count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]


def shared_memory_folder():
    """Returns a folder that is held in memory, or None where there is none."""
    folder = "/dev/shm"
    return folder if os.access(folder, os.W_OK) else None
