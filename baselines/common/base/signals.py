"""Signals that end a run gracefully, or that it survives."""

import contextlib
import os
import signal
import sys
import threading
import time

STOP_SIGNALS = signal.SIGINT, signal.SIGTERM
END_SECONDS = 1.0  # in which Python sees the second SIGINT, if it is not in a long call
SHOW_CURSOR = "\x1b[?25h"  # which the live line of the run hides

caught = None  # the StopSignals of the run that catches them


def stop_number() -> int:
    """Returns the number of the signal that is to end the run; 0 for none."""
    return caught.number if caught is not None else 0


def stop(number) -> None:
    """Raises the exception that ends a program after SIGINT or SIGTERM."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


class StopSignals:
    """Records SIGINT and SIGTERM, so that a run ends after its current update.

    A second SIGINT raises KeyboardInterrupt at once.

    Attributes:
        number: number of the signal that arrived, 0 for none.
    """

    def __init__(self):
        self.number = 0
        self.old_handlers = {}

    def catch(self) -> None:
        """Records signals from now on, in place of their previous handlers."""
        global caught
        if threading.current_thread() is not threading.main_thread():
            return  # Only the main thread may handle signals.
        self.outer, caught = caught, self
        for number in STOP_SIGNALS:
            self.old_handlers[number] = signal.signal(number, self._on_signal)

    def release(self) -> None:
        """Restores the previous handlers of the signals."""
        global caught
        if self.old_handlers:
            caught = self.outer
        for number, handler in self.old_handlers.items():
            signal.signal(number, handler)
        self.old_handlers = {}

    def _on_signal(self, number, frame):
        if self.number == signal.SIGINT == number:
            raise KeyboardInterrupt
        self.number = number


@contextlib.contextmanager
def second_interrupt_ends():
    """Ends the process soon after a second SIGINT in a run, whatever it is doing.

    Python's handlers wait for the end of a compiled update, which may take long. This
    is only for a command line: a notebook would lose its variables.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    # The system writes to this when a signal arrives.
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    # Ctrl-C reaches forked processes too, and would count once for each.
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    threading.Thread(target=end_at_second_interrupt, args=[read], daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(write)  # which ends the thread


def end_at_second_interrupt(numbers) -> None:
    """Ends the process if a run does not respond to a second SIGINT.

    Args:
        numbers: file descriptor that the numbers of signals are read from.
    """
    with open(numbers, "rb", buffering=0) as stream:
        count = 0
        while number := stream.read(1):
            count = count + (number[0] == signal.SIGINT) if caught else 0
            if count < 2:
                continue
            time.sleep(END_SECONDS)
            if caught is not None:
                if sys.stdout.isatty():
                    os.write(sys.stdout.fileno(), SHOW_CURSOR.encode())
                os._exit(128 + signal.SIGINT)


@contextlib.contextmanager
def ignored_hangup():
    """Lets this process, and those that it starts, outlive their terminal."""
    try:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    except ValueError:  # Only the main thread may.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
