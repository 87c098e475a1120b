"""One word for how a run or a task stands."""

import pytest

from decklog import Decklog, Invalid, ManualClock, Status
from tests.stores.claiming import claimed


def word(log: Decklog, run_id: str = "run_1") -> str:
    return log.overview.run(run_id).status.value


def test_a_run_that_somebody_works_on_is_running(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one")
    log.tasks.claim(run_id, worker="ada", lease_seconds=3600)
    clock.advance(minutes=5)
    assert word(log) == "running"


def test_an_entry_of_the_last_minutes_shows_that_a_run_is_running(log: Decklog, run_id: str, clock: ManualClock) -> None:
    assert word(log) == "running"
    clock.advance(minutes=5)
    assert word(log) == "idle"


def test_a_run_is_quiet_after_three_of_its_usual_gaps_and_ten_minutes_at_least(
    log: Decklog, run_id: str, clock: ManualClock
) -> None:
    log.tasks.add(run_id, "one")
    clock.advance(minutes=11)
    assert word(log) == "stalled"
    for _ in range(10):
        log.journal.append(run_id, "slow work")
        clock.advance(minutes=30)
    assert word(log) == "idle"
    clock.advance(minutes=61)
    assert word(log) == "stalled"


def test_a_lease_that_ended_and_that_nobody_took_up_makes_a_run_quiet(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one", task_id="one")
    log.tasks.claim(run_id, worker="ada", lease_seconds=60)
    clock.advance(seconds=61)
    assert word(log) == "stalled"
    assert log.overview.task("one")["status"] == "stalled"
    [item] = log.overview.waiting()
    assert item.kind == "stalled"
    assert "the lease of ada on one ended" in item.what


def test_an_open_question_goes_before_everything_else_until_the_run_ends(log: Decklog, run_id: str, clock: ManualClock) -> None:
    asked = log.approvals.ask(run_id, "Push?", by="ada", about="git push")
    clock.advance(hours=2)
    assert word(log) == "needs attention"
    log.runs.finish(run_id)
    assert word(log) == "done"
    assert list(log.overview.waiting()) == []
    assert asked.state == "open"


@pytest.mark.parametrize(("status", "expected"), [("completed", "done"), ("failed", "failed"), ("cancelled", "cancelled")])
def test_the_word_of_a_run_that_is_over_is_its_end(log: Decklog, run_id: str, status: str, expected: str) -> None:
    log.runs.finish(run_id, status=status)  # type: ignore[arg-type]
    assert word(log) == expected


def test_a_run_is_paused_when_it_or_all_that_is_left_of_it_is(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one", task_id="one")
    log.tasks.pause("one", reason="later")
    clock.advance(hours=1)
    assert word(log) == "paused"
    log.tasks.resume("one")
    log.runs.update(run_id, status="paused")  # type: ignore[arg-type]
    assert word(log) == "paused"


def test_a_run_with_nothing_left_to_do_is_idle_however_long_it_is_silent(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one")
    claim = claimed(log, run_id, worker="ada")
    claim.finish()
    clock.advance(days=3)
    assert word(log) == "idle"


def task_word(log: Decklog, task_id: str) -> object:
    return log.overview.task(task_id)["status"]


def test_every_task_has_a_word(log: Decklog, run_id: str) -> None:
    for priority, name in enumerate(("given-up", "asking", "failing", "ready")):
        log.tasks.add(run_id, name, task_id=name, max_attempts=1, priority=priority)
    log.tasks.add(run_id, "waits", task_id="waits", priority=0, depends_on=["ready"])
    assert task_word(log, "ready") == "pending"
    assert task_word(log, "waits") == "pending"
    log.tasks.abandon("given-up", reason="no use")
    assert task_word(log, "given-up") == "abandoned"
    log.approvals.ask(run_id, "May I?", by="ada", about="x", task_id="asking")
    assert task_word(log, "asking") == "needs attention"
    for _ in range(2):
        claim = claimed(log, run_id, worker="ada")
        assert task_word(log, claim.task.id) == "running"
        if claim.task.id == "ready":
            claim.finish()
        else:
            claim.fail("broken")
    assert task_word(log, "ready") == "done"
    assert task_word(log, "failing") == "failed"
    assert task_word(log, "waits") == "pending"


def test_words_that_mean_the_same_for_a_reader_share_a_shape_and_others_do_not() -> None:
    shared = [{"idle", "pending"}, {"waiting", "paused"}, {"cancelled", "abandoned"}]
    by_shape: dict[str, set[str]] = {}
    for status in Status:
        by_shape.setdefault(status.shape, set()).add(status.value)
    assert [words for words in by_shape.values() if len(words) > 1] == shared


def test_a_run_whose_last_task_is_blocked_is_blocked(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.tasks.add(run_id, "one")
    claim = claimed(log, run_id, worker="ada")
    claim.block("no access")
    clock.advance(hours=1)
    assert word(log) == "blocked"


def test_the_words_of_many_are_those_of_each(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.start("over", run_id="over")
    log.runs.finish("over")
    for name in ("taken", "lost", "free", "held"):
        log.tasks.add(run_id, name, task_id=name)
    log.tasks.claim(worker="ada", task_id="lost", lease_seconds=60)
    clock.advance(minutes=2)
    log.tasks.claim(worker="bo", task_id="taken")
    log.tasks.pause("held", reason="later")
    ids = ["taken", "lost", "free", "held"]
    words = log.overview.words(run_ids=[run_id, "over", "nope"], task_ids=[*ids, "nope"])
    assert words["runs"] == {run_id: word(log), "over": "done"}
    assert words["tasks"] == {name: log.overview.task(name)["status"] for name in ids}
    assert log.overview.words() == {"runs": {}, "tasks": {}}


def test_words_are_asked_for_in_parts(log: Decklog) -> None:
    with pytest.raises(Invalid, match="up to 200"):
        log.overview.words(task_ids=[str(number) for number in range(201)])
