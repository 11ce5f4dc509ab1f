"""The program that a SubprocVecEnv starts: it runs some of the environments.

``python worker.py PIPE BELL MEMORY``, where the arguments are file descriptors
inherited from the parent. A request is the name of a method of ``Worker`` and its
arguments; the bell asks for ``step_shared``. It is answered by (True, result) or, if an
environment raised, by (False, (its index, the exception if it is a UserError,
traceback)).

The program ends when the pipe closes, in whatever way the parent ended.
"""

import sys

if __name__ == "__main__":
    # Python puts this file's folder before the parent's search path, unless
    # PYTHONSAFEPATH is set.
    if sys.path[0] == __file__.rpartition("/")[0]:
        del sys.path[0]

import contextlib
import ctypes
import mmap
import os
import pickle
import select
import signal
import traceback
from multiprocessing.connection import Connection

import cloudpickle
import numpy as np

from baselines.common.base.errors import RaisedInWorker, UserError
from baselines.common.vec_env.serial_envs import SerialEnvs

PR_SET_PDEATHSIG = 1  # of prctl(2)


class Worker(SerialEnvs):
    """The environments of one process, which write into a slice of shared memory."""

    def __init__(self, memory_fd):
        super().__init__()
        self.memory_fd = memory_fd

    def make(self, env_fns):
        made = super().make(cloudpickle.loads(env_fns))
        if "cv2" in sys.modules:
            # There is already a worker for every core.
            sys.modules["cv2"].setNumThreads(1)
        return made

    def share(self, first, layout):
        """Maps the observations and actions of all; ours begin at row ``first``."""
        memory = mmap.mmap(self.memory_fd, 0)
        part = slice(first, first + len(self.envs))
        self.obs, self.actions = (
            np.ndarray(shape, dtype, memory, offset)[part]
            for shape, dtype, offset in layout
        )
        self.first = first

    def step(self, actions):
        rewards, dones, infos = super().step(actions)
        # Small arrays take ten times as long to pickle as lists.
        return rewards.tolist(), dones.tolist(), infos

    def step_shared(self):
        """Steps with the shared actions."""
        return self.step(self.actions.copy())

    def for_each(self, fn, numbers):
        try:
            return super().for_each(cloudpickle.loads(fn), numbers)
        except Exception:  # which is no reason to end the workers
            number = self.first + self.current
            text = f"environment {number} raised\n{traceback.format_exc().rstrip()}"
            return RaisedInWorker(text)

    def answer(self, request, arguments) -> bytes:
        try:
            result = True, getattr(self, request)(*arguments)
            try:
                return pickle.dumps(result)
            except Exception:  # such as for classes of the user's script
                return cloudpickle.dumps(result)
        except BaseException as error:  # including sys.exit() in an environment
            user_error = error if isinstance(error, UserError) else None
            failure = self.current, user_error, traceback.format_exc()
            return pickle.dumps((False, failure))


def serve(pipe, bell, worker):
    """Answers requests until the parent closes the pipe."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.register(bell, select.POLLIN)
    try:
        while True:
            if any(fd == bell for fd, _ in poll.poll()):
                if not os.read(bell, 8):  # a pipe whose other end was closed
                    raise EOFError
                request, arguments = "step_shared", ()
            else:
                request, *arguments = pickle.loads(pipe.recv_bytes())
            pipe.send_bytes(worker.answer(request, arguments))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        worker.close()


if __name__ == "__main__":
    # Ctrl-C and batch systems signal the whole process group; the parent decides what
    # to do, and closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # A stopped worker (SIGSTOP) continues when its parent ends, so that it ends too.
    with contextlib.suppress(AttributeError):  # Linux only.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    # Otherwise a worker that wakes up would take the core from the parent, which still
    # has to wake the others. (Linux only; a container may forbid it.)
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    pipe_fd, bell_fd, memory_fd = map(int, sys.argv[1:])
    serve(Connection(pipe_fd), bell_fd, Worker(memory_fd))
