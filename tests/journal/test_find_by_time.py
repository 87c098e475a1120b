"""Finding entries of all runs by time or phase reads the streams of that time only, on both engines."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from decklog import Decklog, Entry, EntryKind, ManualClock
from tests.paging import all_pages
from tests.statements import statements


@pytest.fixture
def days(log: Decklog, clock: ManualClock) -> list[datetime]:
    """Ten runs, one a day, each with three entries an hour apart; the time at which each began."""
    began = []
    for number in range(10):
        began.append(clock.now())
        log.runs.start(f"Run {number}", run_id=f"run_{number}")
        for place in range(3):
            clock.advance(seconds=3600)
            kind = EntryKind.TOOL if place else EntryKind.EVENT
            log.journal.append(f"run_{number}", f"{number}.{place}", kind=kind, phase="risks" if number == 4 else None)
        clock.advance(seconds=21 * 3600)
    return began


def _bodies(entries: list[Entry]) -> list[str]:
    return [entry.body for entry in entries if entry.body and entry.kind is not EntryKind.CHANGE]


def test_entries_of_a_day_are_found_in_all_runs(log: Decklog, days: list[datetime]) -> None:
    day = {"since": days[3], "until": days[4] + timedelta(hours=2)}
    assert _bodies(log.journal.find(**day)) == ["4.1", "4.0", "3.2", "3.1", "3.0"]
    assert _bodies(log.journal.find(**day, oldest_first=True)) == ["3.0", "3.1", "3.2", "4.0", "4.1"]
    assert _bodies(log.journal.find(**day, kind="tool")) == ["4.1", "3.2", "3.1"]
    assert _bodies(log.journal.find(until=days[1] - timedelta(hours=1))) == ["0.2", "0.1", "0.0"]
    assert list(log.journal.find(since=days[9] + timedelta(days=1))) == []


def test_run_written_before_and_after_a_time_is_filtered(log: Decklog, days: list[datetime]) -> None:
    log.journal.append("run_0", "late")
    assert _bodies(log.journal.find(since=days[9])) == ["9.2", "9.1", "9.0", "late"]
    assert _bodies(log.journal.find(since=days[1], until=days[1] + timedelta(hours=1))) == ["1.0"]


def test_stream_whose_times_go_back_is_found_by_time(log: Decklog, days: list[datetime]) -> None:
    log.journal.append("run_8", "imported", at=days[2] + timedelta(minutes=5))
    found = log.journal.find(since=days[2], until=days[2] + timedelta(hours=1))
    assert _bodies(found) == ["imported", "2.0"]


def test_pages_by_time_have_every_entry_once(log: Decklog, days: list[datetime]) -> None:
    for oldest_first in (False, True):
        span = {"since": days[2], "until": days[7], "oldest_first": oldest_first}
        ids = [entry.id for entry in all_pages(lambda after: log.journal.find(**span, limit=4, after=after))]  # noqa: B023
        assert ids == [entry.id for entry in log.journal.find(**span, limit=200)]
        assert len(ids) == len(set(ids)) > 15


@pytest.mark.slow
def test_find_by_time_looks_at_50_streams_at_most_and_goes_on(log: Decklog, clock: ManualClock) -> None:
    since = clock.now()
    for number in range(60):
        log.runs.start(f"Run {number}", run_id=f"run_{number:02}")
    log.journal.append("run_03", "rare", kind=EntryKind.EVENT)
    page = log.journal.find(since=since, kind="event")
    assert (list(page), page.is_cut) == ([], True)
    assert page.warnings == [f"there is too much to search all of it at once; go on with --after {page.next}"]
    page = log.journal.find(since=since, kind="event", after=page.next)
    assert (_bodies(page), page.is_cut, page.next) == (["rare"], False, None)
    oldest = log.journal.find(since=since, kind="tool", oldest_first=True)
    assert (list(oldest), oldest.is_cut) == ([], True)
    assert not log.journal.find(since=since, kind="tool", oldest_first=True, after=oldest.next).is_cut


@pytest.mark.parametrize("narrowed", [{"phase": "risks"}, {"phase": "pivot"}, {"since": 7}, {"since": 7, "kind": "tool"}])
def test_find_in_all_runs_by_time_or_phase_walks_through_no_table(
    log: Decklog, days: list[datetime], narrowed: dict[str, Any]
) -> None:
    log.journal.index()
    filters = {**narrowed, **({"since": days[7]} if "since" in narrowed else {})}
    with statements(log) as executed:
        found = log.journal.find(**filters)
    assert [entry.stream for entry in found if entry.stream not in ("run_4", "run_7", "run_8", "run_9")] == []
    for sql, bound in executed:
        assert "entries" not in _walked(log, sql, bound), sql


def _walked(log: Decklog, sql: str, bound: Any) -> str:
    """Return the steps of a plan that read all of a table, or an index from its end."""

    def steps() -> list[str]:
        if log.db.engine == "sqlite":
            return [row[3] for row in log.db.rows(f"explain query plan {sql}", bound)[1] if row[3].startswith("SCAN entries")]
        log.db.rows("set local enable_seqscan = off", {})
        plan = [row[0] for row in log.db.rows(f"explain (costs off) {sql}", bound)[1]]
        scans = [place for place, step in enumerate(plan) if " on entries" in step]
        return [plan[place] for place in scans if "Cond" not in "".join(plan[place + 1 : place + 2])]

    return "\n".join(log.db.read(steps))
