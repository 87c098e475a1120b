"""What is to be done again, but not too often."""

from time import monotonic


class NowAndThen:
    """Says yes at first, and then once in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._said = -seconds

    def is_time(self) -> bool:
        now = monotonic()
        if now - self._said < self._seconds:
            return False
        self._said = now
        return True
