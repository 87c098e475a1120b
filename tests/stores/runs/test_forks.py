"""What a fork has of its parent: each type of record by its rule, and the rules on the page about forks."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.agents import close_interrupted
from decklog.core.clock import to_text
from decklog.records.fork_rules import FORK_RUN, FORK_TIME, LAST_ENTRY, Computed, FieldRule, Refer, Replace, Reset
from decklog.records.record import Record
from decklog.records.values import from_json
from tests.stores.artifacts.graph_records import fill_graphs
from tests.stores.claiming import claimed

PAGE = Path(__file__).parents[3] / "docs/explanation/forks.md"
PARENT = "run_1"


def fill(log: Decklog, clock: ManualClock) -> None:
    """Write a record of every type that belongs to a run."""
    any_log: Any = log
    any_log.runs.start(
        "Read commas", run_id=PARENT, key="once", metadata={"process": "gone", "langgraph": {"thread_id": "t 1"}, "kept": 1}
    )
    any_log.runs.record_agent(PARENT, "developer", session="s", turns=4, rotations=2)
    _fill_work(any_log, clock)
    _fill_content(any_log)
    _fill_desk(any_log, clock)
    any_log.runs.update(PARENT, current_task_id="one", summary="half way", repo="r", branch="b", worktree="w")


def _fill_work(log: Any, clock: ManualClock) -> None:
    log.groups.add(PARENT, "A", name="Lexer")
    for name in ("one", "two", "three"):
        log.tasks.add(PARENT, name, task_id=name, group_id="A", key=name, depends_on=["one"] if name == "two" else [])
    log.tasks.comment("one", "half of it is there", author="ana")
    task = {"title": "Update", "depends_on": ["one", "two"], "parent_id": "three"}
    log.schedules.add(PARENT, "nightly", "every day 06:00", task=task)
    log.plans.record(PARENT, "do it", "one, two", ["one", "two"])
    log.criteria.record(PARENT, ["All tests pass"])
    log.reservations.reserve(clock.now() + timedelta(hours=9), tokens=9, run_id=PARENT, key="r")
    log.ledger.charge("m", input_tokens=7, run_id=PARENT, key="c", cost_microdollars=1)
    log.tasks.claim(PARENT, worker="w", task_id="one", reserve_tokens=1, lease_seconds=60.0)
    log.tasks.claim(PARENT, worker="w", task_id="three").park("waits for approval apr_1")


def _fill_content(log: Any) -> None:
    log.states.save(PARENT, "pm", {"a": 1}, group_id="A")
    log.states.save(PARENT, "pm", {"a": 2}, group_id="A")
    log.states.checkpoint(PARENT, name="half way", payload={"b": 2}, key="k")
    log.states.save_snapshot(PARENT, "one", {"task_id": "one", "paused_at": "2026-01-01T00:00:00Z", "reason": "lunch"})
    fill_graphs(log, PARENT)
    artifact = log.artifacts.add(PARENT, "report", "out.txt", content="text", task_id="one")
    log.outputs.save(PARENT, "lint", {"ok": True}, key="k")
    package = log.context.save(PARENT, "research", "a.md", "developer", "found", consumers=["qa_expert"], group_id="A")
    log.context.save(PARENT, "research", "b.md", "developer", "found more", supersedes=package.id, group_id="A")
    log.context.record_consumption(PARENT, "A", "qa_expert", 1, package.id)
    log.groups.update(PARENT, "A", context_references=[package.id])
    checked = {"tree": "5b1c", "definition": "d", "environment": "e", "task_id": "one", "artifact_id": artifact.id}
    log.verdicts.record(PARENT, "tests", "fail", findings=["a"], **checked)


def _fill_desk(log: Any, clock: ManualClock) -> None:
    feedback = log.feedback.file("ana", "It is slow", key="f")
    review = {"base": "a", "head": "b", "tree": "c", "patch": "d", "settings": "e", "findings": [{"kind": "slow"}]}
    log.reviews.record(PARENT, "block", **review, confidence=80, feedback_id=feedback.id, task_id="one")
    log.reviews.keep_pass(PARENT, "c", 1, {"verdict": "pass"}, task_id="one")
    log.mends.begin(PARENT, feedback.id, repo="repository", base="a")
    for number, state in enumerate(("open", "unused", "used", "denied", "over")):
        asked = log.approvals.ask(PARENT, f"{state}?", by="dev", about=state, key=state, task_id="one")
        if number:
            seconds = 60 if state == "over" else None
            log.approvals.decide(asked.id, "denied" if state == "denied" else "granted", by="ana", valid_seconds=seconds)
    log.approvals.use(PARENT, log.approvals.find(PARENT, subject_digest=None)[2].subject_digest)
    log.approvals.record(PARENT, "ci", "passed")
    for state in ("intended", "done", "unknown"):
        effect = log.effects.intend(PARENT, "push", "git", key=state, actor="host:1", task_id="one")
        if state == "done":
            log.effects.settle(effect.id, actor="host:1", result={"out": 1})
        if state == "unknown":
            log.effects.doubt(effect.id, actor="host:1", note="it crashed")
    log.effects.intend(PARENT, "keep:one:1", "conductor.keep", key="keep:one:1", actor="host:1", task_id="one")
    folder = {"cwd": ".", "root": "/r", "folder": "/f"}
    log.processes.started(PARENT, "proc_1", command={"shell": "x"}, **folder, sandbox="none", keeper="{}", pid=7)
    clock.advance(minutes=2)


def types_of_a_run(log: Decklog) -> "list[type[Record]]":
    return [kind for kind in log.record_classes().values() if kind.home is None]


def rows_of(log: Decklog, kind: type[Record], run_id: str) -> list[dict[str, Any]]:
    """Read a run's records as their columns, in the order in which they were written."""
    column = "id" if kind.table == "runs" else "run_id"
    sql = f"select * from {kind.table} where {column} = :run_id"
    names, rows = log.db.read(lambda: log.db.rows(sql, {"run_id": run_id}))
    found = {kind.id_of(row): row for row in (dict(zip(names, one, strict=True)) for one in rows)}
    entries = log.journal.find(run_id, oldest_first=True, limit=1000)
    order = dict.fromkeys(entry.record_id for entry in entries if entry.record_table == kind.table)
    return [found[record_id] for record_id in order if record_id in found]


