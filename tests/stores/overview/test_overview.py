"""What goes on in a log: the sentence, the lists, and the sums that are kept from a mark on."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock, MessageSeverity, NotFound
from decklog.records.record import find_all
from decklog.stores.overview import task_counts
from tests.db.tampering import PostgresVictim, SqliteVictim
from tests.statements import statements

Change = Callable[..., int]


@pytest.fixture
def change(log: Decklog, target: str) -> Change:
    """Run SQL past Decklog."""
    victim = SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)
    return victim.change


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move marks after a few entries."""
    monkeypatch.setattr(task_counts, "MOST_BEHIND", 5)


# The sentence


def test_a_new_log_says_so(log: Decklog) -> None:
    summary = log.overview.now()
    assert (summary.sentence, summary.is_new) == ("Nothing has happened in this log yet.", True)


def test_a_log_whose_runs_are_over_says_that_nothing_is_running(log: Decklog, run_id: str) -> None:
    log.runs.finish(run_id)
    assert log.overview.now().sentence == "Nothing waits for you. Nothing is running."


def test_one_of_each_is_said_in_the_singular(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one")
    log.tasks.claim(run_id, worker="ada")
    log.approvals.ask(run_id, "Push?", by="ada", about="git push")
    assert log.overview.now().sentence == "1 decision waits for you. 1 agent works on 1 run."


def test_many_are_said_in_the_plural_with_what_is_quiet_and_what_it_costs(log: Decklog, clock: ManualClock) -> None:
    log.budgets.set("all", period="day", limit_microdollars=50_000_000)  # type: ignore[arg-type]
    for run_id in ("still", "a", "b", "c"):
        log.runs.start("goal", run_id=run_id)
        log.tasks.add(run_id, "one")
        log.tasks.add(run_id, "two")
    clock.advance(hours=1)
    for run_id, workers in (("a", 2), ("b", 2), ("c", 1)):
        for number in range(workers):
            log.tasks.claim(run_id, worker=f"{run_id}{number}")
    log.approvals.ask("a", "Push?", by="a0", about="git push")
    log.approvals.ask("a", "Pull?", by="a0", about="git pull")
    log.ledger.charge("m", cost_microdollars=11_400_000, run_id="a")
    said = "2 decisions wait for you. 5 agents work on 3 runs; 1 has stalled. $11.40 spent today of $50.00."
    assert log.overview.now().sentence == said


def test_the_days_of_utc_are_told_apart(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.ledger.charge("m", cost_microdollars=5_000_000, run_id=run_id)
    clock.advance(days=1)
    assert log.overview.now().spent_today == 0
    log.ledger.charge("m", cost_microdollars=2_000_000, run_id=run_id)
    summary = log.overview.now()
    assert summary.spent_today == 2_000_000
    assert summary.sentence.endswith("$2.00 spent today.")


# What waits


def test_what_waits_is_one_list_and_what_ends_soonest_comes_first(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.runs.start("other", run_id="run_2")
    stale = log.criteria.record(run_id, ["It is fast"])[0]
    log.criteria.meet(run_id, stale.criterion, evidence="bench", evidence_commit="a" * 40)
    log.criteria.observe(run_id, commit="b" * 40)
    clock.advance(seconds=1)
    log.approvals.ask(run_id, "Any time", by="ada", about="x")
    clock.advance(seconds=1)
    effect = log.effects.intend(run_id, "deploy", "run", key="k", actor="host:1")
    log.effects.doubt(effect.id, actor="host:1", note="the machine went away")
    log.inbox.post("bo", "Which of the two?", severity="question", run_id=run_id)  # type: ignore[arg-type]
    log.budgets.set("run", scope_id="run_2", limit_microdollars=10)  # type: ignore[arg-type]
    log.ledger.charge("m", cost_microdollars=20, run_id="run_2", enforce=False)
    clock.advance(seconds=1)
    log.approvals.ask(run_id, "Soon", by="ada", about="y", expires_in_seconds=1800, default_verdict="denied")  # type: ignore[arg-type]
    found = list(log.overview.waiting())
    assert found[0].what == "Soon"
    assert (found[0].default, found[0].deadline is not None) == ("denied", True)
    assert [item.kind.value for item in found[1:]] == ["criterion", "approval", "budget", "effect", "question"]
    assert log.overview.run("run_2").status == "needs attention"
    assert [item.what for item in found if item.kind == "effect"] == ["Did this happen? run in deploy: the machine went away"]


def test_what_waits_comes_page_by_page(log: Decklog, run_id: str, clock: ManualClock) -> None:
    for number in range(5):
        log.approvals.ask(run_id, f"Question {number}?", by="ada", about=f"{number}")
        clock.advance(seconds=1)
    assert [item.what for item in find_all(log.overview.waiting, limit=2)] == [f"Question {number}?" for number in range(5)]
    with pytest.raises(Invalid, match="not a cursor"):
        log.overview.waiting(after="[1]")


def test_what_is_asked_of_a_run_that_is_over_waits_all_the_same(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.approvals.ask(run_id, "Go on?", by="ada", about="x")
    log.runs.finish(run_id)
    clock.advance(seconds=1)
    assert list(log.overview.waiting()) == []
    asked = log.approvals.ask(run_id, "Publish it all the same?", by="ada", about="y")
    assert [item.id for item in log.overview.waiting()] == [asked.id]
    assert log.overview.now().decisions == 1


def test_a_question_that_lapsed_waits_no_more(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.approvals.ask(run_id, "Push?", by="ada", about="x", expires_in_seconds=60)
    assert len(log.overview.waiting()) == 1
    clock.advance(minutes=2)
    assert list(log.overview.waiting()) == []


# Runs


def test_runs_are_listed_newest_first_and_by_their_word(log: Decklog, clock: ManualClock) -> None:
    for number in range(7):
        log.runs.start(f"goal {number}", run_id=f"r{number}")
        clock.advance(seconds=1)
    log.runs.finish("r3")
    first = log.overview.runs(limit=4)
    assert [run.id for run in first] == ["r6", "r5", "r4", "r3"]
    assert [run.id for run in log.overview.runs(limit=4, after=first.next)] == ["r2", "r1", "r0"]
    assert [run.id for run in log.overview.runs(status="done")] == ["r3"]  # type: ignore[arg-type]
    running = log.overview.runs(status="running", limit=4)  # type: ignore[arg-type]
    assert [run.id for run in running] == ["r6", "r5", "r4", "r2"]
    assert [run.id for run in log.overview.runs(status="running", after=running.next)] == ["r1", "r0"]  # type: ignore[arg-type]


def test_a_run_shows_its_last_entry_who_works_and_what_it_spent(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "Change the lexer")
    log.tasks.claim(run_id, worker="ada")
    log.ledger.charge("m", cost_microdollars=7, run_id=run_id)
    log.ledger.charge("unknown", input_tokens=1, run_id=run_id)
    log.journal.append(run_id, "Commas\nare tokens", kind="reasoning", agent="ada")  # type: ignore[arg-type]
    run = log.overview.run(run_id)
    assert (run.last_by, run.last_said) == ("ada", "reasoning: Commas are tokens")
    assert [task["worker"] for task in run.working_on] == ["ada"]
    assert (run.cost_microdollars, run.calls, run.unpriced_calls) == (7, 2, 1)
    assert (run.done, run.planned) == (0, 1)


def test_what_became_of_a_record_is_said_in_words(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "Change the lexer")
    assert log.overview.run(run_id).last_said == "planned: Change the lexer"
    log.approvals.ask(run_id, "Push?", by="ada", about="x", approval_id="push")
    assert log.overview.run(run_id).last_said == "asked: Push?"
    log.approvals.decide("push", "granted", by="mo")  # type: ignore[arg-type]
    assert log.overview.run(run_id).last_said == "answered: granted by mo"


def test_a_run_that_is_not_there_is_named(log: Decklog) -> None:
    with pytest.raises(NotFound, match="no run 'nope'"):
        log.overview.run("nope")


# Sums that are kept from a mark on


def counted(log: Decklog, run_id: str) -> dict[str, int]:
    _, rows = log.db.read(lambda: log.db.rows("select state, failures from tasks where run_id = :id", {"id": run_id}))
    states = Counter(row[0] for row in rows)
    return {**{state: states[state] for state in task_counts.STATES}, "failures": sum(row[1] for row in rows)}


def act(log: Decklog, dice: random.Random, run_id: str) -> None:
    match dice.randrange(5):
        case 0:
            log.tasks.add(run_id, "task", max_attempts=2)
        case 1:
            log.ledger.charge(dice.choice("mn"), cost_microdollars=dice.choice([None, 3]), run_id=dice.choice([run_id, None]))
        case 2 | 3:
            claim = log.tasks.claim(run_id, worker="ada")
            if claim is not None:
                claim.finish() if dice.random() < 0.5 else claim.fail("broken")
        case 4:
            if pending := log.tasks.find(run_id, state="pending", limit=1):  # type: ignore[arg-type]
                log.tasks.abandon(pending[0].id, reason="no use")


@pytest.mark.slow
def test_tallies_and_days_are_true_wherever_the_marks_are(log: Decklog, clock: ManualClock, impatient: None) -> None:
    dice = random.Random(7)
    for run_id in ("a", "b"):
        log.runs.start("goal", run_id=run_id)
    for step in range(60):
        act(log, dice, dice.choice("ab"))
        if step % 10 == 0:
            clock.advance(hours=9)
        if step % 7 == 0:
            for run_id in ("a", "b"):
                shown = log.overview.run(run_id).tasks
                assert {name: shown[name] for name in task_counts.FIELDS} == counted(log, run_id)
            days = {row["day"]: row["cost_microdollars"] for row in log.overview.days()}
            summed: Any = log.ledger.summary(by="day")["rows"]  # type: ignore[arg-type]
            assert days == {row["key"]: row["cost_microdollars"] for row in summed}
    assert log.journal.verify().ok
    kept = log.db.read(lambda: log.db.one("select count(*) from run_tallies", {}))
    assert kept == (2,)


@pytest.mark.parametrize("by", ["model", "agent", "run"])
def test_days_are_told_apart_by_what_is_asked(log: Decklog, run_id: str, by: Any) -> None:
    log.ledger.charge("m", cost_microdollars=1, run_id=run_id, agent="ada")
    log.ledger.charge("n", cost_microdollars=2)
    rows = log.overview.days(by=by)
    name = "run_id" if by == "run" else by
    expected = {"model": {"m": 1, "n": 2}, "agent": {"ada": 1, "": 2}, "run": {run_id: 1, "": 2}}[by]
    assert {row[name]: row["cost_microdollars"] for row in rows} == expected


def test_a_corrected_charge_counts_on_its_new_day(log: Decklog, run_id: str) -> None:
    log.ledger.charge("m", cost_microdollars=5, run_id=run_id, agent="ada")
    log.ledger.charge("m", cost_microdollars=7)
    correct = "update charges set occurred_at = '2025-12-31T10:00:00.000000Z', cost_microdollars = 9 where run_id is not null"
    log.db.write(lambda: log.db.count(correct, {}))
    assert [(row["day"], row["cost_microdollars"]) for row in log.overview.days()] == [("2025-12-31", 9), ("2026-01-01", 7)]


def test_too_many_days_are_refused(log: Decklog, clock: ManualClock) -> None:
    with pytest.raises(Invalid, match="longer than 400 days"):
        log.overview.days(since=clock.now().replace(year=2020))


CHANGES = [
    "update run_tallies set done = done + 1",
    "update run_tallies set seq = seq - 1",
    "update run_tallies set hash = 'x'",
    "delete from spend_days",
    "update spend_days set calls = calls + 1",
    "update spend_days set agent = 'bo'",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_verify_finds_sums_that_are_not_those_of_the_records_and_derive_mends_them(
    log: Decklog, run_id: str, change: Change, statement: str
) -> None:
    log.tasks.add(run_id, "one")
    log.ledger.charge("m", cost_microdollars=1, run_id=run_id, agent="ada")
    log.rebuild()
    assert log.journal.verify().ok
    assert change(statement) > 0
    found = log.journal.verify()
    assert not found.ok
    assert found.first is not None
    assert "spend" in str(found.first.table) if "spend" in statement else found.first.table == "run_tallies"
    log.rebuild()
    assert log.journal.verify().ok


def test_a_log_that_may_only_be_read_counts_what_is_after_its_marks(
    log: Decklog, target: str, run_id: str, clock: ManualClock, impatient: None
) -> None:
    for number in range(20):
        log.tasks.add(run_id, f"task {number}")
        log.ledger.charge("m", cost_microdollars=1, run_id=run_id)
    with Decklog.open(target, clock=clock, read_only=True) as reader:
        assert reader.overview.run(run_id).tasks["pending"] == 20
        assert reader.overview.now().spent_today == 20
    assert log.db.read(lambda: log.db.one("select count(*) from run_tallies", {})) == (0,)


# What it costs


def test_decisions_are_counted_as_the_sentence_counts_them(log: Decklog, run_id: str) -> None:
    assert log.overview.decisions() == 0
    log.approvals.ask(run_id, "May I?", by="ada", about="x")
    log.inbox.post("ada", "Which one?", severity=MessageSeverity.QUESTION, run_id=run_id)
    assert log.overview.decisions() == log.overview.now().decisions == 2


@pytest.mark.slow
def test_the_last_entries_of_many_runs_are_found_one_by_one_in_a_small_log_too(log: Decklog) -> None:
    for number in range(60):
        run = log.runs.start(f"goal {number}")
        log.journal.append_many([{"stream": run.id, "body": "said " * 40} for _ in range(45)])
    log.overview.table(limit=50)
    if log.db.engine == "postgres":
        log.db.write(lambda: log.db.rows("analyze", {}))
    with statements(log) as seen:
        log.overview.table(limit=50)
    word = "explain" if log.db.engine == "postgres" else "explain query plan"
    plans = [log.db.read(lambda: log.db.rows(f"{word} {sql}", bound)[1], same_plans=True) for sql, bound in seen]  # noqa: B023
    steps = [str(row[-1]) for plan in plans for row in plan]
    # PostgreSQL reads an empty partition as a whole, at no cost.
    scans = [step for step in steps if "Seq Scan on entries" in step and "cost=0.00..0.00" not in step]
    assert scans + [step for step in steps if step in ("SCAN entries", "SCAN h")] == []
