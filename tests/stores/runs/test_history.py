"""A run as of any entry, a page at a time: the same as its whole picture, in a few statements."""

import random
from collections import Counter
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.stores.runs import history, timeline


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
            if (claim := log.tasks.claim(run_id, worker=dice.choice(["dev-1", "dev-2"]), lease_seconds=60)) is not None:
                match dice.randrange(4):
                    case 0:
                        claim.finish("it works")
                    case 1:
                        claim.fail("no module lark")
                    case 2:
                        claim.release()
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


def filled(log: Decklog, clock: ManualClock, steps: int, seed: int = 3) -> int:
    """Let a run go on for some steps; give the number of its last entry."""
    log.runs.start("Read trailing commas", run_id="commas")
    dice = random.Random(seed)
    for _ in range(steps):
        act(log, dice, "commas", clock)
    return int(log.journal.find("commas", limit=1)[0].seq)


def paged(log: Decklog, table: str, at: int, size: int) -> list[Any]:
    found, after = [], None
    while True:
        page = log.runs.records_at("commas", table, str(at), limit=size, after=after)
        found += [record.as_dict() for record in page]
        if (after := page.next) is None:
            return found


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


def lanes_of(snapshot: Any) -> list[tuple[Any, ...]]:
    shown = [attempt.as_dict() for attempt in snapshot.attempts]
    names = ("task_id", "number", "worker", "started_at", "ended_at", "outcome", "summary", "blocker")
    return sorted(tuple(one[name] for name in names) for one in shown)


def check(log: Decklog, at: int, size: int) -> None:
    whole = log.runs.snapshot("commas", at=str(at))
    assert log.runs.tallies("commas", at=str(at)) == tallied(whole)
    for table in ("runs", "tasks", "approvals", "criteria", "agents", "charges"):
        assert paged(log, table, at, size) == [record.as_dict() for record in whole.records.get(table, [])], (table, at)
    lanes = log.runs.lanes("commas", until=str(at))
    names = ("task_id", "number", "worker", "started_at", "ended_at", "outcome", "summary", "blocker")
    assert sorted(tuple(one[name] for name in names) for one in lanes["attempts"]) == lanes_of(whole)
    assert lanes["left_out"] == 0


def test_any_page_as_of_any_entry_is_that_of_the_whole_picture(log: Decklog, clock: ManualClock) -> None:
    dice, last = random.Random(5), filled(log, clock, 90)
    for at in [1, last, *dice.sample(range(1, last + 1), 25)]:
        check(log, at, dice.choice([1, 3, 50]))
    kept = log.db.read(lambda: log.db.one("select max(seq), count(*) from run_marks", {}))
    assert kept == (last // 7 * 7, last // 7)
    assert log.journal.verify().ok
