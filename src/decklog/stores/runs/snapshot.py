"""A run as it was: every record of its stream at one moment, made from the journal alone."""

from dataclasses import dataclass, field

from decklog.records import Record, from_json
from decklog.stores.work.task import Attempt, Task, attempts_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.stores.journal.entry import Entry
    from decklog.stores.journal.journal import Journal

_RECENT = 50


@dataclass(kw_only=True)
class Snapshot:
    """The whole picture of a run at an entry. `records` has every kind by its table's name."""

    run_id: str
    seq: int
    records: dict[str, list[Record]]
    attempts: list[Attempt]
    recent: "list[Entry]" = field(default_factory=list)

    @property
    def run(self) -> Record:
        return self.records["runs"][0]

    @property
    def spent(self) -> "dict[str, int]":
        """Add up what the run's charges say: money, tokens, and calls of unknown price."""
        charges = self.records.get("charges", [])
        names = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
        costs = [getattr(charge, "cost_microdollars", None) for charge in charges]
        return {
            "microdollars": sum(cost for cost in costs if cost is not None),
            "tokens": sum(getattr(charge, name, 0) or 0 for charge in charges for name in names),
            "calls": len(charges),
            "unpriced_calls": costs.count(None),
        }

    def as_dict(self) -> "dict[str, Any]":
        shown = {table: [record.as_dict() for record in records] for table, records in self.records.items()}
        run = shown.pop("runs")[0]
        shown.pop("charges", None)
        return {
            "run": run,
            "seq": self.seq,
            **shown,
            "attempts": [attempt.as_dict() for attempt in self.attempts],
            "spent": self.spent,
            "recent_entries": [entry.as_dict() for entry in self.recent],
        }


class Photographer:
    """Takes snapshots. It runs inside the caller's read."""

    def __init__(self, journal: "Journal") -> None:
        self._journal = journal
        self._db = journal.db

    def images(self, start: int, until: int) -> "Iterator[tuple[str, str, dict[str, Any]]]":
        """Give every image in a span of positions, oldest first: its table, its record's id, and its columns."""
        _, rows = self._db.rows(
            """
            select record_table, record_id, payload
              from entries
             where pos > :start
               and pos <= :until
               and record_table is not null
             order by pos
            """,
            {"start": start, "until": until},
        )
        for table, record_id, payload in rows:
            yield table, record_id, from_json(payload)

    def take(self, run_id: str, start: int, until: int, *, recent: bool = True) -> Snapshot:
        """Read the newest image of every record from a stream's start up to a position."""
        newest: dict[tuple[str, str], dict[str, Any]] = {}
        versions: dict[str, list[Task]] = {}
        for table, record_id, image in self.images(start, until):
            newest[table, record_id] = image
            if table == Task.table:
                versions.setdefault(record_id, []).append(Task.from_row(image.keys(), image.values()))
        attempts = [attempt for tasks in versions.values() for attempt in attempts_from(tasks)]
        return Snapshot(
            run_id=run_id,
            seq=until - start,
            records=self._records(newest),
            attempts=sorted(attempts, key=lambda attempt: (attempt.started_at, attempt.task_id)),
            recent=self._recent(start, until) if recent else [],
        )

    def _records(self, newest: "dict[tuple[str, str], dict[str, Any]]") -> "dict[str, list[Record]]":
        classes = self._journal.record_classes()
        records: dict[str, list[Record]] = {}
        for (table, _), image in newest.items():
            if not image.get("removed"):
                records.setdefault(table, []).append(classes[table].from_row(image.keys(), image.values()))
        return records

    def _recent(self, start: int, until: int) -> "list[Entry]":
        return self._journal.entries_between(max(start, until - _RECENT), until)


def difference(before: Snapshot, after: Snapshot) -> "list[dict[str, Any]]":
    """List what was added, removed or changed from one snapshot to another, field by field."""
    changes = []
    for table in dict.fromkeys([*before.records, *after.records]):
        old = _by_id(before, table)
        new = _by_id(after, table)
        for record_id in dict.fromkeys([*old, *new]):
            changed = _changed(old.get(record_id), new.get(record_id))
            if changed is not None:
                changes.append({"table": table, "record_id": record_id, **changed})
    return changes


def _by_id(snapshot: Snapshot, table: str) -> "dict[str, dict[str, Any]]":
    return {record.id_of(record.values()): record.as_dict() for record in snapshot.records.get(table, [])}


def _changed(old: "dict[str, Any] | None", new: "dict[str, Any] | None") -> "dict[str, Any] | None":
    if old is None or new is None:
        return {"change": "added" if old is None else "removed", "fields": {}}
    fields = {name: [old.get(name), new.get(name)] for name in new if old.get(name) != new.get(name)}
    return {"change": "changed", "fields": fields} if fields else None
