"""What an export wrote, what the old system's own rules refused, and what it has no place for."""

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from decklog.log import Decklog
    from decklog.records.record import Record

MOST_REFUSALS = 200
_LONGEST = 300


class ExportReport:
    """Counts rows per table of the old system, and what is left out per kind of record or field of one."""

    def __init__(self, path: str, progress: "Callable[[str, int, int], None] | None" = None) -> None:
        self.path = path
        self.tables: dict[str, int] = {}
        self.refused: list[str] = []
        self.refused_more = 0
        self.left_out: dict[str, int] = {}
        self._progress = progress

    def count(self, table: str) -> None:
        self.tables[table] = self.tables.get(table, 0) + 1
        if self._progress:
            self._progress(table, self.tables[table], 0)

    def refuse(self, what: str, why: object) -> None:
        """Say that something could not be written; of the same kind of trouble a few hundred are enough."""
        if len(self.refused) < MOST_REFUSALS:
            self.refused.append(f"{what[:_LONGEST]}: {why}")
        else:
            self.refused_more += 1

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count something that has no place there."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count

    def leave_out_fields(self, table: str, record: "Record", placed: "Collection[str]") -> None:
        """Count the fields that say something and are not among those with a place."""
        for field in fields(record):
            if field.name not in placed and getattr(record, field.name) not in (_default(field), None):
                self.leave_out(f"{table}.{field.name}")

    def leave_out_tables(self, log: "Decklog", placed: "Collection[str]") -> None:
        """Count the records of every kind that is not among those with a place."""
        for table in log.record_classes():
            if table not in placed:
                self.leave_out(table, _count(log, table))

    def leave_out_kept(self, of_others: "dict[str, int]") -> None:
        """Count what the imports of other systems kept, which only their own formats have a place for."""
        for system, count in of_others.items():
            self.leave_out(f"what the import from {system} kept", count)

    def as_dict(self) -> "dict[str, Any]":
        more = [f"and {self.refused_more} more"] if self.refused_more else []
        return {"path": self.path, "tables": self.tables, "refused": self.refused + more, "left_out": self.left_out}


def _count(log: "Decklog", table: str) -> int:
    return int(log.db.read(lambda: log.db.rows(f"select count(*) from {table}", {}))[1][0][0])


def _default(field: "Any") -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default
