"""A loop that records itself: what it began and how that ended is on record, however it is run and however it ends."""

import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import anyio
import pytest

from decklog import AsyncDecklog, Decklog, Entry, EntryKind, Invalid, Run, RunStatus
from decklog.agents import acharge, charge, close_interrupted, recorded, step, tool


def entry_texts(log: Decklog, run_id: str) -> list[tuple[str | None, str | None]]:
    """Return the subtypes and texts of a run's entries, without record changes."""
    return [(entry.subtype, entry.body) for entry in parts(log, run_id)]


def parts(log: Decklog, run_id: str) -> list[Entry]:
    return [entry for entry in log.journal.find(run_id, oldest_first=True, limit=100) if entry.kind is not EntryKind.CHANGE]


def outcomes(log: Decklog, run_id: str) -> list[Any]:
    facts: list[Any] = [entry.payload for entry in parts(log, run_id)]
    return [fact["outcome"] for fact in facts if "outcome" in fact]


@tool
def add(left: int, right: int) -> int:
    return left + right


@tool
async def fetch(url: str) -> str:
    await anyio.sleep(0)
    return f"page of {url}"


@tool
def count(to: int) -> Iterator[str]:
    for number in range(to):
        yield str(add(number, 0))


@tool
async def stream(to: int) -> AsyncIterator[int]:
    for number in range(to):
        await fetch(str(number))
        yield number


def only_run(log: Decklog) -> Run:
    (run,) = log.runs.find()
    return run


def test_a_loop_is_a_run_with_its_steps_calls_and_spend(log: Decklog) -> None:
    with recorded(log, "Add up", agent="adder", run_id="sum") as run:
        with step("think"):
            paid = charge("a-model", input_tokens=10, output_tokens=2, cost_microdollars=5)
        assert add(1, right=2) == 3
        run.returned("three")
    assert entry_texts(log, "sum") == [("step", "think"), ("step.ended", "think: ok"), ("call", "add"), ("result", "3")]
    found: Any = parts(log, "sum")[2].payload
    assert found["arguments"] == {"left": 1, "right": 2}
    ended = log.runs.get("sum")
    assert (ended.status, ended.summary, paid.run_id, paid.agent) == (RunStatus.COMPLETED, "three", "sum", "adder")
    assert log.journal.verify().ok


def test_an_error_fails_the_call_the_step_and_the_run(log: Decklog) -> None:
    @tool
    def divide(by: int) -> float:
        return 1 / by

    with pytest.raises(ZeroDivisionError), recorded(log, "Divide", run_id="r"), step("once"):
        divide(0)
    why = "ZeroDivisionError: division by zero"
    assert entry_texts(log, "r") == [("step", "once"), ("call", "divide"), ("result", why), ("step.ended", why)]
    assert outcomes(log, "r") == ["failed", "failed"]
    assert (log.runs.get("r").status, log.runs.get("r").summary) == (RunStatus.FAILED, why)


def test_parts_within_parts_name_what_is_around_them(log: Decklog) -> None:
    with recorded(log, "Nest", run_id="outer"), step("one") as outer, tool("look", path="a.py") as call:
        add(1, 1)
        call.failed("exit 1", exit_code=1)
        with recorded(log, "A part of it", run_id="inner"):
            add(2, 2)
    facts: dict[str, Any] = {str(entry.body): entry.payload for entry in parts(log, "outer")}
    assert facts["look a.py"]["within"] == outer.id
    assert facts["add"]["within"] == call.id
    assert (facts["exit 1"]["outcome"], facts["exit 1"]["exit_code"]) == ("failed", 1)
    assert log.runs.get("inner").parent_run_id == "outer"
    inner: Any = parts(log, "inner")[0].payload
    assert "within" not in inner


def test_what_nobody_records_runs_as_ever_but_money_is_not_lost_in_silence(log: Decklog) -> None:
    assert add(1, 2) == 3
    assert list(count(2)) == ["0", "1"]
    with pytest.raises(Invalid, match="nothing is being recorded here"):
        charge("a-model", input_tokens=1)
    assert log.runs.find() == []


def test_a_decorated_loop_is_a_new_run_each_time(log: Decklog) -> None:
    @recorded(log, "Add again")
    def loop(number: int) -> int:
        return add(number, 1)

    assert [loop(1), loop(2)] == [2, 3]
    assert sorted(run.summary or "" for run in log.runs.find()) == ["2", "3"]


