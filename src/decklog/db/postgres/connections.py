"""The connections to one PostgreSQL database: a pool, one of which may listen."""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock, Thread
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool

from decklog.core.clock import Clock
from decklog.core.errors import Closed, DecklogError, Invalid, LostWrites, ReadOnly
from decklog.db.base import Row
from decklog.db.postgres import errors
from decklog.db.postgres.session import Head, LogConnection

Pool = ConnectionPool[LogConnection]
# A failover loses the newest commits, so the streams that were written last are enough.
_MOST_STREAMS = 1000
# A pooler can change the server behind a connection that stays open.
_SECONDS_BETWEEN_CHECKS = 10.0
_STREAM_SIZE = 2**32
# A stream without any entry was archived: its row and its first entry are committed together, so none is lost alone.
_FIND = b"""
select pg_is_in_recovery(), a.pos, e.hash,
       e.pos is null
       and exists (select 1 from streams s where s.name = a.stream and s.no = a.pos >> 32)
       and not exists (select 1 from entries o where o.pos >= (a.pos >> 32) << 32 and o.pos < ((a.pos >> 32) + 1) << 32)
  from unnest($1::text[], $2::bigint[]) as a(stream, pos)
  left join entries e on e.pos = a.pos
"""


class AcknowledgedHeads:
    """The newest entry of each stream that this process committed."""

    def __init__(self, record: Callable[[LostWrites], None] | None = None) -> None:
        # Writes a loss into the log.
        self.record = record
        # In the order of their commits.
        self._heads: dict[str, Head] = {}
        self._lock = Lock()
        self._checked_at = time.monotonic()

    def add(self, written: dict[str, Head]) -> None:
        """Remember the heads that a committed transaction wrote."""
        if not written:
            return
        with self._lock:
            for stream, head in written.items():
                self._heads[stream] = max(head, self._heads.pop(stream, head))
            while len(self._heads) > _MOST_STREAMS:
                del self._heads[next(iter(self._heads))]

    def compare(self, connection: LogConnection) -> None:
        """Check with the first statement of a transaction that the server has the heads, if it may be another server."""
        if connection.is_compared and time.monotonic() - self._checked_at < _SECONDS_BETWEEN_CHECKS:
            return
        with self._lock:
            heads = dict(self._heads)
        if not heads:
            connection.is_compared = True
            return

        def take(rows: list[Row]) -> None:
            # A standby that lags behind has lost nothing yet.
            if not rows[0][0]:
                connection.is_compared, self._checked_at = True, time.monotonic()
                self._check(heads, {position: hashed for _, position, hashed, is_archived in rows if not is_archived})

        connection.session.queue(_FIND, [list(heads), [position for position, _ in heads.values()]], take)

    def _check(self, heads: dict[str, Head], found: dict[int, str | None]) -> None:
        lost = [
            {"stream": stream, "seq": position % _STREAM_SIZE, "hash": hashed, "found": found[position]}
            for stream, (position, hashed) in heads.items()
            if position in found and found[position] != hashed
        ]
        if lost:
            named = ", ".join(f"{one['stream']}:{one['seq']} {str(one['hash'])[:12]}" for one in lost[:3])
            raise LostWrites(
                f"the server lost entries that it had acknowledged: {named}{' …' if len(lost) > 3 else ''}",
                hint="A standby was promoted before it had them. Compare what was done with the log, and repeat what is missing.",
                lost=lost,
            )

    def report(self, problem: LostWrites) -> None:
        """Write a loss into the log, then forget it; what can't be written is raised again later."""
        lost = {one["stream"]: one for one in problem.details["lost"]}
        with self._lock:
            forgotten = {stream: self._heads.pop(stream) for stream in lost if stream in self._heads}
        if not forgotten or self.record is None:
            return
        try:
            self.record(problem)
        except DecklogError as failure:
            problem.add_note(f"It could not be written down: {failure.message}")
            self.add(forgotten)
            self._checked_at = 0.0


_MARGIN_SECONDS = 5.0
# A machine that is gone without a word is noticed by the system, in about half a minute.
_KEEP_ALIVE: dict[str, Any] = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
# How long the server waits for the next statement of a verb's own transaction, which is retried with twice the time.
VERB_SECONDS = 0.5
# The same for a block of the caller's code, which is never retried.
BLOCK_SECONDS = 1.5
_SECONDS_BETWEEN_PINGS = 0.06
_SECONDS_UNUSED = 2.0
_POOLERS = ("session", "transaction")
# Without a handler, Python would print a warning for every connection of a lost server.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class ServerClock(Clock):
    """Returns the server's time, so that workers on many machines agree on when a lease ends."""

    def __init__(self) -> None:
        self._looked: tuple[datetime, float] | None = None
        self._last = datetime.min.replace(tzinfo=UTC)

    def set(self, server: datetime, at: float) -> None:
        """Set the server's time at a moment of the monotonic clock."""
        self._looked = server.astimezone(UTC), at

    def now(self) -> datetime:
        if self._looked is None:
            return super().now()
        server, at = self._looked
        # This machine may have run ahead a little; time never goes back.
        self._last = max(self._last, server + timedelta(seconds=time.monotonic() - at))
        return self._last


