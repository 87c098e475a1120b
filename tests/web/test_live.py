"""Live events of open pages: which runs moved. One query serves all pages."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from decklog import Decklog
from decklog.web.live import MOST_RUNS, ChangeFeed, LiveListener
from tests.conftest import on_both

pytestmark = pytest.mark.anyio
Streams = list[AsyncIterator[str]]


def parsed(text: str) -> tuple[str, dict[str, int]]:
    fields = dict(line.split(": ", 1) for line in text.strip().splitlines())
    event: dict[str, dict[str, int]] = json.loads(fields["data"])
    return next(iter(event.items()), ("", {}))


@asynccontextmanager
async def listening(log: Decklog, count: int, **options: Any) -> AsyncIterator[tuple[ChangeFeed, Streams]]:
    """Open streams and read the first event of each."""
    feed = ChangeFeed(log, **options)
    streams = [feed.stream(lambda: True) for _ in range(count)]
    for stream in streams:
        assert parsed(await anext(stream))[0] == "reset"
    async with asyncio.timeout(30):
        yield feed, streams
    for stream in streams:
        await stream.aclose()


async def wait_for_entry(stream: AsyncIterator[str], run_id: str, seq: int) -> None:
    """Wait until a stream reports an entry of a run."""
    while parsed(await anext(stream))[1].get(run_id, 0) < seq:
        pass


@on_both
async def test_every_commit_reaches_every_stream(log: Decklog, run_id: str) -> None:
    async with listening(log, 3) as (_, streams):
        for _ in range(3):
            entry = await asyncio.to_thread(log.journal.append, run_id, "hello")
            for stream in streams:
                await wait_for_entry(stream, run_id, entry.seq)


@on_both
async def test_commit_of_another_connection_reaches_a_stream(target: str, log: Decklog, run_id: str) -> None:
    async with listening(log, 1) as (_, streams):

        def write() -> int:
            with Decklog.open(target) as other:
                return other.journal.append(run_id, "hello").seq

        await wait_for_entry(streams[0], run_id, await asyncio.to_thread(write))


async def test_hundred_streams_share_one_query(log: Decklog, run_id: str) -> None:
    looks = []
    for count in (1, 100):
        async with listening(log, count) as (feed, streams):
            entry = await asyncio.to_thread(log.journal.append, run_id, "hello")
            for stream in streams:
                await wait_for_entry(stream, run_id, entry.seq)
        looks.append(feed.check_count)
    assert looks[1] <= looks[0] + 2


class Pauses:
    """Stops a feed between two looks, and records how long it would have slept."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.has_begun.set()
        await self.may_end.wait()
        self.may_end.clear()

    async def begun(self) -> None:
        await self.has_begun.wait()
        self.has_begun.clear()


async def test_commits_are_batched_ten_times_a_second_at_most(log: Decklog, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ended runs are never polled, and the test wakes the feed.
    monkeypatch.setattr("decklog.web.live.monotonic", lambda: 0.0)
    wakers: list[Callable[[], None]] = []
    monkeypatch.setattr(log.db, "watch", lambda _, wake: [wakers.append(wake), lambda: None][1])
    pauses = Pauses()

    async with listening(log, 1, sleep=pauses) as (_, streams):

        def write(count: int = 1) -> int:
            last = [log.journal.append(run_id, "hello") for _ in range(count)][-1].seq
            wakers[0]()
            return last

        async def is_sent(last: int) -> bool:
            return parsed(await anext(streams[0])) == ("moved", {run_id: last})

        assert await is_sent(write())
        for count in (1, 1, 1, 30):
            await pauses.begun()
            last = write(count)
            pauses.may_end.set()
            # However many came, it is one message.
            assert await is_sent(last)
        await pauses.begun()
        # After a pause without commits, the next one is sent at once and the pause is short again.
        pauses.may_end.set()
        await asyncio.sleep(0)
        assert await is_sent(write())
        await pauses.begun()
        assert pauses.seconds == [0.03, 0.06, 0.1, 0.1, 0.1, 0.03]


async def test_feed_without_streams_does_not_query(log: Decklog, run_id: str) -> None:
    async with listening(log, 2) as (feed, _):
        pass
    assert feed.listener_count == 0
    # A check may be under way when the last stream ends.
    async with asyncio.timeout(30):
        while feed.is_watching:
            await asyncio.sleep(0.01)
    looks = feed.check_count
    await asyncio.to_thread(log.journal.append, run_id, "hello")
    assert feed.check_count == looks


async def test_a_stream_ends_with_the_server_and_with_its_session(log: Decklog) -> None:
    async with listening(log, 1) as (feed, streams):
        refused = feed.stream(lambda: False)
        assert parsed(await anext(refused))[0] == "reset"
        with pytest.raises(StopAsyncIteration):
            await anext(refused)
        asyncio.get_running_loop().call_later(0.01, feed.close)
        with pytest.raises(StopAsyncIteration):
            await anext(streams[0])


async def test_slow_reader_has_bounded_memory_and_is_reset() -> None:
    listener = LiveListener()
    for number in range(3 * MOST_RUNS):
        listener.add_changes({f"run_{number}": 1})
        assert len(listener.moved) <= MOST_RUNS
    assert parsed(listener.next_message())[0] == "reset"
    assert parsed(listener.next_message()) == ("", {})


async def test_unreadable_log_resets_streams(log: Decklog) -> None:
    async with listening(log, 1) as (feed, streams):
        log.close()
        await feed._send_changes()
        assert parsed(await anext(streams[0]))[0] == "reset"


async def test_idle_stream_gets_heartbeats(log: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decklog.web.live.BEAT_SECONDS", 0.01)

    async with listening(log, 2) as (_, streams):
        for stream in streams:
            assert [await anext(stream) for _ in range(3)] == ["data: {}\n\n"] * 3


async def test_pending_message_collects_all_changes() -> None:
    quick, slow = LiveListener(), LiveListener()
    for listener in (quick, slow):
        listener.add_changes({"a": 1, "b": 1})
    assert parsed(quick.next_message()) == ("moved", {"a": 1, "b": 1})
    slow.add_changes({"b": 2})
    assert parsed(slow.next_message()) == ("moved", {"a": 1, "b": 2})
    # What one listener has not read yet is not sent to another.
    quick.add_changes({"c": 1})
    assert quick.moved == {"c": 1}


async def test_idle_stream_ends_after_logout(log: Decklog, run_id: str) -> None:
    feed, is_in = ChangeFeed(log), [True]
    stream = feed.stream(lambda: is_in[0])
    assert parsed(await anext(stream))[0] == "reset"
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    is_in[0] = False
    await asyncio.to_thread(log.journal.append, run_id, "not for them")
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(waiting, 30)
