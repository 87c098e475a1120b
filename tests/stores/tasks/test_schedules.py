"""Schedules: their tasks appear with the next claim, each occurrence once, whatever the clocks and the machine did meanwhile."""

from datetime import UTC, datetime, timedelta
from itertools import chain
from math import inf
from typing import Any

import pytest

from decklog import CatchUp, Conflict, Decklog, Invalid, ManualClock, NotFound, Schedule
from decklog.core.clock import to_text
from decklog.stores.tasks.claimable import check_outlook
from tests.db.processes import together
from tests.every import every
from tests.stores.claiming import claimed, taken

BERLIN = "Europe/Berlin"


@pytest.fixture
def daily(log: Decklog, run_id: str) -> Schedule:
    return log.schedules.add(run_id, "nightly", "every day 06:00", title="Update {{date}}")


def titles(log: Decklog, run_id: str | None = "run_1") -> list[str]:
    """Claim and finish all there is."""
    return [task.title for task in taken(log, run_id)]


def test_a_task_appears_with_the_first_claim_after_its_time(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    assert daily.next_at == clock.now() + timedelta(hours=6)
    assert titles(log) == []
    assert log.tasks.why_none("run_1")["code"] == "scheduled"
    clock.advance(hours=6, minutes=3)
    assert titles(log) == ["Update 2026-01-01"]
    assert titles(log) == []
    clock.advance(days=1)
    assert titles(log, run_id=None) == ["Update 2026-01-02"]
    now = log.schedules.get(daily.id)
    assert (now.occurrences, now.last_at, now.next_at) == (
        2,
        datetime(2026, 1, 2, 6, tzinfo=UTC),
        datetime(2026, 1, 3, 6, tzinfo=UTC),
    )
    assert log.journal.verify().ok


def test_whoever_waits_for_work_gets_what_becomes_due(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    clock.advance(hours=6)
    claim = claimed(log, "run_1", wait_seconds=5)
    assert claim.task.key == f"{daily.id} 2026-01-01T06:00:00.000000Z"


def test_whoever_looks_may_have_it_appear(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    assert log.schedules.run_due() == []
    clock.advance(hours=7)
    assert [task.title for task in log.schedules.run_due()] == ["Update 2026-01-01"]
    assert log.schedules.run_due("run_1") == []
    with pytest.raises(NotFound):
        log.schedules.run_due("nobody")


def test_a_look_at_what_goes_on_has_it_appear(log: Decklog, daily: Schedule, clock: ManualClock, target: str) -> None:
    log.overview.now()
    assert log.tasks.find("run_1") == []
    clock.advance(hours=7)
    with Decklog.open(target, clock=clock, read_only=True) as reader:
        reader.overview.now()
    assert log.tasks.find("run_1") == []
    log.overview.now()
    assert [task.title for task in log.tasks.find("run_1")] == ["Update 2026-01-01"]


@pytest.mark.parametrize(
    ("catch_up", "limit", "expected"),
    [
        (CatchUp.NONE, 10, []),
        (CatchUp.ONE, 10, ["Update 2026-01-08"]),
        (CatchUp.ALL, 10, [f"Update 2026-01-0{day}" for day in range(1, 9)]),
        (CatchUp.ALL, 3, [f"Update 2026-01-0{day}" for day in (6, 7, 8)]),
    ],
)
def test_a_machine_asleep_for_a_week_follows_the_rule(
    log: Decklog, run_id: str, clock: ManualClock, catch_up: CatchUp, limit: int, expected: list[str]
) -> None:
    log.schedules.add(run_id, "n", "every day 06:00", title="Update {{date}}", catch_up=catch_up, catch_up_limit=limit)
    clock.advance(days=7, hours=12)
    assert titles(log) == expected
    assert titles(log) == []
    clock.advance(hours=18, minutes=30)
    assert titles(log) == ["Update 2026-01-09"]
    assert log.journal.verify().ok


def test_what_is_left_out_when_it_is_late_comes_within_its_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.schedules.add(run_id, "n", "every day 06:00", title="x", catch_up=CatchUp.NONE, late_seconds=600)
    clock.advance(hours=6, minutes=10)
    assert titles(log) == ["x"]
    clock.advance(days=1, seconds=1)
    assert titles(log) == []


@pytest.mark.parametrize(
    ("start", "days"),
    [("2026-03-28T00:00", ["28 01:30", "29 01:30", "30 00:30"]), ("2026-10-24T00:00", ["24 00:30", "25 00:30", "26 01:30"])],
    ids=["ahead", "back"],
)
def test_each_day_has_its_run_when_the_clocks_change(
    log: Decklog, run_id: str, clock: ManualClock, start: str, days: list[str]
) -> None:
    clock.advance(seconds=(datetime.fromisoformat(start).replace(tzinfo=UTC) - clock.now()).total_seconds())
    log.schedules.add(run_id, "n", "every day 02:30", zone=BERLIN, title="at {{at}}")
    keys = []
    for _ in range(3 * 24 * 4):
        clock.advance(minutes=15)
        if (claim := log.tasks.claim(run_id, worker="w")) is not None:
            keys.append(str(claim.task.key).partition(" ")[2])
            claim.finish()
    assert [f"{datetime.fromisoformat(key):%d %H:%M}" for key in keys] == days


def test_a_clock_that_is_set_back_brings_nothing_twice(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    clock.advance(hours=7)
    assert titles(log) == ["Update 2026-01-01"]
    clock.jump(hours=-2)
    log.schedules.pause(daily.id, reason="x")
    log.schedules.resume(daily.id)
    clock.advance(hours=2)
    assert titles(log) == []
    assert log.schedules.get(daily.id).next_at == datetime(2026, 1, 2, 6, tzinfo=UTC)


def test_a_template_comes_whole(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.templates.save("weekly", [{"name": "a", "title": "A {{date}} {{who}}"}, {"title": "B", "depends_on": ["a"]}])
    log.schedules.add(run_id, "weekly", "every monday 09:00", template="weekly", values={"who": "ana"})
    clock.advance(days=12)
    assert titles(log) == ["A 2026-01-12 ana", "B"]
    with pytest.raises(Invalid, match="does not match these values: who"):
        log.schedules.add(run_id, "other", "every monday 09:00", template="weekly")
    with pytest.raises(NotFound):
        log.schedules.add(run_id, "other", "every monday 09:00", template="none")


def test_a_schedule_that_can_not_make_its_tasks_rests_and_stops_nobody(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.templates.save("t", [{"title": "x"}])
    weekly = log.schedules.add(run_id, "weekly", "every day 09:00", template="t")
    log.templates.save("t", [{"title": "x {{new}}"}])
    log.tasks.add(run_id, "other work")
    clock.advance(days=1)
    assert titles(log) == ["other work"]
    rests = log.schedules.get(weekly.id)
    assert (rests.next_at, rests.reason) == (None, "template t needs new")
    log.schedules.edit(weekly.id, reason="fits again", template="t", values={"new": "y"})
    log.schedules.resume(weekly.id)
    clock.advance(days=1)
    assert titles(log) == ["x y"]


def test_a_schedule_is_edited_paused_resumed_and_removed(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    edited = log.schedules.edit(daily.id, reason="too early", when="every day 08:00", zone=BERLIN, title="Later")
    assert edited.next_at == datetime(2026, 1, 1, 7, tzinfo=UTC)
    assert log.schedules.edit(daily.id, reason="x", zone=BERLIN).already
    log.schedules.pause(daily.id, reason="holiday")
    assert log.schedules.pause(daily.id, reason="again").already
    clock.advance(days=3)
    assert titles(log) == []
    assert log.schedules.resume(daily.id).reason is None
    assert log.schedules.resume(daily.id).already
    assert titles(log) == []
    clock.advance(days=1)
    assert titles(log) == ["Later"]
    log.schedules.remove(daily.id, reason="enough")
    assert log.schedules.find("run_1") == []
    assert [entry.subtype for entry in log.journal.history("schedules", daily.id)][-1] == "removed"
    assert log.journal.verify().ok


def test_a_run_that_rests_makes_no_tasks(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    log.runs.update("run_1", status="paused")
    clock.advance(days=2)
    assert titles(log) == []
    assert log.schedules.run_due() == []
    assert log.tasks.find("run_1") == []
    log.runs.update("run_1", status="active")
    assert titles(log) == ["Update 2026-01-02"]


def test_a_name_that_is_known_is_the_same_schedule(log: Decklog, daily: Schedule) -> None:
    assert log.schedules.add("run_1", "nightly", "every  day 06:00", title="Update {{date}}").id == daily.id
    with pytest.raises(Conflict, match="another rule and another catch_up"):
        log.schedules.add("run_1", "nightly", "every day 07:00", title="Update {{date}}", catch_up=CatchUp.ALL)


@every(
    "wrong",
    [
        {"when": "whenever", "title": "x"},
        {"when": "every hour", "title": "x", "zone": "Mars/Base"},
        {"when": "every hour"},
        {"when": "every hour", "title": "x", "template": "t"},
        {"when": "every hour", "task": {"title": "x", "task_id": "t1"}},
        {"when": "every hour", "title": "x", "values": {"a": 1}},
        {"when": "every hour", "title": "x", "catch_up_limit": 0},
        {"when": "every hour", "title": "x", "late_seconds": -1},
    ],
    ids=str,
)
def test_what_could_never_come_is_refused(log: Decklog, run_id: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        log.schedules.add(run_id, "n", **wrong)


def test_a_fork_does_not_do_it_all_twice(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    fork = log.runs.fork("run_1")
    (copy,) = log.schedules.find(fork.id)
    assert (copy.rule, copy.is_paused) == ("every day 06:00", True)
    clock.advance(days=1)
    assert titles(log, fork.id) == []
    assert titles(log) == ["Update 2026-01-01"]
    assert log.journal.verify().ok


def test_a_rule_can_be_tried_before_it_is_used(log: Decklog) -> None:
    assert log.schedules.preview("every monday 09:00", zone=BERLIN, count=2) == [
        "2026-01-05T09:00:00+01:00",
        "2026-01-12T09:00:00+01:00",
    ]


@pytest.mark.slow
def test_of_many_processes_each_occurrence_comes_once(target: str) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    with Decklog.open(target, clock=ManualClock(begin)) as log:
        run_id = log.runs.start("races").id
        for name in ("a", "b"):
            log.schedules.add(run_id, name, "every hour", title=name, catch_up=CatchUp.ALL, catch_up_limit=24)
    for hours in (5, 20):
        found = together("claim_what_is_due", 4, target, run_id, to_text(begin + timedelta(hours=hours, minutes=1)))
        keys = list(chain(*found))
        assert len(keys) == len(set(keys)) == 2 * (5 if hours == 5 else 15)
    with Decklog.open(target) as log:
        assert log.journal.verify().ok


def test_a_claim_that_is_undone_takes_what_appeared_with_it(log: Decklog, daily: Schedule, clock: ManualClock) -> None:
    clock.advance(hours=7)
    with pytest.raises(ZeroDivisionError), log.transaction():
        assert log.tasks.claim("run_1", worker="w") is not None
        raise ZeroDivisionError
    assert log.tasks.find("run_1") == []
    assert titles(log) == ["Update 2026-01-01"]


def test_a_waiting_worker_knows_when_the_next_task_is_due(log: Decklog, run_id: str, clock: ManualClock) -> None:
    def seconds() -> float:
        times = {"now": clock.now(), "steady_now": clock.steady()}
        return log.db.read(lambda: check_outlook(log.db, {"run_id": run_id, "worker": "w"}, times)).seconds

    assert seconds() == inf
    due = log.schedules.add(run_id, "nightly", "every day 06:00", title="Update").next_at
    assert due is not None
    assert seconds() == pytest.approx((due - clock.now()).total_seconds(), abs=0.001)
    log.tasks.add(run_id, "later", not_before=clock.now() + timedelta(seconds=50))
    assert seconds() == pytest.approx(50, abs=0.001)
    log.tasks.add(run_id, "now")
    assert log.tasks.claim(run_id, worker="ada", lease_seconds=20) is not None
    assert seconds() == pytest.approx(20, abs=0.001)
    clock.advance(seconds=10)
    assert seconds() == pytest.approx(10, abs=0.001)
