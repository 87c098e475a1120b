"""What open pages are told: which runs have moved, and up to which entry. One look at the log serves all of them.

Nothing of an entry is sent: a page knows its own last entry and asks for what came after it. So a lost connection, a restarted
server and a tab that slept cost nothing: whoever connects again asks from where it was, and no entry comes twice.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from time import monotonic

from decklog.core.errors import DecklogError
from decklog.log import Decklog

# A page that is told of more runs than this at once reads everything anew.
MOST_RUNS = 256
MOST_STREAMS = 512
MOST_OF_A_SESSION = 64
BEAT_SECONDS = 15.0
# Commits that follow each other at once are told together; while they go on coming, so many times a second: to tell everybody of
# each would take the processor from whoever writes.
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.03, 0.1
# Runs that are over are looked at so often: a look at those that go on costs the same however many they are.
_WHOLE_SECONDS = 5.0


class LiveListener:
    """One connection: what it has not been told yet. However slow it reads, that stays small."""

    def __init__(self) -> None:
        self.moved: dict[str, int] = {}
        self.has_missed = False
        self.is_over = False
        self.wake = asyncio.Event()
        # What all are told of one look is written once.
        self._text: str | None = None

    def tell(self, moved: dict[str, int], text: str | None = None) -> None:
        """Have it told that runs moved; `text` is the message of just these."""
        self._text = None if self.moved else text
        self.moved = {**self.moved, **moved} if self.moved else moved
        if len(self.moved) > MOST_RUNS:
            self.moved = {}
            self.has_missed = True
        self.wake.set()

    def take(self) -> str:
        """Return the message that is to be sent next, and forget it; a sign of life when there is no news."""
        if self.has_missed:
            text = _message("reset", {})
        elif self.moved:
            text = self._text or _message("moved", self.moved)
        else:
            # No comment: a page is told of none, and so would not know that it still is connected.
            text = _BEAT
        self.moved, self.has_missed, self._text = {}, False, None
        self.wake.clear()
        return text


class Feed:
    """Looks where the streams stand whenever something was committed, as long as anybody listens."""

    def __init__(self, log: Decklog, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._log = log
        self._sleep = sleep
        # How far was looked: at the runs that go on, and at everything. The first is short, and so soon read and written.
        self._going_on: str | None = None
        self._whole = ""
        # What was told last of each stream that moved: both looks find it.
        self._told: dict[str, int] = {}
        # When all streams were looked at last, and whether only some were since then.
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

    async def stream(self, is_welcome: Callable[[], bool]) -> AsyncIterator[str]:
        """Yield the text of one connection's stream, until it, its session or the server ends."""
        listener = self._join()
        try:
            # A page reads when it is greeted: what is committed after the first look is told, what came before it is read.
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
        if self._looking is None or self._looking.done():
            self._has_looked = asyncio.Event()
            self._looking = asyncio.create_task(self._look())
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        return listener

    async def _beat(self) -> None:
        """Have everybody sent a sign of life now and then: one clock serves all of them, however long a look takes."""
        while self._listeners and not self.is_closed:
            await asyncio.sleep(BEAT_SECONDS)
            for listener in self._listeners:
                listener.wake.set()

    async def _look(self) -> None:
        """Tell the listeners what moved, until there is none left."""
        changed, loop, pause = asyncio.Event(), asyncio.get_running_loop(), _PAUSE_SECONDS
        # Who is about to look is not woken again.
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
            # The pages ask for themselves and hear what is wrong; this goes on when the log does.
            self._renew()
            return
        if moved:
            text = _message("moved", moved)
            for listener in self._listeners:
                listener.tell(moved, text)

    @property
    def _is_due(self) -> bool:
        return monotonic() - self._whole_at >= _WHOLE_SECONDS

    def _read_moved(self) -> dict[str, int]:
        """Read how far the streams have come that moved since the last look; the first look only remembers where they are."""
        self.looks += 1
        journal = self._log.journal
        if self._going_on is None:
            # In this order: what is committed in between is found by the next look, as something new.
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
        """Have all open pages read anew what no entry tells of; it may be called from anywhere."""
        if self._loop is not None:
            _call(self._loop, self._renew)

    def _renew(self) -> None:
        for listener in self._listeners:
            listener.has_missed = True
            listener.wake.set()

    def close(self) -> None:
        """End all streams; it may be called from anywhere, a handler of signals too."""
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
    # A loop that has ended has nobody left to tell.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
