"""Progress on a terminal, for work of more than a second. Nothing is shown where nobody looks."""

import sys
import time
from collections.abc import Callable


class ProgressMeter:
    """One line on stderr that is written anew a few times a second."""

    def __init__(self, written: Callable[[int], str] = "{:,}".format) -> None:
        # How an amount is written: a plain number, or bytes.
        self._written = written
        self._shown = sys.stderr.isatty()
        self._begin = self._last = time.monotonic()
        self._what = ""
        self._drawn = False

    def __call__(self, what: str, done: int, whole: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._since, self._first = what, now, done
        if not self._shown or now - self._begin < 1 or now - self._last < 0.2:
            return
        self._last = now
        self._draw(what, done, whole, (done - self._first) / max(now - self._since, 0.001))

    def _draw(self, what: str, done: int, whole: int, rate: float) -> None:
        counted = self._written(done) if done else "…"
        count = f"{self._written(done)} of {self._written(whole)} ({100 * done // whole} %)" if whole else counted
        speed = f"  {self._written(round(rate))}/s" if rate >= 1 else ""
        left = f"  {_duration((whole - done) / rate)} left" if whole and rate > 0 else ""
        sys.stderr.write(f"\r\x1b[K{what}: {count}{speed}{left}")
        sys.stderr.flush()
        self._drawn = True

    def __enter__(self) -> "ProgressMeter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
