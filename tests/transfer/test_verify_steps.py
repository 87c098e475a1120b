"""LogVerifier step by step finds what verifying at once does, and goes on from what is known."""

import json
from typing import Any

import pytest

from decklog import Decklog
from decklog.journal import walk
from decklog.transfer import verify_steps
from decklog.transfer.verify_steps import VerifySteps
from tests.db.tampering import PostgresVictim, SqliteVictim


def steps(log: Decklog, known: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    told: list[dict[str, Any]] = []
    result = VerifySteps(log, known).run(lambda step: told.append(json.loads(json.dumps(step))))
    return result.as_dict(), told


def known_by(told: list[dict[str, Any]]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for step in told:
        known.update(step.get("heads", {}))
    return known


@pytest.fixture
def some(log: Decklog, monkeypatch: pytest.MonkeyPatch) -> Decklog:
    """A log of several streams, some longer than a step."""
    monkeypatch.setattr(verify_steps, "_STEP", 20)
    monkeypatch.setattr(walk, "_BATCH_SIZE", 2)
    log.budgets.set("all", period="day", limit_microdollars=1000)  # type: ignore[arg-type]
    for number in range(5):
        log.runs.start("a goal", run_id=f"r{number}")
        log.tasks.add(f"r{number}", "a task", task_id=f"t{number}")
        log.journal.append_many([{"stream": f"r{number}", "body": f"said {n}"} for n in range(number * 15)])
        log.ledger.charge("m", cost_microdollars=1, run_id=f"r{number}")
    return log


def test_a_new_log_is_whole(log: Decklog) -> None:
    assert steps(log)[0] == log.journal.verify().as_dict()


def test_all_steps_together_find_what_one_look_does_and_tell_how_far_they_are(some: Decklog) -> None:
    result, told = steps(some)
    assert result == some.journal.verify().as_dict()
    chains = [step for step in told if step["what"] == verify_steps.CHAINS]
    done = [step["done"] for step in chains]
    assert done == sorted(done)
    assert len(set(done)) > 5
    assert {step["whole"] for step in chains} == {result["entries"]} == {done[-1]}
    others = [step for step in told if step["what"] != verify_steps.CHAINS]
    assert [step["done"] for step in others] == list(range(1, others[0]["whole"] + 1))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 8, -2])
def test_whoever_goes_on_walks_what_is_left_and_finds_the_same(some: Decklog, count: int) -> None:
    _, told = steps(some)
    result, more = steps(some, known_by(told[:count]))
    assert {**result, "anchored": 0} == some.journal.verify().as_dict()
    assert len(more) <= len(told)
    assert more[0]["done"] >= told[:count][-1]["done"] or told[:count][-1]["what"] != verify_steps.CHAINS


@pytest.mark.slow
def test_what_came_since_is_walked_and_nothing_else(some: Decklog) -> None:
    known = known_by(steps(some)[1])
    some.journal.append("r2", "later")
    some.runs.start("new", run_id="r9")
    result, told = steps(some, known)
    assert result == {**some.journal.verify().as_dict(), "anchored": 6}
    walked = {number for step in told if step["what"] == verify_steps.CHAINS for number in step["heads"]}
    assert len(walked) == 2


@pytest.mark.slow
def test_entries_that_come_while_it_goes_on_are_walked_too(some: Decklog) -> None:
    is_first = [True]

    def told(step: dict[str, Any]) -> None:
        if step["what"] == "records" and is_first.pop():
            some.journal.append("r1", "meanwhile")
            some.runs.start("meanwhile", run_id="r8")

    found, whole = VerifySteps(some).run(told), some.journal.verify()
    # Records are those of the moment in which they were compared.
    assert {**found.as_dict(), "records": whole.records} == whole.as_dict()
    assert found.records == whole.records - 1


TAMPERED = {
    "a body": "update entries set body = 'other' where body = 'said 9'",
    "a goal": "update runs set goal = 'other' where id = 'r1'",
    "a sum": "delete from budget_days",
    "an entry of no stream": "update streams set no = no + 100 where name = 'r4'",
    "the beginning of a stream": "update streams set created_at = '2020' where name = 'r4'",
    "the order of a stream": "update streams set in_order = 0 where name = 'r4'",
    "an entry in the middle": "delete from entries where body = 'said 9'",
}


def change(log: Decklog, target: str, sql: str) -> None:
    victim = SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)
    assert victim.change(sql)


@pytest.mark.slow
@pytest.mark.parametrize("what", TAMPERED)
def test_what_is_wrong_is_named_as_one_look_names_it(some: Decklog, target: str, what: str) -> None:
    change(some, target, TAMPERED[what])
    found, _ = steps(some)
    assert found == some.journal.verify().as_dict()
    assert not found["ok"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("delete from entries where seq > 20", "entries up to the anchored one are cut off"),
        ("update entries set {hash} where seq = 63", "the entry is not the one that was anchored"),
    ],
)
def test_what_was_found_whole_and_is_not_there_any_more_is_told(some: Decklog, target: str, sql: str, what: str) -> None:
    known = known_by(steps(some)[1])
    is_file = some.db.engine == "sqlite"
    change(some, target, sql.format(hash="hash_bytes = x'00'" if is_file else "hash = '00'"))
    problems = steps(some, known)[0]["problems"]
    assert ("r4", 63, what) in [(one["stream"], one["seq"], one["what"]) for one in problems]


@pytest.mark.slow
def test_a_record_that_was_changed_after_it_was_compared_is_found_by_whoever_goes_on(some: Decklog, target: str) -> None:
    _, told = steps(some)
    change(some, target, TAMPERED["a goal"])
    assert not steps(some, known_by(told[:-1]))[0]["ok"]
