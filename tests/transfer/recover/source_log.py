"""A log with something in every store, whose newest commits still wait in its write-ahead log."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from decklog import Decklog, ManualClock
from tests.db import saved_logs
from tests.plugins.importers.other_files import PASSES
from tests.stores.artifacts.graph_records import fill_graphs
from tests.transfer.conftest import fill


def fill_every_store(log: Decklog, clock: ManualClock) -> None:
    """Write something of every kind of record there is."""
    desk: Any = log
    saved_logs.fill(log)
    desk.memory.add_topic("trailing_commas", "What was learned of commas")
    desk.memory.remember("task_outcomes", "Run the migrations before the deploy of the service", run_id="run_1")
    desk.memory.remember("task_outcomes", "Run the migrations after the deploy of the service", run_id="run_1")
    desk.patterns.record("decklog", "SyntaxError", "unexpected comma at 7", "read one more token")
    desk.strategies.record("decklog", "general", "Read one more token")
    desk.learnings.note("lexer", "Commas are tokens", run_id="run_1")
    feedback = desk.feedback.file("ana", "The lexer is slow")
    desk.feedback.triage(feedback.id, "test")
    desk.mends.begin("run_1", feedback.id, repo="repository", base="a")
    desk.self_edits.record("https://example.invalid/1", "test", ["a.py"], "aaa", "bbb", PASSES, 88, "approved")
    desk.states.save_snapshot("run_1", "parked", {"task_id": "parked", "paused_at": "2026-01-01T00:00:00Z", "reason": "CI"})
    fill_graphs(desk, "run_1")
    desk.effects.intend("run_1", "push", "git", key="k1", actor="host:1")
    desk.processes.started(
        "run_1", "p1", command={"argv": ["make"]}, cwd="/", root="/", folder="/", sandbox="none", keeper="k", pid=7
    )
    desk.reservations.reserve(clock.now() + timedelta(hours=1), amount_microdollars=10, run_id="run_1")
    desk.prices.set("some-model", 1, 2)
    desk.tasks.comment(desk.tasks.find("run_1")[0].id, "Half of it is there", author="ana")
    desk.templates.save("release", [{"title": "Tag {{version}}"}])
    desk.schedules.add("run_1", "nightly", "every day 06:00", title="Update {{date}}")
    rule = desk.notices.add_rule("done", "command", target=["true"])
    desk.notices.note(rule.id, "run_1", "It is done", run_id="run_1")
    approval = desk.approvals.ask("run_1", "May it guess?", by="dev-1", about="guess")
    desk.approvals.decide(approval.id, "denied", by="ana", rationale="Never guess a separator: addresses have commas in them")
    desk.memory.propose()
    desk.reviews.record("run_1", "pass", base="a", head="b", tree="c", patch="d", settings="e", confidence=80)
    desk.reviews.keep_pass("run_1", "c", 1, {"verdict": "pass"})
    with desk.proving(password="correct horse " + "battery staple"):
        desk.trust.bind("ana", "slack", password="correct horse " + "battery staple")
        desk.budgets.set("run", scope_id="run_1", limit_microdollars=5000)
        proposal = desk.trust.propose("promote", "It went well", to_tier=1)
        desk.trust.apply(proposal.statement)


def empty_tables(log: Decklog) -> list[str]:
    return [
        table
        for table in log.record_classes()
        if not log.db.read(lambda table=table: log.db.one(f"select count(*) from {table}", {}))[0]  # type: ignore[misc, index]
    ]


@contextmanager
def source_log(path: Path, *, entries: int, long: int = 4, late: int = 40) -> Iterator[Path]:
    """Make the log, with so many entries and long ones of several pages; leave it open so that its write-ahead log stays."""
    clock = ManualClock()
    with Decklog.open(path, clock=clock, durability="relaxed") as log:
        fill_every_store(log, clock)
        assert (lacking := empty_tables(log)) == [], lacking
        for number in range(2, 5):
            fill(log, clock, entries=entries // 3, run=f"run_{number}")
            _write_long(log, f"run_{number}", long)
    with Decklog.open(path, clock=clock) as log:
        log.db.read(lambda: log.db.one("select 1", {}))
        for number in range(late):
            clock.advance(seconds=1)
            log.journal.append("run_2", f"late {number}")
            log.tasks.add("run_3", f"late task {number}", task_id=f"late-{number}")
            log.states.save("run_4", "pm", {"number": number})
        yield path


def _write_long(log: Decklog, run: str, count: int) -> None:
    """Entries of several pages each."""
    for number in range(count):
        log.journal.append(run, "\n".join(f"line {line} of output {number} in {run}" for line in range(300)))
