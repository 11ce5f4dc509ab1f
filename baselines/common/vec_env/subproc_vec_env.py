"""Environments in worker processes, several in each."""

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
from baselines.common.vec_env import worker as worker_program
from baselines.common.vec_env.vec_env import (
    VecEnv,
    check_actions,
    check_equal_spaces,
)

EXIT_TIMEOUT_SECONDS = 5.0  # for workers to end by themselves
WORKER_TIMEOUT = 600.0  # seconds
GRACE_SECONDS = 1.0


class WorkerError(RuntimeError):
    """An environment raised in its worker process, or the process died."""


class WorkerDied(WorkerError):
    """A worker process ended without an exception of its environments."""


class SubprocVecEnv(VecEnv):
    """Runs environments in parallel, about one worker process for each core.

    Each worker steps its environments in series and writes observations
    straight into memory that it shares with this process; only actions,
    rewards and flags travel through pipes. Results do not depend on the number
    of workers.

    A worker is a separate program (see ``worker.py``), not a copy of the
    caller's: the caller's script is not imported again and needs no
    ``__main__`` guard.

    Args:
        env_fns: functions without arguments, each of which makes a Gymnasium
            environment. They are sent by cloudpickle.
        num_workers: how many processes; by default as many as there are cores, shared
            evenly by the MPI ranks of this machine.
        on_worker_failure: ``replace`` starts another worker where one dies, with a
            warning: the episodes of its environments count as truncated, after the
            last observations that were received, and new ones begin. ``raise`` raises
            WorkerError.
        worker_timeout: seconds in which workers have to answer. One that does not, such
            as one whose environment waits for something, is ended and counts as dead.
            None for no limit.

    Raises:
        WorkerError: here or in any later call, if an environment raises (with
            the traceback from the worker), or if a worker dies and may not be
            replaced, or dies again before it has made a step.
    """

    closed = True  # until there are workers

    def __init__(
        self,
        env_fns,
        num_workers=None,
        on_worker_failure="replace",
        worker_timeout=WORKER_TIMEOUT,
    ):
        env_fns = list(env_fns)
        num_workers = mpi.available_cores() if num_workers is None else num_workers
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
        self.on_worker_failure = on_worker_failure
        self.worker_timeout = worker_timeout
        self._memory = tempfile.TemporaryFile(dir=shared_memory_folder())
        self._workers = []
        self._asked = self._workers  # whose answers are still to come
        self.closed = self._stepping = False
        try:
            for part in split_evenly(len(env_fns), min(num_workers, len(env_fns))):
                pickled = cloudpickle.dumps(env_fns[part])
                self._workers.append(WorkerProcess(pickled, part, self._memory))
            answers = [answer for part in self._receive() for answer in part]
            spaces, resumable = zip(*answers)
            check_equal_spaces(spaces)
            self.resumable = all(resumable)
            super().__init__(len(env_fns), *spaces[0])
            self._share_observations()
        except BaseException:
            self.close()
            raise

    def _share_observations(self):
        shape = self.num_envs, *self.observation_space.shape
        dtype = self.observation_space.dtype
        self._last_obs = np.zeros(shape, dtype)
        # Written rather than only sized, so that full memory is an error here
        # and not a bus error in a worker.
        self._memory.write(self._last_obs.tobytes() or b"\0")
        self._memory.flush()
        self._obs = np.memmap(self._memory, dtype, "r+", shape=shape)
        self._send_all("share", shape, dtype)
        self._receive()

    @property
    def worker_pids(self) -> list:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def reset(self):
        self._finish_step()
        self._send_all("reset")
        self._receive(replace=True)
        for worker in self._workers:
            worker.truncated = False
        return self._copy_obs()

    def step_async(self, actions):
        self._finish_step()
        actions = check_actions(actions, self.num_envs)
        self._stepping = True
        asked = [worker for worker in self._workers if not worker.truncated]
        self._send({worker: ("step", actions[worker.part]) for worker in asked})

    def step_wait(self):
        if not self._stepping:
            raise WorkerError("step_wait() needs a step_async() before it")
        self._stepping = False
        answers = self._receive(replace=True)
        for i, worker in enumerate(self._workers):
            if answers[i] is None:
                answers[i] = truncated_step(self._last_obs[worker.part])
                worker.truncated = False
            else:
                worker.unproven = False
        rewards, dones, infos = zip(*answers)
        infos = [info for part in infos for info in part]
        return self._copy_obs(), np.concatenate(rewards), np.concatenate(dones), infos

    def get_images(self):
        return self._collect("render")

    def get_state(self):
        return self._collect("get_state")

    def set_state(self, state):
        self._send({w: ("set_state", state[w.part]) for w in self._workers})
        self._receive()

    def _collect(self, request):
        self._finish_step()
        self._send_all(request)
        answers = self._receive(replace=True)
        if None in answers:  # of a worker that was replaced
            return self._collect(request)
        return [answer for part in answers for answer in part]

    def _copy_obs(self):
        self._last_obs[:] = self._obs
        return np.array(self._obs)

    def _finish_step(self):
        if self._stepping:
            self.step_wait()

    def _send_all(self, *request):
        self._send(dict.fromkeys(self._workers, request))

    def _send(self, requests):
        """Sends requests, tuples by worker."""
        if self.closed:
            raise WorkerError("this SubprocVecEnv is closed")
        self._asked = requests
        try:
            for worker, request in requests.items():
                worker.send(*request)
        except BaseException:
            # The answers of those that were asked would be left in their pipes.
            self.close()
            raise

    def _receive(self, replace=False) -> list:
        """Returns the answers in the order of the workers; raises at the first error.

        Args:
            replace: whether a worker that died may be replaced; its answer is None
                then, as is that of one that was not asked.
        """
        answers = dict.fromkeys(self._workers)
        waiting = {worker.pipe: worker for worker in self._asked}
        try:
            while waiting:
                for pipe in self._wait(waiting):
                    worker = waiting.pop(pipe)
                    try:
                        answers[worker] = worker.receive()
                    except WorkerDied as error:
                        if not replace or self.on_worker_failure == "raise":
                            raise
                        self._replace(worker, error)
        except BaseException:
            # Answers left in the pipes would be mistaken for those of later calls.
            self.close()
            raise
        return list(answers.values())

    def _wait(self, waiting) -> list:
        """Returns the pipes with an answer, or with the end of a worker that has none.

        Args:
            waiting: workers by their pipes.
        """
        # The second time, because this process may itself have been stopped.
        for seconds in self.worker_timeout, GRACE_SECONDS:
            if pipes := wait(waiting, seconds):
                return pipes
        for worker in waiting.values():
            worker.hung_for = self.worker_timeout
            worker.process.kill()
        return list(waiting)

    def _replace(self, worker, error):
        """Starts the program of a worker again that died with ``error``."""
        if worker.unproven:
            raise WorkerError(f"{error}, as did the one before it")
        logger.warn(
            f"{error}; another takes over, and their episodes count as truncated"
        )
        worker.truncated = worker.unproven = True
        worker.pipe.close()
        worker.start()
        worker.receive()
        for request in ("share", self._obs.shape, self._obs.dtype), ("take_over",):
            worker.send(*request)
            worker.receive()

    def close(self):
        if self.closed:
            return
        self.closed = True
        self._stepping = False
        for worker in self._workers:
            worker.pipe.close()
        deadline = time.monotonic() + EXIT_TIMEOUT_SECONDS
        for worker in self._workers:
            worker.end(deadline)
        self._memory.close()

    def __del__(self):
        self.close()