class KeepAlive:
    """Pings the connections that have a write transaction open.

    The server ends a transaction whose client is silent, so that a frozen process blocks nobody. A slow caller is not frozen. The
    thread ends when no transaction has been open for a while.
    """

    def __init__(self, idle_seconds: float) -> None:
        # A caller that does nothing for this long counts as frozen too.
        self._idle_seconds = idle_seconds
        self._lock = Lock()
        self._open: set[LogConnection] = set()
        self._thread: Thread | None = None
        self._is_closed = False

    def add(self, connection: LogConnection, idle_seconds: float) -> None:
        """Ping a connection from now on: the server ends its transaction after a silence of `idle_seconds`."""
        connection.session.used_at, connection.session.idle_seconds = time.monotonic(), idle_seconds
        with self._lock:
            self._is_closed = False
            self._open.add(connection)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="decklog keep-alive", daemon=True)
                self._thread.start()

    def remove(self, connection: LogConnection) -> None:
        connection.session.stop_pings()
        with self._lock:
            self._open.discard(connection)

    def close(self) -> None:
        """End the thread as soon as no transaction is open."""
        with self._lock:
            self._is_closed = True

    def _run(self) -> None:
        used_at = time.monotonic()
        while True:
            time.sleep(_SECONDS_BETWEEN_PINGS)
            now = time.monotonic()
            with self._lock:
                connections = list(self._open)
                if connections:
                    used_at = now
                elif self._is_closed or now - used_at > _SECONDS_UNUSED:
                    self._thread = None
                    return
            for connection in connections:
                idle = now - connection.session.used_at
                if _SECONDS_BETWEEN_PINGS / 2 < idle < self._idle_seconds:
                    connection.session.ping()


def split_pooler(url: str) -> tuple[str, str | None]:
    """Return a URL without its parameter `pooler`, which libpq does not know, and the parameter's value."""
    address, _, query = url.partition("?")
    parts = [part for part in query.split("&") if part]
    others = [part for part in parts if not part.startswith("pooler=")]
    given = [part.removeprefix("pooler=") for part in parts if part not in others]
    if given and given[-1] not in _POOLERS:
        raise Invalid(f"pooler={given[-1]} is unknown; write pooler=transaction or pooler=session", field="target")
    return "?".join([address, "&".join(others)] if others else [address]), given[-1] if given else None


