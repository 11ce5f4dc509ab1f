"""The program that a SubprocVecEnv starts: it runs some of the environments.

``python worker.py PIPE MEMORY``, where both arguments are file descriptors
inherited from the parent. Requests are answered in order:

    "make", env_fns, index  -> ((observation space, action space), resumable) of each;
                               index is the number of the first environment
    "share", shape, dtype   -> None; observations go to the shared memory from then on
    "reset"                 -> None
    "step", actions         -> rewards, dones, infos, each info pickled separately
    "render"                -> a list of RGB frames
    "get_state"             -> a list of the environments' states
    "set_state", states     -> None
    "take_over"             -> None; after "share", in place of a worker that died

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
import signal
import traceback
from multiprocessing.connection import Connection

import cloudpickle
import numpy as np

from baselines.bench.monitor import Monitor
from baselines.common.base.errors import UserError
from baselines.common.base.user_code import own_traceback
from baselines.common.envs.recorder import (
    get_env_state,
    has_generator,
    is_resumable,
    set_env_state,
    stateful_wrappers,
    with_recorder,
)
from baselines.common.vec_env.vec_env import step_and_reset

PR_SET_PDEATHSIG = 1  # of prctl(2)


class Worker:
    """The environments of one process, and the slice of memory they write to."""

    def __init__(self, memory_fd):
        self.memory_fd = memory_fd
        self.first = 0  # number of the first environment
        self.envs = []
        self.obs = None
        self.current = 0  # which environment is being run, for error messages

    def each(self):
        """Yields (i, environment), and keeps track of which one is being run."""
        for i, env in enumerate(self.envs):
            self.current = i
            yield i, env

    def make(self, env_fns, first):
        self.first = first
        for i, env_fn in enumerate(cloudpickle.loads(env_fns)):
            self.current = i
            with Monitor.without_files():  # if it is reset, to seed it
                self.envs.append(with_recorder(env_fn()))
        if "cv2" in sys.modules:
            # There is already a worker for every core.
            sys.modules["cv2"].setNumThreads(1)
        return [
            ((env.observation_space, env.action_space), is_resumable(env))
            for env in self.envs
        ]

    def share(self, shape, dtype):
        obs = np.ndarray(shape, dtype, mmap.mmap(self.memory_fd, 0))
        self.obs = obs[self.first : self.first + len(self.envs)]

    def reset(self):
        for i, env in self.each():
            self.obs[i], _ = env.reset()

    def step(self, actions):
        rewards = np.zeros(len(self.envs), np.float32)
        dones = np.zeros(len(self.envs), bool)
        infos = []
        for i, env in self.each():
            self.obs[i], rewards[i], dones[i], info = step_and_reset(env, actions[i])
            # Separately, so that a pickling error is reported for this environment.
            infos.append(pickle.dumps(info))
        return rewards, dones, infos

    def render(self):
        return [env.render() for _, env in self.each()]

    def get_state(self):
        return [get_env_state(env) for _, env in self.each()]

    def set_state(self, states):
        for (_, env), state in zip(self.each(), states, strict=True):
            set_env_state(env, state)

    def take_over(self):
        """Replaces a worker that died: continues its monitor files and resets."""
        for i, env in self.each():
            for wrapper in stateful_wrappers(env):
                if hasattr(wrapper, "take_over"):
                    wrapper.take_over()
            if has_generator(env):
                # Otherwise it would repeat the first episodes of the dead worker.
                env.unwrapped.np_random = np.random.default_rng()
            self.obs[i], _ = env.reset()

    def close(self):
        for env in self.envs:
            env.close()

    def answer(self, request, arguments):
        """Returns a pickled (True, result), or if an environment raised, its error.

        An error is (False, (index, a UserError or None, traceback)).
        """
        try:
            return pickle.dumps((True, getattr(self, request)(*arguments)))
        except BaseException as error:  # including sys.exit() in an environment
            told = error if isinstance(error, UserError) else None
            text = own_traceback(error) or traceback.format_exc()
            return pickle.dumps((False, (self.current, told, text)))


def serve(pipe, worker):
    """Answers requests until the parent closes the pipe."""
    try:
        while True:
            request, *arguments = pipe.recv()
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
    serve(Connection(int(sys.argv[1])), Worker(memory_fd=int(sys.argv[2])))
