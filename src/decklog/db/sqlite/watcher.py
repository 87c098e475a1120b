"""Looks for commits on behalf of those who wait elsewhere: one thread for all of them, and none when nobody does."""

import os
import time
from collections.abc import Callable
from threading import Lock, Thread

import apsw

from decklog.core.errors import DecklogError
from decklog.db.sqlite.connections import SqliteConnections

# The longer nothing was committed, the longer the pause: seconds of silence, and seconds between two looks.
_PAUSES = ((30.0, 0.04), (1.0, 0.02), (0.0, 0.01))


def pause_after(silence: float) -> float:
    """Return the pause before the next look after `silence` seconds without a commit."""
    return next(pause for least, pause in _PAUSES if silence >= least)


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
        changed_at = time.monotonic()
        while self._is_wanted():
            try:
                has_moved = self._looked()
            except (DecklogError, apsw.Error):
                # The file is closed or gone: those who wait look for themselves, and hear what happened.
                self._wake()
                with self._gate:
                    self._is_looking = False
                return
            if has_moved:
                changed_at = time.monotonic()
                self._wake()
            time.sleep(pause_after(time.monotonic() - changed_at))

    def _is_wanted(self) -> bool:
        with self._gate:
            self._is_looking = bool(self._watching)
            return self._is_looking

    def _looked(self) -> bool:
        self._connections.check_in_place_now_and_then()
        return self._connections.readers.notices_change()

    def _wake(self) -> None:
        with self._gate:
            wakes = list(self._watching.values())
        for wake in wakes:
            wake()
