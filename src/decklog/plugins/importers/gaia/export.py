"""Export a log as a home of gaia-coder: seven databases and three file stores."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.core.disk import sync_descriptor
from decklog.core.display import DOLLAR
from decklog.core.errors import Invalid, NotFound
from decklog.importing.exports import (
    TASK_FIELDS,
    Export,
    ExportReport,
    Folder,
    LeftoverRows,
    columns_of,
    each,
    number_of,
    whole_number,
)
from decklog.importing.row import EPOCH
from decklog.journal.entry import Entry
from decklog.journal.rows import SELECT, load_entry
from decklog.log import Decklog
from decklog.plugins.importers.gaia.importer import (
    CALL,
    DATABASES,
    LEARNINGS,
    NO_ACK,
    PAUSED,
    RUN_ID,
    SCHEMA,
    SELF_EDITS,
    VECTOR,
    WAS_RUNNING,
    body_of,
    edit_line,
    learning_line,
    time_text,
    title_of,
)
from decklog.plugins.importers.gaia.trust_files import BINDING, EM, SOURCE, binding_text, em_text
from decklog.records.record import find_all
from decklog.stores.approvals.feedback import Feedback
from decklog.stores.approvals.inbox import Message
from decklog.stores.approvals.self_edits import SelfEdit
from decklog.stores.artifacts.checkpoints import TaskSnapshot
from decklog.stores.effects.effects import Effect, EffectState
from decklog.stores.memory.learnings import DISMISSED, Learning
from decklog.stores.memory.lesson import Lesson
from decklog.stores.memory.topics import TOPICS
from decklog.stores.money.records import TOKENS, Charge
from decklog.stores.tasks.task import Task, TaskState
from decklog.stores.workflow.ci import CiRun

Columns = dict[str, Any]
_KEY = "import:gaia:"
# Fields with a column, and fields without meaning where there are no leases and no runs.
_TASK = (
    *(*TASK_FIELDS, "priority", "verification", "allowed_paths", "inputs", "stage", "state_name", "trace_file", "loop_version"),
    *("summary", "result", "outcome", "failures", "blocker_repeats", "reservation_id", "snapshot"),
)
_INPUT_FIELDS = ("objective", "acceptance", "verification", "allowed_paths")
_CHARGE = f"occurred_at task_id call_site model {' '.join(TOKENS)}"
_CI_RUN = "workflow_name branch run_id=ci_run_id started_at completed_at duration_s=duration_seconds conclusion"
_NO_LOOP = 0
_MESSAGE = "id received_at from_handle channel severity body state answer escalated_to ack_sent_at answered_at closed_at"
_FEEDBACK = (
    "id received_at from_handle channel severity body context_url fix_class state fix_pr_url regression_test_path root_cause"
    " success_criterion notes_json=notes"
)
_LESSON_COLUMNS = "id topic created_at source_kind source_id confidence last_recalled_at recall_count superseded_by"
_LESSON = (*_LESSON_COLUMNS.split(), "body", "payload", "last_seen_at", "fingerprint")
SYSTEM = "gaia"
_WRITTEN: dict[str, Any] = {"spell": time_text, "dump": json.dumps, "wal": True}
SNAPSHOTS, EDITS, NOTES = "paused_tasks", "self_edits_log", "learnings_log"
_LEARNING = ("id", "task_id", "observation", "candidate", "noted_at", "decided_at")
_DESK = "@desk"
_LONGEST_NAME = 256
# Limits the blank lines before an entry, whose line number anyone can set.
_MOST_BLANK = 1000
_PLACED = (
    *("tasks", "charges", "ci_runs", "messages", "feedback", "lessons", "sightings", "snapshots", "self_edits", "learnings"),
    *("runs", "effects", "trust_contract", "states", "state_versions", "approvals"),
)


class GaiaExport:
    """Exports all records that have a store there. Runs have none: their tasks, calls and charges share one home."""

    def __init__(self, log: Decklog, path: str, progress: Callable[[str, int, int], None] | None = None) -> None:
        self.log = log
        self.folder = Folder(path)
        self.report = ExportReport(path, progress)

    def run(self) -> dict[str, Any]:
        """Write a consistent snapshot; return the number of rows per store and the counts of records left out."""
        with self.folder as made:
            self.log.db.read(lambda: self._write(made))
            self.folder.finish()
        return self.report.as_dict()

    def _write(self, made: str) -> None:
        self._made, self.kept = made, LeftoverRows(self.log, SYSTEM)
        for table, name in DATABASES.items():
            path = os.path.join(made, name)
            with Export(self.log, path, SYSTEM, report=self.report, kept=self.kept, **_WRITTEN) as out:
                self._table(table, out)
                out.finish()
        self._write_files()
        self.report.leave_out_kept(self.kept.of_others)
        self._leave_out()

    def _table(self, table: str, out: Export) -> None:
        """Write the table of a database: its records, the rows that were kept whole, then those without a number."""
        SCHEMA.create(out.db, table)
        getattr(self, table)(out)
        out.write_kept([table])
        out.insert_waiting(table)

    def _leave_out(self) -> None:
        """Count the records without a store: runs, except the one that an import creates for a home, and others."""
        sql = "select count(*) from runs where id <> :made"
        self.report.leave_out("runs", self.log.db.rows(sql, {"made": RUN_ID})[1][0][0])
        sql = """
            select kind, count(*) from entries
             where kind <> 'change' and kind <> 'tool' and coalesce(substr(subtype, 1, 8), '') <> 'imported'
             group by kind order by kind
            """
        for kind, count in self.log.db.rows(sql, {})[1]:
            self.report.leave_out(f"entries of kind {kind}", count)
        sql = "select count(*) from states where name <> :em and name <> :binding"
        self.report.leave_out("states", self.log.db.rows(sql, {"em": EM, "binding": BINDING})[1][0][0])
        sql = "select count(*) from approvals where source is distinct from :source"
        self.report.leave_out("approvals", self.log.db.rows(sql, {"source": SOURCE})[1][0][0])
        self.report.leave_out_tables(self.log, _PLACED)

    def tasks(self, out: Export) -> None:
        """Write every task with its inputs and result."""
        for task in each(self.log, Task, "created_at, id"):
            name = f"tasks {task.id}"
            row = columns_of(task, "id priority state stage current_state_name=state_name trace_file loop_version")
            row |= {"created_at": task.created_at, "inputs_json": _json(asked_of(task)), "result_json": _json(_result_of(task))}
            row = out.restored(name, row, {"created_at": EPOCH, "inputs_json": "{}", "loop_version": _NO_LOOP})
            row["last_heartbeat_at"] = _heartbeat(task, row.get("last_heartbeat_at"))
            row["cost_usd"] = self._cost(task.id, row.get("cost_usd"))
            out.insert("tasks", row)
            known = (*_TASK, "reason") if task.reason == WAS_RUNNING else _TASK
            out.report.leave_out_fields("tasks", task, known)

    def _cost(self, task_id: str, before: Any) -> Any:
        """Add the charges of this log to the imported cost of the task."""
        sql = f"""
            select cast(coalesce(sum(cost_microdollars), 0) as bigint) from charges
             where task_id = :task_id and coalesce(substr(key, 1, {len(_KEY)}), '') <> :imported
            """
        here = self.log.db.rows(sql, {"task_id": task_id, "imported": _KEY})[1][0][0]
        return before if before is not None and not here else float(before or 0) + here / DOLLAR

    def audit(self, out: Export) -> None:
        """Write the tool calls: journal entries, and the side effects of Decklog's own tools."""
        for found in self.log.db.each(f"{SELECT} where kind = 'tool' order by pos", {}):
            entry = load_entry(self.log.db, found)
            row = out.kept.restored(entry.id, _call(entry), {"tool_name": "tool", "args_json": "{}", "loop_version": _NO_LOOP})
            out.insert_numbered("audit", row, number_of(entry.key, SYSTEM, "audit"))
        for effect in each(self.log, Effect, "intended_at, id"):
            out.insert_numbered("audit", _effect_call(self.log.effects.get(effect.id)), None)

    def spend(self, out: Export) -> None:
        """Write every charge; one without a known price costs nothing there, and is counted as left out."""
        prefix = f"{_KEY}spend:"
        for charge in each(self.log, Charge, "occurred_at, id"):
            imported = (charge.key or "").startswith(prefix)
            charge_id = (charge.key or "").removeprefix(prefix) if imported else charge.id
            more = {"id": charge_id, "usd": (charge.cost_microdollars or 0) / DOLLAR}
            # Decklog dates an imported charge by the import, which the source does not have.
            placed = ("id", "cost_microdollars", "run_id", *(("key", "counted_at") if imported else ()))
            defaults = {"call_site": charge.agent or "unknown"}
            out.write_record("spend", charge, _CHARGE, name=charge_id, defaults=defaults, placed=placed, **more)
            out.report.leave_out("charges of unknown price", int(charge.cost_microdollars is None))

    def ci_history(self, out: Export) -> None:
        """Write the history of CI runs."""
        for run in each(self.log, CiRun, "started_at, ci_run_id, workflow_name, branch"):
            name, defaults = f"{run.workflow_name}/{run.branch}/{run.ci_run_id}", {"started_at": EPOCH}
            out.write_record("ci_history", run, _CI_RUN, name=name, defaults=defaults, placed=("updated_at",))

    def em_inbox(self, out: Export) -> None:
        """Write every message; that home does not know whether a sender is authorised, so those are counted as left out."""
        for message in each(self.log, Message, "received_at, id"):
            placed = ("ack", "is_authorised", "seen_at", "escalated_at")
            out.write_record("em_inbox", message, _MESSAGE, defaults={"received_at": EPOCH}, placed=placed)
            # Such a message looks like the owner's there; the sender of an imported one is unknown.
            out.report.leave_out("messages of senders not authorised", int(not message.is_authorised and message.ack != NO_ACK))

    def feedback(self, out: Export) -> None:
        """Write all feedback."""
        for feedback in each(self.log, Feedback, "received_at, id"):
            placed, defaults = ("message_id", "updated_at", "closed_at"), {"received_at": EPOCH, "notes_json": "[]"}
            out.write_record("feedback", feedback, _FEEDBACK, defaults=defaults, placed=placed)

    def memory(self, out: Export) -> None:
        """Write every lesson of the eight topics; a lesson that was not imported gets its id as the key of its vector."""
        for lesson in each(self.log, Lesson, "created_at, id"):
            if lesson.topic not in TOPICS:
                out.report.leave_out(f"lessons of topic {lesson.topic}")
                continue
            row = columns_of(lesson, _LESSON_COLUMNS) | {"payload_json": _json(_lesson_payload(lesson))}
            row = out.restored(f"memory {lesson.id}", row, {"created_at": EPOCH, "payload_json": "{}"})
            row["embedding_key"] = row.pop(VECTOR, None) or lesson.id
            out.insert("memory", row)
            placed = (*_LESSON, "sightings") if lesson.sightings == 1 else _LESSON
            out.report.leave_out_fields("lessons", lesson, placed)

    # Files

    def _write_files(self) -> None:
        """Write snapshots, the two logs and the settings files. A log without lines is not created."""
        os.mkdir(os.path.join(self._made, PAUSED), 0o700)
        self._snapshots()
        self._log(SELF_EDITS, EDITS, self._self_edits())
        self._log(LEARNINGS, NOTES, self._learnings())
        self._settings(EM, em_text(self.log))
        self._settings(BINDING, binding_text(self.log))

    def _settings(self, name: str, text: str | None) -> None:
        """Write a settings file: its content in this log, or the original text if it could not be parsed."""
        for _, row in self.kept.rows(name):
            text = text if text is not None else str(row.get("text"))
        if text is not None:
            _write(os.path.join(self._made, name), [text])
            self.report.count(name)

    # Paused tasks

    def _snapshots(self) -> None:
        """Write the newest snapshot of each task: unparsed ones first, then those of tasks, then saved states."""
        for _, row in self.kept.rows(SNAPSHOTS):
            self._snapshot(str(row.get("task_id")), row.get("document"))
        paused = "where state = :state and snapshot is not null"
        for task in each(self.log, Task, "id", paused, state=TaskState.PAUSED.value):
            known = {"task_id": task.id, "paused_at": time_text(task.updated_at), "reason": task.reason or "paused"}
            self._snapshot(task.id, {**known, **(task.snapshot or {})})
        before = None
        for snapshot in each(self.log, TaskSnapshot, "task_id, saved_at, run_id"):
            self._snapshot(snapshot.task_id, self._document(snapshot))
            self.report.leave_out("snapshots of a task in another run", int(snapshot.task_id == before))
            before = snapshot.task_id
        for _ in os.listdir(os.path.join(self._made, PAUSED)):
            self.report.count(SNAPSHOTS)

    def _document(self, snapshot: TaskSnapshot) -> Any:
        try:
            return self.log.states.get_snapshot(snapshot.run_id, snapshot.task_id).document
        except NotFound as problem:
            self.report.refuse(f"{PAUSED}/{snapshot.task_id}.json", problem.message)
            return None

    def _snapshot(self, task_id: str, document: Any) -> None:
        """Write one snapshot under its task's name, if that is a valid file name."""
        name = f"{task_id}.json"
        if not _is_file_name(task_id):
            self.report.refuse(f"{PAUSED}/{name}", "no file can have this name")
        elif document is not None:
            text = document if isinstance(document, str) else json.dumps(document, indent=2, sort_keys=True)
            _write(os.path.join(self._made, PAUSED, name), [text])

    # The two logs

    def _log(self, name: str, table: str, found: Iterator[tuple[int | None, datetime, str]]) -> None:
        """Write lines in their original order; lines that are new in this log follow, ordered by time."""
        lines = [(number, to_text(moment), line) for number, moment, line in found]
        lines += [(whole_number(row_id), "", str(row.get("line"))) for row_id, row in self.kept.rows(table)]
        if lines:
            lines.sort(key=lambda line: (line[0] is None, line[0] or 0, line[1]))
            _write(os.path.join(self._made, name), self._add_blanks(table, ((number, line) for number, _, line in lines)))

    def _add_blanks(self, table: str, lines: Iterable[tuple[int | None, str]]) -> Iterator[str]:
        """Yield lines with the blank ones between them, so that line numbers stay the same."""
        place = 0
        for number, line in lines:
            if number is not None and place < number <= place + _MOST_BLANK:
                yield "\n" * (number - place - 1)
            place = max(place + 1, number or 0)
            self.report.count(table)
            yield f"{line}\n"

    def _self_edits(self) -> Iterator[tuple[int | None, datetime, str]]:
        marks = self._marks()
        for edit in each(self.log, SelfEdit, "edited_at, id"):
            line = self.kept.restored(f"self_edit {edit.id}", {"line": edit_line(edit)})["line"]
            yield marks.get(edit.id), edit.edited_at, line

    def _marks(self) -> dict[str, int | None]:
        """Find the line number of each imported self-edit, by the entry after its import mark."""
        found: Iterator[Any] = find_all(self.log.journal.find, _DESK, subtype="imported", oldest_first=True)
        return {made: whole_number(mark.payload["id"]) for mark in found if (made := self._after(mark)) is not None}

    def _after(self, mark: Entry) -> str | None:
        """Return the self-edit in the entry after a mark; None for other marks."""
        values = mark.payload if isinstance(mark.payload, dict) else {}
        if (values.get("system"), values.get("table")) != (SYSTEM, EDITS):
            return None
        try:
            made = self.log.journal.get(_DESK, mark.seq + 1)
        except NotFound:
            return None
        return made.record_id if made.record_table == SelfEdit.table else None

    def _learnings(self) -> Iterator[tuple[int | None, datetime, str]]:
        prefix = f"import:{SYSTEM}:{NOTES}:"
        for learning in each(self.log, Learning, "noted_at, id"):
            imported = learning.key if (learning.key or "").startswith(prefix) else None
            number = whole_number((imported or "").removeprefix(prefix).partition(":")[0])
            line = self.kept.restored(f"learning {learning.id}", {"line": learning_line(learning)})["line"]
            # A line shows that a learning was dismissed, but not that it was promoted.
            placed = [*_LEARNING, *(["key"] if imported else []), *(["state"] if learning.candidate == DISMISSED else [])]
            self.report.leave_out_fields("learnings", learning, placed)
            yield number, learning.noted_at, line


