"""A fork of a run goes on from what had landed at an entry, with money of its own and nobody's leases."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.starting import fork
from decklog.conductor.status import run_status
from tests.conductor.plans import NO_STRATEGIST, SETTINGS, TRIPLE, Work, landed_titles, settle, target_of, work_item
from tests.conductor.repositories import everything, git


def forked(context: RunContext, at: int | None, **given: Any) -> RunContext:
    folder = context.repository.folder
    moment = None if at is None else str(at)
    return fork(context.log, context.run_id, Repository.find(folder, folder.parent / "state"), at=moment, **given)


def entry_of(context: RunContext, name: str, state: str) -> int:
    """Give the number of the entry that first told of a task in a state."""
    for entry in context.log.journal.history("tasks", f"{context.run_id}.{name}"):
        image: Any = entry.payload
        if image["state"] == state:
            return int(entry.seq)
    raise AssertionError(name)


@pytest.mark.slow
def test_a_fork_begins_with_what_had_landed_at_its_entry_and_ends_by_itself(log: Decklog, checked: Path, tmp_path: Path) -> None:
    settle(checked, SETTINGS.replace("agents = 2", "agents = 1") + "\n[budget]\nrun_usd = 2.0\nitem_usd = 0.5\n")
    first = work_item("first", TRIPLE, priority=90)
    # Another result each time, as agents have.
    other = ["once", str(tmp_path / "tried"), [["write", "tried.txt", "1\n"]]]
    second = work_item("second", ["append", "notes.txt", "four\n"], other, needs=["first"])
    context = Work(log, checked, first, second).run()
    assert landed_titles(context) == ["Item first", "Item second"]
    before, commits = everything(checked), git(checked, "log", "--format=%H", target_of(context)).split()
    at = entry_of(context, "second.w1", "running")
    there = forked(context, at, new_run_id="again", budget_microdollars=750_000)
    assert there.target_commit() == commits[1], "the commit of the first item"
    tasks = {task.title: task for task in log.tasks.find("again")}
    assert (tasks["Item second"].state, tasks["Item second"].worker, tasks["Item second"].reservation_id) == (
        "pending",
        None,
        None,
    )
    (budget,) = [one for one in log.budgets.find() if one.scope_id == "again"]
    assert budget.ceiling == 750_000
    assert log.effects.open("again") == []
    Conductor(there).run()
    assert run_status(log, "again").outcome == "landed"
    assert landed_titles(there) == ["Item first", "Item second"]
    assert git(checked, "log", "--format=%H", target_of(context)).split() == commits, "the first run is as it was"
    assert everything(checked) == before
    assert log.journal.verify("again").ok
    assert forked(context, None, new_run_id="again").run_id == "again", "the same again goes on with it"


@pytest.mark.slow
def test_two_forks_tell_outcome_money_and_files(log: Decklog, checked: Path, tmp_path: Path) -> None:
    priced = (
        'commits = "conductor"\nstream = "jsonl"\n'
        'events = [{ when = { "/type" = "turn" }, as = "usage", take = { cost_usd = "/cost" } }]'
    )
    settle(checked, SETTINGS.replace('commits = "conductor"', priced) + NO_STRATEGIST)
    turns = [["print", {"type": "turn", "cost": 0.5}], ["write", "other.txt", "1\n"]]
    it = work_item("it", ["once", str(tmp_path / "tried"), turns], ["append", "notes.txt", "four\n"])
    lost = work_item("lost", ["once", str(tmp_path / "lost"), [TRIPLE]])
    context = Work(log, checked, it, lost).context()
    one, other = forked(context, None, new_run_id="one"), forked(context, None, new_run_id="other")
    Conductor(one).run()
    Conductor(other).run()
    told = {(row["table"], row["record_id"]): row["fields"] for row in log.runs.diff("one", "other")}
    assert told["tasks", "Land: Item it"]["result.files"] == [["notes.txt", "other.txt"], ["notes.txt"]]
    assert told["tasks", "Land: Item lost"]["state"] == ["done", "pending"]
    assert told["tasks", "Item lost"]["state"] == ["done", "blocked"]
    assert told["charges", "spent"]["microdollars"] == [500_000, 0]
    assert ("tasks", "Check: Item it") not in told, "it went the same way in both"
    assert all(row["change"] != "changed" or row["fields"] for row in log.runs.diff("one", "other"))


@pytest.mark.slow
def test_a_fork_of_what_is_not_planned_or_is_over_is_refused_and_leaves_nothing(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("it", TRIPLE)).run()
    with pytest.raises(Conflict, match="at entry 1 had no plan yet"):
        forked(context, 1)
    log.runs.finish(context.run_id, summary="1 item landed")
    with pytest.raises(Conflict, match="was over: completed"):
        forked(context, None)
    log.runs.start("Another", run_id="other")
    with pytest.raises(Conflict, match="is not a fork of"):
        forked(context, 3, new_run_id="other")
    assert {run.id for run in log.runs.find()} == {context.run_id, "other"}
    # Snapshots of sessions have refs too.
    assert {name.split("/")[2] for name in context.repository.refs("refs/decklog")} <= {context.run_id, "sessions"}


@pytest.mark.slow
def test_what_waits_in_a_fork_has_its_commits_even_when_the_first_run_is_cleaned_up(log: Decklog, checked: Path) -> None:
    held = work_item("held", ["write", "setup.cfg", ""], TRIPLE)
    context = Work(log, checked, held).run()
    log.runs.update(context.run_id, status="paused")  # type: ignore[arg-type]
    there = forked(context, None, new_run_id="later")
    assert [log.runs.get(run_id).status for run_id in (context.run_id, "later")] == ["paused", "active"]
    context.repository.drop_refs(list(context.repository.refs(f"refs/decklog/{context.run_id}")))
    (tip,) = {str(task.inputs["tip"]) for task in log.tasks.find("later", role="check")}
    assert tip in context.repository.refs("refs/decklog/later").values()
    assert log.approvals.find("later") == [], "what was asked there is not asked here as well"
    Conductor(there).run()
    (question,) = log.approvals.find("later", state="open")  # type: ignore[arg-type]
    log.approvals.decide(question.id, "granted", by="ana")  # type: ignore[arg-type]
    Conductor(there).run()
    assert landed_titles(there) == ["Item held"]


@pytest.mark.slow
def test_a_fork_asks_for_itself_about_an_item_that_is_stuck(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + NO_STRATEGIST)
    context = Work(log, checked, work_item("lost", ["print", "nothing"])).run()
    (asked,) = log.approvals.find(context.run_id, state="open")  # type: ignore[arg-type]
    forked(context, None, new_run_id="later")
    (again,) = log.approvals.find("later", state="open")  # type: ignore[arg-type]
    assert (again.source, again.question) == (asked.source, asked.question)
    assert log.tasks.get(str(again.task_id)).run_id == "later"
    log.approvals.decide(asked.id, "denied", by="ana")  # type: ignore[arg-type]
    assert log.tasks.get(str(again.task_id)).state == "blocked", "an answer to the first run is not one to the fork"
