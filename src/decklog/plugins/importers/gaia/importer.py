"""Import a home of gaia-coder: its databases and files."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from functools import partial
from typing import Any, ClassVar

from decklog.core.clock import from_text, to_text
from decklog.core.display import DOLLAR
from decklog.core.errors import DecklogError, Invalid, NotFound
from decklog.importing.exports import Schema
from decklog.importing.files import open_plain_file, parse_lenient_json
from decklog.importing.importer import Import
from decklog.importing.report import Outcome, Report
from decklog.importing.row import EPOCH, Row, parse_json
from decklog.importing.source import SqliteSource
from decklog.importing.writer import IMPORT_NOTE, Mapping, PendingCharge, PendingEntry, pure_mapping, saved_outcome
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.plugins.importers.gaia.trust_files import BINDING, EM, TrustProposals, parse_binding, parse_em
from decklog.records.values import to_json
from decklog.stores.approvals.feedback import Feedback, FeedbackSeverity, FeedbackState, FixClass
from decklog.stores.approvals.inbox import Message, MessageChannel, MessageSeverity, MessageState
from decklog.stores.approvals.self_edits import PASSES, SelfEdit
from decklog.stores.memory import similarity
from decklog.stores.memory.learnings import BadLine, Learning, parse_line
from decklog.stores.memory.lesson import Lesson
from decklog.stores.tasks.task import Task, TaskState
from decklog.stores.workflow.ci import CiConclusion, CiRun

DATABASES = {
    "feedback": "feedback.db",
    "em_inbox": "em_inbox.db",
    "tasks": "tasks.db",
    "audit": "audit.log.db",
    "spend": "spend.db",
    "ci_history": "ci_history.db",
    "memory": "memory.db",
}
SCHEMA = Schema(__file__)
TABLES = SCHEMA.tables
_JSON = (dict, list, str, int, float, bool)
_LONGEST_TITLE = 120
WAS_RUNNING = "it was running when it was imported, and nobody here holds it; resume it when nobody there does"
# Columns in the payload of a tool call, in addition to its arguments and result.
CALL = ("stage", "state_name", "duration_ms", "error", "loop_version")
_SAYS = ("body", "preference", "decision", "error_signature", "test_fqn", "diff_signature", "heuristic", "lesson", "summary")
_LONGEST_BODY = 4000
NO_ACK = "imported"
VECTOR = "embedding"
PAUSED = "paused-tasks"
SELF_EDITS = "self-edits.log"
LEARNINGS = "learnings.log"
_MOST_BYTES = 64 * 1024**2
_MOST_LOG_BYTES = 1024**3
RUN_ID = "gaia-coder"


def time_text(moment: datetime) -> str:
    """Format a time as its modules do: with Z for whole seconds, otherwise with microseconds and the offset."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z" if moment.microsecond == 0 else moment.isoformat(timespec="microseconds")


def edit_line(edit: SelfEdit) -> str:
    """Format a self-edit as its program does."""
    document: dict[str, Any] = {name: value for name, value in edit.as_dict().items() if name not in ("id", "edited_at")}
    document["review_passes"] = {name: edit.review_passes[name] for name in PASSES}
    return json.dumps({"ts": time_text(edit.edited_at), **document}, ensure_ascii=False, separators=(",", ":"))


def learning_line(learning: Learning) -> str:
    """Format a learning as its program does, without escapes."""
    line = f'{time_text(learning.noted_at)} [task={learning.task_id}] Observed: "{learning.observation}"'
    return f"{line} → {learning.candidate}"