def asked_of(task: Task) -> dict[str, Any]:
    """Return the inputs of a task, with the fields that only Decklog has."""
    asked: dict[str, Any] = {} if title_of(task.inputs, task.id) == task.title else {"title": task.title}
    return asked | {name: getattr(task, name) for name in _INPUT_FIELDS if getattr(task, name)} | task.inputs


def _result_of(task: Task) -> Any:
    """Return a task's result with the summary inside, where that system stores it."""
    if task.summary is None:
        return task.result
    if isinstance(task.result, dict):
        return {"summary": task.summary, **task.result}
    return {"summary": task.summary} if task.result is None else {"summary": task.summary, "result": task.result}


def _heartbeat(task: Task, kept: Any) -> datetime | Any:
    """Return the time of the last heartbeat: the imported one, unless the task has changed since."""
    if task.updated_at == task.created_at:
        return kept
    try:
        is_same = kept is not None and from_text(str(kept)) == task.updated_at
    except ValueError:
        is_same = False
    return kept if is_same else task.updated_at


def _call(entry: Entry) -> Columns:
    """Build a tool call from an entry; use an unknown payload as the arguments, and the body as a missing result."""
    payload = entry.payload if isinstance(entry.payload, dict) and "args" in entry.payload else {"args": entry.payload}
    result = payload.get("result")
    if result is None and entry.body:
        result = {"output": entry.body}
    row: Columns = {name: payload.get(name) for name in CALL}
    row |= {"occurred_at": entry.at, "task_id": entry.task_id, "tool_name": entry.subtype}
    row |= {"args_json": _json(payload["args"]), "result_json": _json(result)}
    return {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in row.items()}


