"""A claim that gets nothing says why, as a code and in words, and what would help."""

from datetime import timedelta

import pytest

from decklog import Decklog, ManualClock, NotFound
from tests.stores.claiming import claimed


def why(log: Decklog, run_id: str | None, **asked: str) -> tuple[str, str, str]:
    assert log.tasks.claim(run_id, worker="w", **asked) is None  # type: ignore[arg-type]
    reason = log.tasks.why_none(run_id, **asked)
    return reason["code"], reason["message"], reason["hint"]


def test_an_empty_run_and_one_whose_tasks_are_done_are_told_apart(log: Decklog, run_id: str) -> None:
    assert why(log, run_id) == ("no_tasks", "run run_1 has no tasks", 'Add one: decklog tasks add run_1 "TITLE"')
    log.tasks.add(run_id, "one")
    claimed(log, run_id).finish()
    assert why(log, run_id)[:2] == ("all_done", "every task of run run_1 is done")


def test_a_run_that_gives_out_no_work_is_named_with_its_state(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one")
    log.runs.update(run_id, status="paused")
    assert why(log, run_id)[:2] == ("run_paused", "run run_1 is paused")
    log.runs.finish(run_id, status="cancelled")  # type: ignore[arg-type]
    assert why(log, run_id)[:2] == ("run_over", "run run_1 is cancelled")


def test_tasks_of_others_are_told_with_when_the_first_may_be_free(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one")
    assert log.tasks.claim(run_id, worker="other", lease_seconds=90) is not None
    clock.advance(seconds=30)
    code, message, _ = why(log, run_id)
    assert code == "all_taken"
    assert message.endswith("the first lease ends in 60 s")


def test_what_may_begin_later_is_told_with_its_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one", not_before=clock.now() + timedelta(hours=2))
    code, message, _ = why(log, run_id)
    assert (code, message[:24]) == ("later", "1 may start later, the f")


@pytest.mark.parametrize("asked", [{"tag": "ui"}, {"role": "qa"}, {"group_id": "g2"}])
def test_what_was_asked_for_is_named_where_other_tasks_are_ready(log: Decklog, run_id: str, asked: dict[str, str]) -> None:
    log.tasks.add(run_id, "one", tags=["core"], role="dev")
    code, message, _ = why(log, run_id, **asked)
    assert code == "no_match"
    assert next(iter(asked.values())) in message


def test_held_tasks_are_counted_by_their_state(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one", task_id="one")
    log.tasks.add(run_id, "two", depends_on=["one"])
    log.tasks.pause("one", reason="asked to")
    assert why(log, run_id)[:2] == ("held", "nothing is ready: 1 paused, 1 pending")


def test_without_a_run_the_answer_is_about_all_of_them(log: Decklog) -> None:
    assert why(log, None)[0] == "no_run"
    log.runs.start("x", run_id="run_1")
    assert why(log, None)[:2] == ("nothing_ready", "no task is ready in the one run under way")
    with pytest.raises(NotFound):
        log.tasks.why_none("run_9")
