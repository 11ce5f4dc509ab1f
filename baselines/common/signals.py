"""Signals that end a run in order, or that it outlives."""

import contextlib
import signal

STOP_SIGNALS = signal.SIGINT, signal.SIGTERM

caught = None  # the StopSignals of the run that catches them


def stop_number() -> int:
    """Returns the number of the signal that is to end the run; 0 for none."""
    return caught.number if caught is not None else 0


def stop(number) -> None:
    """Raises what ends a program after SIGINT or SIGTERM."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


class StopSignals:
    """Notes SIGINT and SIGTERM, so that a run ends when its update does.

    A second SIGINT raises KeyboardInterrupt at once.

    Attributes:
        number: of the signal that came, 0 for none.
    """

    def __init__(self):
        self.number = 0
        self.old_handlers = {}

    def catch(self) -> None:
        global caught
        caught = self
        for number in STOP_SIGNALS:
            try:
                self.old_handlers[number] = signal.signal(number, self._on_signal)
            except ValueError:
                break  # Only the main thread may; elsewhere signals are not ours.

    def release(self) -> None:
        """Lets the signals do again what they did before."""
        global caught
        caught = None
        for number, handler in self.old_handlers.items():
            signal.signal(number, handler)

    def _on_signal(self, number, frame):
        if self.number == signal.SIGINT == number:
            raise KeyboardInterrupt
        self.number = number


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
