"""Shows the server that this client is alive while a write transaction waits for the caller's own code.

The server ends a transaction whose client sends nothing for a moment, so that a frozen process blocks nobody. A slow caller is
not frozen: a thread sends an empty query for it.
"""

import time
from threading import Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decklog.db.postgres.connections import PatientConnection

# How long the server waits for the next statement of a verb's own transaction, which is retried with twice the time.
VERB_SECONDS = 0.5
# The same for a block of the caller's code, which is never retried.
BLOCK_SECONDS = 1.5
_SECONDS_BETWEEN_PINGS = 0.06
_SECONDS_UNUSED = 2.0


class KeepAlive:
    """Pings the connections that have a write transaction open; its thread ends when there has been none for a while."""

    def __init__(self, idle_seconds: float) -> None:
        # A caller that does nothing for this long counts as frozen too.
        self._idle_seconds = idle_seconds
        self._lock = Lock()
        self._open: set[PatientConnection] = set()
        self._thread: Thread | None = None

    def add(self, connection: "PatientConnection", idle_seconds: float) -> None:
        """Ping a connection from now on: the server ends its transaction after a silence of `idle_seconds`."""
        connection.used_at, connection.idle_seconds = time.monotonic(), idle_seconds
        with self._lock:
            self._open.add(connection)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="decklog keep-alive", daemon=True)
                self._thread.start()

    def remove(self, connection: "PatientConnection") -> None:
        with connection.lock:  # after a ping that is under way
            connection.idle_seconds = 0.0
        with self._lock:
            self._open.discard(connection)

    def _run(self) -> None:
        used_at = time.monotonic()
        while True:
            time.sleep(_SECONDS_BETWEEN_PINGS)
            now = time.monotonic()
            with self._lock:
                connections = list(self._open)
                if connections:
                    used_at = now
                elif now - used_at > _SECONDS_UNUSED:
                    self._thread = None
                    return
            for connection in connections:
                idle = now - connection.used_at
                if _SECONDS_BETWEEN_PINGS / 2 < idle < self._idle_seconds:
                    connection.wire.ping()
