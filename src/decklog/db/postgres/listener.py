"""Hears of what is appended to a PostgreSQL log: one connection and one thread for all who wait, and none when nobody does."""

import time
from secrets import token_hex
from threading import Condition, Thread, local
from typing import TYPE_CHECKING

import psycopg

from decklog.db.postgres.connections import PostgresConnections

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Connection = psycopg.Connection[Any]

EVERY = "*"
# A commit that was under way when listening began sends no notification: heads are polled at this interval.
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_BETWEEN_SIGNS = 20.0
_SECONDS_KEPT = 60
_SECONDS_IDLE = 10.0
_MOST_STREAMS = 1_000
# A listener to every stream that gets this many commits in this time polls for a while instead:
# notifications cost writers more than polling.
_BURST, _BURST_SECONDS = 20, 0.2
_SECONDS_BETWEEN_LOOKS_IN_A_BURST = 0.2

_SIGN = """
insert into listeners (stream, log, until)
select name, %(log)s, now() + %(seconds)s * interval '1 second'
  from unnest(%(streams)s::text[]) as name
on conflict (stream, log) do update set until = excluded.until
"""
_LOOK = """
select s.name, (select max(pos) from entries e where e.pos >= s.no * 4294967296 and e.pos < (s.no + 1) * 4294967296)
  from streams s
 where s.name = any(%(streams)s)
"""


class NotifyListener:
    """Counts notifications of each stream, and wakes waiters whose count has changed since they last looked."""

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections
        self._log = token_hex(8)
        self._changed = Condition()
        self._counts: dict[str, int] = {}
        # The streams somebody waits for, with the moment when it was last asked for.
        self._wanted: dict[str, float] = {}
        # Callbacks for every change of a stream.
        self._watching: dict[str, dict[object, Callable[[], None]]] = {}
        self._heads: dict[str, Any] = {}
        self._thread: Thread | None = None
        self._is_closed = False
        self._seen = local()

    def wait(self, stream: str | None, seconds: float) -> None:
        """Sleep until a stream, or any, may have moved since this thread asked last; the first time it may have."""
        name = EVERY if stream is None else stream
        seen: dict[str, int] = self._seen.__dict__
        is_new = self._want(name)
        with self._changed:
            if name not in seen or is_new:
                if len(seen) > _MOST_STREAMS:
                    seen.clear()
                seen[name] = self._counts.get(name, 0)
                return
            self._changed.wait_for(lambda: self._is_closed or self._counts.get(name, 0) != seen[name], seconds)
            seen[name] = self._counts.get(name, 0)

    def watch(self, stream: str | None, wake: "Callable[[], None]") -> "Callable[[], None]":
        """Wake somebody whenever a stream, or any, may have moved; what comes back ends it."""
        name, key = EVERY if stream is None else stream, object()
        with self._changed:
            self._watching.setdefault(name, {})[key] = wake
        self._want(name)

        def stop() -> None:
            with self._changed:
                watching = self._watching.get(name, {})
                watching.pop(key, None)
                if not watching:
                    self._watching.pop(name, None)

        return stop

    def _want(self, name: str) -> bool:
        """Have a stream listened to; say whether that begins now."""
        with self._changed:
            is_new = name not in self._wanted
            self._wanted[name] = time.monotonic()
            if self._thread is None and not self._is_closed:
                self._thread = Thread(target=self._run, name="decklog listener", daemon=True)
                self._thread.start()
        if is_new:
            self._sign_at_once(name)
        return is_new

    def _sign_at_once(self, name: str) -> None:
        if self._connections.read_only:
            return  # what may not be written down is found by looking
        with self._connections.pool().connection() as connection:
            self._sign(connection, [name])

    def _sign(self, connection: "Connection", streams: list[str], seconds: int = _SECONDS_KEPT) -> None:
        """Tell those who append for how long somebody listens; a role that may not write goes on by looking."""
        if self._connections.read_only:
            return
        try:
            connection.execute(_SIGN, {"streams": streams, "log": self._log, "seconds": seconds})
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction):
            return

    # The thread

    def _run(self) -> None:
        while self._is_wanted():
            try:
                with self._connections.listening() as connection:
                    self._listen(connection)
            except psycopg.Error:
                # Notifications were missed: everybody looks again once the server is back.
                self._hear(None)
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _is_wanted(self) -> bool:
        """Drop the streams that nobody has asked for lately; with none left the thread ends."""
        with self._changed:
            long_ago = time.monotonic() - _SECONDS_IDLE
            for name in [name for name, asked in self._wanted.items() if asked < long_ago and name not in self._watching]:
                del self._wanted[name]
                self._heads.pop(name, None)
            if self._is_closed or not self._wanted:
                self._thread = None
                return False
            return True

    def _listen(self, connection: "Connection") -> None:
        self._hear(None)
        signed = 0.0
        while self._is_wanted():
            if time.monotonic() - signed > _SECONDS_BETWEEN_SIGNS:
                self._sign(connection, list(self._wanted))
                signed = time.monotonic()
            if self._hear_what_is_told(connection):
                self._look_in_a_burst(connection)
            self._look(connection)

    def _hear_what_is_told(self, connection: "Connection") -> bool:
        """Pass on what writers tell, until it is time to look; say whether it became too much."""
        begun, count = time.monotonic(), 0
        for notification in connection.notifies(timeout=_SECONDS_BETWEEN_LOOKS):
            self._hear(notification.payload)
            count += 1
            if time.monotonic() - begun > _BURST_SECONDS:
                begun, count = time.monotonic(), 1
            elif count >= _BURST and EVERY in self._wanted:
                return True
        return False

    def _look_in_a_burst(self, connection: "Connection") -> None:
        """Poll until nothing has changed between two looks, or it is time to sign up again."""
        self._sign(connection, [EVERY], seconds=0)
        end = time.monotonic() + _SECONDS_BETWEEN_SIGNS
        self._look(connection)
        while self._is_wanted() and time.monotonic() < end:
            time.sleep(_SECONDS_BETWEEN_LOOKS_IN_A_BURST)
            if not self._look(connection):
                break
        self._sign(connection, list(self._wanted))

    def _look(self, connection: "Connection") -> bool:
        """Wake those whose streams have moved since the last look; say whether any has."""
        names = [name for name in list(self._wanted) if name != EVERY]
        found: dict[str, Any] = dict(connection.execute(_LOOK, {"streams": names}).fetchall()) if names else {}
        if EVERY in self._wanted:
            # Anything that is written moves this, and it costs nothing to ask for.
            row = connection.execute(
                "select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end::text"
            ).fetchone()
            found[EVERY] = row and row[0]
        moved = [name for name, head in found.items() if self._heads.get(name, head) != head]
        self._heads |= found
        for name in moved:
            self._hear(name)
        return bool(moved)

    def _hear(self, stream: str | None) -> None:
        """Wake those who wait for a stream and those who wait for any; None wakes all."""
        with self._changed:
            for name in list(self._wanted):
                if stream is None or name == EVERY or name[:200] == stream:
                    self._counts[name] = self._counts.get(name, 0) + 1
                    self._wake(name)
            self._changed.notify_all()

    def _wake(self, name: str) -> None:
        for wake in self._watching.get(name, {}).values():
            wake()

    def close(self) -> None:
        """Wake everybody, and let the thread end."""
        with self._changed:
            self._is_closed = True
            for name in self._watching:
                self._wake(name)
            self._changed.notify_all()
