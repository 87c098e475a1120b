"""Every verb of every store can be awaited, and does what the plain one does."""

import inspect
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from decklog import AsyncDecklog, Closed, Decklog, EntryKind, Invalid, NotFound, StillPending, Verdict
from decklog.records.operations import Operation
from tests.aio.conftest import MOST_THREADS, our_threads
from tests.db.processes import environment
from tests.every import every
from tests.registry import STORE_NAMES, named, operations
from tests.waiting import wait_until

pytestmark = pytest.mark.anyio


@every(("store", "operation"), **named(operations()))
def test_an_operation_can_be_awaited(store: str, operation: Operation) -> None:
    nothing: Any = SimpleNamespace(acting=None, proving=None, db=SimpleNamespace(most_transactions=1))
    verb = getattr(getattr(AsyncDecklog(nothing), store), operation.name)
    assert inspect.getdoc(verb) == inspect.getdoc(operation.function)
    assert inspect.iscoroutinefunction(verb) != (operation.through == "follow")


@pytest.mark.slow
async def test_a_program_of_verbs_does_what_the_plain_ones_do(alog: AsyncDecklog, log: Decklog) -> None:
    run = await alog.runs.start("Another", run_id="run_2")
    task = await alog.tasks.add(run.id, "Change the lexer", task_id="lexer", priority=80)
    with alog.acting("developer", agent_id="dev-1"):
        entry = await alog.journal.append(run.id, "A comma is a token", kind=EntryKind.REASONING)
    assert (await alog.tasks.get(task.id)) == task
    assert [found.id for found in await alog.journal.find(run.id, kind=EntryKind.REASONING)] == [entry.id]
    assert entry.agent_id == "dev-1"
    assert (await alog.journal.verify()).ok
    assert log.tasks.get("lexer").priority == 80


@pytest.mark.slow
async def test_errors_are_not_wrapped(alog: AsyncDecklog) -> None:
    with pytest.raises(NotFound):
        await alog.tasks.get("nobody")
    with pytest.raises(Invalid, match="takes no"):
        await alog.tasks.claim("run_1", worker="w", waits=3)
    with pytest.raises(Invalid, match="lease_seconds"):
        await alog.tasks.claim("run_1", worker="w", lease_seconds=1e300)
    with pytest.raises(AttributeError, match="no verb 'ad'"):
        alog.tasks.ad  # noqa: B018
    with pytest.raises(AttributeError, match="stores are"):
        alog.task  # noqa: B018


@pytest.mark.slow
async def test_hundreds_of_appends_need_no_hundreds_of_threads(alog: AsyncDecklog, log: Decklog) -> None:
    most = 0

    async def append(number: int) -> None:
        nonlocal most
        await alog.journal.append("run_1", f"number {number}")
        most = max(most, len(our_threads()))

    async with anyio.create_task_group() as group:
        for number in range(300):
            group.start_soon(append, number)
    assert len(log.journal.find("run_1", kind=EntryKind.INTERACTION, limit=1000)) == 300
    assert most <= MOST_THREADS


@pytest.mark.slow
async def test_a_tail_gives_each_entry_once_and_holds_no_thread(alog: AsyncDecklog) -> None:
    bodies: list[str | None] = []
    began = anyio.Event()

    async def follow() -> None:
        async for entry in alog.journal.tail("run_1"):
            began.set()
            bodies.append(entry.body)
            if entry.body == "last":
                return

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(follow)
        await began.wait()
        for number in range(30):
            await alog.journal.append("run_1", f"number {number}")
        assert len(our_threads()) <= MOST_THREADS
        await alog.journal.append("run_1", "last")
    assert bodies.count("last") == 20
    assert all(bodies.count(f"number {number}") == 20 for number in range(30))


@pytest.mark.slow
async def test_a_tail_that_was_cancelled_goes_on_where_it_was(alog: AsyncDecklog) -> None:
    tail, seqs = alog.journal.tail("run_1"), []
    for number in range(5):
        for _ in range(2):
            with anyio.move_on_after(0.02):
                while True:
                    seqs.append((await anext(tail)).seq)
        await alog.journal.append("run_1", f"number {number}")
    with anyio.move_on_after(0):
        seqs.append((await anext(tail)).seq)
    # On a slow machine most of it was cancelled before anything came.
    with anyio.fail_after(60):
        while len(seqs) < 6:
            seqs.append((await anext(tail)).seq)
    assert seqs == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
async def test_a_tail_of_nobodys_run_is_refused(alog: AsyncDecklog) -> None:
    with pytest.raises(NotFound):
        async for _ in alog.journal.tail("nobody"):
            pass
    assert [entry.seq async for entry in alog.journal.tail("run_1", follow=False)] == [1]


@pytest.mark.slow
async def test_an_approval_is_awaited_without_a_thread(alog: AsyncDecklog) -> None:
    approval = await alog.approvals.ask("run_1", "Merge?", by="dev-1", about={"branch": "commas"})
    with pytest.raises(StillPending):
        await alog.approvals.wait(approval.id, 0)
    states: list[str] = []

    async def wait() -> None:
        states.append((await alog.approvals.wait(approval.id, 20)).state)

    async with anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(wait)
        await anyio.sleep(0.05)
        assert len(our_threads()) <= MOST_THREADS
        await alog.approvals.decide(approval.id, Verdict.GRANTED, by="ana", subject_digest=approval.subject_digest)
    assert states == ["granted"] * 40


@pytest.mark.slow
async def test_closed_async_log_raises_closed_and_the_shared_log_stays_open(alog: AsyncDecklog, log: Decklog) -> None:
    await alog.close()
    await alog.close()
    for verb in (alog.runs.get("run_1"), alog.journal.append("run_1", "x")):
        with pytest.raises(Closed):
            await verb
    with pytest.raises(Closed):
        alog.transaction()
    assert log.runs.get("run_1").id == "run_1"


@pytest.mark.slow
async def test_a_log_is_opened_by_await_or_in_a_block(target: str) -> None:
    async with AsyncDecklog.open(target) as first:
        await first.runs.start("x", run_id="r")
    second = await AsyncDecklog.open(target)
    assert (await second.runs.get("r")).id == "r"
    await second.close()
    with pytest.raises(Closed):
        await second.runs.get("r")
    with pytest.raises(Invalid):
        await AsyncDecklog.open("mysql://x/y")
    wait_until(lambda: our_threads() == [], 10)


@pytest.mark.slow
async def test_the_stores_and_their_verbs_are_listed(alog: AsyncDecklog) -> None:
    assert set(STORE_NAMES) <= set(dir(alog))
    assert {"add", "claim", "finish"} <= set(dir(alog.tasks))


def test_plain_log_imports_no_async_modules(tmp_path: Path) -> None:
    program = """
import sys
from decklog import Decklog
with Decklog.open("x.db") as log:
    log.runs.start("x", run_id="r")
    claim = log.tasks.claim("r", worker="w")
print(sorted(name for name in sys.modules if name.startswith(("decklog.aio", "asyncio", "anyio", "trio", "concurrent"))))
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
