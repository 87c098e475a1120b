"""Waits for what others append to a PostgreSQL log: one thread and one connection for all waiters of a process.

The connection comes from the pool while somebody waits, and goes back when nobody does: an agent that waits, looks and waits
again needs one connection. It goes on listening in the pool, so no notification is missed.
"""

import os
import random
import select
import time
from collections import Counter
from collections.abc import Callable
from hashlib import md5
from secrets import token_hex
from threading import Condition, Thread, current_thread, local

import psycopg

from decklog.core.errors import DecklogError
from decklog.db.postgres.connections import PostgresConnections
from decklog.db.postgres.session import LogConnection

EVERY = "*"
# The function `announce` sends to the same channels.
_CHANNEL = "decklog"
# A commit that was under way when listening began sends no notification: heads are compared soon, then ever more rarely.
_FIRST_LOOK_SECONDS = 0.25
_LOOK_SECONDS = 20.0
# The same without notifications: behind a pooler that shares sessions, and for a role that may not write.
_POOLER_LOOK_SECONDS, _READER_LOOK_SECONDS = 5.0, 1.0
_SIGNED_SECONDS = 60
_SECONDS_KEPT = 10.0
_MOST_STREAMS = 1_000
# A listener to every stream that gets this many commits in this time polls for a while instead:
# notifications cost writers more than polling.
_BURST, _BURST_SECONDS = 20, 0.2
_MOST_SECONDS_TO_BEGIN = 5.0
_SECONDS_TO_END = 2.0

_LOOK = """
select name, (select max(pos) from entries e where e.pos >= s.no * 4294967296 and e.pos < (s.no + 1) * 4294967296)::text
  from streams s
 where s.name = any(%(streams)s)
union all
select '*', case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end::text
 where '*' = any(%(streams)s)
"""
_SIGN_AND_LOOK = f"""
with gone as (
  delete from listeners where until < now() - interval '10 minutes' and log <> %(log)s
), signed as (
  insert into listeners (stream, log, until)
  select name, %(log)s, now() + %(seconds)s * interval '1 second' from unnest(%(streams)s::text[]) as name
  on conflict (stream, log) do update set until = excluded.until
)
{_LOOK}
"""


def channel_of(name: str) -> str:
    """Return the channel of a stream, or of all."""
    return _CHANNEL if name == EVERY else f"{_CHANNEL}_{md5(name.encode(), usedforsecurity=False).hexdigest()}"


