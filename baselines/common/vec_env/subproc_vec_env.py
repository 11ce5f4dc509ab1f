"""Environments in worker processes, several in each."""

import math
import tempfile
import time
from multiprocessing.connection import wait

import cloudpickle
import numpy as np

from baselines import logger
from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError, WorkerDied, WorkerError
from baselines.common.base.signals import stop, stop_number
from baselines.common.saving.states import check_like
from baselines.common.vec_env.shared_memory import allocate, shared_memory_folder
from baselines.common.vec_env.vec_env import (
    VecEnv,
    check_actions,
    check_env_fns,
    check_equal_spaces,
    lost_info,
    make_state,
)
from baselines.common.vec_env.worker_process import (
    EXIT_SECONDS,
    WorkerProcess,
)

INTERRUPTED_EXIT_SECONDS = 0.5  # for workers to end by themselves, after Ctrl-C
WORKER_TIMEOUT = 600.0  # seconds
SLICE_SECONDS = 1.0  # of waiting for workers, between two checks for signals
MAX_STARTS = 4  # of a worker's program between two of its steps


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
    _longest_wait = 0.0  # seconds, in whole slices

    def __init__(
        self,
        env_fns,
        num_workers=None,
        on_worker_failure="replace",
        worker_timeout=WORKER_TIMEOUT,
    ):
        env_fns = check_env_fns(env_fns, type(self).__name__)
        num_workers = mpi.available_cores() if num_workers is None else num_workers
        if num_workers < 1:
            raise UserValueError(
                f"SubprocVecEnv needs at least one worker, received {num_workers}"
            )
        if on_worker_failure not in ("replace", "raise"):
            raise UserValueError(
                "on_worker_failure has to be 'replace' or 'raise', received "
                f"{on_worker_failure!r}"
            )
        self.local_env = env_fns[0]  # as in DummyVecEnv
        self.on_worker_failure = on_worker_failure
        self.worker_timeout = worker_timeout
        self._memory = tempfile.TemporaryFile(dir=shared_memory_folder())
        self._workers = []
        self._asked = self._workers  # whose answers are still to come
        self.closed = self._stepping = False
        try:
            for part in split_evenly(len(env_fns), min(num_workers, len(env_fns))):
                pickled = cloudpickle.dumps(env_fns[part])
                timeout = seconds_of(worker_timeout)
                worker = WorkerProcess(pickled, part, self._memory, timeout)
                self._workers.append(worker)
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
        memory = allocate(self._memory, self._last_obs.nbytes or 1)
        if memory is not self._memory:
            self._memory = memory
            for worker in self._workers:
                worker.restart(memory)
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
        asked = [worker for worker in self._workers if not worker.truncated]
        self._send({worker: ("step", actions[worker.part]) for worker in asked})
        self._stepping = True

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
                worker.starts = 0
        rewards, dones, infos = zip(*answers)
        infos = [info for part in infos for info in part]
        return self._copy_obs(), np.concatenate(rewards), np.concatenate(dones), infos

    def get_images(self):
        return self._collect("render")

    def get_state(self):
        states = self._collect("get_state")  # It may replace workers.
        lost = np.zeros(self.num_envs, bool)
        for worker in self._workers:
            lost[worker.part] = worker.truncated
        return make_state(states, self._obs, self._last_obs, lost)

    def set_state(self, state):
        check_like(state["obs"], self._obs, "observations")
        self._send({w: ("set_state", state["envs"][w.part]) for w in self._workers})
        self._receive()
        self._obs[:], self._last_obs[:] = state["obs"], state["last_obs"]
        for worker in self._workers:  # There may be more or fewer than before.
            worker.truncated = bool(state["lost"][worker.part].any())

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
        """Sends requests, a dict of tuples by worker."""
        if self.closed:
            raise WorkerError("this SubprocVecEnv is closed")
        self._asked = requests
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
            replace: whether a worker that died may be replaced; its answer is then
                None, like that of a worker that was not asked.
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
        except BaseException as error:
            # Answers left in the pipes would be mistaken for those of later calls.
            in_order = isinstance(error, Exception)
            self.close(EXIT_SECONDS if in_order else INTERRUPTED_EXIT_SECONDS)
            raise
        return list(answers.values())

    def _wait(self, waiting) -> list:
        """Returns the pipes that have an answer, or whose worker ended without one.

        Args:
            waiting: workers by their pipes.

        Raises:
            KeyboardInterrupt, SystemExit: if a signal is to end the run meanwhile, and
                the workers do not answer.
        """
        timeout = seconds_of(self.worker_timeout)
        # By counting slices, as this process may itself have been stopped for a while.
        waited = -SLICE_SECONDS
        while waited < timeout:
            if pipes := wait(waiting, SLICE_SECONDS):
                self._longest_wait = max(self._longest_wait, waited + SLICE_SECONDS)
                return pipes
            waited += SLICE_SECONDS
            # Slow environments are given as long as they have taken before.
            if (number := stop_number()) and waited >= self._longest_wait:
                logger.warn(
                    f"{' and '.join(map(str, waiting.values()))} did not respond: the "
                    "run ends without them"
                )
                stop(number)
        for worker in waiting.values():
            worker.end_hung(timeout)
        return list(waiting)

    def _replace(self, worker, error):
        """Restarts the program of a worker that died with ``error``."""
        while worker.starts < MAX_STARTS:
            logger.warn(
                f"{error}; another takes over, and their episodes count as truncated"
            )
            worker.truncated = True
            worker.pipe.close()
            try:
                worker.start()
                self._answer(worker)
                self._answer(worker, "share", self._obs.shape, self._obs.dtype)
                self._answer(worker, "take_over")
                return
            except WorkerDied as again:
                error = again
        raise WorkerDied(f"{error}, as did those before it")

    def _answer(self, worker, *request):
        """Returns a worker's answer to a request; if none is given, to its last one."""
        if request:
            worker.send(*request)
        self._wait({worker.pipe: worker})
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
            worker.pipe.close()
        deadline = time.monotonic() + seconds
        for worker in self._workers:
            worker.end(deadline)
        self._memory.close()

    def __del__(self):
        self.close()


def seconds_of(timeout) -> float:
    """Returns a ``worker_timeout`` as a number, infinite for None."""
    return math.inf if timeout is None else timeout


def truncated_step(last_obs):
    """Returns what a worker would return if a time limit had ended all its episodes.

    Args:
        last_obs: [N, *observation shape], the last ones received.
    """
    dones = np.ones(len(last_obs), bool)
    return np.zeros(len(last_obs), np.float32), dones, [*map(lost_info, last_obs)]


def split_evenly(count, parts) -> list[slice]:
    """Splits range(count) into ``parts`` slices whose lengths differ by at most one."""
    bounds = [count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]
