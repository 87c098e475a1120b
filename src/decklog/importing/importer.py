"""The base class of importers: a source, its tables in order, and a mapping for each."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from decklog.importing.report import Report
from decklog.importing.row import Row
from decklog.importing.source import SqliteSource
from decklog.importing.writer import Mapping, RowWriter
from decklog.log import Decklog


class Import(ABC):
    """Imports an older system's records. A subclass names the tables, and maps a row of each."""

    system: ClassVar[str]
    # Tables by name with the columns that are known, and the columns of the key where that is not `id`.
    tables: ClassVar[dict[str, tuple[str, ...]]]
    keys: ClassVar[dict[str, tuple[str, ...]]]
    # Tables without information.
    ignored: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        log: Decklog,
        path: str,
        *,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
        seconds: float = 600,
    ) -> None:
        self.log = log
        self.path = path
        self.seconds = seconds
        self.report = Report(self.system, path, dry_run)
        self.writer = RowWriter(log, self.report, progress)

    @abstractmethod
    def mappings(self) -> dict[str, Mapping]:
        """Name the tables in the order in which rows refer to each other, each with what is made of a row."""

    @abstractmethod
    def check(self, source: SqliteSource) -> None:
        """Refuse a file that is not this system's."""

    def run(self) -> Report:
        """Take everything over, or only say what would become of it."""
        with self.source() as source:
            self.check(source)
            with self.writer.open():
                self.take(source)
        return self.report

    def source(self) -> SqliteSource:
        """Open what is read."""
        return SqliteSource(self.path, seconds=self.seconds)

    def take(self, source: SqliteSource) -> None:
        """Take a file's tables over, and name those that are unknown."""
        self._name_unknown(source)
        for table, mapping in self.mappings().items():
            if table in source:
                rows = self.rows_of(table, self.in_order(source, table))
                self.writer.take_all(rows, mapping, source.count(table))

    def in_order(self, source: SqliteSource, table: str) -> Iterable[dict[str, Any]]:
        """Give rows as they were written."""
        return source.rows(table)

    def rows_of(self, table: str, found: Iterable[dict[str, Any]]) -> Iterator[Row]:
        """Make rows, each named by its key."""
        names = self.keys.get(table, ("id",))
        for columns in found:
            yield Row(table, "/".join([str(columns.get(name)) for name in names]), columns)

    def _name_unknown(self, source: SqliteSource) -> None:
        """Report what the system does not have: unknown columns are kept with their rows, unknown tables are not taken."""
        for table, columns in source.columns.items():
            if table in self.tables:
                self.report.unknown += [f"{table}.{name}" for name in columns if name not in self.tables[table]]
            elif table not in self.ignored:
                self.report.unknown.append(table)
                self.report.note(f"table {table} is unknown and was not taken ({source.count(table)} rows)")
