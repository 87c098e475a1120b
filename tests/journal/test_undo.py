"""The last change of a record can be undone with an entry, unless others rely on it."""

import pytest

from decklog import Conflict, Decklog, Denied, Invalid, LinkKind, ManualClock, NotFound, Record, Schedule, Task
from tests.stores.claiming import claimed


@pytest.fixture
def task(log: Decklog, run_id: str) -> Task:
    log.tasks.add(run_id, "Read words", task_id="t1", tags=["slow"])
    return log.tasks.edit("t1", reason="clearer", title="Read all words", priority=90)


def test_edit_is_undone_with_an_entry(log: Decklog, run_id: str, task: Task) -> None:
    back = log.journal.undo("tasks", "t1", reason="it was clear enough")
    assert isinstance(back, Task)
    assert (back.title, back.priority, back.tags) == ("Read words", 50, ["slow"])
    assert log.tasks.get("t1").title == "Read words"
    entry = log.journal.history("tasks", "t1")[-1]
    assert entry.body == "undone (title, priority): it was clear enough"
    assert log.tasks.claim(run_id, worker="w", tag="slow") is not None
    assert log.journal.verify().ok


def test_an_undo_is_undone_as_any_change(log: Decklog, task: Task) -> None:
    for title in ("Read words", "Read all words", "Read words"):
        assert log.journal.undo("tasks", "t1", reason="to and fro").title == title
    assert len(log.journal.history("tasks", "t1")) == 5


def test_pause_and_abandon_are_undone(log: Decklog, run_id: str, task: Task) -> None:
    log.tasks.pause("t1", reason="lunch")
    log.tasks.abandon("t1", reason="a slip")
    before = log.tasks.get("t1").fence
    back = log.journal.undo("tasks", "t1", reason="not that one")
    assert (back.state, back.reason, back.fence) == ("paused", "lunch", before)
    log.tasks.resume("t1")
    log.journal.undo("tasks", "t1", reason="not yet")
    assert log.tasks.claim(run_id, worker="w") is None
    log.tasks.assign("t1", "ana")
    assert log.journal.undo("tasks", "t1", reason="x").assigned_to is None
    assert log.journal.verify().ok


def test_leases_and_what_is_done_stay(log: Decklog, run_id: str, task: Task) -> None:
    claim = claimed(log, run_id, worker="w")
    for end in (lambda: None, claim.release):
        end()
        with pytest.raises(Conflict, match="leases are not restored"):
            log.journal.undo("tasks", "t1", reason="x")
    with log.tasks.claim(run_id, worker="w"):
        pass
    with pytest.raises(Conflict, match="leases are not restored"):
        log.journal.undo("tasks", "t1", reason="x")


def test_edit_of_a_running_task_is_undone_and_its_worker_keeps_it(log: Decklog, run_id: str, task: Task) -> None:
    claim = claimed(log, run_id, worker="w")
    log.tasks.edit("t1", reason="x", priority=5, tags=["fast"])

    back = log.journal.undo("tasks", "t1", reason="not so")

    assert isinstance(back, Task)
    assert (back.priority, back.tags, back.state, back.worker, back.fence) == (90, ["slow"], "running", "w", claim.fence)
    claim.finish()
    assert log.journal.verify().ok


def test_change_that_others_rely_on_is_not_undone(log: Decklog, run_id: str, task: Task) -> None:
    log.tasks.add(run_id, "other", task_id="t2")
    log.tasks.depend("t1", "t2")
    with pytest.raises(Conflict, match="also changed open_dependencies"):
        log.journal.undo("tasks", "t1", reason="x")
    log.tasks.depend("t2", "t1", kind=LinkKind.RELATED)
    whole = log.tasks.add(run_id, "whole", task_id="whole")
    log.tasks.add(run_id, "part", task_id="part", parent_id=whole.id)
    log.tasks.abandon("part", reason="x")
    with log.tasks.claim(task_id="whole", worker="w"):
        pass
    with pytest.raises(Conflict, match="its parent task whole is done since"):
        log.journal.undo("tasks", "part", reason="x")


