"""Rows that come in any order, some of them twice: put in one order, each id once. What is too much for memory waits on disk."""

from typing import TYPE_CHECKING

from decklog.db.sqlite.scratch import Scratch
from decklog.importing.row import Row
from decklog.records.values import from_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SCHEMA = (
    """
    create table rows (
      source text not null, id text not null, at text not null, clock text not null, is_done integer not null,
      columns text not null, is_part integer not null, primary key (source, id)
    ) without rowid
    """,
    """
    create table others (
      source text not null, id text not null, clock text not null, columns text not null, is_part integer not null
    )
    """,
    "begin",
)
_ADD = "insert into rows values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing"
# Rows that wait to be added: together they take a third of what each takes by itself.
_TOGETHER = 500


class Gathered:
    """Holds the newest version of every row of a source; older ones, and others of the same time, stand apart."""

    def __init__(self) -> None:
        self.db = Scratch()
        self._waiting: list[tuple[Any, ...]] = []
        for statement in _SCHEMA:
            self.db.execute(statement)

    def add(
        self,
        table: str,
        row_id: str,
        columns: str,
        *,
        at: str = "",
        clock: str = "",
        is_done: bool = False,
        is_part: bool = False,
    ) -> None:
        """Hold a row, given as JSON; `at` is its place in the order, `clock` tells which of two versions is newer.

        A part is a row that stands within another one, and goes with it.
        """
        self._waiting.append((table, row_id, at, clock, int(is_done), columns, int(is_part)))
        if len(self._waiting) >= _TOGETHER:
            self.settle()

    def settle(self) -> None:
        """Put the rows that wait into their places. Whoever reads does so first."""
        waiting, self._waiting = self._waiting, []
        for row in self.db.add_all(_ADD, waiting) if waiting else ():
            self._add_version(row)

    def clear(self) -> None:
        """Let all go that is held."""
        self._waiting = []
        for table in ("rows", "others"):
            self.db.execute(f"delete from {table}").fetchall()

    def has_versions(self, table: str) -> bool:
        """Return whether a row of a table came more than once."""
        self.settle()
        return self.db.first("select 1 from others where source = ? limit 1", (table,)) is not None

    def remove_parts(self) -> None:
        """Let go of what stood within other rows."""
        self.settle()
        for table in ("rows", "others"):
            self.db.execute(f"delete from {table} where is_part").fetchall()

    def _add_version(self, row: "tuple[Any, ...]") -> None:
        """Keep the newer of two versions; of two of the same time the same one, whichever came first."""
        found = self.db.first("select clock, columns, is_part from rows where source = ? and id = ?", row[:2])
        assert found is not None
        new, lost = (row[3], row[5], row[6]), found
        if new[:2] > found[:2]:
            change = "update rows set at = ?, clock = ?, is_done = ?, columns = ?, is_part = ? where source = ? and id = ?"
            self.db.execute(change, (*row[2:], *row[:2])).fetchall()
        else:
            lost = new
        self.db.execute("insert into others values (?, ?, ?, ?, ?)", (*row[:2], *lost)).fetchall()

    def count(self, table: str) -> int:
        self.settle()
        found = self.db.first("select count(*) from rows where source = ?", (table,))
        return int(found[0]) if found else 0

    def names(self, table: str) -> "Iterator[str]":
        """Yield the ids of a table's rows."""
        self.settle()
        for (row_id,) in self.db.execute("select id from rows where source = ?", (table,)):
            yield row_id

    def has(self, table: str, row_id: str) -> bool:
        self.settle()
        return self.db.first("select 1 from rows where source = ? and id = ?", (table, row_id)) is not None

    def rows(self, table: str) -> "Iterator[Row]":
        """Yield a table's rows, the newest version of each, in their order."""
        for row_id, columns in self.texts(table):
            yield Row(table, row_id, from_json(columns))

    def texts(self, table: str) -> "Iterator[tuple[str, str]]":
        """Yield the same rows by their ids, each as JSON."""
        self.settle()
        yield from self.db.execute("select id, columns from rows where source = ? order by at, id", (table,))

    def others(self, table: str) -> "Iterator[tuple[Row, bool]]":
        """Yield the versions of a table's rows that others stand for, and whether each differs from one of the same time."""
        sql = """
            select o.id, o.columns, o.clock = r.clock and o.columns <> r.columns
              from others o join rows r on r.source = o.source and r.id = o.id
             where o.source = ?
             order by o.id, o.clock, o.columns
            """
        self.settle()
        for row_id, columns, differs in self.db.execute(sql, (table,)):
            yield Row(table, row_id, from_json(columns)), bool(differs)

    def first_at(self) -> str | None:
        """Return the earliest place in the order that says something."""
        self.settle()
        found = self.db.first("select min(at) from rows where at <> ''")
        return found[0] if found else None

    def close(self) -> None:
        self.db.close()
