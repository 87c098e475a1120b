"""Checkpoints of a run, and snapshots of its paused tasks: what is needed to resume."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.errors import Conflict, Invalid
from decklog.db.where import Where
from decklog.journal.rows import STREAM_SIZE, newest_position
from decklog.records.fork_rules import LAST_ENTRY, ForkRule, Refer
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores import documents
from decklog.stores.base import Store
from decklog.stores.checks import check_time
from decklog.stores.intake import ANY_OF, parameter_batches
from decklog.stores.of_run import lock_run, next_number

LONGEST_TASK_ID = 200
REQUIRED = ("task_id", "paused_at", "reason")


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Record):
    """The state of a run at entry `seq` of its stream."""

    table = "checkpoints"
    fork = ForkRule("What is needed to go on is there from the fork's start.", fields={"seq": LAST_ENTRY})
    blob_columns = ("digest", "payload")

    id: str
    run_id: str
    number: int
    seq: int
    created_at: datetime
    digest: str
    name: str | None = None
    status: str | None = None
    payload: object = None
    redacted: bool = False
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class TaskSnapshot(Record):
    """What a paused task needs to go on; `document` is filled in where one snapshot is given."""

    table = "snapshots"
    identity = ("run_id", "task_id")
    blob_columns = ("digest",)
    fork = ForkRule("A paused task can go on in the fork.", fields={"task_id": Refer("tasks")})
    document = None  # type: object

    run_id: str
    task_id: str
    paused_at: datetime
    reason: str
    pauses: int
    digest: str
    saved_at: datetime
    redacted: bool = False

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | documents.loaded_field(self, "document")


class Checkpoints(Store):
    """The verbs of `states` for checkpoints and snapshots."""

    @writes
    def checkpoint(
        self,
        run_id: str,
        *,
        name: str | None = None,
        status: str | None = None,
        payload: object = None,
        key: str | None = None,
        checkpoint_id: str | None = None,
        created_at: datetime | None = None,
    ) -> Checkpoint:
        """Save a checkpoint: the number of the run's newest entry, and what it needs to continue."""
        stream = lock_run(self._db, run_id)
        placed = documents.store_if_long(self._db, "payload", {} if payload is None else payload)
        checkpoint = self._find_or_add(
            lambda: self._seek_known(Checkpoint, checkpoint_id, run_id=run_id, key=key),
            lambda: self._add(
                Checkpoint,
                note=name or status,
                id=checkpoint_id or self._ids.new("chk"),
                run_id=run_id,
                number=next_number(self._db, Checkpoint, run_id),
                seq=newest_position(self._db, stream) % STREAM_SIZE,
                name=name,
                status=status,
                payload=placed.inline,
                digest=placed.digest,
                redacted=placed.redacted,
                key=key,
                created_at=created_at or self._now(),
            ),
        )
        if checkpoint.run_id != run_id:
            raise Conflict(f"checkpoint {checkpoint.id} belongs to run {checkpoint.run_id}", id=checkpoint.id)
        return documents.load_field(self._db, checkpoint, "payload", checkpoint.digest)

    def import_checkpoints(self, imported: Sequence[dict[str, Any]]) -> list[bool]:
        """Import checkpoints, each with its id, run, time, status and payload. Return for each whether it is new.

        Existing ones are kept. Everything happens in the caller's transaction.
        """
        runs = {run_id: lock_run(self._db, run_id) for run_id in sorted({one["run_id"] for one in imported})}
        # The number of each run's next checkpoint, and of its newest entry.
        places = {
            run_id: (next_number(self._db, Checkpoint, run_id), newest_position(self._db, stream) % STREAM_SIZE)
            for run_id, stream in runs.items()
        }
        here = self._runs_of([one["id"] for one in imported])
        new, records = [], []
        for one in imported:
            run_id = one["run_id"]
            if here.get(one["id"], run_id) != run_id:
                raise Conflict(f"checkpoint {one['id']} belongs to run {here[one['id']]}", id=one["id"])
            new.append(one["id"] not in here)
            if new[-1]:
                here[one["id"]] = run_id
                placed = documents.store_if_long(self._db, "payload", one["payload"])
                number, seq = places[run_id]
                places[run_id] = number + 1, seq + 1
                facts = {"payload": placed.inline, "digest": placed.digest, "redacted": placed.redacted}
                named = {name: one[name] for name in ("id", "run_id", "status", "created_at")}
                records.append(({**named, **facts, "number": number, "seq": seq}, one["status"]))
        self._add_all(Checkpoint, records)
        return new

    def _runs_of(self, checkpoint_ids: Sequence[str]) -> dict[str, str]:
        """Return the runs of existing checkpoints, by their ids as given."""
        named = {self._db.values.bind_text("id", name)[0]: name for name in checkpoint_ids}
        sql = f"select id, run_id from checkpoints where id in {ANY_OF}"
        rows = (row for asked in parameter_batches([*named]) for row in self._db.rows(sql, asked)[1])
        return {named[checkpoint_id]: run_id for checkpoint_id, run_id in rows}

    @reads
    def get_checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """Get a checkpoint with its payload."""
        checkpoint = self._fetch(Checkpoint, checkpoint_id)
        return documents.load_field(self._db, checkpoint, "payload", checkpoint.digest)

    @reads
    def checkpoints(
        self,
        run_id: str,
        *,
        name: str | None = None,
        status: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Checkpoint]:
        """List a run's checkpoints, newest first; a payload too long for a list is left to `get_checkpoint`."""
        where = Where(Checkpoint, run_id=run_id, name=name, status=status)
        return self._page(Checkpoint, where, order=("number",), limit=limit, after=after, descending=True)

    @writes
    def save_snapshot(self, run_id: str, task_id: str, document: dict[str, object]) -> TaskSnapshot:
        """Save what a paused task needs to resume; only the newest snapshot of a task counts.

        The document has at least task_id, paused_at (a time) and reason. Saving the same one again changes nothing.
        """
        _check_task_id(task_id)
        paused_at = _check_snapshot(task_id, document)
        lock_run(self._db, run_id)
        placed = documents.store_document(self._db, "document", document)
        present = self._seek(TaskSnapshot, (run_id, task_id))
        if present is not None and present.digest == placed.digest:
            return documents.load_field(self._db, present.mark_already(), "document", present.digest)
        changed = self._upsert(
            TaskSnapshot,
            {
                "run_id": run_id,
                "task_id": task_id,
                "paused_at": paused_at,
                "reason": document["reason"],
                "pauses": 1,
                "digest": placed.digest,
                "redacted": placed.redacted,
                "saved_at": self._now(),
            },
            update={"pauses": "snapshots.pauses + 1"},
            note=str(document["reason"]),
        )
        return documents.load_field(self._db, changed, "document", changed.digest)

    @reads
    def get_snapshot(self, run_id: str, task_id: str) -> TaskSnapshot:
        """Get the newest snapshot of a paused task, with its document."""
        _check_task_id(task_id)
        snapshot = self._fetch(TaskSnapshot, (run_id, task_id))
        return documents.load_field(self._db, snapshot, "document", snapshot.digest)

    @reads
    def snapshots(
        self,
        run_id: str | None = None,
        *,
        task_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[TaskSnapshot]:
        """List the tasks that have a snapshot, by task, without the documents."""
        where = Where(TaskSnapshot, run_id=run_id, task_id=task_id)
        return self._page(TaskSnapshot, where, order=("task_id", "run_id"), limit=limit, after=after)


def _check_task_id(task_id: str) -> None:
    # Snapshots can be written out as files named after their task.
    bad = task_id in (".", "..") or any(char in "/\\" or not char.isprintable() for char in task_id)
    if bad or not task_id.strip() or len(task_id) > LONGEST_TASK_ID:
        raise Invalid(
            f"{task_id[:50]!r} can't name a paused task: 1 to {LONGEST_TASK_ID} visible characters, no slashes, not . or ..",
            field="task_id",
        )


def _check_snapshot(task_id: str, document: dict[str, Any]) -> datetime:
    """Check the fields that resuming needs; return the time of the pause."""
    if not isinstance(document, dict):
        raise Invalid("a snapshot is a JSON object", field="document")
    missing = [name for name in REQUIRED if not isinstance(document.get(name), str) or not document[name].strip()]
    if missing:
        raise Invalid(f"the snapshot of {task_id} has no text in {', '.join(missing)}", field="document", missing=missing)
    if document["task_id"] != task_id:
        raise Invalid(f"the snapshot is of task {document['task_id']!r}, not {task_id!r}", field="document")
    history = document.get("tool_call_history", [])
    is_history = history is None or (
        isinstance(history, list) and all(isinstance(call, dict) and "tool" in call for call in history)
    )
    if not is_history:
        raise Invalid("tool_call_history is a list of objects that each name their tool", field="document")
    return check_time("paused_at", document["paused_at"])