def _effect_call(effect: Effect) -> Columns:
    """Build the tool call of a side effect."""
    took = effect.settled_at and round((effect.settled_at - effect.intended_at).total_seconds() * 1000)
    row = columns_of(effect, "occurred_at=intended_at task_id stage=step tool_name=tool")
    row |= {"args_json": json.dumps(effect.arguments), "result_json": _json(effect.result)}
    # No error means success there, so an unfinished side effect needs one.
    error = None if effect.state is EffectState.DONE else str((effect.error or {}).get("code") or effect.state.value)
    return row | {"duration_ms": took, "error": error, "loop_version": _NO_LOOP}


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _lesson_payload(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson's payload; add its text if the payload does not contain it."""
    try:
        is_said = body_of(lesson.payload) == lesson.body
    except Invalid:
        is_said = False
    return lesson.payload if is_said else {"body": lesson.body, **lesson.payload}


def _is_file_name(task_id: str) -> bool:
    """Return whether a task id is a safe file name that can't leave the folder."""
    fits = task_id.isprintable() and len(f"{task_id}.json".encode()) < _LONGEST_NAME
    return fits and task_id not in ("", ".", "..") and not set(task_id) & {"/", "\\"}


def _write(path: str, texts: Iterable[str]) -> None:
    """Write a file that only its owner can read, and flush it to disk."""
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(opened, "w", encoding="utf-8", newline="") as file:
        file.writelines(texts)
        file.flush()
        sync_descriptor(file.fileno())