class GaiaImport(Import):
    """Imports one folder. Tasks there belong to no run, so one run is created for all of them."""

    system = "gaia"
    tables = TABLES
    keys: ClassVar = {"ci_history": ("workflow_name", "branch", "run_id")}

    def __init__(self, log: Decklog, path: str, *, run_id: str = RUN_ID, **settings: Any) -> None:
        super().__init__(log, path, **settings)
        self.run_id = run_id
        self.em: dict[str, Any] | None = None

    def mappings(self) -> dict[str, Mapping]:
        """Return the tables with their mappings; feedback comes before the messages created from it."""
        return {
            "feedback": self.feedback,
            "em_inbox": self.message,
            "tasks": self.task,
            "audit": self.tool_call,
            "spend": self.spend,
            "ci_history": self.ci_run,
            "memory": self.lesson,
        }

    def run(self) -> Report:
        """Import every store of the folder; skip stores that do not exist."""
        stores = [*DATABASES.values(), PAUSED, SELF_EDITS, LEARNINGS, EM, BINDING]
        if not any(os.path.exists(os.path.join(self.path, name)) for name in stores):
            raise Invalid(f"{self.path} is no home of gaia-coder: it has none of {', '.join(stores)}")
        with self.writer.open():
            self.writer.ensure_run(self.run_id, "What gaia-coder recorded", self.log.clock.now())
            for table, name in DATABASES.items():
                self._take_database(table, os.path.join(self.path, name))
            self._take_files()
        return self.report

    def _take_database(self, table: str, path: str) -> None:
        if not os.path.exists(path):
            return
        with SqliteSource(path, seconds=self.seconds) as source:
            self.check(source)
            self.take(source)
            if table == "memory":
                self.supersede_all(source)

    def check(self, source: SqliteSource) -> None:
        """Report a database without any known table."""
        if not any(table in source for table in self.tables):
            self.report.note(f"{source.path} has no table of gaia-coder's")

    def _take_files(self) -> None:
        for name, parse in ((EM, parse_em), (BINDING, parse_binding)):
            self.writer.import_rows(whole(self.path, name, self.report), partial(self.trust_file, parse))
        if self.em is not None:
            with self.log.transaction():
                for remark in TrustProposals(self.log, self.run_id).propose(self.em):
                    self.report.note(remark)
        self.writer.import_rows(snapshots(self.path, self.report), self.snapshot)
        self.writer.import_rows(lines(self.path, SELF_EDITS, "self_edits_log", self.report), self.self_edit)
        self.writer.import_rows(lines(self.path, LEARNINGS, "learnings_log", self.report), self.learning)

    def snapshot(self, row: Row) -> Outcome:
        """Store the snapshot from which a paused task continues."""
        row.stream = self.run_id
        task_id, document = row.take("task_id"), row.take("document")
        if not isinstance(document, dict):
            raise Invalid("a snapshot is a JSON object")
        if not self.writer.mark_imported(row):
            return Outcome.ALREADY
        # Older snapshots lack these keys.
        known = {"task_id": task_id, "paused_at": to_text(EPOCH), "reason": "paused"}
        self.log.states.save_snapshot(self.run_id, task_id, {**known, **document})
        return Outcome.NEW

    def trust_file(self, parse: Callable[[str], dict[str, Any]], row: Row) -> Outcome:
        """Import `em.toml` or `repo_binding.toml` as a state of the run, which has every version of it."""
        row.stream = self.run_id
        document = parse(row.take("text"))
        saved = self.log.states.save(self.run_id, row.table, document)
        if row.table == EM:
            self.em = document
        if saved.already:
            return Outcome.ALREADY
        return Outcome.NEW if saved.version == 1 else Outcome.CHANGED

    def self_edit(self, row: Row) -> Outcome:
        """Record a self-edit; keep a line that repeats one with another text."""
        document = parse_lenient_json(row.take("line"))
        if not isinstance(document, dict):
            raise Invalid("the line is no JSON object")
        first = self.writer.mark_imported(row)
        recorded = self.log.self_edits.record_document(document)
        if not first:
            return saved_outcome(recorded)
        if not recorded.already:
            _keep_spelling(row, f"self_edit {recorded.id}", edit_line(recorded))
            return Outcome.NEW
        return self.writer.keep_raw(row, "the same pull request at the same commit is recorded already")

    def learning(self, row: Row) -> Outcome:
        """Record a learning; a date without a time means midnight."""
        text = row.take("line")
        try:
            line = parse_line(text, tolerant=True)
        except BadLine as problem:
            return self.writer.keep_raw(row, problem.message)
        if line is None:
            return Outcome.ALREADY
        noted = self.log.learnings.note(
            line.task_id,
            line.observation,
            candidate=line.candidate,
            noted_at=from_text(line.timestamp),
            key=self.writer.key(row),
        )
        if not noted.already:
            _keep_spelling(row, f"learning {noted.id}", learning_line(noted))
        return saved_outcome(noted)

    def task(self, row: Row) -> Outcome:
        """Import a task. Pause one that was running: it has no worker here, and one there may still work on it."""
        row.stream = self.run_id
        state = row.one_of("state", TaskState, TaskState.PENDING)
        if state is TaskState.RUNNING:
            state = TaskState(row.replace("state", TaskState.PAUSED.value))
        if row.columns.get("cost_usd") in (0, None):
            row.take("cost_usd")
        created = self._created(row)
        inputs = row.json("inputs_json", (dict,), {})
        return self.writer.record(
            Task,
            clock="updated_at",
            id=row.text("id"),
            run_id=self.run_id,
            title=title_of(inputs, row.id),
            inputs=inputs,
            state=state,
            priority=row.integer("priority", 50, high=100),
            **row.fields(row.text, "stage state_name=current_state_name trace_file"),
            result=row.json("result_json", _JSON),
            loop_version=row.integer("loop_version"),
            reason=WAS_RUNNING if "state" in row.replacements else None,
            created_at=created,
            updated_at=_latest(created, row.columns.get("last_heartbeat_at")),
        )

    def _created(self, row: Row) -> datetime:
        """Return when a task was created; order tasks of the same time by their rows."""
        there: datetime = row.time("created_at", EPOCH)
        created = self.writer.spread_time(row, there)
        if created != there:
            row.replace("created_at", to_text(created))
        return created

    @pure_mapping
    def tool_call(self, row: Row) -> PendingEntry:
        """Convert an audit row to a tool entry."""
        row.stream = self.run_id
        row.take("id")
        call: dict[str, Any] = {name: row.take(name) for name in CALL}
        payload = {
            "args": row.json("args_json", _JSON),
            "result": row.json("result_json", _JSON),
            **{name: value for name, value in call.items() if value is not None},
        }
        entry = {
            "kind": EntryKind.TOOL,
            **row.fields(row.text, "subtype=tool_name task_id"),
            "payload": payload,
            "at": row.time("occurred_at"),
        }
        return self.writer.entry(row, entry)

    @pure_mapping
    def spend(self, row: Row) -> PendingCharge:
        """Charge a call; round dollars to whole microdollars, and keep a more precise amount as a column."""
        row.stream = self.run_id
        row.take("id")
        charge = {
            "model": row.text("model", "unknown"),
            **row.fields(row.integer, "input_tokens cache_read_tokens cache_create_tokens output_tokens", 0),
            "cost_microdollars": _microdollars(row),
            **row.fields(row.text, "task_id call_site"),
            "occurred_at": row.time("occurred_at"),
        }
        return self.writer.charge(row, charge)

    def ci_run(self, row: Row) -> Outcome:
        """Import a CI run."""
        started: datetime = row.time("started_at", EPOCH)
        completed = row.time("completed_at")
        return self.writer.record(
            CiRun,
            clock="updated_at",
            **row.fields(row.text, "workflow_name branch", ""),
            ci_run_id=row.integer("run_id"),
            started_at=started,
            completed_at=completed,
            duration_seconds=row.integer("duration_s"),
            conclusion=row.one_of("conclusion", CiConclusion, None),
            updated_at=completed or started,
        )

    def message(self, row: Row) -> Outcome:
        """Import a message as not authorised, because its sender was not verified here."""
        received: datetime = row.time("received_at", EPOCH)
        state = row.one_of("state", MessageState, MessageState.PENDING)
        acknowledged = row.time("ack_sent_at") or received
        if row.columns.get("ack_sent_at") is None:
            row.replace("ack_sent_at", to_text(received))
        answered = row.time("answered_at")
        closed = row.time("closed_at")
        if state is MessageState.CLOSED and closed is None:
            closed = answered or acknowledged
            row.replace("closed_at", to_text(closed))
        return self.writer.record(
            Message,
            id=row.text("id"),
            **row.fields(row.text, "from_handle body", ""),
            is_authorised=False,
            channel=row.required("channel", MessageChannel),
            severity=row.required("severity", MessageSeverity),
            state=state,
            ack=NO_ACK,
            ack_sent_at=acknowledged,
            received_at=received,
            seen_at=None if state is MessageState.PENDING else acknowledged,
            **row.fields(row.text, "answer escalated_to"),
            answered_at=answered,
            closed_at=closed,
        )

    def feedback(self, row: Row) -> Outcome:
        """Import feedback."""
        received: datetime = row.time("received_at", EPOCH)
        state = row.one_of("state", FeedbackState, FeedbackState.PENDING)
        return self.writer.record(
            Feedback,
            id=row.text("id"),
            **row.fields(row.text, "from_handle channel body", ""),
            severity=row.required("severity", FeedbackSeverity),
            state=state,
            fix_class=row.one_of("fix_class", FixClass, None),
            **row.fields(row.text, "context_url root_cause success_criterion fix_pr_url regression_test_path"),
            notes=row.json("notes_json", (list,), []),
            received_at=received,
            updated_at=received,
            closed_at=received if state is FeedbackState.CLOSED else None,
        )

    def lesson(self, row: Row) -> Outcome:
        """Import a lesson; keep the key of its vector. Successors are marked after all lessons are imported."""
        payload = row.json("payload_json", (dict,), {})
        row.take("superseded_by")
        if "embedding_key" in row.leftovers:
            # Under its original name, redaction would treat it as a secret.
            row.leftovers[VECTOR] = row.leftovers.pop("embedding_key")
        confidence = row.integer("confidence", 80, high=100)
        recalls, recalled = row.integer("recall_count", 0), row.time("last_recalled_at")
        fields: dict[str, Any] = {
            "topic": row.text("topic", ""),
            "body": body_of(payload),
            "created_at": row.time("created_at", EPOCH),
            "payload": payload,
            "confidence": confidence,
            "source_kind": row.text("source_kind", "import"),
            "source_id": row.text("source_id"),
        }
        adopted = self.log.memory.adopt(row.text("id"), **fields, recall_count=recalls, last_recalled_at=recalled)
        return self._changed_lesson(adopted, fields, recalls, recalled) if adopted.already else Outcome.NEW

    def _changed_lesson(self, lesson: Lesson, fields: dict[str, Any], recalls: int, recalled: datetime | None) -> Outcome:
        """Update a lesson that changed there. Recalls are counted on both sides, so use the greater number."""
        if lesson.last_seen_at == lesson.created_at:
            fields["last_seen_at"] = fields["created_at"]
        body, _ = self.log.db.values.bind_text("body", fields["body"])
        fields["fingerprint"] = similarity.fingerprint(body)
        self.log.db.values.mark_clean(fields["fingerprint"])
        outcomes = {self.writer.merge(lesson, fields)}
        if Outcome.CHANGED in outcomes and body != lesson.body:
            # The vector belongs to the old text; the embedder computes a new one.
            self.log.db.count("delete from lesson_vectors where lesson_id = :id", {"id": lesson.id})
        times = [moment for moment in (recalled, lesson.last_recalled_at) if moment is not None]
        counts: dict[str, Any] = {"recall_count": max(recalls, lesson.recall_count), "last_recalled_at": max(times, default=None)}
        if any(getattr(lesson, name) != value for name, value in counts.items()):
            outcomes.add(self.writer.change(Lesson, id=lesson.id, **counts))
        return Outcome.CHANGED if Outcome.CHANGED in outcomes else Outcome.ALREADY

    def supersede_all(self, source: SqliteSource) -> None:
        """Mark superseded lessons; report a successor that was not imported."""
        for columns in source.rows("memory"):
            with self.log.transaction():
                self._mark_superseded(str(columns.get("id")), columns.get("superseded_by"))

    def _mark_superseded(self, lesson_id: str, by: object) -> None:
        lesson = self.writer.intake.seek(Lesson, lesson_id)
        if lesson is None or lesson.superseded_by == by:
            return
        if lesson.superseded_by is None:
            self._supersede(lesson_id, str(by))
        elif by is None or self.writer.intake.seek(Lesson, str(by)) is not None:
            self.writer.merge(lesson, {"superseded_by": by})
        else:
            self.report.note(f"memory {lesson_id} is not marked as superseded by {by}: it is not here")

    def _supersede(self, lesson_id: str, by: str) -> None:
        try:
            with self.log.transaction():
                self.log.memory.supersede(lesson_id, by, reason=IMPORT_NOTE)
        except DecklogError as problem:
            if problem.retryable:
                raise
            self.report.note(f"memory {lesson_id} is not marked as superseded by {by}: {problem.message}")


