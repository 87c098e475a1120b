"""Looks for commits on behalf of those who wait elsewhere: one thread for all of them, and none when nobody does."""

import os
import time
from collections.abc import Callable
from threading import Lock, Thread

import apsw

from decklog.core.errors import DecklogError
from decklog.db.sqlite.connections import SqliteConnections

_SECONDS_BETWEEN_LOOKS = 0.01
# The longer nothing was written, the longer the pause: seconds of silence, and seconds between two looks.
_SILENCES = ((30.0, 0.04), (1.0, 0.02))
# A commit shows some time after it was written, once it is on disk, and one that follows within a tick of the file system's
# clock may leave the same time: for this long after a write the counter is read at each look.
_SECONDS_AFTER_A_WRITE = 1.0
# A file system may keep no times: the counter is read at this interval in any case.
_SECONDS_BETWEEN_QUESTIONS = 0.5


class WrittenLately:
    """Decides by the time of the write-ahead log when to read the change counter, which costs three times as much."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._state: tuple[int, int, int] | None = None
        self._written_at = self._looked_at = self._asked_at = time.monotonic()

    def is_worth_asking(self) -> bool:
        """Return whether something may have been committed since this was last said to be so."""
        self._looked_at = now = time.monotonic()
        state = self._written()
        if state != self._state:
            self._state, self._written_at = state, now
        is_due = now - self._asked_at >= _SECONDS_BETWEEN_QUESTIONS
        # Without a write-ahead log the time is unknown.
        is_worth = is_due or state is None or now - self._written_at < _SECONDS_AFTER_A_WRITE
        if is_worth:
            self._asked_at = now
        return is_worth

    def pause(self) -> float:
        """Return how long to wait before the next look."""
        silence = self._looked_at - self._written_at
        return next((seconds for least, seconds in _SILENCES if silence >= least), _SECONDS_BETWEEN_LOOKS)

    def _written(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


class Watcher:
    """Calls everybody who watches when the file's change counter has moved."""

    def __init__(self, connections: SqliteConnections) -> None:
        self.process = os.getpid()
        self._connections = connections
        self._gate = Lock()
        self._watching: dict[object, Callable[[], None]] = {}
        self._is_looking = False

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Wake somebody whenever something may have been committed; what comes back ends it."""
        key = object()
        with self._gate:
            self._connections.check_open()
            self._watching[key] = wake
            if not self._is_looking:
                self._is_looking = True
                Thread(target=self._run, name="decklog watcher", daemon=True).start()

        def stop() -> None:
            with self._gate:
                self._watching.pop(key, None)

        return stop

    def _run(self) -> None:
        written = WrittenLately(self._connections.path + "-wal")
        while self._is_wanted():
            try:
                has_moved = written.is_worth_asking() and self._looked()
            except (DecklogError, apsw.Error):
                # The file is closed or gone: those who wait look for themselves, and hear what happened.
                self._wake()
                with self._gate:
                    self._is_looking = False
                return
            if has_moved:
                self._wake()
            time.sleep(written.pause())

    def _is_wanted(self) -> bool:
        with self._gate:
            self._is_looking = bool(self._watching)
            return self._is_looking

    def _looked(self) -> bool:
        self._connections.check_in_place_now_and_then()
        with self._connections.readers.held() as reader:
            return reader.notices_change()

    def _wake(self) -> None:
        with self._gate:
            wakes = list(self._watching.values())
        for wake in wakes:
            wake()