class WorkerProcess:
    """A worker program, which runs some of the environments, and the pipe to it.

    Args:
        env_fns: pickled functions that make these environments.
        part: slice of all environments that they are.
        memory: file that is shared.

    Attributes:
        truncated: whether the program was replaced and the end of its episodes has not
            been reported yet.
        unproven: whether the program was replaced and has not made a step yet.
        hung_for: seconds without an answer, after which it was ended; None if not.
    """

    truncated = unproven = False
    hung_for = None

    def __init__(self, env_fns, part, memory):
        self.env_fns = env_fns
        self.part = part
        self.memory = memory
        self.start()

    def start(self):
        """Starts the program and asks it to make the environments."""
        self.hung_for = None
        ours, theirs = socket.socketpair()
        fds = theirs.fileno(), self.memory.fileno()
        # By its path: python -m would put the current folder first in sys.path.
        command = [sys.executable, worker_program.__file__, *map(str, fds)]
        search_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
        env = mpi.child_environment()
        env |= {"PYTHONPATH": search_path, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=fds, env=env
        )
        theirs.close()
        self.pipe = Connection(ours.detach())
        self.send("make", self.env_fns, self.part.start)

    def send(self, *request):
        # If the worker died, receive() says so, with its exit status.
        with contextlib.suppress(ConnectionError):
            self.pipe.send(request)

    def receive(self):
        """Returns the answer to the last request.

        Raises:
            WorkerError: if an environment raised.
            WorkerDied: if the process is gone.
            UserError: as the environment raised it, because its message says all.
        """
        try:
            message = self.pipe.recv_bytes()
        except (EOFError, OSError):
            status = self.process.wait(EXIT_TIMEOUT_SECONDS)
            what = f"died with exit status {status}"
            if self.hung_for is not None:
                what = f"gave no answer for {self.hung_for:g} s and was ended"
            raise WorkerDied(
                f"the worker process of environments {self.part.start} to "
                f"{self.part.stop - 1} {what}"
            ) from None
        ok, answer = pickle.loads(message)
        if ok:
            return answer
        index, raised = answer
        if isinstance(raised, UserError):
            raise raised
        raise WorkerError(f"environment {self.part.start + index} raised\n{raised}")

    def end(self, deadline):
        """Waits for the process to end by itself until then, and then kills it."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def truncated_step(last_obs):
    """Returns what a worker would, had a time limit ended all its episodes.

    Args:
        last_obs: [N, *observation shape], the last ones received.
    """
    dones = np.ones(len(last_obs), bool)
    infos = [
        {"TimeLimit.truncated": True, "terminal_observation": obs.copy()}
        for obs in last_obs
    ]
    return np.zeros(len(last_obs), np.float32), dones, infos


def split_evenly(count, parts) -> list[slice]:
    """Splits range(count) into ``parts`` slices whose lengths differ by one at most."""
    bounds = [count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]


def shared_memory_folder():
    """Returns a folder that is held in memory, or None where there is none."""
    folder = "/dev/shm"
    return folder if os.access(folder, os.W_OK) else None
