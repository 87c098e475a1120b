"""The mechanism that every exporter shares: a new file, rows made of records, and what an import had to keep beside them."""

import os
import tempfile

import apsw

from decklog.errors import Conflict
from decklog.importers.landing import COLUMNS, ROW
from decklog.importers.row import unplain
from decklog.records import to_json
from decklog.stores.base import MAX_PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.app import Decklog
    from decklog.records import Page


class Export:
    """Writes one older system's database. It is made beside its place and put there when it is whole."""

    def __init__(self, log: "Decklog", path: str, system: str) -> None:
        self.log = log
        self.path = path
        self.system = system
        self.counts: dict[str, int] = {}
        self.refused: list[str] = []
        if os.path.exists(path):
            raise Conflict(f"{path} is there already; name a file that is not", path=path)
        folder = os.path.dirname(os.path.abspath(path))
        self._file = tempfile.NamedTemporaryFile(dir=folder, prefix=".decklog-export-", delete=False).name  # noqa: SIM115
        self.db = apsw.Connection(self._file)
        self.db.execute("begin")
        self._read_kept()

    def _read_kept(self) -> None:
        """Read what imports of this system kept: columns by what they belong to, and whole rows by their table."""
        self.beside: dict[str, dict[str, Any]] = {}
        self.kept: dict[str, list[dict[str, Any]]] = {}
        for entry in every(lambda **page: self.log.journal.find(subtype=COLUMNS, oldest_first=True, **page)):
            if entry.payload["system"] == self.system:
                name = entry.payload.get("made") or f"{entry.payload['table']} {entry.payload['id']}"
                self.beside[name] = entry.payload
        for entry in every(lambda **page: self.log.journal.find(subtype=ROW, oldest_first=True, **page)):
            if entry.payload["system"] == self.system:
                row = {name: unplain(value) for name, value in entry.payload["row"].items()}
                self.kept.setdefault(entry.payload["table"], []).append(row)

    def write(self, table: str, name: str, row: "dict[str, Any]") -> None:
        """Write a row, with the columns that an import kept, unless what stands in their place was changed since."""
        kept = self.beside.get(name, {"columns": {}, "instead": {}})
        for column, value in kept["columns"].items():
            if column not in kept["instead"] or row.get(column) == kept["instead"][column]:
                row[column] = unplain(value)
        self.insert(table, row)

    def insert(self, table: str, row: "dict[str, Any]") -> None:
        """Insert a row; one that the old system's own rules refuse is reported."""
        known = self._columns(table)
        fitting = {name: value for name, value in row.items() if name in known}
        lost = [name for name in row if name not in known]
        if lost:
            self.refused.append(f"{table}: columns {', '.join(lost)} have no place")
        marks = ", ".join("?" for _ in fitting)
        try:
            self.db.execute(f"insert into {table} ({', '.join(fitting)}) values ({marks})", tuple(fitting.values()))
        except apsw.ConstraintError as problem:
            self.refused.append(f"{table} {row}: {problem}")
            return
        self.counts[table] = self.counts.get(table, 0) + 1

    def _columns(self, table: str) -> set[str]:
        return {name for (name,) in self.db.execute("select name from pragma_table_xinfo(?)", (table,))}

    def write_kept(self) -> None:
        """Write the rows that no record could hold back as they were."""
        for table, rows in self.kept.items():
            if not self._columns(table):
                self.db.execute(f"create table {table} ({', '.join(rows[0])})")
            for row in rows:
                self.insert(table, row)

    def finish(self) -> "dict[str, Any]":
        """Put the file in its place; say how many rows each table has."""
        self.db.execute("commit")
        self.db.close()
        os.link(self._file, self.path)
        os.unlink(self._file)
        return {"path": self.path, "tables": self.counts, "refused": self.refused}


def every(find: "Callable[..., Page]") -> "Iterator[Any]":
    """Give every record of a list, page after page."""
    after = None
    while True:
        page = find(limit=MAX_PAGE, after=after)
        yield from page
        after = page.next
        if after is None:
            return


def text_of(value: "Any") -> "str | None":
    """Write JSON for a column; nothing stays nothing."""
    return None if value is None else to_json(value)
