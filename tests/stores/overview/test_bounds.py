"""What a person looks at costs a bounded number of statements, and none that looks through entries, tasks or charges."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.stores.overview import overview, task_counts
from decklog.stores.runs import history, timeline
from tests.statements import statements

View = Callable[[Decklog], object]
# Each with how many statements it may take.
VIEWS: dict[str, tuple[View, int]] = {
    "now": (lambda log: log.overview.now(), 8),
    "run": (lambda log: log.overview.run("r0"), 6),
    "page of a run": (lambda log: log.overview.run_view("r0"), 9),
    "page of a run as of an entry": (lambda log: log.overview.run_view("r0", at="40"), 13),
    "page of a run with a span": (lambda log: log.overview.run_view("r0", at="40", since="25"), 14),
    "runs": (lambda log: log.overview.runs(limit=50), 6),
    "runs by their goal": (lambda log: log.overview.runs(text="GOAL", repo="here", limit=50), 6),
    "waiting": (lambda log: log.overview.waiting(limit=50), 6),
    "days": (lambda log: log.overview.days(by="model"), 6),  # type: ignore[arg-type]
    "board": (lambda log: log.overview.board("r0"), 6),
    "search": (lambda log: log.overview.search("thought"), 7),
    "counts": (lambda log: log.runs.totals("r0"), 4),
    "counts as of an entry": (lambda log: log.runs.totals("r0", at="40"), 6),
    "records as of an entry": (lambda log: log.runs.records_at("r0", "tasks", "40"), 6),
    "strip": (lambda log: log.runs.activity("r0"), 6),
    "lanes": (lambda log: log.runs.lanes("r0"), 6),
    "lanes of a span": (lambda log: log.runs.lanes("r0", since="20", until="40"), 6),
    "tasks of all runs": (lambda log: log.tasks.find(state="running"), 6),  # type: ignore[arg-type]
    "paused tasks": (lambda log: log.tasks.find(state="paused"), 6),  # type: ignore[arg-type]
    "why": (lambda log: log.tasks.why("r0-last"), 6),
    "moved": (lambda log: log.journal.since("[0, {}]", going_on=True), 6),
    "journal": (lambda log: log.journal.find("r0", limit=50), 6),
    "failed tasks": (lambda log: log.overview.failed_tasks(log.clock.now()), 6),
    "ended runs": (lambda log: log.overview.ended(log.clock.now()), 6),
    "what happened lately": (lambda log: log.overview.recent(["r0", "r1"]), 3),
}


@pytest.fixture(autouse=True)
def _marked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((timeline, "EVERY"), (history, "EVERY"), (task_counts, "MOST_BEHIND")):
        monkeypatch.setattr(module, name, 20)


def grow(log: Decklog, clock: ManualClock, runs: range, tasks: int) -> None:
    """Add runs, each with tasks of which some are claimed, charges, questions and thoughts."""
    for number in runs:
        run_id = f"r{number}"
        log.runs.start("a goal", run_id=run_id, repo="here")
        log.journal.append_many([{"stream": run_id, "body": f"thought {place}"} for place in range(50)])
        for place in range(tasks):
            log.tasks.add(run_id, f"task {place}", task_id=f"{run_id}-{place}")
        log.tasks.add(run_id, "last", task_id=f"{run_id}-last", depends_on=[f"{run_id}-{tasks - 1}"])
        log.tasks.claim(run_id, worker="dev-1")
        log.ledger.charge("m", cost_microdollars=1, run_id=run_id)
        log.approvals.ask(run_id, "Push?", by="dev-1", about="x")
        clock.advance(seconds=1)


def counted(log: Decklog) -> dict[str, int]:
    found = {}
    for name, (view, _) in VIEWS.items():
        view(log)
        counts = []
        for _ in range(2):
            # Something came since: what is remembered of the run is not all there is. Marks that are due by then are made once.
            log.journal.append("r0", "a thought")
            with statements(log) as seen:
                view(log)
            counts.append(len(seen))
        found[name] = min(counts)
    return found


def scans(log: Decklog, sql: str, bound: Any) -> list[str]:
    """Name the steps of a statement's plan that look through a whole table that grows."""
    if log.db.engine == "sqlite":
        names = {"entries", "tasks", "charges", *re.findall(r"\b(?:entries|tasks|charges) (?!where|on|order|limit)(\w+)", sql)}
        steps = [row[3] for row in log.db.rows(f"explain query plan {sql}", bound)[1]]
        return [step for step in steps if (word := step.split())[0] == "SCAN" and word[1] in names and "USING" not in step]
    log.db.rows("set local enable_seqscan = off", {})
    steps = [row[0] for row in log.db.rows(f"explain {sql}", bound)[1]]
    return [step for step in steps if re.search(r"Seq Scan on (entries|tasks|charges)\b", step)]


@pytest.mark.slow
def test_views_take_few_statements_however_large_the_log_and_look_through_nothing(log: Decklog, clock: ManualClock) -> None:
    grow(log, clock, range(2), 3)
    few = counted(log)
    grow(log, clock, range(2, 9), 6)
    many = counted(log)
    # A search asks once more where the newest entries have some of the hits only.
    assert few == {**many, "search": few["search"]}
    assert {name: count for name, count in many.items() if count > VIEWS[name][1]} == {}
    for name, (view, _) in VIEWS.items():
        with statements(log) as seen:
            view(log)
        for sql, bound in seen:
            if sql.lstrip().startswith(("select", "with")):
                assert log.db.read(lambda sql=sql, bound=bound: scans(log, sql, bound)) == [], (name, sql)  # type: ignore[misc]


@pytest.mark.slow
def test_very_many_runs_under_way_are_told_of_with_few_statements(log: Decklog) -> None:
    """More than one statement can hold, each with entries and charges since its mark."""
    with log.transaction():
        for number in range(130):
            log.runs.start("a goal", run_id=f"r{number}")
            log.ledger.charge("m", cost_microdollars=number, run_id=f"r{number}")
    log.tasks.add("r129", "one")
    with statements(log) as seen:
        said = log.overview.now(limit=200)
    assert said.counts == {"running": 130}
    assert [run.cost_microdollars for run in sorted(said.runs, key=lambda run: int(run.id[1:]))] == list(range(130))
    assert said.runs[[run.id for run in said.runs].index("r129")].tasks["pending"] == 1
    assert len(seen) <= VIEWS["now"][1] + 3
    assert not said.is_cut


def test_marks_are_moved_where_many_runs_together_are_far_behind(log: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_counts, "MOST_IN_ALL", 30)
    for number in range(5):
        log.runs.start("a goal", run_id=f"r{number}")
        log.journal.append_many([{"stream": f"r{number}", "body": "thought"} for _ in range(8)])
    log.overview.now()
    assert log.db.read(lambda: log.db.one(f"select count(*) from {task_counts.TABLE}", {})) == (5,)


def test_runs_that_are_not_counted_are_said_to_be(log: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "MOST_GOING_ON", 2)
    monkeypatch.setattr(overview, "NEWEST_GOING_ON", "select * from runs order by started_at desc, id desc limit 3")
    for number in range(3):
        log.runs.start("a goal", run_id=f"r{number}")
    said = log.overview.now()
    assert said.is_cut
    assert said.sentence.endswith("Only the 2 newest runs under way are counted.")