def title_of(inputs: dict[str, Any], task_id: str) -> str:
    """Return the first line of a task's request as its title."""
    asked = next((inputs[name] for name in ("title", "prompt", "goal", "task") if isinstance(inputs.get(name), str)), "")
    line = asked.strip().partition("\n")[0][:_LONGEST_TITLE]
    return line or f"Task {task_id}"


def _latest(created: datetime, heartbeat: object) -> datetime:
    try:
        return max(created, from_text(str(heartbeat))) if heartbeat else created
    except ValueError:
        return created


def _microdollars(row: Row) -> int:
    usd = row.take("usd", 0)
    if not isinstance(usd, (int, float)) or not 0 <= usd < 10**6:
        raise Invalid(f"{usd!r} is no amount of dollars that a call can cost")
    # Parse the shortest decimal of the float: what a person wrote, not its binary approximation.
    exact = Decimal(repr(usd)) * DOLLAR
    cost = int(exact.quantize(Decimal(1), ROUND_HALF_EVEN))
    if exact != cost:
        row.replace("usd", cost / DOLLAR)
    return cost


def body_of(payload: dict[str, Any]) -> str:
    """Return a lesson's text: the body of its payload, or the whole payload."""
    text = next((payload[name] for name in _SAYS if isinstance(payload.get(name), str) and payload[name].strip()), None)
    body = text or to_json(payload)
    if len(body) > _LONGEST_BODY:
        raise Invalid(f"it has {len(body)} characters, and a lesson has at most {_LONGEST_BODY}")
    return body


