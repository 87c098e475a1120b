"""Server-sent events for open pages: the runs with new entries, and the last entry of each. One query serves all pages.

Entries themselves are not sent. A page knows its last entry and requests the following ones. So after a lost connection, a
restart or a suspended tab it continues from there and receives no entry twice.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from time import monotonic

from decklog.core.errors import DecklogError
from decklog.log import Decklog

# A page that misses changes of more runs than this reloads everything.
MOST_RUNS = 256
MOST_STREAMS = 512
MOST_OF_A_SESSION = 64
BEAT_SECONDS = 15.0
# Changes are sent in batches, at most this often while commits continue: one message per commit would slow down writers.
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.03, 0.1
# Finished runs are checked this often. A check of unfinished runs costs the same, independent of the number of finished runs.
_FULL_CHECK_SECONDS = 5.0


class LiveListener:
    """One connection with its unsent changes. They stay small even if the client reads slowly."""

    def __init__(self) -> None:
        self.moved: dict[str, int] = {}
        self.has_missed = False
        self.is_over = False
        self.wake = asyncio.Event()

    def add_changes(self, moved: dict[str, int]) -> None:
        """Queue the runs that have new entries."""
        self.moved = self.moved | moved
        if len(self.moved) > MOST_RUNS:
            self.moved = {}
            self.has_missed = True
        self.wake.set()

    def next_message(self) -> str:
        """Return the next message and clear the changes. Without changes it is a heartbeat."""
        if self.has_missed:
            text = _message("reset", {})
        elif self.moved:
            text = _message("moved", self.moved)
        else:
            # Not an SSE comment: browsers hide comments from the page, which needs the heartbeat.
            text = _BEAT
        self.moved, self.has_missed = {}, False
        self.wake.clear()
        return text


class ChangeFeed:
    """Checks the positions of all streams after each commit, while there are listeners."""

    def __init__(self, log: Decklog, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._log = log
        self._sleep = sleep
        # Two cursors: one for unfinished runs, which are few, and one for all streams.
        self._unfinished_cursor: str | None = None
        self._all_cursor = ""
        # The last sent position of each stream, since both cursors may find the same change.
        self._sent_positions: dict[str, int] = {}
        # When all streams were checked last, and whether only some were checked since then.
        self._all_checked_at, self._is_partial = 0.0, False
        self._listeners: set[LiveListener] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_started = asyncio.Event()
        self.is_closed = False
        self.check_count = 0

    @property
    def listener_count(self) -> int:
        return len(self._listeners)

    @property
    def is_watching(self) -> bool:
        return self._watcher is not None and not self._watcher.done()

    async def stream(self, is_logged_in: Callable[[], bool]) -> AsyncIterator[str]:
        """Yield the text of one connection's stream, until it, its session or the server ends."""
        listener = self._join()
        try:
            # A page loads its data after this first message, so the data includes all earlier commits.
            await self._has_started.wait()
            yield _message("reset", {})
            while is_logged_in() and not (listener.is_over or self.is_closed):
                await listener.wake.wait()
                if listener.is_over or not is_logged_in():
                    break
                yield listener.next_message()
        finally:
            self._listeners.discard(listener)

    def _join(self) -> LiveListener:
        listener = LiveListener()
        self._listeners.add(listener)
        self._loop = asyncio.get_running_loop()
        if not self.is_watching:
            self._has_started = asyncio.Event()
            self._watcher = asyncio.create_task(self._watch_streams())
        if self._heartbeat is None or self._heartbeat.done():
            self._heartbeat = asyncio.create_task(self._send_heartbeats())
        return listener

    async def _send_heartbeats(self) -> None:
        """Send a heartbeat to all listeners at intervals, even while a check takes long."""
        while self._listeners and not self.is_closed:
            await asyncio.sleep(BEAT_SECONDS)
            for listener in self._listeners:
                listener.wake.set()

    async def _watch_streams(self) -> None:
        """Send changes to the listeners until none is left."""
        changed, loop, pause = asyncio.Event(), asyncio.get_running_loop(), _PAUSE_SECONDS
        # Skip the wake-up if a check is already pending.
        stop = self._log.db.watch(None, lambda: None if changed.is_set() else _call_soon(loop, changed.set))
        self._unfinished_cursor = None
        try:
            await self._send_changes()
            self._has_started.set()
            while self._listeners and not self.is_closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await changed.wait()
                if changed.is_set() or (self._is_partial and self._is_full_check_due):
                    changed.clear()
                    await self._send_changes()
                    await self._sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_SECONDS) if changed.is_set() else _PAUSE_SECONDS
        finally:
            self._has_started.set()
            stop()

    async def _send_changes(self) -> None:
        try:
            moved = await asyncio.to_thread(self._read_moved)
        except DecklogError:
            # Pages reload and show the error. Checks continue when the log is available again.
            self._renew()
            return
        if moved:
            for listener in self._listeners:
                listener.add_changes(moved)

    @property
    def _is_full_check_due(self) -> bool:
        return monotonic() - self._all_checked_at >= _FULL_CHECK_SECONDS

    def _read_moved(self) -> dict[str, int]:
        """Return the new positions of streams that changed since the last check. The first check only stores positions."""
        self.check_count += 1
        journal = self._log.journal
        if self._unfinished_cursor is None:
            # In this order, the next check finds a commit between the two calls.
            self._unfinished_cursor, self._all_cursor = journal.now(going_on=True), journal.now()
            self._all_checked_at, self._is_partial, self._sent_positions = monotonic(), False, {}
            return {}
        is_full = self._is_full_check_due
        answer = journal.since(self._all_cursor if is_full else self._unfinished_cursor, going_on=not is_full)
        self._is_partial = not is_full
        if is_full:
            self._all_cursor, self._all_checked_at = answer["cursor"], monotonic()
        else:
            self._unfinished_cursor = answer["cursor"]
        moved = {one["stream"]: one["last"] for one in answer["moved"]}
        news = {stream: last for stream, last in moved.items() if self._sent_positions.get(stream) != last}
        self._sent_positions |= news
        return news

    def renew(self) -> None:
        """Make all open pages reload, for changes without an entry. Thread-safe."""
        if self._loop is not None:
            _call_soon(self._loop, self._renew)

    def _renew(self) -> None:
        for listener in self._listeners:
            listener.has_missed = True
            listener.wake.set()

    def close(self) -> None:
        """End all streams. Thread-safe, and safe in signal handlers."""
        self.is_closed = True
        if self._loop is not None:
            _call_soon(self._loop, self._end)

    def _end(self) -> None:
        for listener in self._listeners:
            listener.is_over = True
            listener.wake.set()


_BEAT = "data: {}\n\n"


def _message(name: str, moved: dict[str, int]) -> str:
    return f"data: {json.dumps({name: moved})}\n\n"


def _call_soon(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    # A closed loop has no listeners.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
