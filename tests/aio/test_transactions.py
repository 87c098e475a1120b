"""A transaction belongs to the task that opened it, however often that task awaits."""

import asyncio
import os
from time import monotonic
from typing import Any

import anyio
import pytest

from decklog import AsyncDecklog, Busy, Decklog, EntryKind, Invalid
from decklog.core import fork_safety
from tests.aio.conftest import MOST_THREADS, Failure, our_threads

pytestmark = pytest.mark.anyio


def bodies(log: Decklog) -> list[str | None]:
    return [entry.body for entry in log.journal.find("run_1", kind=EntryKind.INTERACTION, oldest_first=True, limit=1000)]


@pytest.mark.slow
async def test_transaction_is_written_whole_or_not_at_all(alog: AsyncDecklog, log: Decklog) -> None:
    async with alog.transaction():
        assert alog.is_in_transaction
        await alog.journal.append("run_1", "one")
        await anyio.sleep(0)
        assert [entry.body for entry in await alog.journal.find("run_1", kind=EntryKind.INTERACTION)] == ["one"]
        await alog.journal.append("run_1", "two")
    with pytest.raises(Failure):
        async with alog.transaction():
            await alog.journal.append("run_1", "never")
            raise Failure
    assert not alog.is_in_transaction
    assert bodies(log) == ["one", "two"]


@pytest.mark.slow
async def test_inner_transaction_is_rolled_back_alone(alog: AsyncDecklog, log: Decklog) -> None:
    async with alog.transaction():
        await alog.journal.append("run_1", "outer")
        with pytest.raises(Failure):
            async with alog.transaction():
                await alog.journal.append("run_1", "inner")
                raise Failure
        await alog.journal.append("run_1", "outer still")
    assert bodies(log) == ["outer", "outer still"]


@pytest.mark.slow
async def test_write_of_another_task_is_not_lost_in_a_rollback(alog: AsyncDecklog, log: Decklog) -> None:
    inside, written = anyio.Event(), anyio.Event()

    async def hold() -> None:
        with pytest.raises(Failure):
            async with alog.transaction():
                await alog.journal.append("run_1", "never")
                inside.set()
                await anyio.sleep(0.05)
                raise Failure

    async def write() -> None:
        await inside.wait()
        await alog.journal.append("run_1", "meanwhile")
        written.set()

    async with anyio.create_task_group() as group:
        group.start_soon(hold)
        group.start_soon(write)
    assert written.is_set()
    assert bodies(log) == ["meanwhile"]


@pytest.mark.slow
async def test_a_task_that_was_started_inside_is_refused(alog: AsyncDecklog, log: Decklog) -> None:
    async def child() -> None:
        for verb in (alog.journal.append("run_1", "child"), alog.runs.get("run_1"), alog.close()):
            with pytest.raises(Busy, match="started inside"):
                await verb
        with pytest.raises(Busy, match="started inside"):
            async with alog.transaction():
                pass

    ended = anyio.Event()

    async def child_that_waits() -> None:
        await ended.wait()
        await alog.journal.append("run_1", "after it")

    async with anyio.create_task_group() as outer:
        async with alog.transaction():
            async with anyio.create_task_group() as group:
                group.start_soon(child)
            outer.start_soon(child_that_waits)
            with pytest.raises(Busy, match="holds a transaction"):
                await alog.close()
            await alog.journal.append("run_1", "parent")
        ended.set()
    assert bodies(log) == ["parent", "after it"]


@pytest.mark.slow
async def test_fifty_concurrent_transactions_run_one_after_another(alog: AsyncDecklog, log: Decklog) -> None:
    most = 0

    async def hold(number: int) -> None:
        nonlocal most
        async with alog.transaction():
            await alog.journal.append("run_1", f"{number} begins")
            await anyio.sleep(0.001)
            await alog.runs.get("run_1")
            await alog.journal.append("run_1", f"{number} ends")
            most = max(most, len(our_threads()))

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(hold, number)
    found = bodies(log)
    assert len(found) == 100
    assert [f"{body}".replace("begins", "ends") for body in found[::2]] == found[1::2]
    assert most <= MOST_THREADS


