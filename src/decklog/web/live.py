"""Server-sent events for open pages: which runs have new entries, and up to which entry. One query serves all pages.

Entries themselves are not sent. A page knows its last entry and requests what follows it. After a lost connection, a server
restart or a suspended tab, the page continues from that entry and receives no entry twice.
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
_WHOLE_SECONDS = 5.0


class LiveListener:
    """One connection with its unsent changes. They stay small even if the client reads slowly."""

    def __init__(self) -> None:
        self.moved: dict[str, int] = {}
        self.has_missed = False
        self.is_over = False
        self.wake = asyncio.Event()

    def tell(self, moved: dict[str, int]) -> None:
        """Queue the runs that have new entries."""
        self.moved = self.moved | moved
        if len(self.moved) > MOST_RUNS:
            self.moved = {}
            self.has_missed = True
        self.wake.set()

    def take(self) -> str:
        """Return the next message and clear it. Without news it is a heartbeat."""
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


class Feed:
    """Checks the streams' positions after each commit, as long as there is a listener."""

    def __init__(self, log: Decklog, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._log = log
        self._sleep = sleep
        # Cursors: one for unfinished runs, which is short and fast to process, and one for all streams.
        self._going_on: str | None = None
        self._whole = ""
        # The last sent position of each stream, since both cursors find the same change.
        self._told: dict[str, int] = {}
        # When all streams were checked last, and whether only some were checked since then.
        self._whole_at, self._is_partial = 0.0, False
        self._listeners: set[LiveListener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_looked = asyncio.Event()
        self.is_closed = False
        self.looks = 0

    @property
    def count(self) -> int:
        return len(self._listeners)

    @property
    def is_looking(self) -> bool:
        return self._looking is not None and not self._looking.done()

    async def stream(self, is_welcome: Callable[[], bool]) -> AsyncIterator[str]:
        """Yield the text of one connection's stream, until it, its session or the server ends."""
        listener = self._join()
        try:
            # A page loads its data after this first message. Later commits are sent; earlier ones are in what it loads.
            await self._has_looked.wait()
            yield _message("reset", {})
            while is_welcome() and not (listener.is_over or self.is_closed):
                await listener.wake.wait()
                if listener.is_over or not is_welcome():
                    break
                yield listener.take()
        finally:
            self._listeners.discard(listener)

    def _join(self) -> LiveListener:
        listener = LiveListener()
        self._listeners.add(listener)
        self._loop = asyncio.get_running_loop()
        if not self.is_looking:
            self._has_looked = asyncio.Event()
            self._looking = asyncio.create_task(self._look())
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        return listener

    async def _beat(self) -> None:
        """Send a heartbeat to all listeners at intervals, independent of how long a check takes."""
        while self._listeners and not self.is_closed:
            await asyncio.sleep(BEAT_SECONDS)
            for listener in self._listeners:
                listener.wake.set()

    async def _look(self) -> None:
        """Send changes to the listeners until none is left."""
        changed, loop, pause = asyncio.Event(), asyncio.get_running_loop(), _PAUSE_SECONDS
        # Skip the wake-up if a check is already pending.
        stop = self._log.db.watch(None, lambda: None if changed.is_set() else _call(loop, changed.set))
        self._going_on = None
        try:
            await self._tell()
            self._has_looked.set()
            while self._listeners and not self.is_closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await changed.wait()
                if changed.is_set() or (self._is_partial and self._is_due):
                    changed.clear()
                    await self._tell()
                    await self._sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_SECONDS) if changed.is_set() else _PAUSE_SECONDS
        finally:
            self._has_looked.set()
            stop()

    async def _tell(self) -> None:
        try:
            moved = await asyncio.to_thread(self._read_moved)
        except DecklogError:
            # The pages reload and show the error themselves. Checks continue when the log is available again.
            self._renew()
            return
        if moved:
            for listener in self._listeners:
                listener.tell(moved)

    @property
    def _is_due(self) -> bool:
        return monotonic() - self._whole_at >= _WHOLE_SECONDS

    def _read_moved(self) -> dict[str, int]:
        """Return the new positions of streams that changed since the last check. The first check only stores the positions."""
        self.looks += 1
        journal = self._log.journal
        if self._going_on is None:
            # This order matters: a commit between the two calls is found as new by the next check.
            self._going_on, self._whole = journal.now(going_on=True), journal.now()
            self._whole_at, self._is_partial, self._told = monotonic(), False, {}
            return {}
        is_whole = self._is_due
        answer = journal.since(self._whole if is_whole else self._going_on, going_on=not is_whole)
        self._is_partial = not is_whole
        if is_whole:
            self._whole, self._whole_at = answer["cursor"], monotonic()
        else:
            self._going_on = answer["cursor"]
        moved = {one["stream"]: one["last"] for one in answer["moved"]}
        news = {stream: last for stream, last in moved.items() if self._told.get(stream) != last}
        self._told |= news
        return news

    def renew(self) -> None:
        """Make all open pages reload, for changes without an entry. Thread-safe."""
        if self._loop is not None:
            _call(self._loop, self._renew)

    def _renew(self) -> None:
        for listener in self._listeners:
            listener.has_missed = True
            listener.wake.set()

    def close(self) -> None:
        """End all streams. Thread-safe, and safe in signal handlers."""
        self.is_closed = True
        if self._loop is not None:
            _call(self._loop, self._end)

    def _end(self) -> None:
        for listener in self._listeners:
            listener.is_over = True
            listener.wake.set()


_BEAT = "data: {}\n\n"


def _message(name: str, moved: dict[str, int]) -> str:
    return f"data: {json.dumps({name: moved})}\n\n"


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    # A closed loop has no listeners.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