def test_a_generator_is_one_call_and_leaves_its_caller_where_it_was(log: Decklog) -> None:
    with recorded(log, "Count", run_id="r"):
        for number in count(2):
            with step(f"use {number}"):
                pass
        for _ in count(5):
            break
    facts: dict[str, Any] = {f"{entry.subtype} {entry.body}": entry.payload for entry in parts(log, "r")}
    assert facts["result 01"]["items"] == 2
    assert facts["call add"]["within"] == facts["call count"]["call"]
    assert "within" not in facts["step use 0"]
    assert outcomes(log, "r").count("interrupted") == 1


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_loop_that_awaits_records_the_same(log: Decklog, loop: str) -> None:
    async def main() -> None:
        async with AsyncDecklog(log) as alog, recorded(alog, "Fetch", run_id="r"):
            async with step("all"):
                async with anyio.create_task_group() as group:
                    for url in ("a", "b"):
                        group.start_soon(fetch, url)
                await acharge("a-model", input_tokens=1)
            assert [number async for number in stream(2)] == [0, 1]
            # Within a transaction of the task's own, its entries are a part of that.
            async with alog.transaction():
                await fetch("c")

    anyio.run(main, backend=loop)
    found = entry_texts(log, "r")
    assert found[0] == ("step", "all")
    assert sorted(body for subtype, body in found if subtype == "result" and body)[-1] == "page of c"
    assert len(found) == 2 + 2 * (2 + 1 + 2 + 1)
    assert log.runs.get("r").status is RunStatus.COMPLETED
    assert log.ledger.find(run_id="r")[0].input_tokens == 1
    assert log.journal.verify().ok


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_cancelled_loop_is_on_record_as_interrupted(log: Decklog, loop: str) -> None:
    @tool
    async def wait_for_ever() -> None:
        await anyio.sleep_forever()

    async def main() -> None:
        with anyio.move_on_after(0.01):
            async with recorded(log, "Wait", run_id="r"), step("long"):
                await wait_for_ever()

    anyio.run(main, backend=loop)
    assert outcomes(log, "r") == ["interrupted", "interrupted"]
    assert log.runs.get("r").status is RunStatus.CANCELLED


def test_threads_record_into_the_run_that_they_are_handed(log: Decklog) -> None:
    with recorded(log, "Share", run_id="r") as run:

        def use() -> None:
            with run.tool("given", path="x"):
                pass

        threads = [threading.Thread(target=copy_context().run, args=(add, 1, 1)), threading.Thread(target=use)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = threading.Thread(target=add, args=(9, 9))
        alone.start()
        alone.join()
    assert sorted(entry_texts(log, "r"), key=str) == [("call", "add"), ("call", "given x"), ("result", "2"), ("result", "ok")]


def test_what_a_loop_says_is_redacted_as_everything_is(log: Decklog) -> None:
    secret = "k8#tR2" + "vLq9"
    with recorded(log, "Leak", run_id="r"), tool("Bash", command="export DB_PASSWORD=" + secret) as call:
        call.returned({"password": secret, "odd": object(), "nan": float("nan")})
    assert entry_texts(log, "r")[0] == ("call", "export DB_PASSWORD=[redacted:password]")
    assert all(secret not in str(entry) for entry in parts(log, "r"))


@pytest.mark.slow
def test_a_killed_loop_is_closed_as_interrupted_by_the_next_one(log: Decklog) -> None:
    child = os.fork()
    if child == 0:
        with suppress(BaseException), recorded(log, "Die", run_id="dead", key="again"), step("deep"), tool("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
    os.waitpid(child, 0)
    assert log.runs.get("dead").status is RunStatus.ACTIVE
    with recorded(log, "Live", run_id="next"):
        assert log.runs.get("next").status is RunStatus.ACTIVE
        assert close_interrupted(log) == []
    dead = log.runs.get("dead")
    assert (dead.status, dead.summary) == (RunStatus.FAILED, "interrupted: the process ended before this did")
    assert [subtype for subtype, _ in entry_texts(log, "dead")] == ["step", "call", "result", "step.ended"]
    assert outcomes(log, "dead") == ["interrupted", "interrupted"]
    with recorded(log, "Die", key="again") as again:
        assert again.id == "dead"
        add(1, 1)
    assert log.runs.get("dead").status is RunStatus.COMPLETED
    assert log.journal.verify().ok


class _Untold(Exception):
    def __str__(self) -> str:
        raise ValueError("nobody can tell")

    __repr__ = __str__


def test_whatever_can_be_called_is_a_tool(log: Decklog) -> None:
    class Adder:
        def __call__(self, one: int) -> int:
            return one + 1

    with recorded(log, "Count", run_id="counted"):
        assert tool(partial(pow, 2))(3) == 8
        assert tool(Adder())(1) == 2

    calls = log.journal.find("counted", kind=EntryKind.TOOL, oldest_first=True)
    assert [entry.payload["tool"] for entry in calls] == ["pow", "pow", "Adder", "Adder"]


def test_what_nobody_can_tell_does_not_stop_the_loop(log: Decklog) -> None:
    huge = 10**5000

    @tool
    def doubled(number: Any) -> Any:
        return {number: number} if isinstance(number, int) else {_Untold(): number}

    with recorded(log, "Count", run_id="counted"):
        assert doubled(huge) == {huge: huge}
        doubled("x")
        with pytest.raises(_Untold), step("fails"):
            raise _Untold

    ended = [body for subtype, body in entry_texts(log, "counted") if subtype == "step.ended"]
    assert ended == ["_Untold: <_Untold: its repr failed with ValueError>"]


def test_a_child_that_leaves_the_block_does_not_end_what_its_parent_is_at(log: Decklog) -> None:
    parent = os.getpid()
    try:
        with recorded(log, "Fork", run_id="forked"), step("both"):
            child = os.fork()
            if child == 0:
                raise SystemExit
            os.waitpid(child, 0)
            assert log.runs.get("forked").status == "active"
    finally:
        if os.getpid() != parent:
            os._exit(0)

    assert log.runs.get("forked").status == "completed"
    assert outcomes(log, "forked") == ["ok"]
