"""One worker process of a SubprocVecEnv, as its parent sees it."""

import contextlib
import math
import os
import pickle
import select
import socket
import struct
import subprocess
import sys
import time
from multiprocessing.connection import Connection

from baselines.common.base import mpi
from baselines.common.base.errors import RaisedInWorker, WorkerDied

PROGRAM = os.path.join(os.path.dirname(__file__), "worker.py")
EXIT_SECONDS = 5.0  # for workers to end by themselves
MAX_TIMEOUT = 1e9  # seconds that a socket accepts
STEP_SHARED = ("step_shared",)  # the request that a worker's bell stands for
RING = (1).to_bytes(8, sys.byteorder)  # what an eventfd takes


class WorkerProcess:
    """A worker program, which runs some of the environments, and the pipe to it.

    Args:
        env_fns: pickled functions that make these environments.
        part: which slice of all environments they are.
        memory: the shared file.
        timeout: seconds for which the program may stop reading a request, or sending an
            answer that it has begun; infinite for no limit.

    Attributes:
        starts: how often the program was started since it last made a step.
        hung_for: seconds without an answer after which it was killed; None if not.
    """

    starts = 0
    hung_for = None

    def __init__(self, env_fns, part, memory, timeout):
        self.env_fns = env_fns
        self.part = part
        self.memory = memory
        self.timeout = timeout
        self.start()

    def start(self):
        """Starts the program and asks it to make the environments."""
        self.hung_for = None
        self.starts += 1
        ours, theirs = socket.socketpair()
        if self.timeout < MAX_TIMEOUT:
            limit = struct.pack("ll", math.ceil(self.timeout), 0)
            for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                ours.setsockopt(socket.SOL_SOCKET, option, limit)
        heard, rung = make_bell()
        fds = theirs.fileno(), heard, self.memory.fileno()
        # By its path: python -m would put the current folder first in sys.path.
        command = [sys.executable, PROGRAM, *map(str, fds)]
        search_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
        env = mpi.child_environment()
        env |= {"PYTHONPATH": search_path, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=fds, env=env
        )
        theirs.close()
        os.close(heard)
        self._bell = open(rung, "wb", buffering=0)
        self.pipe = Connection(ours.detach())
        # Connection.poll() makes one at each call, which takes as long as a step of a
        # fast environment.
        self._poll = select.poll()
        self._poll.register(self.pipe, select.POLLIN)
        self.send("make", self.env_fns)

    def send(self, *request):
        """Sends the name of a method of ``Worker`` and its arguments."""
        # If the worker died, receive() says so, with its exit status.
        try:
            with contextlib.suppress(ConnectionError):
                if request == STEP_SHARED:
                    self._bell.write(RING)
                else:
                    self.pipe.send_bytes(pickle.dumps(request))
        except BlockingIOError:
            self.end_hung(self.timeout)

    def wait(self, seconds) -> bool:
        """Whether ``receive`` will not block, after at most so many seconds."""
        return bool(self._poll.poll(1000 * seconds))

    def receive(self):
        """Returns the answer to the oldest request without one.

        Raises:
            RaisedInWorker: if an environment raised.
            WorkerDied: if the process is gone.
            UserError: the one that an environment raised, whose message is enough.
        """
        try:
            message = self.pipe.recv_bytes()
        except (EOFError, OSError) as error:
            if isinstance(error, BlockingIOError):
                self.end_hung(self.timeout)
            raise WorkerDied(f"{self} {self.describe_end()}") from None
        ok, answer = pickle.loads(message)
        if ok:
            return answer
        index, user_error, text = answer
        number = self.part.start + index
        raised = RaisedInWorker(f"environment {number} raised\n{text.rstrip()}")
        if user_error is not None:
            raise user_error from raised
        raise raised

    def describe_end(self) -> str:
        """Waits for the process to end, and returns how it did."""
        try:
            status = self.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "closed its pipe and was ended"
        if self.hung_for is not None:
            return f"did not respond for {self.hung_for:g} s and was ended"
        return f"died with exit status {status}"

    def __str__(self):
        first, last = self.part.start, self.part.stop - 1
        if first == last:
            return f"the worker process of environment {first}"
        return f"the worker process of environments {first} to {last}"

    def end_hung(self, seconds):
        """Kills the process; ``receive`` will say that it hung for so many seconds."""
        self.hung_for = seconds
        self.process.kill()

    def close(self):
        """Closes the pipe, so that the program ends by itself."""
        self.pipe.close()
        self._bell.close()

    def end(self, deadline):
        """Waits until ``deadline`` for the process to end by itself, then kills it."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def make_bell() -> tuple:
    """Returns file descriptors of a bell: where it is heard, and where it is rung.

    Linux expects the writer of a pipe or a socket to sleep next, and gives its core to
    the reader: several workers that are sent requests would first share one core. Who
    writes to an eventfd keeps the core.
    """
    if hasattr(os, "eventfd"):  # Linux only.
        bell = os.eventfd(0)
        return bell, os.dup(bell)
    return os.pipe()