class PostgresConnections:
    """Opens connections in one way only, and keeps what is open."""

    def __init__(
        self, url: str, *, durability: str = "full", read_only: bool = False, busy_seconds: float = 30.0, pool_size: int = 16
    ) -> None:
        self.url, pooler = split_pooler(url)
        # Whether each transaction may run in another server session; None until the first connection shows it.
        self.shares_sessions: bool | None = None if pooler is None else pooler == "transaction"
        self.read_only = read_only
        self.busy_seconds = busy_seconds
        self.pool_size = pool_size
        # How long a server may be silent, and how long a client: longer than anyone waits for a lock.
        self.patience_seconds = busy_seconds + _MARGIN_SECONDS
        self.idle_seconds = 2 * busy_seconds + _MARGIN_SECONDS
        self.clock = ServerClock()
        self._durability = durability
        self._is_closed = False
        # Whether the server was a standby when a connection was last made.
        self.is_standby = False
        self._forgotten: list[Any] = []
        self._reset()

    def _reset(self) -> None:
        """Start with no connection at all, as a new process does."""
        self._opening = Lock()
        self.keep_alive = KeepAlive(self.idle_seconds)
        # Connections that are older are not used again.
        self._renewed_at = 0.0
        self._pool: Pool | None = None
        # The connection by which the server was first reached, until the pool takes it.
        self._reached: list[LogConnection] = []
        # The connection that listens, or did last; a forked child must not close it.
        self._listening: LogConnection | None = None

    def pool(self) -> "Pool":
        """Return the pool, which is made when it is first needed."""
        with self._opening:
            self.check_open()
            if self._pool is None:
                self._reached = [self._connected()]
                pool = self._make_pool()
                # A request before the first connection is in the pool would open a second one.
                pool.wait(self.busy_seconds)
                self._pool = pool
            return self._pool

    def taken(self) -> "tuple[Pool, LogConnection]":
        """Take a connection out of the pool; one that is out of date is replaced."""
        pool = self.pool()
        while not self._is_usable(connection := pool.getconn()):
            connection.close()
            pool.putconn(connection)
        return pool, connection

    def _is_usable(self, connection: LogConnection) -> bool:
        """Return whether a connection is up to date. End its listening if another one listens now."""
        if connection.made_at < self._renewed_at:
            return False
        if connection.channels and connection is not self._listening:
            try:
                connection.execute("unlisten *")
            except psycopg.Error:
                return False
            connection.channels = set()
        return True

    def renew(self) -> None:
        """Replace all connections before they are used again: a session keeps the defaults that held when it began."""
        self._renewed_at = time.monotonic()

    def _make_pool(self) -> "Pool":
        return ConnectionPool(
            self.url,
            min_size=1,
            max_size=self.pool_size,
            timeout=self.busy_seconds,
            connection_class=LogConnection,
            kwargs={"reached": self._reached, **self._how()},
            configure=self._configure,
            open=True,
        )

    def _how(self) -> dict[str, Any]:
        return {"autocommit": True, "prepare_threshold": None, "connect_timeout": max(2, int(self.busy_seconds)), **_KEEP_ALIVE}

    @property
    def was_reached(self) -> bool:
        """Whether the server has ever answered; one that never has is not waited for."""
        return self._pool is not None

    def check_open(self) -> None:
        if self._is_closed:
            raise Closed("this log is closed; open it again")

    def check_writable(self) -> None:
        self.check_open()
        if self.read_only:
            raise ReadOnly("this log is open for reading only", hint="Open it without read_only, as a role that may write.")
        if self.is_standby and self._is_in_recovery():
            raise ReadOnly("this server is a standby, which takes no writes", hint="Give the address of the primary.")

    def _is_in_recovery(self) -> bool:
        """Return whether the standby is still one; it may have been promoted."""
        with self._connected() as connection:
            row = connection.execute("select pg_is_in_recovery()").fetchone()
        self.is_standby = bool(row and row[0])
        return self.is_standby

    def reach(self) -> None:
        """Connect once without the pool, which would take a server that does not answer for one that is busy."""
        self._connected().close()

    def _connected(self) -> LogConnection:
        """Connect; wait for a server that has no connection to spare, since others may be about to end."""
        end = time.monotonic() + self.busy_seconds
        while True:
            try:
                return LogConnection.connect(self.url, **self._how())
            except psycopg.Error as problem:
                if not errors.is_full(problem) or time.monotonic() >= end:
                    raise errors.translate(problem) from problem
            time.sleep(random.uniform(0.05, 0.5))

    def _settings(self) -> dict[str, str]:
        settings = {
            # Our own words about a busy database need a lock wait that ends; 0 would wait for ever.
            "lock_timeout": str(int(self.busy_seconds * 1000)),
            # For reads, which block nobody. A transaction that writes has a shorter limit and is kept alive.
            "idle_in_transaction_session_timeout": str(int(self.idle_seconds * 1000)),
            # Statements here give few rows: to compile one takes a server that can far longer than to run it.
            "jit": "off",
        }
        if self._durability != "full":
            settings["synchronous_commit"] = "off"
        return settings

    @cached_property
    def local_settings(self) -> tuple[bytes, ...]:
        """The statement that makes the settings for one transaction, where sessions are shared. It also identifies the server."""
        calls = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in self._settings().items())
        return (f"select pg_postmaster_start_time(), {calls}".encode(),)

    def _configure(self, connection: LogConnection) -> None:
        """Make the settings of a session, unless it is shared, and read the server's time.

        A pooler gives its clients process numbers that are not the server's. A setting is local to this statement there.
        """
        is_shared = f"pg_backend_pid() <> {connection.info.backend_pid}"
        if self.shares_sessions is not None:
            is_shared = str(self.shares_sessions).lower()
        calls = [f"set_config('{name}', '{value}', {is_shared})" for name, value in self._settings().items()]
        before = time.monotonic()
        row = connection.execute(
            f"select clock_timestamp(), {is_shared}, pg_is_in_recovery(), {', '.join(calls)}".encode()
        ).fetchone()
        assert row is not None
        self.clock.set(row[0], (before + time.monotonic()) / 2)
        self.shares_sessions = row[1]
        connection.session.may_prepare = not row[1]
        self.is_standby = row[2]

    @contextmanager
    def listening(self) -> Iterator[LogConnection]:
        """Take a connection out of the pool for the one who listens. It is kept in mind, since it goes on listening."""
        pool, connection = self.taken()
        self._listening = connection
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def close(self) -> None:
        self._is_closed = True
        self.keep_alive.close()
        if self._pool is not None:
            self._pool.close()
        while self._reached:
            self._reached.pop().close()

    def leave_to_parent(self) -> None:
        """Forget in a forked child what its parent has open."""
        # The parent's sockets are in this process too; they are kept and never touched, so that closing can't reach the server.
        self._forgotten.append((self._pool, self._reached, self._listening))
        self._reset()
