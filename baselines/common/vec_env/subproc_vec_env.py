"""Environments in worker processes, several in each."""

import math
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import chain

import cloudpickle
import numpy as np

from baselines.common.base import mpi
from baselines.common.base.errors import (
    RaisedInWorker,
    UserFileError,
    UserValueError,
    WorkerDied,
    WorkerError,
)
from baselines.common.saving.states import check_like
from baselines.common.vec_env.vec_env import (
    VecEnv,
    check_actions,
    check_equal_spaces,
    list_indices,
)
from baselines.common.vec_env.worker_process import (
    EXIT_SECONDS,
    STEP_SHARED,
    WorkerProcess,
)

INTERRUPTED_EXIT_SECONDS = 0.5  # for workers to end by themselves, after Ctrl-C
WORKER_TIMEOUT = 600.0  # seconds
SLICE_SECONDS = 1.0  # of waiting, between two looks whether a worker has ended
# In memory, if the system has such a folder.
MEMORY_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
MAX_STARTS = 4  # of a worker's program between two of its steps


class SubprocVecEnv(VecEnv):
    """Runs environments in parallel, about one worker process for each core.

    Each worker steps its environments in series. Actions and observations are in
    memory that it shares with this process; rewards, flags and infos travel through a
    pipe. Results do not depend on the number of workers.

    A worker is a separate program (see ``worker.py``), not a copy of the
    caller's: the caller's script is not imported again and needs no
    ``__main__`` guard.

    Args:
        env_fns: functions without arguments, each of which makes a Gymnasium
            environment. They are pickled by cloudpickle.
        num_workers: how many processes; by default as many as there are cores, which
            the MPI ranks of this machine share evenly.
        on_worker_failure: ``replace`` starts another worker when one dies, with a
            warning: the episodes of its environments count as truncated after the last
            observations that were received, and new ones begin. ``raise`` raises
            WorkerError.
        worker_timeout: seconds in which workers have to answer, or continue to read a
            large request. A worker that does not, for example because its environment
            hangs, is killed and counts as dead. None for no limit.

    Raises:
        WorkerError: here or in any later call, if an environment raises (with the
            traceback from the worker; a UserError is raised as it is), or if a worker
            dies and may not be replaced, or dies repeatedly before making a step.
    """

    closed = True  # until there are workers

    def __init__(
        self,
        env_fns: Iterable[Callable],
        num_workers: int | None = None,
        on_worker_failure: str = "replace",
        worker_timeout: float | None = WORKER_TIMEOUT,
    ):
        num_workers = mpi.available_cores() if num_workers is None else num_workers
        if on_worker_failure not in ("replace", "raise"):
            raise UserValueError(
                "on_worker_failure has to be 'replace' or 'raise', received "
                f"{on_worker_failure!r}"
            )
        self.local_env = env_fns[0]  # as in DummyVecEnv
        self.on_worker_failure = on_worker_failure
        self.worker_timeout = math.inf if worker_timeout is None else worker_timeout
        self._memory = tempfile.TemporaryFile(dir=MEMORY_FOLDER)
        self._workers, self._layout = [], []
        self.closed = self._stepping = False
        try:
            for part in split_evenly(len(env_fns), min(num_workers, len(env_fns))):
                pickled = cloudpickle.dumps(env_fns[part])
                self._workers.append(
                    WorkerProcess(pickled, part, self._memory, self.worker_timeout)
                )
            self._requests = dict.fromkeys(self._workers)  # each was asked to make them
            answers = [answer for part in self._receive() for answer in part]
            spaces, resumable = zip(*answers)
            check_equal_spaces(spaces)
            self.resumable = all(resumable)
            super().__init__(len(env_fns), *spaces[0])
            self._share_arrays()
        except BaseException:
            self.close()
            raise

    def _share_arrays(self):
        spaces = self.observation_space, self.action_space
        # Some actions, such as texts, have no shape; they travel through the pipes.
        shapes = [(self.num_envs, *(space.shape or ())) for space in spaces]
        arrays = [np.zeros(shape, x.dtype) for shape, x in zip(shapes, spaces)]
        size = 0
        for array in arrays:
            self._layout.append((array.shape, array.dtype, size))
            size += -(-array.nbytes // 64) * 64  # each aligned for any type
        allocate(self._memory, size or 1)
        memory = mmap.mmap(self._memory.fileno(), 0)
        self._obs, self._actions = (
            np.ndarray(shape, dtype, memory, offset)
            for shape, dtype, offset in self._layout
        )
        self._last_obs = arrays[0]
        self._send({worker: self._share_request(worker) for worker in self._workers})
        self._receive()

    def _share_request(self, worker):
        return "share", worker.part.start, self._layout

    @property
    def worker_pids(self) -> list:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def reset(self):
        self._finish_step()
        self._ask_all("reset")
        return self._copy_obs()

    def step_async(self, actions):
        self._finish_step()
        actions = check_actions(actions, self.num_envs)
        if (actions.shape, actions.dtype) == (self._actions.shape, self._actions.dtype):
            self._actions[:] = actions
            self._send(dict.fromkeys(self._workers, STEP_SHARED))
        else:
            self._send({w: ("step", actions[w.part]) for w in self._workers})
        self._stepping = True

    def step_wait(self):
        if not self._stepping:
            raise WorkerError("step_wait() needs a step_async() before it")
        self._stepping = False
        rewards, dones, infos = zip(*self._receive(replace=True))
        for worker, (first_info, *_) in zip(self._workers, infos):
            if "worker_lost" not in first_info:
                worker.starts = 0
        rewards, dones, infos = (list(chain(*x)) for x in (rewards, dones, infos))
        return self._copy_obs(), np.array(rewards, np.float32), np.array(dones), infos

    def for_each(self, fn, indices=None):
        self._finish_step()
        numbers = list_indices(indices, self.num_envs)
        parts = self._ask_all("for_each", cloudpickle.dumps(fn), numbers)
        for part in parts:
            if isinstance(part, RaisedInWorker):
                raise part
        found = {n: result for part in parts for n, result in part.items()}
        return [found[n] for n in numbers]

    def get_images(self):
        self._finish_step()
        return [image for part in self._ask_all("render") for image in part]

    def get_state(self):
        self._finish_step()
        parts = self._ask_all("get_state")
        arrays = {key: [part[key] for part in parts] for key in parts[0]}
        states = [state for part in arrays.pop("envs") for state in part]
        return {"envs": states, **{k: np.concatenate(x) for k, x in arrays.items()}}

    def set_state(self, state):
        check_like(state["obs"], self._obs, "the environments' state")
        # There may be more or fewer workers than before.
        requests = {
            worker: ("set_state", {k: x[worker.part] for k, x in state.items()})
            for worker in self._workers
        }
        self._send(requests)
        self._receive()
        self._last_obs[:] = state["last_obs"]

    def _copy_obs(self):
        self._last_obs[:] = self._obs
        return np.array(self._obs)

    def _finish_step(self):
        if self._stepping:
            self.step_wait()

    def _ask_all(self, *request) -> list:
        self._send(dict.fromkeys(self._workers, request))
        return self._receive(replace=True)

    def _send(self, requests):
        if self.closed:
            raise WorkerError("this SubprocVecEnv is closed")
        self._requests = requests
        try:
            for worker, request in requests.items():
                worker.send(*request)
        except BaseException:
            # Workers that were sent a request would leave their answers in the pipes.
            self.close()
            raise

    def _receive(self, replace=False) -> list:
        """Returns the answers in the order of the workers; raises at the first error.

        Args:
            replace: whether a worker that died may be replaced by one that is sent the
                same request.
        """
        answers, waited = [], 0.0
        try:
            for worker, request in self._requests.items():
                waited = self._wait(worker, waited)
                while True:
                    try:
                        answers.append(worker.receive())
                        break
                    except WorkerDied as error:
                        if not replace or self.on_worker_failure == "raise":
                            raise
                        self._replace(worker, error)
                        worker.send(*request)
                        self._wait(worker)
        except BaseException as error:
            # Answers left in the pipes would be mistaken for those of later calls.
            in_order = isinstance(error, Exception)
            self.close(EXIT_SECONDS if in_order else INTERRUPTED_EXIT_SECONDS)
            raise
        return answers

    def _wait(self, worker, waited=0.0) -> float:
        """Waits until a worker has an answer, or has ended without one.

        Args:
            waited: seconds for which this request has been waited for, in whole slices:
                this process may itself have been stopped for a while.

        Returns:
            the same, with those of this wait.
        """
        while not worker.wait(SLICE_SECONDS):
            if worker.process.poll() is not None:
                worker.close()  # A process of its environments may hold its pipe open.
                return waited
            waited += SLICE_SECONDS
            if waited >= self.worker_timeout:
                worker.end_hung(self.worker_timeout)
                return waited
        return waited

    def _replace(self, worker, error):
        """Restarts the program of a worker that died with ``error``."""
        while worker.starts < MAX_STARTS:
            self.warn(
                f"{error}; another takes over, and their episodes count as truncated"
            )
            worker.close()
            try:
                worker.start()
                self._answer(worker)
                worker.send(*self._share_request(worker))
                self._answer(worker)
                worker.send("take_over", self._last_obs[worker.part])
                self._answer(worker)
                return
            except WorkerDied as latest:
                error = latest
        raise WorkerDied(f"{error}, as did those before it")

    def _answer(self, worker):
        self._wait(worker)
        return worker.receive()

    def close(self, seconds=EXIT_SECONDS):
        """Ends the workers.

        Args:
            seconds: in which they may end by themselves.
        """
        if self.closed:
            return
        self.closed = True
        self._stepping = False
        for worker in self._workers:
            worker.close()
        deadline = time.monotonic() + seconds
        for worker in self._workers:
            worker.end(deadline)
        self._memory.close()

    def __del__(self):
        self.close()


def allocate(file, size) -> None:
    """Writes ``size`` zero bytes to a file for observations.

    Only setting its size would not do: full memory has to be an error here, not a bus
    error in a worker.

    Raises:
        UserFileError: if there is no space.
    """
    zeros = memoryview(bytes(size))
    try:
        while zeros:
            zeros = zeros[os.write(file.fileno(), zeros) :]
    except OSError as error:
        raise UserFileError(
            f"{MEMORY_FOLDER} has no {size:,} bytes for observations and actions: "
            f"{error.strerror}; in a container, make it larger (docker run "
            "--shm-size=1g)"
        ) from None


def split_evenly(count, parts) -> list[slice]:
    """Splits range(count) into ``parts`` slices whose lengths differ by at most one."""
    bounds = [count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]
