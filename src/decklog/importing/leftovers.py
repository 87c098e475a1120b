"""What imports of one system had to keep in the journal: columns that no field could hold, and rows that no record could."""

from datetime import datetime
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.db.sqlite.scratch import Scratch
from decklog.importing.pages import every
from decklog.importing.row import unplain
from decklog.journal.entry import COLUMNS_KEPT, ROW_KEPT
from decklog.records.values import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from decklog.log import Decklog


class LeftoverRows:
    """Finds kept columns by what they belong to, and kept rows by their table.

    What imports of other systems kept is only counted. There may be as many as the old system had rows, so they wait in a
    temporary database that SQLite keeps on disk and removes by itself.
    """

    def __init__(self, log: "Decklog", system: str, *, of_json: bool = False, runs: "Collection[str] | None" = None) -> None:
        self._log = log
        self._of_json = of_json
        # Only what was kept with these, since the items of two sources may have the same names; with None, all.
        self._runs = runs
        self._system = system
        self.of_others: dict[str, int] = {}
        self._db = Scratch()
        self._db.execute("create table columns (name text primary key, payload text not null)")
        self._db.execute("create table whole (no integer primary key, source text, id text, columns text not null)")
        self._db.execute("begin")
        for payload in self._payloads(COLUMNS_KEPT, "columns", "instead"):
            self._db.execute("insert or replace into columns values (?, ?)", (_name(payload), to_json(payload)))
        for payload in self._payloads(ROW_KEPT, "row"):
            found = (payload["table"], payload["id"], to_json(payload["row"]))
            self._db.execute("insert into whole (source, id, columns) values (?, ?, ?)", found)
        self._db.execute("commit")

    def _payloads(self, subtype: str, *parts: str) -> "Iterator[dict[str, Any]]":
        """Yield what this system's imports wrote; anyone can write an entry that only looks like it."""
        for entry in every(lambda **page: self._log.journal.find(subtype=subtype, oldest_first=True, **page)):
            payload = entry.payload
            if not isinstance(payload, dict) or not all(isinstance(payload.get(part), dict) for part in parts):
                continue
            if self._runs is not None and entry.stream not in self._runs:
                continue
            if payload.get("system") != self._system:
                system = str(payload.get("system"))
                self.of_others[system] = self.of_others.get(system, 0) + 1
            elif {"table", "id"} <= payload.keys():
                yield payload

    def columns(self, name: str) -> "tuple[dict[str, Any], dict[str, Any]]":
        """Return the columns that were kept beside a record, and what the record has in the place of some of them."""
        found = self._db.first("select payload from columns where name = ?", (name,))
        if found is None:
            return {}, {}
        payload = from_json(found[0])
        columns = {column: unplain(value, of_json=self._of_json) for column, value in payload["columns"].items()}
        return columns, payload["instead"]

    def restored(self, name: str, row: "dict[str, Any]", defaults: "dict[str, Any] | None" = None) -> "dict[str, Any]":
        """Put kept columns back, unless what stands in their place was changed since; what is empty then takes its default."""
        columns, instead = self.columns(name)
        for column, value in columns.items():
            if column not in instead or _stored(row.get(column)) == instead[column]:
                row[column] = value
        for column, value in (defaults or {}).items():
            if row.get(column) is None:
                row[column] = value
        return row

    def tables(self) -> list[str]:
        """Name the tables of which whole rows were kept."""
        return [source for (source,) in self._db.execute("select source from whole group by source order by min(no)")]

    def rows(self, table: str) -> "Iterator[tuple[str, dict[str, Any]]]":
        """Yield the rows of a table that were kept whole, each with its id, in the order in which they came."""
        for row_id, columns in self._db.execute("select id, columns from whole where source = ? order by no", (table,)):
            yield row_id, {name: unplain(value, of_json=self._of_json) for name, value in from_json(columns).items()}

    def close(self) -> None:
        self._db.close()


def _stored(value: "Any") -> "Any":
    """Return a value as an import noted it down."""
    return to_text(value) if isinstance(value, datetime) else value


def _name(payload: "dict[str, Any]") -> str:
    """Name what kept columns belong to: what the row became, which has another id where its own could not stay."""
    row_id = payload["instead"].get("id") or payload["id"]
    return payload.get("made") or f"{payload['table']} {row_id}"
