"""`AsyncDecklog.once`: an asynchronous block or function runs once per key."""

import anyio
import pytest

from decklog import AsyncDecklog, Conflict, Decklog, Invalid
from tests.aio.conftest import claimed

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_a_block_and_a_function_run_once(alog: AsyncDecklog, log: Decklog) -> None:
    calls: list[str] = []

    @alog.once(run_id="run_1")
    async def send(to: str) -> str:
        await anyio.sleep(0)
        calls.append(to)
        return f"sent to {to}"

    results = [await send("ana"), await send("ana"), await send("ben")]
    for _ in range(2):
        async with alog.once("deploy", run_id="run_1") as effect:
            if not effect.already:
                calls.append("deploy")
                effect.result = 7
        results.append(effect.result)
    assert results == ["sent to ana", "sent to ana", "sent to ben", 7, 7]
    assert calls == ["ana", "ben", "deploy"]


@pytest.mark.slow
async def test_a_bare_decorator_is_keyed_by_the_task_of_the_claim(alog: AsyncDecklog, log: Decklog) -> None:
    log.tasks.add_many("run_1", [{"title": "one"}, {"title": "two"}])
    calls: list[int] = []

    @alog.once
    async def build() -> int:
        calls.append(1)
        return len(calls)

    results = []
    for _ in range(2):
        claim = await claimed(alog)
        async with claim:
            results += [await build(), await build()]
    assert results == [1, 1, 2, 2]


@pytest.mark.slow
async def test_a_cancelled_block_leaves_an_unknown_outcome(alog: AsyncDecklog, log: Decklog) -> None:
    with anyio.move_on_after(0.2):
        async with alog.once("deploy", run_id="run_1"):
            await anyio.sleep(60)
    with pytest.raises(Conflict, match="Nobody knows whether"):
        async with alog.once("deploy", run_id="run_1"):
            pass
    assert [one.state for one in await alog.effects.find("run_1")] == ["unknown"]


@pytest.mark.slow
async def test_a_block_cancelled_while_it_begins_is_recorded_or_can_begin_again(alog: AsyncDecklog, log: Decklog) -> None:
    for number, delay in enumerate((0.0, 0.0001, 0.0005, 0.001, 0.002, 0.004)):
        begun: list[str] = []

        async def use(key: str, begun: list[str] = begun) -> None:
            async with alog.once(key, run_id="run_1"):
                begun.append(key)
                await anyio.sleep(60)

        key = f"key {number}"
        async with anyio.create_task_group() as group:
            group.start_soon(use, key)
            await anyio.sleep(delay)
            group.cancel_scope.cancel()
        found = [one.state for one in await alog.effects.find("run_1") if one.step == key]
        assert found == (["unknown"] if begun else [])


@pytest.mark.slow
async def test_a_plain_function_is_refused(alog: AsyncDecklog) -> None:
    with pytest.raises(Invalid, match=r"Decklog\.once"):
        alog.once(len)
    with pytest.raises(Invalid, match=r"AsyncDecklog\.once"):
        alog.log.once(anyio.sleep)
