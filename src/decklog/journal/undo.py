"""Undo the last change of a record with a new entry."""

from typing import Any

from decklog.core.errors import Conflict, DecklogError, Denied
from decklog.db.base import Database
from decklog.journal.chain import STREAM
from decklog.journal.writer import Writer
from decklog.records.record import Record
from decklog.records.values import from_json

_LAST_TWO = """
select seq, payload, body
  from entries
 where record_table = :table
   and record_id = :id
 order by seq desc
 limit 2
"""


class Undo:
    """Undoes the last change of one record, in the caller's transaction."""

    def __init__(self, db: Database, writer: Writer, record_class: type[Record]) -> None:
        self._db = db
        self._writer = writer
        self._class = record_class

    def run(self, stream: str, record_id: str, reason: str, expected: int | None) -> Record:
        """Undo the last change; raise Conflict if another entry is expected to be the last one."""
        if not self._class.undo_columns:
            raise self._not_undoable(record_id)
        self._db.lock_stream(stream)
        rows = self._db.rows(_LAST_TWO, {"table": self._class.table, "id": record_id})[1]
        if expected is not None and rows[0][0] != expected:
            raise self._conflict(record_id, f"entry {expected} is not its last change; entry {rows[0][0]} is: {rows[0][2]}")
        images = [from_json(payload) for _, payload, _ in rows]
        if len(images) < 2 or any(image.get("removed") for image in images):
            raise self._conflict(record_id, "there is no earlier state: it was just added, or is removed")
        after, before = (self._class.upcast(image) for image in images)
        return self._restore(stream, self._find_columns(record_id, before, after, rows[0][2]), after, reason)

    def _find_columns(self, record_id: str, before: dict[str, Any], after: dict[str, Any], note: str | None) -> dict[str, Any]:
        """Return the columns to restore; raise Conflict if the change can't be undone."""
        changed = [name for name in self._class.columns() if before[name] != after[name]]
        others = [name for name in changed if name not in (*self._class.undo_columns, *self._class.undo_ignored_columns)]
        why = self._class.undo_refusal(before, after, self._db)
        if why is None and others:
            why = f"it also changed {', '.join(others)}, which undo can't restore"
        restored = {name: before[name] for name in changed if name in self._class.undo_columns}
        if why is not None or not restored:
            raise self._conflict(record_id, f"its last change was {note or 'none'!r}: {why or 'it has nothing to restore'}")
        return restored

    def _restore(self, stream: str, restored: dict[str, Any], after: dict[str, Any], reason: str) -> Record:
        record_class, new = self._class, {**restored}
        if "updated_at" in record_class.columns():
            new["updated_at"] = self._writer.now()
        assignments = ", ".join(f"{name} = :new_{name}" for name in new)
        condition = " and ".join(f"{name} = :{name}" for name in record_class.identity)
        bound = {name: after[name] for name in record_class.identity} | {f"new_{name}": value for name, value in new.items()}
        names, (row,) = self._db.rows(f"update {record_class.table} set {assignments} where {condition} returning *", bound)
        note = f"undone ({', '.join(restored)}): {reason}"
        entry = list(self._writer.build_change_entry(record_class, names, row, "changed", note=note, redacted=False))
        entry[STREAM] = stream
        self._writer.write([entry])
        return record_class.from_row(names, row)

    def _not_undoable(self, record_id: str) -> DecklogError:
        kind = self._class.noun()
        why = "only the owner changes it" if self._class.is_managed else "others may have acted on them"
        return Denied(
            f"changes of a {kind} can't be undone: {why}",
            hint=f"Record the current state instead. See its changes: decklog journal history {self._class.table} {record_id}",
            table=self._class.table,
            id=record_id,
        )

    def _conflict(self, record_id: str, why: str) -> Conflict:
        name = self._class.noun()
        return Conflict(
            f"{name} {record_id} can't be undone: {why}",
            hint=f"See its changes: decklog journal history {self._class.table} {record_id}",
            table=self._class.table,
            id=record_id,
        )