@pytest.mark.slow
async def test_plain_verbs_in_an_async_transaction_belong_to_its_task(alog: AsyncDecklog, log: Decklog) -> None:
    entered = anyio.Event()

    async def other() -> None:
        await entered.wait()
        with pytest.raises(Busy, match="another task"):
            log.journal.append("run_1", "by another task")

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        with pytest.raises(Failure):
            async with alog.transaction():
                log.journal.append("run_1", "plain")
                entered.set()
                await anyio.sleep(0.02)
                raise Failure
    assert bodies(log) == []


@pytest.mark.slow
async def test_a_plain_transaction_is_not_mixed_with_awaited_verbs(alog: AsyncDecklog, log: Decklog) -> None:
    with log.transaction():
        with pytest.raises(Busy, match="not asynchronous"):
            await alog.journal.append("run_1", "x")
        with pytest.raises(Busy, match="not asynchronous"):
            async with alog.transaction():
                pass
        log.journal.append("run_1", "plain")
    assert bodies(log) == ["plain"]


@pytest.mark.slow
async def test_a_fork_inside_of_one_does_not_wait_for_it(alog: AsyncDecklog, log: Decklog) -> None:
    async with alog.transaction():
        await alog.journal.append("run_1", "parent")
        began = monotonic()
        if (child := os.fork()) == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert monotonic() - began < fork_safety._LONGEST_WAIT
        await alog.journal.append("run_1", "parent again")
    assert bodies(log) == ["parent", "parent again"]


def test_a_child_that_was_forked_begins_anew(log: Decklog, run_id: str) -> None:
    async def child(alog: AsyncDecklog) -> None:
        async with alog.transaction():
            await alog.journal.append("run_1", "child")
        await alog.runs.get("run_1")

    async def main() -> None:
        async with AsyncDecklog(log) as alog:
            await alog.runs.get("run_1")
            async with alog.transaction():
                await alog.journal.append("run_1", "before")
            if (number := os.fork()) == 0:
                try:
                    asyncio.run(child(alog))
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
            await alog.journal.append("run_1", "parent")

    asyncio.run(main())
    assert bodies(log) == ["before", "child", "parent"]


@pytest.mark.slow
def test_fifty_finish_on_a_pool_of_eight(postgres_url: str) -> None:
    async def main() -> int:
        async with AsyncDecklog.open(postgres_url, pool_size=8, busy_seconds=20) as alog:
            await asyncio.gather(*(alog.runs.start("x", run_id=f"run_{number}") for number in range(50)))

            async def hold(number: int) -> Any:
                async with alog.transaction():
                    await alog.journal.append(f"run_{number}", "first")
                    await asyncio.sleep(0.005)
                    await alog.tasks.add(f"run_{number}", "second")

            async with asyncio.timeout(60):
                await asyncio.gather(*(hold(number) for number in range(50)))
            assert (await alog.journal.verify()).ok
            return sum([len(await alog.tasks.find(f"run_{number}")) for number in range(50)])

    assert asyncio.run(main()) == 50


@pytest.mark.slow
async def test_nobody_waits_or_follows_inside_a_transaction(alog: AsyncDecklog, log: Decklog) -> None:
    approval = await alog.approvals.ask("run_1", "Deploy?", by="agent", about="plan")
    async with alog.transaction():
        with pytest.raises(Invalid, match="can't wait inside a transaction"):
            await alog.tasks.claim("run_1", worker="w", wait_seconds=1)
        with pytest.raises(Invalid, match="can't wait inside a transaction"):
            await alog.approvals.wait(approval.id, 1)
        with pytest.raises(Invalid, match="inside a transaction"):
            await anext(alog.journal.tail("run_1"))
        with pytest.raises(Invalid, match="inside a transaction"):
            await alog.journal.now()
