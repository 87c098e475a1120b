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
    """Restores one record. It works inside the caller's transaction."""

    def __init__(self, db: Database, writer: Writer, record_class: type[Record]) -> None:
        self._db = db
        self._writer = writer
        self._class = record_class

    def run(self, stream: str, record_id: str, reason: str, meant: int | None) -> Record:
        """Undo the last change, if it is the one that is meant."""
        if not self._class.restores:
            raise self._never(record_id)
        self._db.lock_stream(stream)
        rows = self._db.rows(_LAST_TWO, {"table": self._class.table, "id": record_id})[1]
        if meant is not None and rows[0][0] != meant:
            raise self._refusal(record_id, f"entry {meant} is not its last change; entry {rows[0][0]} is: {rows[0][2]}")
        images = [from_json(payload) for _, payload, _ in rows]
        if len(images) < 2 or any(image.get("removed") for image in images):
            raise self._refusal(record_id, "it was only just added, or is gone: there is nothing before to go back to")
        after, before = (self._class.upcast(image) for image in images)
        return self._restore(stream, self._restored(record_id, before, after, rows[0][2]), after, reason)

    def _restored(self, record_id: str, before: dict[str, Any], after: dict[str, Any], said: str | None) -> dict[str, Any]:
        """Return the columns to restore; raise Conflict if none can be."""
        changed = [name for name in self._class.columns() if before[name] != after[name]]
        beyond = [name for name in changed if name not in (*self._class.restores, *self._class.kept_on_undo)]
        why = self._class.why_not_undone(before, after, self._db)
        if why is None and beyond:
            why = f"it changed {', '.join(beyond)} too, on which others rely"
        back = {name: before[name] for name in changed if name in self._class.restores}
        if why is not None or not back:
            raise self._refusal(record_id, f"its last change was {said or 'none'!r}: {why or 'nothing of it can go back'}")
        return back

    def _restore(self, stream: str, back: dict[str, Any], after: dict[str, Any], reason: str) -> Record:
        record_class, new = self._class, {**back}
        if "updated_at" in record_class.columns():
            new["updated_at"] = self._writer.now()
        assignments = ", ".join(f"{name} = :new_{name}" for name in new)
        condition = " and ".join(f"{name} = :{name}" for name in record_class.identity)
        bound = {name: after[name] for name in record_class.identity} | {f"new_{name}": value for name, value in new.items()}
        names, (row,) = self._db.rows(f"update {record_class.table} set {assignments} where {condition} returning *", bound)
        note = f"undone ({', '.join(back)}): {reason}"
        entry = list(self._writer.changed(record_class, names, row, "changed", note=note, redacted=False))
        entry[STREAM] = stream
        self._writer.write([entry])
        return record_class.from_row(names, row)

    def _never(self, record_id: str) -> DecklogError:
        kind = self._class.noun()
        why = "only the owner changes it" if self._class.is_managed else "it was true then, and others may have acted on it"
        return Denied(
            f"what became of a {kind} is not undone: {why}",
            hint=f"Say what is true now instead. See what it became: decklog journal history {self._class.table} {record_id}",
            table=self._class.table,
            id=record_id,
        )

    def _refusal(self, record_id: str, why: str) -> Conflict:
        name = self._class.noun()
        return Conflict(
            f"{name} {record_id} can't be undone: {why}",
            hint=f"See what it became: decklog journal history {self._class.table} {record_id}",
            table=self._class.table,
            id=record_id,
        )
