"""A run as of any entry, a page at a time: the same as its whole picture, in a few statements."""

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound
from decklog.records.record import find_all
from decklog.stores.overview import run_view
from decklog.stores.runs import history, timeline
from decklog.transfer.jsonl import JsonlExport, JsonlImport
from decklog.transfer.move import Move
from tests.db.tampering import PostgresVictim, SqliteVictim
from tests.statements import statements


@pytest.fixture(autouse=True)
def marked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make marks after a few entries, so that a short run has several."""
    for module in (timeline, history):
        monkeypatch.setattr(module, "EVERY", 7)
    monkeypatch.setattr(timeline, "_BATCH", 2)


def act(log: Decklog, dice: random.Random, run_id: str, clock: ManualClock) -> None:
    """Do one of the things that happen in a run."""
    match dice.randrange(9):
        case 0 | 1:
            log.tasks.add(run_id, f"task {dice.random():.3f}", max_attempts=3)
        case 2 | 3:
            held = log.tasks.find(run_id, state="running", limit=3)  # type: ignore[arg-type]
            if held and dice.random() < 0.6 and held[0].leased_until > clock.now():
                end(log, dice, held[0])
            else:
                log.tasks.claim(run_id, worker=dice.choice(["dev-1", "dev-2"]), lease_seconds=60)
        case 4:
            log.ledger.charge("m", cost_microdollars=dice.choice([None, 3]), input_tokens=5, run_id=run_id)
        case 5:
            log.journal.append(run_id, "Another way", kind="reasoning", phase=dice.choice(["pivot", "risks"]))  # type: ignore[arg-type]
        case 6:
            clock.advance(seconds=dice.choice([1, 50, 90]))
            log.approvals.ask(run_id, "Push?", by="dev-1", about=str(dice.random()))
        case 7:
            if pending := log.tasks.find(run_id, state="pending", limit=1):  # type: ignore[arg-type]
                log.tasks.abandon(pending[0].id, reason="no use")
        case 8:
            log.criteria.record(run_id, [f"It is {dice.random():.3f} fast"])
            log.runs.record_agent(run_id, dice.choice(["developer", "reviewer"]), turns=dice.randrange(9))


def end(log: Decklog, dice: random.Random, task: Any) -> None:
    """End an attempt that somebody else began, or let it go on."""
    match dice.randrange(5):
        case 0:
            log.tasks.finish(task.id, fence=task.fence, summary="it works")
        case 1:
            log.tasks.fail(task.id, fence=task.fence, blocker="no module lark")
        case 2:
            log.tasks.release(task.id, fence=task.fence)
        case 3:
            log.tasks.extend(task.id, fence=task.fence, lease_seconds=60)
        case 4:
            log.tasks.edit(task.id, reason="urgent", priority=dice.randrange(99))


def filled(log: Decklog, clock: ManualClock, steps: int, seed: int = 3) -> int:
    """Let a run go on for some steps; give the number of its last entry."""
    log.runs.start("Read trailing commas", run_id="commas")
    dice = random.Random(seed)
    for _ in range(steps):
        act(log, dice, "commas", clock)
    return int(log.journal.find("commas", limit=1)[0].seq)


def paged(log: Decklog, table: str, at: int, size: int) -> list[Any]:
    return [record.as_dict() for record in find_all(log.runs.records_at, "commas", table, str(at), limit=size)]


def tallied(snapshot: Any) -> dict[str, int]:
    """Count a whole picture."""
    tasks = snapshot.records.get("tasks", [])
    states = Counter(task.state.value for task in tasks)
    spent = {**snapshot.spent, "cost_microdollars": snapshot.spent["microdollars"]}
    spent.pop("microdollars")
    return {
        **{state: states[state] for state in timeline.STATES},
        "failures": sum(task.failures for task in tasks),
        "attempts": len(snapshot.attempts),
        "failed_attempts": sum(attempt.outcome in ("failed", "expired") for attempt in snapshot.attempts),
        **spent,
        "entries": snapshot.seq,
    }


def lanes_of(attempts: list[Any]) -> list[tuple[Any, ...]]:
    names = ("task_id", "number", "worker", "started_at", "ended_at", "outcome", "summary", "blocker")
    return sorted(tuple(one[name] for name in names) for one in attempts)


def check(log: Decklog, at: int, size: int) -> None:
    whole = log.runs.snapshot("commas", at=str(at))
    assert log.runs.totals("commas", at=str(at)) == tallied(whole)
    for table in ("runs", "tasks", "approvals", "criteria", "agents", "charges"):
        assert paged(log, table, at, size) == [record.as_dict() for record in whole.records.get(table, [])], (table, at)
    lanes = log.runs.lanes("commas", until=str(at))
    assert lanes_of(lanes["attempts"]) == lanes_of([attempt.as_dict() for attempt in whole.attempts])
    assert lanes["left_out"] == 0


@pytest.mark.slow
def test_any_page_as_of_any_entry_is_that_of_the_whole_picture(log: Decklog, clock: ManualClock) -> None:
    dice, last = random.Random(5), filled(log, clock, 60)
    for at in [1, last, *dice.sample(range(1, last + 1), 10)]:
        check(log, at, dice.choice([4, 50]))
    for at in range(1, last + 1):
        assert log.runs.totals("commas", at=str(at)) == tallied(log.runs.snapshot("commas", at=str(at))), at
    kept = log.db.read(lambda: log.db.one("select max(seq), count(*) from run_marks", {}))
    assert kept == (last // 7 * 7, last // 7)
    assert log.journal.verify().ok


def newest(log: Decklog, tables: list[str], at: int) -> dict[str, list[Any]]:
    """Read all records of some kinds, page by page, the newest first."""
    found: dict[str, list[Any]] = {}
    for table in tables:
        before: str | None = str(10**6)
        while before is not None:
            page = log.overview.run_view("commas", at=str(at), records=tables, before=int(before), entries=0, tasks=0, lanes=0)
            found[table] = [*found.get(table, []), *(record.as_dict() for record in page.records[table])]
            before = page.older[table]
    return found


@pytest.mark.slow
def test_the_newest_records_as_of_any_entry_are_those_of_the_whole_picture(
    log: Decklog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, last = random.Random(6), filled(log, clock, 60)
    tables = ["tasks", "charges", "criteria"]
    for at in [1, last, *dice.sample(range(1, last + 1), 5)]:
        monkeypatch.setattr(run_view, "MOST_RECORDS", dice.choice([3, 50]))
        whole = log.runs.snapshot("commas", at=str(at)).records
        expected = {table: [record.as_dict() for record in whole.get(table, [])][::-1] for table in tables}
        assert newest(log, tables, at) == expected, at


def test_what_was_spent_grows_to_what_is_counted(log: Decklog, clock: ManualClock) -> None:
    dice, last = random.Random(7), filled(log, clock, 60)
    for at in [1, last, *dice.sample(range(1, last + 1), 5)]:
        page = log.overview.run_view("commas", at=str(at), spent=100, entries=0, tasks=0, lanes=0)
        assert page.spent is not None
        line = page.spent.line
        assert line == sorted(line)
        assert (line[-1][1] if line else 0) == page.totals["cost_microdollars"]
        assert all(cost == log.runs.totals("commas", at=str(seq))["cost_microdollars"] for seq, cost in line)
    now = log.overview.run_view("commas", spent=100, entries=0, tasks=0, lanes=0)
    assert now.spent is not None
    assert sum(row["cost_microdollars"] for row in now.spent.by) == now.totals["cost_microdollars"]


@pytest.mark.slow
def test_a_span_has_the_attempts_that_overlap_it_as_they_stood_at_its_end(log: Decklog, clock: ManualClock) -> None:
    dice, last = random.Random(11), filled(log, clock, 70, 11)
    whole = {one["started_seq"]: one for one in log.runs.lanes("commas")["attempts"]}
    assert len(whole) > 6
    for _ in range(15):
        first, until = sorted(dice.choices(range(1, last + 1), k=2))
        expected = [seq for seq, one in whole.items() if seq <= until and (seq >= first or (one["ended_seq"] or until) >= first)]
        lanes = log.runs.lanes("commas", since=str(first), until=str(until))
        assert [one["started_seq"] for one in lanes["attempts"]] == sorted(expected)
        assert all((one["ended_seq"] or 0) <= until for one in lanes["attempts"])
        few = log.runs.lanes("commas", since=str(first), until=str(until), limit=2)
        assert len(few["attempts"]) + few["left_out"] == len(expected)


def test_a_page_of_a_run_is_made_of_the_same(log: Decklog, clock: ManualClock) -> None:
    last = filled(log, clock, 60)
    for at in (None, str(last // 2), str(last)):
        page, seq = log.overview.run_view("commas", at=at, buckets=20, entries=5), int(at or last)
        assert (page.seq, page.last, page.is_now) == (seq, last, at is None)
        assert page.totals == log.runs.totals("commas", at=at)
        assert page.activity == log.runs.activity("commas", buckets=20)
        assert page.lanes == log.runs.lanes("commas", until=at)
        assert [entry.seq for entry in page.entries] == list(range(seq, seq - 5, -1))
        whole = log.runs.snapshot("commas", at=at)
        if at is None:
            assert page.overview == log.overview.run("commas")
        else:
            assert page.run is not None
            assert page.run["goal"] == whole.run.goal  # type: ignore[attr-defined]
    assert page.as_dict()["entries"][0]["seq"] == last


def test_a_time_stands_for_the_entry_that_was_the_last_then(log: Decklog, clock: ManualClock) -> None:
    log.runs.start("goal", run_id="commas")
    for number in range(20):
        clock.advance(minutes=1)
        log.journal.append("commas", f"step {number}")
    moment = log.journal.get("commas", 12).at.isoformat()
    assert log.runs.totals("commas", at=moment)["entries"] == 12
    activity = log.runs.activity("commas", since=moment, until="16")
    assert [step["seq"] for step in activity["steps"]] == [12, 13, 14, 15, 16]


@pytest.mark.slow
def test_a_pulse_has_even_steps_and_every_moment(log: Decklog, clock: ManualClock) -> None:
    last = filled(log, clock, 90)
    activity = log.runs.activity("commas", buckets=11)
    seqs = [step["seq"] for step in activity["steps"]]
    assert (seqs[0], seqs[-1], len(seqs)) == (1, last, 11)
    assert {b - a for a, b in pairwise(seqs)} <= {(last - 1) // 10, (last - 1) // 10 + 1}
    for step in (*activity["steps"], *activity["marks"]):
        assert log.journal.get("commas", step["seq"]).as_dict()["at"] == step["at"]
    whole = log.runs.snapshot("commas")
    kinds = Counter(mark["what"] for mark in activity["marks"])
    assert kinds["question"] == len(whole.records["approvals"])
    assert kinds["failure"] == log.runs.totals("commas")["failed_attempts"] > 0
    assert kinds["pivot"] == len(log.journal.find("commas", phase="pivot", limit=100)) > 0  # type: ignore[arg-type]
    assert activity["left_out"] == 0


def walks_over_moments(log: Decklog, sql: str, bound: Any) -> bool:
    """Tell whether a statement looks at all moments of a kind, where SQLite says how it goes about it."""
    if log.db.engine != "sqlite":
        return False
    plan = log.db.read(lambda: log.db.rows(f"explain query plan {sql}", bound)[1])
    return any(row[3].startswith("SEARCH m ") and "seq=?" not in row[3] for row in plan)


def test_of_very_many_moments_some_of_every_part_are_given(log: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "EVERY", 100)
    monkeypatch.setattr(history, "EVERY", 100)
    log.runs.start("goal", run_id="commas")
    log.journal.append_many(
        [{"stream": "commas", "kind": "reasoning", "phase": "pivot", "body": str(number)} for number in range(650)]
    )
    with statements(log) as seen:
        activity = log.runs.activity("commas")
    looked_through = [sql for sql, bound in seen if "run_moments" in sql and walks_over_moments(log, sql, bound)]
    assert looked_through == []
    seqs = [mark["seq"] for mark in activity["marks"]]
    assert len(seqs) + activity["left_out"] == 650
    assert 50 <= len(seqs) <= 200
    assert (seqs[0], seqs[-1]) == (2, 651)
    assert max(b - a for a, b in pairwise(seqs)) <= 14


def test_a_moment_that_is_not_there_and_a_table_that_no_run_has_are_refused(log: Decklog, run_id: str) -> None:
    with pytest.raises(NotFound, match="entries 1 to 1"):
        log.runs.totals(run_id, at="2")
    with pytest.raises(NotFound, match="no run 'nope'"):
        log.runs.lanes("nope")
    with pytest.raises(NotFound, match="no run '@desk'"):
        log.runs.lanes("@desk")
    with pytest.raises(Invalid, match="a run has no records 'lessons'"):
        log.runs.records_at(run_id, "lessons", "1")
    with pytest.raises(Invalid, match="buckets is a whole number, 1 to 300"):
        log.runs.activity(run_id, buckets=301)


@pytest.mark.slow
def test_a_log_that_may_only_be_read_is_added_up_in_memory_and_goes_on(log: Decklog, target: str, clock: ManualClock) -> None:
    last, dice = filled(log, clock, 60), random.Random(1)
    with Decklog.open(target, clock=clock, read_only=True) as reader:
        for _ in range(3):
            at = dice.randrange(1, last)
            check(reader, at, 5)
            check(reader, last, 50)
            act(log, dice, "commas", clock)
            last = log.journal.find("commas", limit=1)[0].seq
        with statements(reader) as seen:
            reader.runs.lanes("commas")
    assert log.db.read(lambda: log.db.one("select count(*) from run_marks", {})) == (0,)
    # Only what came since it last looked was read.
    assert [sql for sql, _ in seen].count(timeline._CHANGES) <= 1


def test_only_what_came_since_the_last_look_is_read(log: Decklog, clock: ManualClock) -> None:
    filled(log, clock, 30)
    log.runs.totals("commas")
    for _ in range(9):
        entry = log.journal.append("commas", "one more")
        with statements(log) as seen:
            log.runs.totals("commas")
        spans = [bound["until"] - bound["start"] for sql, bound in seen if sql == timeline._CHANGES]
        assert spans == [1] or entry.seq % 7 == 0


def test_inside_of_a_read_nothing_is_kept_and_all_is_right(log: Decklog, clock: ManualClock) -> None:
    last = filled(log, clock, 60)
    log.db.read(lambda: check(log, last // 2, 5))
    assert log.db.read(lambda: log.db.one("select count(*) from run_marks", {})) == (0,)


def test_what_is_rolled_back_is_not_remembered(log: Decklog, clock: ManualClock) -> None:
    filled(log, clock, 20)
    before = log.runs.totals("commas")
    with pytest.raises(ZeroDivisionError), log.transaction():
        log.tasks.add("commas", "never")
        assert log.runs.totals("commas")["pending"] == before["pending"] + 1
        raise ZeroDivisionError
    assert log.runs.totals("commas") == before
    log.tasks.add("commas", "really")
    assert log.runs.totals("commas")["pending"] == before["pending"] + 1


def test_a_fork_is_told_from_its_own_entries(log: Decklog, clock: ManualClock) -> None:
    last = filled(log, clock, 60)
    log.runs.totals("commas")
    fork = log.runs.fork("commas", at=str(last // 2))
    whole = log.runs.snapshot(fork.id)
    assert log.runs.totals(fork.id) == tallied(whole)
    page = log.runs.records_at(fork.id, "tasks", str(whole.seq), limit=1000)
    assert [task.as_dict() for task in page] == [task.as_dict() for task in whole.records["tasks"]]
    assert log.journal.verify().ok


@pytest.mark.slow
def test_what_was_moved_or_exported_is_told_the_same(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    last = filled(log, clock, 50)
    at = str(last // 2)
    told = [log.runs.totals("commas", at=at), log.runs.lanes("commas"), log.runs.activity("commas")]
    JsonlExport(log, str(tmp_path / "lines")).run()
    with Decklog.open(tmp_path / "moved.db", clock=clock) as moved, Decklog.open(tmp_path / "taken.db", clock=clock) as taken:
        Move(log, moved).run()
        JsonlImport(taken, str(tmp_path / "lines")).run()
        for other in (moved, taken):
            assert [other.runs.totals("commas", at=at), other.runs.lanes("commas"), other.runs.activity("commas")] == told
            assert other.journal.verify().ok


CHANGES = [
    "update run_marks set done = done + 1 where seq = 14",
    "update run_marks set hash = 'x' where seq = 7",
    "update run_marks set under_way = '[]' where under_way <> '[]'",
    "delete from run_marks where seq = 7",
    "update run_attempts set outcome = 'parked' where ended_seq is not null",
    "delete from run_attempts",
    "update run_moments set seq = seq + 1000",
    "update record_firsts set record_id = 'x' where record_table = 'tasks'",
    "delete from record_firsts where record_table = 'approvals'",
]


@pytest.mark.slow
def test_verify_finds_what_the_entries_do_not_add_up_to_and_derive_mends_it(
    log: Decklog, target: str, clock: ManualClock
) -> None:
    last = filled(log, clock, 50)
    victim = SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)
    for statement in CHANGES:
        log.runs.totals("commas")
        assert victim.change(statement) > 0, statement
        found = log.db.read(lambda: [problem["table"] for problem in log.runs.audit({})])
        assert found, statement
        assert found[0] in statement
        if statement == CHANGES[0]:
            assert not log.journal.verify().ok
        log.runs.derive()
    assert log.journal.verify().ok
    check(log, last // 2, 50)
