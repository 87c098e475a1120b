"""`log.once`: a block or a function runs once per key; its first outcome is returned again."""

import threading
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog, DecklogError, Invalid, LeaseLost, ManualClock
from decklog.core.errors import StillPending, Unavailable
from tests.stores.claiming import claimed
from tests.stores.processes import begin
from tests.waiting import wait_until


def deploy(log: Decklog, calls: list[str], key: str = "deploy", run_id: str | None = "run_1") -> Any:
    with log.once(key, run_id=run_id) as effect:
        if not effect.already:
            calls.append(key)
            effect.result = {"version": len(calls)}
    return effect.result


def test_a_block_runs_once_and_gives_its_first_result_again(log: Decklog, run_id: str) -> None:
    calls: list[str] = []
    assert [deploy(log, calls, run_id=run_id) for _ in range(3)] == [{"version": 1}] * 3
    assert calls == ["deploy"]
    assert deploy(log, calls, key="another", run_id=run_id) == {"version": 2}
    assert [(one.step, one.state) for one in log.effects.find(run_id)] == [("another", "done"), ("deploy", "done")]


def test_a_function_runs_once_for_each_set_of_arguments(log: Decklog, run_id: str) -> None:
    sent: list[str] = []

    @log.once(run_id=run_id)
    def send(to: str, *, subject: str = "hello") -> dict[str, int]:
        sent.append(to)
        return {"number": len(sent)}

    assert [send("ana"), send("ben"), send(to="ana"), send("ana", subject="bye")] == [
        {"number": 1},
        {"number": 2},
        {"number": 1},
        {"number": 3},
    ]
    assert sent == ["ana", "ben", "ana"]


def test_a_bare_decorator_takes_the_run_of_the_claim(log: Decklog, run_id: str) -> None:
    calls: list[int] = []

    @log.once
    def build() -> int:
        calls.append(1)
        return len(calls)

    with pytest.raises(Invalid, match="run is unknown"):
        build()
    log.tasks.add(run_id, "work")
    claim = claimed(log, run_id)
    with claim:
        assert [build(), build()] == [1, 1]
        assert log.effects.find(run_id)[0].task_id == claim.id


def test_two_tasks_with_the_same_key_each_run_it(log: Decklog, run_id: str) -> None:
    calls: list[str] = []
    log.tasks.add_many(run_id, [{"title": "one"}, {"title": "two"}])
    for _ in range(2):
        claim = claimed(log, run_id)
        with claim:
            deploy(log, calls, run_id=None)
            deploy(log, calls, run_id=None)
    assert len(calls) == 2
    assert len({one.task_id for one in log.effects.find(run_id)}) == 2


def test_a_second_attempt_of_a_task_does_not_run_it_again(log: Decklog, run_id: str) -> None:
    calls: list[str] = []
    log.tasks.add(run_id, "work")
    for _ in range(2):
        claim = claimed(log, run_id)
        with claim:
            deploy(log, calls, run_id=None)
            claim.fail("no luck")
    assert len(calls) == 1


def test_an_error_is_an_outcome_and_is_raised_again(log: Decklog, run_id: str) -> None:
    calls: list[int] = []

    @log.once(run_id=run_id)
    def charge(amount: int) -> None:
        calls.append(amount)
        raise ValueError("card declined")

    with pytest.raises(ValueError, match="card declined"):
        charge(5)
    with pytest.raises(DecklogError, match="ValueError: card declined") as caught:
        charge(5)
    assert "use another key" in str(caught.value.hint)
    assert calls == [5]


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), Unavailable("the line went dead")])
def test_an_interruption_leaves_an_unknown_outcome_that_a_person_settles(
    log: Decklog, run_id: str, problem: BaseException
) -> None:
    calls: list[str] = []
    with pytest.raises(type(problem)), log.once("deploy", run_id=run_id):
        raise problem
    for _ in range(2):
        with pytest.raises(Conflict, match="Nobody knows whether") as caught:
            deploy(log, calls, run_id=run_id)
    assert "decklog effects reconcile" in str(caught.value.hint)
    log.effects.reconcile(caught.value.details["effect_id"], "no", by="owner")  # type: ignore[arg-type]
    assert deploy(log, calls, run_id=run_id) == {"version": 1}


def test_an_outcome_confirmed_by_a_person_is_returned(log: Decklog, run_id: str) -> None:
    with pytest.raises(KeyboardInterrupt), log.once("deploy", run_id=run_id) as effect:
        raise KeyboardInterrupt
    assert effect.effect is not None
    log.effects.reconcile(effect.effect.id, "yes", by="owner", result={"version": 7})  # type: ignore[arg-type]
    assert deploy(log, [], run_id=run_id) == {"version": 7}


def test_a_result_that_is_not_json_is_refused_and_the_block_does_not_run_again(log: Decklog, run_id: str) -> None:
    for _ in range(2):
        with pytest.raises(Invalid, match="JSON"), log.once("deploy", run_id=run_id) as effect:
            assert not effect.already
            effect.result = object()
    assert [one.state for one in log.effects.find(run_id)] == ["failed"]


def test_nothing_runs_once_inside_a_transaction(log: Decklog, run_id: str) -> None:
    with log.transaction(), pytest.raises(Invalid, match="inside a transaction"):
        deploy(log, [], run_id=run_id)
    with pytest.raises(Invalid, match="needs a key"), log.once(run_id=run_id):
        pass


def test_a_key_that_another_thread_is_using_is_pending(log: Decklog, run_id: str) -> None:
    with log.once("deploy", run_id=run_id):
        problems: list[BaseException] = []

        def use() -> None:
            try:
                deploy(log, [], run_id=run_id)
            except StillPending as problem:
                problems.append(problem)

        other = threading.Thread(target=use)
        other.start()
        other.join()
        assert len(problems) == 1


def test_whoever_lost_its_task_begins_nothing_and_settles_what_it_has_begun(
    log: Decklog, run_id: str, clock: ManualClock
) -> None:
    log.tasks.add(run_id, "work")
    claim = claimed(log, run_id)
    with pytest.raises(LeaseLost), claim:
        with log.once("deploy") as effect:
            clock.advance(seconds=3600)
            assert log.tasks.claim(run_id, worker="somebody else") is not None
            effect.result = "deployed"
        assert log.effects.find(run_id)[0].state == "done"
        deploy(log, [], key="more", run_id=None)


def hang(target: str, begun: str) -> None:
    """Begin a block, and never end it."""
    with Decklog.open(target) as log, log.once("deploy", run_id="run_1"):
        Path(begun).touch()
        threading.Event().wait(60)


@pytest.mark.slow
def test_a_block_whose_process_was_killed_is_unknown(target: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with Decklog.open(target) as log:
        log.runs.start("goal", run_id="run_1")
        process = begin(hang, target, str(begun))
        wait_until(begun.exists)
        with pytest.raises(StillPending, match="another process"):
            deploy(log, [])
        process.kill()
        process.communicate()
        with pytest.raises(Conflict, match="its actor ended before it was settled"):
            deploy(log, [])
        assert [one.state for one in log.effects.find("run_1")] == ["unknown"]
