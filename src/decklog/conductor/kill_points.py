"""Named moments at which a test can kill this process; nothing happens unless the environment names one.

`DECKLOG_CONDUCTOR_KILL_AT=git:update-ref:after#2` kills at the second time that this moment is reached.
"""

import os
import signal
from itertools import count

VARIABLE = "DECKLOG_CONDUCTOR_KILL_AT"


_point = ""
# Numbers the times that the moment is reached; taking a number is atomic.
_times, _wanted = count(1), 1


def arm(wanted: str | None) -> None:
    """Set the moment at which this process is killed; None for none."""
    global _point, _times, _wanted
    _point, _, number = (wanted or "").partition("#")
    _times, _wanted = count(1), int(number or 1)


def reached(point: str) -> None:
    """Kill this process if it waits for this moment."""
    if point == _point and next(_times) == _wanted:
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get(VARIABLE))
