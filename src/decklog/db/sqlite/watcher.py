"""Polls for commits on behalf of async tasks: one thread for all of them, and none when nobody waits."""

import os
import time
from collections.abc import Callable
from threading import Lock, Thread

import apsw

from decklog.core.errors import DecklogError
from decklog.db.sqlite.connections import SqliteConnections

_SECONDS_BETWEEN_LOOKS = 0.01


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
        while self._is_wanted():
            try:
                self._connections.check_in_place_now_and_then()
                has_moved = self._connections.readers.notices_change()
            except (DecklogError, apsw.Error):
                # The file is closed or gone: the waiters get the error when they look themselves.
                self._wake()
                with self._gate:
                    self._is_looking = False
                return
            if has_moved:
                self._wake()
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _is_wanted(self) -> bool:
        with self._gate:
            self._is_looking = bool(self._watching)
            return self._is_looking

    def _wake(self) -> None:
        with self._gate:
            wakes = list(self._watching.values())
        for wake in wakes:
            wake()
