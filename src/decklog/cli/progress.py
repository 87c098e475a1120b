"""Progress on a terminal, for work of more than a second. Nothing is shown where nobody looks."""

import sys
import time


class Meter:
    """One line on stderr that is written anew a few times a second."""

    def __init__(self) -> None:
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
        count = f"{done:,} of {whole:,} ({100 * done // whole} %)" if whole else (f"{done:,}" if done else "…")
        speed = f"  {rate:,.0f}/s" if rate >= 1 else ""
        left = f"  {_duration((whole - done) / rate)} left" if whole and rate > 0 else ""
        sys.stderr.write(f"\r\x1b[K{what}: {count}{speed}{left}")
        sys.stderr.flush()
        self._drawn = True

    def __enter__(self) -> "Meter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
