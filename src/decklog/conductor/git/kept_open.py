"""Calls of git that stay open and answer one question after the other: to start git costs more than what it is asked for."""

import os
import select
import subprocess
import threading
import time
from collections.abc import Callable

from decklog.conductor import kill_points
from decklog.conductor.git.calls import LONGEST_SECONDS

# After so many answers a call is made anew: git remembers every object that it has seen.
MOST_ANSWERS = 1000
_AT_ONCE = 65536


class KeptOpen:
    """One call of git, made by `start` when it is first needed. Whoever asks while another does waits."""

    def __init__(self, name: str, start: Callable[[], "subprocess.Popen[bytes]"]) -> None:
        self._name = name
        self._start = start
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = 0
        self._used_at = 0.0

    def ask(self, question: bytes, end: bytes) -> bytes | None:
        """Return what git answers before the end of its answer; None when it ended instead, without a word why.

        Then whatever was asked may have happened or not: whoever asks again by a call of its own is told.
        """
        with self._lock:
            kill_points.reached(f"git:{self._name}:before")
            try:
                answer = self._asked(question, end)
            except OSError:
                answer = None
            self._answers += 1
            if answer is None or self._answers >= MOST_ANSWERS:
                self._close()
            self._used_at = time.monotonic()
            kill_points.reached(f"git:{self._name}:after")
            return answer

    def _asked(self, question: bytes, end: bytes) -> bytes | None:
        if self._process is None:
            self._process, self._answers = self._start(), 0
        given, told = self._process.stdin, self._process.stdout
        assert given is not None
        assert told is not None
        given.write(question)
        until, found = time.monotonic() + LONGEST_SECONDS, bytearray()
        while not found.endswith(end):
            ready, _, _ = select.select([told], [], [], max(0.0, until - time.monotonic()))
            data = os.read(told.fileno(), _AT_ONCE) if ready else b""
            if not data:
                return None
            found += data
        return bytes(found[: -len(end)])

    def rest(self, seconds: float = 0.0) -> None:
        """End the call unless it was asked within so many seconds; the next question makes another."""
        with self._lock:
            if self._process is not None and time.monotonic() - self._used_at >= seconds:
                self._close()

    def _close(self) -> None:
        """End the call. Between two questions it holds no lock, so that nothing is left behind."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.kill()