class Copied:
    """A filled run, its fork, and which copy belongs to which record."""

    def __init__(self, log: Decklog, clock: ManualClock) -> None:
        fill(log, clock)
        self.log = log
        self.then = clock.advance(minutes=5) or clock.now()
        self.fork = log.runs.fork(PARENT).id
        self.pairs: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        self.ids: dict[tuple[str, str], str] = {}
        for kind in types_of_a_run(log):
            taken = [row for row in rows_of(log, kind, PARENT) if kind.fork_rule().copies(row, self)]  # type: ignore[arg-type]
            copies = rows_of(log, kind, self.fork)
            assert len(taken) == len(copies), kind.table
            self.pairs[kind.table] = list(zip(taken, copies, strict=True))
            self.ids |= {(kind.table, old["id"]): new["id"] for old, new in self.pairs[kind.table] if "id" in old}

    @property
    def now(self) -> str:
        return to_text(self.then)

    def expected(self, rule: FieldRule, old: Any) -> Any:
        """Return what a rule means for a value, worked out independently of the rule's own code."""
        if isinstance(rule, Reset):
            return rule.value
        if isinstance(rule, Replace):
            return rule.values.get(old, old)
        if isinstance(rule, Refer):
            return [self.expected(rule, one) for one in old] if isinstance(old, list) else self.ids.get((rule.table, old), old)
        fixed = {FORK_TIME: self.now, FORK_RUN: self.fork, LAST_ENTRY: sum(map(len, self.pairs.values()))}
        return fixed[rule]


@pytest.fixture
def copied(log: Decklog, clock: ManualClock) -> Copied:
    return Copied(log, clock)


def test_every_type_of_record_of_a_run_has_a_fork_rule(log: Decklog) -> None:
    assert [kind.__name__ for kind in types_of_a_run(log) if "fork" not in kind.__dict__] == []


def test_a_type_without_a_rule_is_not_forked() -> None:
    class Remark(Record):
        table = "remarks"

    with pytest.raises(TypeError, match="Remark has no `fork`"):
        Remark.fork_rule()


