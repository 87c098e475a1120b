"""Throttle for repeated work."""

from time import monotonic


class NowAndThen:
    """Throttle that allows one call per interval; the first call is always allowed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._said = -seconds

    def is_time(self) -> bool:
        now = monotonic()
        if now - self._said < self._seconds:
            return False
        self._said = now
        return True