def snapshots(folder: str, report: Report) -> Iterator[Row]:
    """Yield the snapshots of paused tasks ordered by task id; each version of a file is a separate row."""
    root = os.path.join(folder, PAUSED)
    names = sorted(os.listdir(root)) if os.path.isdir(root) else []
    for name in names:
        if not name.endswith(".json"):
            continue
        content = _content(os.path.join(root, name), _MOST_BYTES, report)
        if content is None:
            continue
        text = content.decode("utf-8", "replace")
        document = parse_json(text)
        task_id = name.removesuffix(".json")
        columns = {"task_id": task_id, "document": text if document is NotImplemented else document}
        row = Row("paused_tasks", task_id, columns)
        row.id = f"{task_id}/{row.digest()}"
        yield row


def lines(folder: str, name: str, table: str, report: Report) -> Iterator[Row]:
    """Yield the lines of a log with their line numbers as ids; skip blank ones."""
    content = _content(os.path.join(folder, name), _MOST_LOG_BYTES, report)
    for number, line in enumerate((content or b"").split(b"\n"), 1):
        if line.strip():
            yield Row(table, number, {"line": line.decode("utf-8", "replace").removesuffix("\r")})


def whole(folder: str, name: str, report: Report) -> Iterator[Row]:
    """Yield a settings file as one row, with the file's name as id."""
    content = _content(os.path.join(folder, name), _MOST_BYTES, report)
    if content is not None:
        yield Row(name, name, {"text": content.decode("utf-8", "replace")})


def _content(path: str, most: int, report: Report) -> bytes | None:
    """Read a regular file; report a link, any other kind of file, or one that is too large."""
    try:
        with open_plain_file(path, most, follow_links=False) as file:
            return file.read(most)
    except NotFound:
        return None
    except DecklogError as problem:
        report.note(f"{path} was not read: {problem.message}")
        return None


def _keep_spelling(row: Row, made: str, line: str) -> None:
    """Keep the original text of a line, unless an export writes the same."""
    row.result_name, row.expected = made, ("line",)
    if row.columns["line"] != line:
        row.replace("line", line)