class NotifyListener:
    """Counts the changes of each stream, and wakes waiters whose count has changed since they last looked."""

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections
        self._log = token_hex(8)
        self._changed = Condition()
        self._counts: Counter[str] = Counter()
        # Threads inside `wait`, and callbacks for every change, by stream.
        self._waiters: Counter[str] = Counter()
        self._watching: dict[str, dict[object, Callable[[], None]]] = {}
        # When each stream was last asked for; those whose changes are noticed, with their heads.
        self._asked: dict[str, float] = {}
        self._heads: dict[str, str | None] = {}
        self._look_at = self._interval = 0.0
        self._is_holding = False
        self._thread: Thread | None = None
        self._is_closed = self._is_refused = False
        self._seen = local()
        # A pipe while there is a thread: a byte ends its sleep.
        self._bell = self._ringer = -1

    def wait(self, stream: str | None, seconds: float) -> None:
        """Sleep until a stream, or any, may have moved since this thread asked last; the first time it may have."""
        name = EVERY if stream is None else stream
        seen: dict[str, int] = self._seen.__dict__
        with self._changed:
            self._waiters[name] += 1
            try:
                is_new = self._ask_for(name) or name not in seen
                if is_new:
                    self._changed.wait_for(lambda: self._is_closed or name in self._heads, _MOST_SECONDS_TO_BEGIN)
                    if len(seen) > _MOST_STREAMS:
                        seen.clear()
                else:
                    self._changed.wait_for(lambda: self._is_closed or self._counts[name] != seen[name], seconds)
                seen[name] = self._counts[name]
                self._asked[name] = time.monotonic()
            finally:
                self._waiters[name] -= 1
                self._free_connection()

    def watch(self, stream: str | None, wake: Callable[[], None]) -> Callable[[], None]:
        """Wake somebody whenever a stream, or any, may have moved; what comes back ends it."""
        name, key = EVERY if stream is None else stream, object()
        with self._changed:
            self._watching.setdefault(name, {})[key] = wake
            self._ask_for(name)
            self._changed.wait_for(lambda: self._is_closed or name in self._heads, _MOST_SECONDS_TO_BEGIN)

        def stop() -> None:
            with self._changed:
                watching = self._watching.get(name, {})
                watching.pop(key, None)
                if not watching:
                    self._watching.pop(name, None)
                self._asked[name] = time.monotonic()
                self._ring()

        return stop

    def _ask_for(self, name: str) -> bool:
        """Start to notice the changes of a stream; return whether that is new."""
        self._asked[name] = time.monotonic()
        if self._thread is None and not self._is_closed:
            self._bell, self._ringer = os.pipe()
            self._thread = Thread(target=self._run, name="decklog listener", daemon=True)
            self._thread.start()
        self._changed.notify_all()
        if name not in self._heads:
            self._ring()
        return name not in self._heads

    def _free_connection(self) -> None:
        """Let the thread return its connection if nobody waits: the caller is about to need one."""
        if self._is_holding and not self._needed():
            self._ring()
            self._changed.wait_for(lambda: not self._is_holding or self._needed(), 1.0)

    def _needed(self) -> set[str]:
        """Return the streams that somebody waits for at this moment."""
        with self._changed:
            return {name for name, waiters in self._waiters.items() if waiters} | self._watching.keys()

    def _ring(self) -> None:
        if self._thread is not None:
            os.write(self._ringer, b".")

    @property
    def _listens(self) -> bool:
        """Whether writers can be asked to send notifications."""
        return not (self._is_refused or self._connections.read_only or self._connections.shares_sessions)

    @property
    def _longest_interval(self) -> float:
        if self._listens:
            return _LOOK_SECONDS
        return _POOLER_LOOK_SECONDS if self._connections.shares_sessions else _READER_LOOK_SECONDS

    # The thread

    def _run(self) -> None:
        pause = _FIRST_LOOK_SECONDS
        while self._is_wanted():
            try:
                with self._connections.listening() as connection:
                    self._use(connection)
                pause = _FIRST_LOOK_SECONDS
                if not self._listens and not self._is_closed:
                    self._sleep(self._look_at - time.monotonic())
            except (psycopg.Error, DecklogError):
                # What is missed until the server is back shows in the heads of the streams.
                self._sleep(pause * random.uniform(0.5, 1.5))
                pause = min(2 * pause, _POOLER_LOOK_SECONDS)

    def _is_wanted(self) -> bool:
        """Wait until somebody waits. Return False, and end the thread, when nobody has for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._needed(), _SECONDS_KEPT)
            if not self._is_closed and self._needed():
                return True
            os.close(self._bell)
            os.close(self._ringer)
            self._thread = None
            self._heads.clear()
            self._asked.clear()
            return False

    def _use(self, connection: LogConnection) -> None:
        """Notice changes by a connection until nobody waits, or once where it can't listen."""
        with self._changed:
            self._is_holding = True
        try:
            if self._listens:
                self._listen(connection)
            else:
                self._forget_old_streams()
                self._look(connection)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction):
            self._is_refused = True
        finally:
            with self._changed:
                self._is_holding = False
                self._changed.notify_all()

    def _listen(self, connection: LogConnection) -> None:
        """Wake waiters by notifications, and by a rare look at the heads, as long as anybody waits."""
        heard: list[float] = []
        while self._needed() and not self._is_closed:
            self._choose_channels(connection)
            if time.monotonic() >= self._look_at:
                self._look(connection)
            heard = [*heard, *self._hear_notifications(connection)][-_BURST:]
            if len(heard) == _BURST and heard[-1] - heard[0] < _BURST_SECONDS and EVERY in self._needed():
                self._look_in_a_burst(connection)
                heard.clear()
            self._sleep(self._look_at - time.monotonic(), connection)

    def _forget_old_streams(self) -> set[str]:
        """Drop the streams that nobody has asked for lately; return the others."""
        with self._changed:
            needed, long_ago = self._needed(), time.monotonic() - _SECONDS_KEPT
            for name in [name for name, asked in self._asked.items() if asked < long_ago and name not in needed]:
                del self._asked[name]
                self._heads.pop(name, None)
            return set(self._asked)

    def _choose_channels(self, connection: LogConnection) -> None:
        """Listen to what is wanted, and to nothing else; look at the heads at once when something is new."""
        names = self._forget_old_streams()
        channels = {channel_of(name) for name in names}
        begun, ended = channels - connection.channels, connection.channels - channels
        if begun or ended:
            commands = [*(f'listen "{name}"' for name in begun), *(f'unlisten "{name}"' for name in ended)]
            connection.execute("; ".join(commands).encode())
            connection.channels = channels
        if begun or not names <= self._heads.keys():
            self._look_at = self._interval = 0.0

    def _hear_notifications(self, connection: LogConnection) -> list[float]:
        heard = []
        for notification in connection.notifies(timeout=0):
            self._note_change(EVERY if notification.channel == _CHANNEL else notification.payload)
            heard.append(time.monotonic())
        return heard

    def _look_in_a_burst(self, connection: LogConnection) -> None:
        """Poll until nothing has changed between two looks, or it is time to sign up again."""
        connection.execute("delete from listeners where stream = %s and log = %s", [EVERY, self._log])
        end = time.monotonic() + _LOOK_SECONDS
        self._look(connection, signs=False)
        while self._needed() and not self._is_closed and time.monotonic() < end:
            self._sleep(_BURST_SECONDS)
            if not self._look(connection, signs=False):
                break
        self._look_at = 0.0

    def _look(self, connection: LogConnection, *, signs: bool = True) -> bool:
        """Wake those whose streams have moved since the last look; return whether any has.

        Where it is possible, ask writers to send notifications from now on for a while.
        """
        with self._changed:
            names = list(self._asked)
        bound = {"streams": names, "log": self._log, "seconds": _SIGNED_SECONDS}
        rows = connection.execute(_SIGN_AND_LOOK if signs and self._listens else _LOOK, bound).fetchall()
        heads = {**dict.fromkeys(names), **dict(rows)}
        with self._changed:
            moved = [name for name, head in heads.items() if self._heads.get(name, head) != head]
            self._heads |= heads
            self._changed.notify_all()
        for name in moved:
            self._note_change(name)
        self._interval = min(3 * self._interval or _FIRST_LOOK_SECONDS, self._longest_interval)
        self._look_at = time.monotonic() + self._interval * random.uniform(0.75, 1.25)
        return bool(moved)

    def _sleep(self, seconds: float, connection: LogConnection | None = None) -> None:
        """Sleep until a notification comes, somebody begins or ends to wait, or the time is over."""
        files = select.poll()
        files.register(self._bell, select.POLLIN)
        if connection is not None:
            files.register(connection.fileno(), select.POLLIN)
        if self._bell in dict(files.poll(max(0.0, seconds) * 1000)):
            os.read(self._bell, 4096)

    def _note_change(self, stream: str) -> None:
        """Wake those who wait for a stream."""
        with self._changed:
            for name in self._asked:
                if name[:200] == stream:
                    self._counts[name] += 1
                    for wake in self._watching.get(name, {}).values():
                        wake()
            self._changed.notify_all()

    def close(self) -> None:
        """Wake everybody, and wait a moment for the thread to return its connection."""
        with self._changed:
            self._is_closed = True
            thread = self._thread
            for watching in self._watching.values():
                for wake in watching.values():
                    wake()
            self._ring()
            self._changed.notify_all()
        if thread is not None and thread is not current_thread():
            thread.join(_SECONDS_TO_END)
