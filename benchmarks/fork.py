"""Runs in forks of this process, which share everything it has imported."""

import multiprocessing
import os
import signal
import subprocess
import sys
import warnings

from baselines import run


class ForkedRun:
    """``baselines.run`` in a fork of this process; used like ``subprocess.Popen``.

    Args:
        argv: arguments for ``baselines.run``.
        errors: path of the file for its stderr.
    """

    def __init__(self, argv, errors):
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=run_here, args=[argv, errors])
        with warnings.catch_warnings():
            # TensorFlow's threads are idle until its first operation.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        self.pid = self.process.pid

    @property
    def returncode(self):
        """The exit status, negative for a signal; None while it runs."""
        return self.process.exitcode

    def poll(self):
        """Returns the exit status; None while it runs."""
        return self.process.exitcode

    def wait(self, timeout=None):
        """Waits for it to end; raises subprocess.TimeoutExpired after ``timeout`` s."""
        self.process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("baselines.run", timeout)
        return self.returncode

    def send_signal(self, number) -> None:
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it, unless it has ended."""
        self.process.kill()


def run_here(argv, errors) -> None:
    """Calls ``baselines.run`` as if it were this process's main program."""
    with open(os.devnull, "w") as nothing, open(errors, "w") as file:
        os.dup2(nothing.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.pop("OPENAI_LOG_FORMAT", None)
    sys.argv = ["baselines.run", *argv]
    try:
        run.main()
    except KeyboardInterrupt:
        # Python ends by the signal itself if it comes when nothing is left to do.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
