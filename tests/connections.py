"""Connections to PostgreSQL that outlive the log of one test, for the log of the next.

The server starts a process for each connection, which reads the catalogue anew, and makes a plan of every statement that it has
not met: in a short test that is most of what it does. So what a connection has prepared stays prepared, as it does in a log that
is open for long; a test whose subject that is asks for connections that are new.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

import pytest
from psycopg import Connection, pq

from decklog.db.postgres.connections import LogConnection
from decklog.db.postgres.session import Session

# A log that is at work alone rarely has more; those above it end with it.
_MOST_KEPT = 2
# Settings, locks, temporary tables and what was listened to end, as they do with a connection. Plans stay.
_RENEW = b"""
close all; set session authorization default; reset all; unlisten *; select pg_advisory_unlock_all(); discard temp;
select count(*) from pg_prepared_statements
"""


class Spare(NamedTuple):
    """A connection, and what the last log knew to be prepared there."""

    pgconn: Any
    session: Session

    def serve(self, connection: LogConnection) -> None:
        """Let the next log know it too."""
        for name in ("_prepared", "_numbers", "_is_stale"):
            setattr(connection.session, name, getattr(self.session, name))


class Kept:
    """Connections that nobody has in hand, by all that they were made with."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = Lock()
        self._spare: dict[str, list[Spare]] = {}

    def take(self, made_with: str) -> Spare | None:
        """Give a connection that still answers, or None."""
        while (spare := self._popped(made_with)) is not None:
            if spare.pgconn.exec_(b"").status == pq.ExecStatus.EMPTY_QUERY:
                return spare
            spare.pgconn.finish()
        return None

    def _popped(self, made_with: str) -> Spare | None:
        with self._lock:
            spares = self._spare.get(made_with)
            return spares.pop() if spares and self._is_here() else None

    def _is_here(self) -> bool:
        """Whether this is not a forked process, whose connections are still those of its parent."""
        return os.getpid() == self._process

    def keep(self, made_with: str, pgconn: Any, session: Session) -> bool:
        """Take a connection back as if it were new, but for what is prepared; say whether that was possible."""
        if not self._is_here() or pgconn.transaction_status != pq.TransactionStatus.IDLE:
            return False
        with self._lock:
            spares = self._spare.setdefault(made_with, [])
            if len(spares) >= _MOST_KEPT:
                return False
            renewed = pgconn.exec_(_RENEW)
            if renewed.status != pq.ExecStatus.TUPLES_OK:
                return False
            # A test may have had the server forget some.
            prepared = sum(name is not None for name in session._prepared.values())
            is_stale = session._is_stale or int(renewed.get_value(0, 0)) != prepared
            if is_stale:
                return False
            spares.append(Spare(pgconn, session))
            return True

    def processes(self) -> list[int]:
        """Give the server's processes that wait for the next test."""
        with self._lock:
            return [spare.pgconn.backend_pid for spares in self._spare.values() for spare in spares]

    def close(self) -> None:
        with self._lock:
            for spares in self._spare.values():
                while spares:
                    spares.pop().pgconn.finish()


@contextmanager
def kept_for(databases: set[str], server: str) -> Iterator[Kept]:
    """Keep what logs have open to these databases when they are closed."""
    kept = Kept()
    with Connection.connect(server) as connection:
        finished = connection.pgconn
    reach, close = LogConnection._connect_gen.__func__, LogConnection.close  # type: ignore[attr-defined]

    def reach_or_take(cls: Any, made_with: str = "") -> Any:
        spare = kept.take(made_with)
        connection = (yield from reach(cls, made_with)) if spare is None else cls(spare.pgconn)
        connection.made_with = made_with
        if spare is not None:
            spare.serve(connection)
        return connection

    def close_or_keep(self: Any) -> None:
        ours = self.pgconn
        if not self.closed and ours.db.decode() in databases and kept.keep(self.made_with, ours, self.session):
            self.pgconn = finished
        close(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogConnection, "_connect_gen", classmethod(reach_or_take))
        patch.setattr(LogConnection, "close", close_or_keep)
        yield kept
    kept.close()
