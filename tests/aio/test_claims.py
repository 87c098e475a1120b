"""A claim in a task: kept alive without a thread, ended with its block, given back when the block is cancelled."""

import anyio
import pytest

from decklog import AsyncDecklog, Decklog, LeaseLost, ManualClock, TaskState
from tests.aio.conftest import MOST_THREADS, Failure, claimed, our_threads

pytestmark = pytest.mark.anyio

# Several times as many as may have a thread.
MANY = 5 * MOST_THREADS


@pytest.fixture
def task_id(started: Decklog) -> str:
    return started.tasks.add("run_1", "Change the lexer", task_id="lexer").id


@pytest.mark.slow
async def test_leaving_the_block_finishes_the_task(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    claim = await claimed(alog)
    async with claim:
        entry = await alog.journal.append("run_1", "working")
        assert entry.task_id == task_id
        assert claim.title == "Change the lexer"
    assert claim.is_over
    assert claim.task.state is TaskState.DONE
    assert (await alog.journal.append("run_1", "after")).task_id is None
    assert await alog.tasks.claim("run_1", worker="w") is None
    assert log.tasks.get(task_id).state is TaskState.DONE


@pytest.mark.slow
async def test_raising_fails_the_attempt_and_an_end_of_its_own_stays(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    claim = await claimed(alog)
    with pytest.raises(Failure):
        async with claim:
            raise Failure("no luck")
    assert claim.task.summary == "Failure: no luck"
    claim = await claimed(alog)
    async with claim:
        await claim.extend(stage="halfway")
        await claim.park("waits for CI")
    task = log.tasks.get(task_id)
    assert (task.state, task.failures, task.stage) == (TaskState.WAITING, 1, "halfway")


@pytest.mark.slow
async def test_a_block_that_is_cancelled_gives_the_task_back_unharmed(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    claim = await claimed(alog)
    with anyio.move_on_after(0.05) as scope:
        async with claim:
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    task = log.tasks.get(task_id)
    assert (task.state, task.failures, task.reason) == (TaskState.PENDING, 0, "the worker was cancelled")


@pytest.mark.slow
async def test_the_lease_is_kept_alive_for_as_long_as_the_block_lasts(
    alog: AsyncDecklog, log: Decklog, clock: ManualClock, task_id: str
) -> None:
    claim = await claimed(alog, lease_seconds=0.15)
    async with claim:
        for _ in range(4):
            clock.advance(seconds=0.1)
            extended = claim.task.leased_until
            with anyio.fail_after(10):
                while claim.task.leased_until == extended:
                    await anyio.sleep(0.005)
            assert await alog.tasks.claim("run_1", worker="thief") is None
        assert claim.lost is None
    assert log.tasks.get(task_id).state is TaskState.DONE


@pytest.mark.slow
async def test_a_lost_lease_is_seen_in_the_block_and_ends_it(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    claim = await claimed(alog, lease_seconds=0.09)
    with pytest.raises(LeaseLost):
        async with claim:
            await alog.tasks.pause(task_id, reason="a person said so")
            with anyio.fail_after(10):
                while claim.lost is None:
                    await anyio.sleep(0.005)
            with pytest.raises(LeaseLost):
                await alog.journal.append("run_1", "too late")
    assert log.tasks.get(task_id).state is TaskState.PAUSED


@pytest.mark.slow
async def test_a_claim_inside_of_a_transaction_does_not_wait_for_itself(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    with anyio.fail_after(20):
        async with alog.transaction():
            claim = await claimed(alog, lease_seconds=0.09)
            async with claim:
                await anyio.sleep(0.1)
    assert log.tasks.get(task_id).state is TaskState.DONE


@pytest.mark.slow
async def test_a_claim_goes_back_with_the_transaction_that_it_was_made_in(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    with pytest.raises(Failure):
        async with alog.transaction():
            claim = await claimed(alog)
            raise Failure
    assert claim.lost is not None
    for act in (claim.finish(), claim.extend(), claim.__aenter__()):
        with pytest.raises(LeaseLost, match="undone"):
            await act
    assert log.tasks.get(task_id).state is TaskState.PENDING


@pytest.mark.slow
async def test_an_end_that_is_undone_leaves_the_claim_held_and_kept_alive(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    claim = await claimed(alog, lease_seconds=0.3)
    async with claim:
        with pytest.raises(Failure):
            async with alog.transaction():
                await claim.finish("too early")
                assert claim.is_over
                raise Failure
        assert not claim.is_over
        extended = claim.task.leased_until
        with anyio.fail_after(10):
            while claim.task.leased_until == extended:
                log.clock.advance(seconds=0.01)
                await anyio.sleep(0.01)
        await claim.finish("done")
    assert log.tasks.get(task_id).summary == "done"


@pytest.mark.slow
async def test_waiting_claims_hold_no_thread(alog: AsyncDecklog, log: Decklog) -> None:
    task_ids: list[str] = []

    async def work(number: int) -> None:
        claim = await claimed(alog, f"w{number}", wait_seconds=30)
        async with claim:
            task_ids.append(claim.task.id)

    async with anyio.create_task_group() as group:
        for number in range(MANY):
            group.start_soon(work, number)
        await anyio.sleep(0.3)
        assert len(our_threads()) <= MOST_THREADS
        with anyio.fail_after(5):
            await alog.runs.get("run_1")
            async with alog.transaction():
                await alog.journal.append("run_1", "meanwhile")
        for number in range(MANY):
            await alog.tasks.add("run_1", f"task {number}")
    assert len(set(task_ids)) == MANY


@pytest.mark.slow
async def test_waiting_worker_gets_its_assigned_task(alog: AsyncDecklog, log: Decklog) -> None:
    titles: dict[str, str] = {}

    async def work(number: int) -> None:
        claim = await claimed(alog, f"w{number}", wait_seconds=30)
        async with claim:
            titles[f"w{number}"] = claim.task.title

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(work, number)
        await anyio.sleep(0.1)
        with anyio.fail_after(10):
            for title in ("w7", "w3"):
                await alog.tasks.add("run_1", title, assigned_to=title)
                while title not in titles:
                    await anyio.sleep(0.01)
        for _ in range(8):
            await alog.tasks.add("run_1", "for all")
    assert {name: title for name, title in titles.items() if title != "for all"} == {"w3": "w3", "w7": "w7"}


@pytest.mark.slow
async def test_a_wait_ends_with_its_time(alog: AsyncDecklog) -> None:
    with anyio.fail_after(5):
        assert await alog.tasks.claim("run_1", worker="w", wait_seconds=0.1) is None


@pytest.mark.slow
async def test_the_next_claim_comes_with_the_end_of_the_last(alog: AsyncDecklog, log: Decklog, task_id: str) -> None:
    log.tasks.add("run_1", "Change the parser", task_id="parser")
    first = await alog.tasks.claim("run_1", worker="w")
    assert first is not None
    second = await alog.tasks.finish_and_claim(first.task.id, fence=first.task.fence)
    assert second is not None
    async with second:
        assert second.task.id == "parser"
    assert [log.tasks.get(name).state for name in ("lexer", "parser")] == [TaskState.DONE, TaskState.DONE]
