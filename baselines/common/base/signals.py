"""Signals that end a run after its current update."""

import signal
import threading

STOP_SIGNALS = signal.SIGINT, signal.SIGTERM


def stop(number) -> None:
    """Raises the exception that ends a program after SIGINT or SIGTERM."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


class StopSignals:
    """Records SIGINT and SIGTERM, so that a run ends after its current update.

    A second SIGINT raises KeyboardInterrupt, as Python does.

    Attributes:
        number: number of the signal that arrived, 0 for none.
    """

    def __init__(self):
        self.number = 0
        self.old_handlers = {}

    def catch(self) -> None:
        """Records signals from now on, in place of their previous handlers."""
        if threading.current_thread() is not threading.main_thread():
            return  # Only the main thread may handle signals.
        for number in STOP_SIGNALS:
            self.old_handlers[number] = signal.signal(number, self._on_signal)

    def release(self) -> None:
        """Restores the previous handlers of the signals."""
        for number, handler in self.old_handlers.items():
            signal.signal(number, handler)
        self.old_handlers = {}

    def _on_signal(self, number, frame):
        if self.number == signal.SIGINT == number:
            raise KeyboardInterrupt
        self.number = number