def test_every_column_with_an_id_has_a_rule(log: Decklog) -> None:
    """A column that names something must lead to the copy, be emptied, or mean the same in both runs."""
    missing = [
        f"{kind.table}.{name}"
        for kind in types_of_a_run(log)
        if (rule := kind.fork_rule()).is_copied
        for name in kind.columns()
        if name.endswith(("_id", "_ids")) and name != "run_id" and name not in (*rule.fields, *rule.same_ids)
    ]
    assert missing == []


def test_every_rule_names_columns_that_exist(log: Decklog) -> None:
    for kind in types_of_a_run(log):
        rule = kind.fork_rule()
        assert {path.partition(".")[0] for path in rule.fields} | set(rule.same_ids) <= set(kind.columns()), kind.table


@pytest.mark.slow
def test_a_fork_has_of_every_type_of_record_what_its_rule_says(copied: Copied) -> None:
    for kind in types_of_a_run(copied.log):
        rule = kind.fork_rule()
        assert rows_of(copied.log, kind, PARENT), f"no {kind.table} in the filled run: add one to fill()"
        assert bool(copied.pairs[kind.table]) is rule.is_copied, kind.table
        for old, new in copied.pairs[kind.table]:
            own = {"run_id", "id"} if kind.identity == ("id",) else {"run_id"}
            for name in set(kind.columns()) - own - {path.partition(".")[0] for path in rule.fields}:
                assert new[name] == old[name], f"{kind.table}.{name}"
            for path, field in rule.fields.items():
                check_field(copied, kind, path, field, old, new)
    assert copied.log.journal.verify().ok


def check_field(copied: Copied, kind: type[Record], path: str, field: FieldRule, old: Any, new: Any) -> None:
    """Compare one field of a copy with its rule."""
    if isinstance(field, Computed):
        return
    name, *parts = path.split(".")
    before, after = old[name], new[name]
    if kind.holds_json(name):
        before, after = (None if value is None else from_json(value) for value in (before, after))
    for part in parts:
        before, after = ((value or {}).get(part) for value in (before, after))
    if before is None and (parts or isinstance(field, (Refer, Replace))):
        assert after is None, f"{kind.table}.{path}"
    else:
        assert after == copied.expected(field, before), f"{kind.table}.{path}"


def test_a_fork_of_a_finished_run_starts_now_and_goes_on(log: Decklog, run_id: str, clock: ManualClock) -> None:
    clock.advance(days=3)
    log.runs.finish(run_id, summary="all of it")
    clock.advance(days=3)
    fork = log.runs.fork(run_id)
    assert (fork.status, fork.started_at, fork.ended_at, fork.summary) == ("active", clock.now(), None, None)
    assert fork.parent_run_id == run_id
    log.tasks.add(fork.id, "more")
    assert log.tasks.claim(fork.id, worker="w") is not None


def test_a_grant_that_was_not_used_does_not_count_in_a_fork(log: Decklog, run_id: str) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="dev", about="rm", key="rm")
    log.approvals.decide(asked.id, "granted", by="ana")  # type: ignore[arg-type]
    fork = log.runs.fork(run_id).id
    digest = str(asked.subject_digest)
    assert log.approvals.granted_for(fork, digest) is None
    assert log.approvals.use(fork, digest) is None
    again = log.approvals.ask(fork, "May I?", by="dev", about="rm", key="rm")
    assert (again.state, again.already) == ("open", False), "the fork can ask for itself"
    assert log.approvals.use(run_id, digest) is not None
    assert log.approvals.use(run_id, digest) is None


def test_an_open_question_is_not_asked_twice(log: Decklog, run_id: str) -> None:
    log.approvals.ask(run_id, "May I?", by="dev", about="rm")
    log.runs.fork(run_id)
    assert [one.run_id for one in log.approvals.find(state="open")] == [run_id]  # type: ignore[arg-type]


def test_a_task_that_waits_for_an_answer_starts_again_in_a_fork(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "held")
    claimed(log, run_id).park("waits for approval apr_1")
    fork = log.runs.fork(run_id).id
    again = claimed(log, fork)
    assert again.task.reason is None


