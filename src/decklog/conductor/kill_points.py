"""Named moments at which a test can kill this process; nothing happens unless the environment names one.

`DECKLOG_CONDUCTOR_KILL_AT=git:update-ref:after#2` kills at the second time that this moment is reached.
"""

import os
import signal
import threading

VARIABLE = "DECKLOG_CONDUCTOR_KILL_AT"


class _Countdown:
    """Counts how often one moment is reached."""

    def __init__(self, wanted: str) -> None:
        self.point, _, number = wanted.partition("#")
        self._left = int(number or 1)
        self._lock = threading.Lock()

    def is_over(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0


_countdown: _Countdown | None = None


def arm(wanted: str | None) -> None:
    """Set the moment at which this process is killed; None for none."""
    global _countdown
    _countdown = _Countdown(wanted) if wanted else None


def reached(point: str) -> None:
    """Kill this process if it waits for this moment."""
    if _countdown is not None and _countdown.point == point and _countdown.is_over():
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get(VARIABLE))
