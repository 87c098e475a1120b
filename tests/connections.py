"""Connections to PostgreSQL that outlive the log of one test, for the log of the next.

The server starts a process for each connection, which reads the catalogue anew: in a short test that is most of what it does.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pytest
from psycopg import Connection, pq

from decklog.db.postgres.connections import PatientConnection

# A log that is at work alone rarely has more; those above it end with it.
_MOST_KEPT = 2


class Kept:
    """Connections that nobody has in hand, by all that they were made with."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._spare: dict[str, list[Any]] = {}

    def take(self, made_with: str) -> Any:
        """Give a connection that still answers, or None."""
        while (spare := self._popped(made_with)) is not None:
            if spare.exec_(b"").status == pq.ExecStatus.EMPTY_QUERY:
                return spare
            spare.finish()
        return None

    def _popped(self, made_with: str) -> Any:
        with self._lock:
            spares = self._spare.get(made_with)
            return spares.pop() if spares and self._is_here() else None

    def _is_here(self) -> bool:
        """Whether this is not a forked process, whose connections are still those of its parent."""
        return os.getpid() == self._process

    def keep(self, made_with: str, connection: Any) -> bool:
        """Take a connection back as if it were new; say whether that was possible."""
        if not self._is_here() or connection.transaction_status != pq.TransactionStatus.IDLE:
            return False
        with self._lock:
            spares = self._spare.setdefault(made_with, [])
            # Settings, locks, plans, temporary tables and what was listened to end, as they do with a connection.
            if len(spares) >= _MOST_KEPT or connection.exec_(b"discard all").status != pq.ExecStatus.COMMAND_OK:
                return False
            spares.append(connection)
            return True

    def processes(self) -> list[int]:
        """Give the server's processes that wait for the next test."""
        with self._lock:
            return [spare.backend_pid for spares in self._spare.values() for spare in spares]

    def close(self) -> None:
        with self._lock:
            for spares in self._spare.values():
                while spares:
                    spares.pop().finish()


@contextmanager
def kept_for(databases: set[str], server: str) -> Iterator[Kept]:
    """Keep what logs have open to these databases when they are closed."""
    kept = Kept()
    with Connection.connect(server) as connection:
        finished = connection.pgconn
    reach, close = PatientConnection._connect_gen.__func__, PatientConnection.close  # type: ignore[attr-defined]

    def reach_or_take(cls: Any, made_with: str = "") -> Any:
        spare = kept.take(made_with)
        connection = (yield from reach(cls, made_with)) if spare is None else cls(spare)
        connection.made_with = made_with
        return connection

    def close_or_keep(self: Any) -> None:
        ours = self.pgconn
        if not self.closed and ours.db.decode() in databases and kept.keep(self.made_with, ours):
            self.pgconn = finished
        close(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PatientConnection, "_connect_gen", classmethod(reach_or_take))
        patch.setattr(PatientConnection, "close", close_or_keep)
        yield kept
    kept.close()