def test_only_the_last_change_is_undone(log: Decklog, task: Task) -> None:
    seq = log.journal.history("tasks", "t1")[-1].seq
    log.tasks.edit("t1", reason="x", priority=1)
    with pytest.raises(Conflict, match="is not its last change"):
        log.journal.undo("tasks", "t1", reason="x", entry=seq)
    assert log.journal.undo("tasks", "t1", reason="x", entry=seq + 1).priority == 90


def test_runs_groups_and_plans_can_be_undone_too(log: Decklog, run_id: str) -> None:
    log.runs.update(run_id, goal="Another goal")
    log.groups.add(run_id, "A", name="Lexer")
    log.groups.update(run_id, "A", name="Parser")
    log.plans.record(run_id, "do", "it", ["first"])
    assert log.journal.undo("runs", run_id, reason="x").goal == "Make the parser faster"
    assert log.journal.undo("groups", f'["{run_id}","A"]', reason="x").name == "Lexer"
    log.runs.update(run_id, status="paused")
    with pytest.raises(Conflict, match="also changed status"):
        log.journal.undo("runs", run_id, reason="x")
    assert log.journal.verify().ok


def test_a_schedule_comes_again_by_its_old_rule(log: Decklog, run_id: str, clock: ManualClock) -> None:
    added = log.schedules.add(run_id, "nightly", "every day 06:00", title="Sweep")
    log.schedules.edit(added.id, when="every monday 09:00", zone="Europe/Berlin", title="Mop", reason="x")
    back = log.journal.undo("schedules", added.id, reason="y")
    assert isinstance(back, Schedule)
    assert (back.rule, back.zone, back.task, back.next_at) == (added.rule, added.zone, added.task, added.next_at)
    log.schedules.pause(added.id, reason="holidays")
    log.journal.undo("schedules", added.id, reason="no holidays")
    clock.advance(days=1)
    assert [task.title for task in log.schedules.run_due()] == ["Sweep"]
    with pytest.raises(Conflict, match="undo can't restore"):
        log.journal.undo("schedules", added.id, reason="x")
    clock.advance(days=1)
    assert [task.title for task in log.schedules.run_due()] == ["Sweep"]
    assert log.journal.verify().ok


def test_new_or_missing_record_is_not_undone(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "new", task_id="t1")
    with pytest.raises(Conflict, match="just added"):
        log.journal.undo("tasks", "t1", reason="x")
    with pytest.raises(NotFound):
        log.journal.undo("tasks", "nobody", reason="x")
    for wrong in ({"table": "nothing", "reason": "x"}, {"table": "tasks", "reason": " "}):
        with pytest.raises(Invalid):
            log.journal.undo(record_id="t1", **wrong)


def test_money_decisions_and_evidence_are_never_undone(log: Decklog, run_id: str) -> None:
    budget = log.budgets.set("all", limit_microdollars=5)
    log.budgets.set("all", limit_microdollars=9)
    approval = log.approvals.ask(run_id, "May I?", by="dev", about="x")
    log.approvals.decide(approval.id, "granted", by="ana")
    for record in (budget, approval):
        with pytest.raises(Denied, match="can't be undone: only the owner"):
            log.journal.undo(record.table, record.id, reason="x")
    never = {table for table, record in log.record_classes().items() if not record.undo_columns}
    assert never >= {"charges", "reservations", "proofs", "criteria", "dependencies", "effects", "lessons", "trust_contract"}
    managed = {table for table, record in log.record_classes().items() if record.is_managed or record.is_guarded}
    assert managed <= never


def test_restored_columns_exist(log: Decklog) -> None:
    for record in log.record_classes().values():
        assert set(record.undo_columns) <= set(record.columns()), record
        assert issubclass(record, Record)
