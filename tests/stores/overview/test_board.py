"""Tasks as a person looks at them: in columns, over all runs, and one by one with the reason why."""

from datetime import timedelta
from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound
from decklog.stores.runs import history, timeline
from tests.stores.claiming import claimed


@pytest.fixture(params=["few", "many"])
def _marks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with all entries behind the mark, once with most before it."""
    if request.param == "many":
        for module in (timeline, history):
            monkeypatch.setattr(module, "EVERY", 3)


def columns(log: Decklog, run_id: str, **given: Any) -> dict[str, Any]:
    return {column.name: column for column in log.overview.board(run_id, **given)}


def titles(column: Any) -> list[str]:
    return [card.title for card in column.cards]


@pytest.mark.usefixtures("_marks")
def test_a_board_has_the_most_urgent_of_each_column_and_counts_all(log: Decklog, run_id: str, clock: ManualClock) -> None:
    for number in range(5):
        log.tasks.add(run_id, f"ready {number}", priority=10 * number, task_id=f"r{number}")
    log.tasks.add(run_id, "after", priority=99, depends_on=["r0"])
    log.tasks.add(run_id, "paused", task_id="p")
    log.tasks.pause("p", reason="the plan changed")
    claimed(log, run_id, worker="dev-1", task_id="r4")
    done = claimed(log, run_id, worker="dev-2", task_id="r3")
    clock.advance(seconds=1)
    done.finish("it works")
    log.tasks.abandon("r2", reason="no use")
    board = columns(log, run_id, per_column=3)
    assert {name: column.count for name, column in board.items()} == {"to_do": 3, "doing": 1, "blocked_or_paused": 1, "over": 2}
    assert titles(board["to_do"]) == ["ready 1", "ready 0", "after"]
    assert titles(board["over"]) == ["ready 2", "ready 3"]
    assert [card.why for card in board["to_do"].cards] == [None, None, "waits for ready 0 (pending)"]
    assert [(card.why, card.status.value) for card in board["blocked_or_paused"].cards] == [("the plan changed", "paused")]
    doing = board["doing"].cards[0]
    assert (doing.worker, doing.status.value, doing.attempts) == ("dev-1", "running", 1)
    assert doing.lease_seconds_left is not None
    assert doing.lease_seconds_left > 0
    assert titles(columns(log, run_id, per_column=1)["over"]) == ["ready 2"]


def test_a_card_says_what_it_waits_for_and_whom_it_is_for(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "later", not_before=clock.now() + timedelta(hours=2), priority=9)
    log.tasks.add(run_id, "kept", assigned_to="dev-7", priority=8)
    log.tasks.add(run_id, "asked", task_id="asked", priority=7)
    log.approvals.ask(run_id, "Push?", by="dev-1", about="git push", task_id="asked")
    cards = columns(log, run_id)["to_do"].cards
    assert [card.why for card in cards] == ["not before 2026-01-01 02:00 UTC", "is for dev-7", None]
    assert [card.status.value for card in cards] == ["pending", "pending", "needs attention"]


def test_a_lease_that_ended_is_said_on_the_card(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one")
    log.tasks.claim(run_id, worker="dev-1", lease_seconds=60)
    clock.advance(minutes=2)
    (card,) = columns(log, run_id)["doing"].cards
    assert (card.why, card.status.value) == ("the lease of dev-1 ended", "stalled")


def test_a_board_of_a_run_that_is_not_there_is_refused(log: Decklog) -> None:
    with pytest.raises(NotFound, match="no run 'nope'"):
        log.overview.board("nope")


# Why


def test_why_names_what_a_task_waits_for_down_to_what_waits_for_nothing(log: Decklog, run_id: str) -> None:
    for number in range(25):
        log.tasks.add(run_id, f"t{number}", task_id=f"t{number}", depends_on=[f"t{number - 1}"] if number else [])
    why = log.tasks.why("t5")
    assert [one["id"] for one in why["waits_for"]] == ["t4", "t3", "t2", "t1", "t0"]
    assert (why["code"], why["first"], why["who"]) == ("waits", ["t0"], "anybody")
    assert len(log.tasks.why("t24")["waits_for"]) == 20


@pytest.mark.parametrize(
    ("given", "code", "who"),
    [
        ({}, "ready", "anybody"),
        ({"assigned_to": "dev-1"}, "assigned", "dev-1 alone"),
        ({"role": "reviewer"}, "ready", "next: a worker of role reviewer, or of any role"),
    ],
)
def test_why_says_who_could_take_it(log: Decklog, run_id: str, given: dict[str, Any], code: str, who: str) -> None:
    task = log.tasks.add(run_id, "one", **given)
    why = log.tasks.why(task.id)
    assert (why["code"], why["who"], why["waits_for"]) == (code, who, [])


def test_why_of_one_that_is_worked_on_or_over(log: Decklog, run_id: str, clock: ManualClock) -> None:
    task = log.tasks.add(run_id, "one")
    claimed(log, run_id, worker="dev-1", lease_seconds=60)
    assert log.tasks.why(task.id)["code"] == "taken"
    clock.advance(minutes=2)
    assert log.tasks.why(task.id)["code"] == "lease_ended"
    again = claimed(log, run_id, worker="dev-2")
    again.finish("it works")
    assert log.tasks.why(task.id)["why"] == "done: it works"


# Over all runs


def test_tasks_of_all_runs_are_listed_by_a_state_the_latest_change_first(log: Decklog, clock: ManualClock) -> None:
    for run_id in ("a", "b"):
        log.runs.start("goal", run_id=run_id)
        for number in range(3):
            log.tasks.add(run_id, f"{run_id}{number}", task_id=f"{run_id}{number}")
    for task_id in ("a1", "b1", "a0"):
        clock.advance(seconds=1)
        log.tasks.pause(task_id, reason="later")
    first = log.tasks.find(state="paused", limit=2)  # type: ignore[arg-type]
    assert [task.id for task in first] == ["a0", "b1"]
    assert [task.id for task in log.tasks.find(state="paused", after=first.next)] == ["a1"]  # type: ignore[arg-type]
    log.tasks.claim("b", worker="dev-1")
    assert [task.id for task in log.tasks.find(state="running", worker="dev-1")] == ["b0"]  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="give one of these states"):
        log.tasks.find()
