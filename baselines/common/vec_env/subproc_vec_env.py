"""Environments in worker processes, a few in each."""

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection, wait

import cloudpickle
import numpy as np

from baselines import logger
from baselines.common import mpi
from baselines.common.errors import UserError, UserValueError
from baselines.common.mpi import available_cores
from baselines.common.vec_env import worker as worker_program
from baselines.common.vec_env.vec_env import (
    VecEnv,
    check_actions,
    check_equal_spaces,
)

PATIENCE = 5.0  # seconds that workers have to end by themselves


class WorkerError(RuntimeError):
    """An environment raised in its worker process, or the process died."""


class WorkerDied(WorkerError):
    """A worker process is gone; its environments did not say why."""


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
        num_workers: how many processes; by default as many as there are cores, shared
            evenly by the MPI ranks of this machine.
        on_worker_failure: ``replace`` starts another worker where one dies, with a
            warning: the episodes of its environments count as truncated, after the
            last observation that came from them, and new ones begin. ``raise`` raises
            WorkerError.

    Raises:
        WorkerError: here or in any later call, if an environment raises (with
            the traceback from the worker), or if a worker dies and is not replaced,
            because that is not wanted or did not help.
    """

    def __init__(self, env_fns, num_workers=None, on_worker_failure="replace"):
        self.closed = True
        env_fns = list(env_fns)
        if num_workers is None:
            num_workers = available_cores()
        if not env_fns or num_workers < 1:
            raise UserValueError(
                "SubprocVecEnv needs at least one environment and one worker, received "
                f"{len(env_fns)} and {num_workers}"
            )
        if on_worker_failure not in ("replace", "raise"):
            raise UserValueError(
                "on_worker_failure has to be 'replace' or 'raise', received "
                f"{on_worker_failure!r}"
            )
        num_workers = min(num_workers, len(env_fns))
        self.closed = False
        self.on_worker_failure = on_worker_failure
        self._waiting = False
        self._workers = []
        self._slices = split_evenly(len(env_fns), num_workers)
        self._env_fns = [cloudpickle.dumps(env_fns[part]) for part in self._slices]
        self._asked = range(num_workers)  # whose answers are still to come
        self._cut_short = set()  # replaced workers whose episodes have not yet ended
        self._unproven = set()  # those that have not yet made a step
        self._memory = tempfile.TemporaryFile(dir=shared_memory_folder())
        try:
            for pickled in self._env_fns:
                self._workers.append(WorkerProcess(self._memory.fileno()))
                self._workers[-1].send(("make", pickled))
            answers = [answer for part in self._receive() for answer in part]
            spaces = [(observation, action) for observation, action, _ in answers]
            check_equal_spaces(spaces)
            self.resumable = all(resumable for *_, resumable in answers)
            super().__init__(len(env_fns), *spaces[0])
            self._obs = self._map_observations()
            self._last_obs = np.array(self._obs)
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

    @property
    def worker_pids(self) -> list:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def reset(self):
        self._finish_step()
        self._send([("reset",)] * len(self._workers))
        self._receive(replace=True)
        self._cut_short.clear()
        return self._copy_obs()

    def step_async(self, actions):
        self._finish_step()
        actions = check_actions(actions, self.num_envs)
        self._waiting = True
        requests = [("step", actions[part]) for part in self._slices]
        for i in self._cut_short:
            requests[i] = None
        self._send(requests)

    def step_wait(self):
        if not self._waiting:
            raise WorkerError("step_wait() needs a step_async() before it")
        self._waiting = False
        answers = self._receive(replace=True)
        self._unproven -= {i for i, answer in enumerate(answers) if answer}
        for i in self._cut_short:
            answers[i] = truncated(self._last_obs[self._slices[i]])
        self._cut_short.clear()
        rewards, dones, infos = zip(*answers)
        return (
            self._copy_obs(),
            np.concatenate(rewards),
            np.concatenate(dones),
            [info for part in infos for info in part],
        )

    def get_images(self):
        return self._collect("render")

    def get_state(self):
        return self._collect("get_state")

    def set_state(self, state):
        self._send([("set_state", state[part]) for part in self._slices])
        self._receive()

    def _collect(self, request):
        self._finish_step()
        self._send([(request,)] * len(self._workers))
        answers = self._receive(replace=True)
        if None in answers:
            return self._collect(request)
        return [answer for part in answers for answer in part]

    def _copy_obs(self):
        self._last_obs[:] = self._obs
        return np.array(self._obs)

    def _finish_step(self):
        if self._waiting:
            self.step_wait()

    def _send(self, requests):
        if self.closed:
            raise WorkerError("this SubprocVecEnv is closed")
        self._asked = [i for i, request in enumerate(requests) if request is not None]
        try:
            for i in self._asked:
                self._workers[i].send(requests[i])
        except BaseException:
            # Of those that were asked, nobody would take the answers.
            self.close()
            raise

    def _receive(self, replace=False):
        """Returns every worker's answer, in order; raises at the first bad news.

        Args:
            replace: whether a worker that died may be replaced; its answer is None
                then, as is that of one that was not asked.
        """
        answers = [None] * len(self._workers)
        waiting = {self._workers[i].pipe: i for i in self._asked}
        try:
            while waiting:
                for pipe in wait(list(waiting)):
                    i = waiting.pop(pipe)
                    try:
                        answers[i] = self._workers[i].receive(self._slices[i])
                    except WorkerDied as error:
                        if not replace or self.on_worker_failure == "raise":
                            raise
                        self._replace(i, error)
        except BaseException:
            # Answers that nobody took would be mistaken for those of later calls.
            self.close()
            raise
        return answers

    def _replace(self, i, error):
        """Starts another worker in place of one that died with ``error``."""
        if i in self._unproven:
            raise WorkerError(f"{error}, as did the one before it")
        self._unproven.add(i)
        self._cut_short.add(i)
        logger.warn(
            f"{error}; another takes over, and their episodes count as truncated"
        )
        part, pipe = self._slices[i], self._workers[i].pipe
        self._workers[i] = WorkerProcess(self._memory.fileno())
        pipe.close()
        space = self.observation_space
        for request in (
            ("make", self._env_fns[i]),
            ("share", self._obs.shape, space.dtype, part.start),
            ("take_over",),
        ):
            self._workers[i].send(request)
            self._workers[i].receive(part)

    def close(self):
        if self.closed:
            return
        self.closed = True
        self._waiting = False
        for worker in self._workers:
            worker.pipe.close()
        deadline = time.monotonic() + PATIENCE
        for worker in self._workers:
            worker.end(deadline)
        self._memory.close()

    def __del__(self):
        if not getattr(self, "closed", True):
            self.close()


class WorkerProcess:
    """A running worker program and the pipe to it."""

    def __init__(self, memory_fd):
        ours, theirs = socket.socketpair()
        fds = (theirs.fileno(), memory_fd)
        # By its path: python -m would put the current folder first in sys.path.
        command = [sys.executable, worker_program.__file__]
        search_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self.process = subprocess.Popen(
            [*command, *map(str, fds)],
            stdin=subprocess.DEVNULL,
            pass_fds=fds,
            env={
                **mpi.child_environment(),
                "PYTHONPATH": search_path,
                "OMP_NUM_THREADS": "1",
            },
        )
        theirs.close()
        self.pipe = Connection(ours.detach())

    def send(self, request):
        # If the worker died, receive() says so, with its exit status.
        with contextlib.suppress(ConnectionError):
            self.pipe.send(request)

    def receive(self, part):
        """Returns the answer to the last request.

        Args:
            part: slice of the environments that the worker has, for messages.

        Raises:
            WorkerError: if an environment raised.
            WorkerDied: if the process is gone.
            UserError: as it is, because its one sentence says all.
        """
        try:
            message = self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerDied(
                f"the worker process of environments {part.start} to {part.stop - 1} "
                f"died with exit status {self.process.wait(PATIENCE)}"
            ) from None
        ok, answer = pickle.loads(message)
        if not ok:
            index, raised = answer
            if isinstance(raised, UserError):
                raise raised
            raise WorkerError(f"environment {part.start + index} raised\n{raised}")
        return answer

    def end(self, deadline):
        """Waits for the worker to end by itself until then, and then kills it."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def truncated(last_obs):
    """Returns what a worker would, had a time limit ended all its episodes.

    Args:
        last_obs: [N, *observation shape], what was seen last of them.
    """
    dones = np.ones(len(last_obs), bool)
    infos = [
        {"TimeLimit.truncated": True, "terminal_observation": obs.copy()}
        for obs in last_obs
    ]
    return np.zeros(len(last_obs), np.float32), dones, infos


def split_evenly(count, parts) -> list[slice]:
    """Cuts range(count) into ``parts`` slices whose lengths differ by one at most."""
    bounds = [count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]


def shared_memory_folder():
    """Returns a folder that is held in memory, or None where there is none."""
    folder = "/dev/shm"
    return folder if os.access(folder, os.W_OK) else None
