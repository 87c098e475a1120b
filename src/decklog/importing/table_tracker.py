"""A tracker that keeps its items in SQLite: which tables there are, how their rows are named, and what each belongs to."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from decklog.core.errors import Damaged, Invalid
from decklog.importing.row import Row, plain
from decklog.importing.source import SqliteSource
from decklog.importing.tracker import COMMENTS, LINKS, Tracker, moment_of
from decklog.journal.entry import EntryKind
from decklog.records.values import to_json

if TYPE_CHECKING:
    from typing import Any

    from decklog.importing.draft import Draft

# Stands in a row for the item that it belongs to.
ITEM = "its item"


@dataclass(frozen=True, slots=True)
class Table:
    """How a table's rows are named, ordered and told from older ones, and which column leads to what they belong to."""

    columns: tuple[str, ...]
    key: tuple[str, ...] = ("id",)
    at: str | None = None
    clock: str | None = None
    # The column, and the table that it leads to; what stands in that belongs to the same item.
    of: tuple[str, str] | None = None
    # Holds links or comments, under the name that those have here.
    kind: str | None = None


class TableTracker(Tracker):
    """Gathers rows of databases. Each place, such as a board or a project, has a run of its own."""

    layout: ClassVar[dict[str, Table]]
    # Tables that rows lead to by other columns than those of the layout.
    led_to_otherwise: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *words: "Any", **settings: "Any") -> None:
        super().__init__(*words, **settings)
        # The runs of the places, and what those are called.
        self.places: dict[str, str] = {}
        self.titles: dict[str, str] = {}
        # Of the rows of other tables nobody asks what they belong to.
        self._led_to = {layout.of[1] for layout in self.layout.values() if layout.of} | self.led_to_otherwise
        self.gathered.db.execute("create table owners (source text, id text, item text, primary key (source, id)) without rowid")

    @abstractmethod
    def databases(self) -> "dict[str, str]":
        """Name the databases, each with the place that its items are in."""

    @abstractmethod
    def place_of(self, table: str, columns: "dict[str, Any]", database: str) -> str:
        """Name the place of an item."""

    def spelled(self, _name: str, value: "Any") -> "Any":
        """Spell a value as texts can hold it, and a time as others do."""
        return plain(value)

    def is_done(self, _columns: "dict[str, Any]") -> bool:
        """Return whether an item is done."""
        return False

    def gather(self) -> None:
        """Read every table, those that others lead to first."""
        for database, path in self.databases().items():
            with SqliteSource(path, seconds=self.seconds) as source:
                self.check(source)
                self._name_unknown(source)
                for table in self.layout:
                    self._gather_table(source, table, database)

    def _gather_table(self, source: SqliteSource, table: str, database: str) -> None:
        try:
            for found in source.rows(table):
                columns = {name: self.spelled(name, value) for name, value in found.items() if value is not None}
                self._hold(table, columns, database)
        except Damaged as problem:
            # What stands before the damage is taken, and the other tables may be whole.
            self.report.lose(f"{table}: {problem.message}; the rows behind that were not read")

    def _hold(self, table: str, columns: "dict[str, Any]", database: str) -> None:
        layout = self.layout[table]
        name = "/".join(str(columns[part]) for part in layout.key if part in columns) or Row(table, "", columns).digest()
        item: str | None
        if table == self.items:
            item = name = f"{self.place_of(table, columns, database)}/{name}"
            self._own(table, str(columns.get(layout.key[0])), item)
        else:
            item = self._owner(layout, columns)
            self._own(table, name, item)
            columns[ITEM] = item
        at, clock = (moment_of(columns.get(column or "")) for column in (layout.at, layout.clock))
        is_done = table == self.items and self.is_done(columns)
        self.gathered.add(layout.kind or table, name, to_json(columns), at=at, clock=clock, is_done=is_done)

    def _owner(self, layout: Table, columns: "dict[str, Any]") -> str | None:
        if layout.of is None:
            return None
        column, table = layout.of
        return self.owner(table, columns.get(column))

    def owner(self, table: str, row_id: object) -> str | None:
        """Name the item that a row belongs to."""
        found = self.gathered.db.first("select item from owners where source = ? and id = ?", (table, str(row_id)))
        return found[0] if found else None

    def _own(self, table: str, row_id: str, item: str | None) -> None:
        if table not in self._led_to:
            return
        self.gathered.db.execute("insert or ignore into owners values (?, ?, ?)", (table, row_id, item)).fetchall()

    # Names

    def goals(self) -> "dict[str, str]":
        """Name a run for each place."""
        return {run_id: self.titles.get(place, self.goal) for place, run_id in sorted(self.places.items())}

    def run_of(self, item: str) -> str:
        """Name the run of an item's place."""
        return self.places[item.rpartition("/")[0]]

    def task_of(self, item: str) -> str:
        """Name a task as its item is named."""
        return item.rpartition("/")[2]

    def item_of(self, run_id: str, task_id: str) -> str:
        """Name an item by its place."""
        return f"{next(place for place, its_run in self.places.items() if its_run == run_id)}/{task_id}"

    # Mappings

    def mappings(self) -> "dict[str, Any]":
        """Name the tables with their mappings: what is neither an item, a link nor a comment becomes an entry."""
        own = {table: self.happened for table, layout in self.layout.items() if not layout.kind and table != self.items}
        return {**super().mappings(), **own}

    @abstractmethod
    def happened(self, row: Row) -> "Draft":
        """Describe the entry that a row becomes."""

    def its_item(self, row: Row) -> str:
        """Take the item that a row belongs to, and place it in that one's run."""
        item = row.take(ITEM)
        if item is None:
            raise Invalid("what it belongs to is not in the source")
        row.stream = self.run_of(item)
        return str(item)

    def told(self, row: Row, *, subtype: str, body: str, at: "Any", agent: str | None = None) -> "Draft":
        """Describe an entry of an item's run, with all of the row that was not taken yet."""
        item = self.its_item(row)
        payload, row.left = {name: plain(value) for name, value in row.left.items()}, {}
        entry = {"body": body, "kind": EntryKind.EVENT, "subtype": subtype, "agent": agent, "payload": payload or None, "at": at}
        return self.landing.entry(row, {**entry, "task_id": self.task_of(item)})


__all__ = ["COMMENTS", "ITEM", "LINKS", "Table", "TableTracker"]