@pytest.mark.slow
def test_a_fork_of_a_recorded_run_is_not_closed_as_interrupted(log: Decklog, clock: ManualClock) -> None:
    import subprocess
    import sys

    code = "from decklog.agents.closing import own_identity; print(own_identity())"
    gone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    run = log.runs.start("A loop", metadata={"process": gone, "agent": "a"})
    fork = log.runs.fork(run.id)
    assert fork.metadata == {"agent": "a"}
    assert [closed.id for closed in close_interrupted(log)] == [run.id]
    assert log.runs.get(fork.id).status == "active"


def test_an_effect_that_was_being_made_is_of_unknown_outcome_in_a_fork(log: Decklog, run_id: str) -> None:
    made = log.effects.intend(run_id, "push", "git", key="k", actor="host:1")
    fork = log.runs.fork(run_id).id
    copy = log.effects.known(fork, "k")
    assert copy is not None
    assert (copy.state, copy.actor, copy.note) == ("unknown", None, "it was being done for the run that this one was forked from")
    assert log.effects.settle(made.id, actor="host:1").state == "done"
    assert log.effects.confirm(copy.id, attempts=copy.attempts).state == "done"


def test_a_schedule_of_a_fork_makes_tasks_that_depend_on_the_forks_own(log: Decklog, run_id: str, clock: ManualClock) -> None:
    first, whole = log.tasks.add(run_id, "first"), log.tasks.add(run_id, "whole")
    task: dict[str, object] = {"title": "Nightly", "depends_on": [first.id], "parent_id": whole.id}
    log.schedules.add(run_id, "nightly", "every day 06:00", task=task)
    fork = log.runs.fork(run_id).id
    (schedule,) = log.schedules.find(fork)
    log.schedules.resume(schedule.id)
    clock.advance(days=1)
    (made,) = log.schedules.run_due(fork)
    own = {task.title: task.id for task in log.tasks.find(fork)}
    assert log.tasks.dependencies(made.id) == [own["first"]]
    assert log.tasks.subtasks(own["whole"])["count"] == 1


def test_a_checkpoint_of_a_fork_names_an_entry_of_the_fork(log: Decklog, run_id: str) -> None:
    for number in range(30):
        log.journal.append(run_id, f"step {number}")
    log.states.checkpoint(run_id, name="late", payload={"a": 1})
    log.tasks.add(run_id, "work")
    fork = log.runs.fork(run_id).id
    (copy,) = log.states.checkpoints(fork)
    assert copy.seq <= log.journal.find(fork, limit=1)[0].seq
    again = log.runs.fork(fork, at=str(copy.seq)).id
    assert [task.title for task in log.tasks.find(again)] == ["work"]
    assert log.states.checkpoints(again)[0].payload == {"a": 1}


def test_a_fork_of_a_graphs_thread_is_a_thread_of_its_own(log: Decklog, run_id: str) -> None:
    fill_graphs(log, run_id)
    fork = log.runs.fork(run_id).id
    (copy,) = log.states.graph_checkpoints(fork)
    assert (copy.thread_id, copy.checkpoint_id, copy.graph_run_id) == (fork, "c1", None)
    assert log.states.graph_checkpoints(run_id)[0].thread_id == run_id


def test_a_fix_goes_on_in_its_own_run_alone(log: Decklog, run_id: str) -> None:
    feedback = log.feedback.file("ana", "It is slow")
    fix = log.mends.begin(run_id, feedback.id, repo="r", base="a")
    log.runs.fork(run_id)
    assert [one.id for one in log.mends.find(feedback_id=feedback.id)] == [fix.id]


def table(log: Decklog) -> str:
    """Write the rules as the table of the page about forks."""
    lines = ["| record | in the fork | fields that differ | why |", "| --- | --- | --- | --- |"]
    for kind in types_of_a_run(log):
        rule = kind.fork_rule()
        taken = "left out" if not rule.is_copied else f"copied, without {rule.left_out}" if rule.left_out else "copied"
        fields = "; ".join(f"`{path}`: {field.words}" for path, field in rule.fields.items())
        lines.append(f"| `{kind.table}` | {taken} | {fields} | {rule.why} |")
    return "\n".join(lines)


def test_the_page_about_forks_shows_every_rule(log: Decklog) -> None:
    """To write the table anew, replace the one on the page by what this test compares it with."""
    text = PAGE.read_text(encoding="utf-8")
    shown = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    assert shown == table(log)
