"""The base class of importers: a source, and a mapping for each of its tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar

from decklog.core.errors import NotFound
from decklog.importing.report import Report
from decklog.importing.row import Row
from decklog.importing.source import SqliteSource
from decklog.importing.writer import AfterBatch, Mapping, RowWriter, run_id_of
from decklog.log import Decklog
from decklog.records.values import from_json, to_json
from decklog.stores.tasks.task import LinkKind


class Import(ABC):
    """Imports another system's records. A subclass defines the tables and a mapping for each."""

    system: ClassVar[str]
    # The known columns by table, and the key columns of tables whose key is not `id`.
    tables: ClassVar[dict[str, tuple[str, ...]]]
    keys: ClassVar[dict[str, tuple[str, ...]]]
    # The columns to order rows by, for tables that don't return them in insertion order.
    orders: ClassVar[dict[str, tuple[str, ...]]] = {}
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
        # Functions to call after each batch of a table, in its transaction.
        self.after: dict[str, AfterBatch] = {}
        self._known_runs: set[str] = set()

    @abstractmethod
    def mappings(self) -> dict[str, Mapping]:
        """Return the tables with their mappings, referenced tables first."""

    @abstractmethod
    def check(self, source: SqliteSource) -> None:
        """Raise Invalid for a file of another system."""

    def run(self) -> Report:
        """Import everything, or only report what would change."""
        with self.source() as source:
            self.check(source)
            with self.writer.open():
                self.take(source)
        return self.report

    def source(self) -> SqliteSource:
        """Open the source."""
        return SqliteSource(self.path, seconds=self.seconds)

    def take(self, source: SqliteSource) -> None:
        """Import the tables of a source, and report unknown ones."""
        self._report_unknown(source)
        for table, mapping in self.mappings().items():
            if table in source:
                self.writer.import_rows(self.rows_of(source, table), mapping, source.count(table), self.after.get(table))

    def rows_of(self, source: SqliteSource, table: str) -> Iterator[Row]:
        """Yield a table's rows, each with its key as id."""
        names = self.keys.get(table, ("id",))
        for columns in source.rows(table, self.orders.get(table, ())):
            yield Row(table, "/".join([str(columns.get(name)) for name in names]), columns)

    def place_in_run(self, row: Row, name: str, what: str) -> str:
        """Place a row in the run with this name in the source; return the run's id."""
        run_id = run_id_of(name)
        if run_id not in self._known_runs:
            if not self.writer.has_run(run_id):
                raise NotFound(f"its {what} {name} is not in the file")
            self._known_runs.add(run_id)
        row.stream = run_id
        return run_id

    def _report_unknown(self, source: SqliteSource) -> None:
        """Report unknown columns, which are kept with their rows, and unknown tables, which are not imported."""
        for table, columns in source.columns.items():
            if table in self.tables:
                self.report.unknown += [f"{table}.{name}" for name in columns if name not in self.tables[table]]
            elif table not in self.ignored:
                self.report.unknown.append(table)
                self.report.note(f"table {table} is unknown and was not imported ({source.count(table)} rows)")


# Of two links between the same tasks, the kind with the lower rank wins.
_LINK_RANKS = {kind: rank for rank, kind in enumerate(LinkKind)}


@dataclass(frozen=True, slots=True)
class RowVersion:
    """One version of a row, with its columns as JSON. Rows are ordered by `at`; the greater `clock` is newer."""

    id: str
    columns: str
    at: str = ""
    clock: str = ""
    is_done: bool = False


class GatheredRows:
    """The newest version of every row of a source, and separately the other versions."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, RowVersion]] = {}
        self._older: dict[str, list[RowVersion]] = {}

    def add(
        self, table: str, row_id: str, columns: dict[str, Any], *, at: str = "", clock: str = "", is_done: bool = False
    ) -> None:
        """Add a row. Which of two versions with the same clock wins does not depend on their order."""
        new = RowVersion(row_id, to_json(columns), at, clock, is_done)
        rows = self._rows.setdefault(table, {})
        known = rows.setdefault(row_id, new)
        if known is not new:
            older, rows[row_id] = sorted((known, new), key=lambda version: (version.clock, version.columns))
            self._older.setdefault(table, []).append(older)

    def count(self, table: str) -> int:
        return len(self._rows.get(table, ()))

    def ids(self, table: str) -> Iterable[str]:
        """Return the ids of a table's rows."""
        return self._rows.get(table, {}).keys()

    def has(self, table: str, row_id: str) -> bool:
        return row_id in self._rows.get(table, ())

    def is_done(self, table: str, row_id: str) -> bool:
        return self.has(table, row_id) and self._rows[table][row_id].is_done

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the newest version of each row of a table, in order."""
        for version in sorted(self._rows.get(table, {}).values(), key=lambda version: (version.at, version.id)):
            yield Row(table, version.id, from_json(version.columns))

    def older_versions(self, table: str, *, differing: bool) -> Iterator[Row]:
        """Yield replaced versions: with `differing`, those with the same time and other content; otherwise the rest."""
        for version in sorted(self._older.get(table, ()), key=lambda version: (version.id, version.clock, version.columns)):
            kept = self._rows[table][version.id]
            if differing == (version.clock == kept.clock and version.columns != kept.columns):
                yield Row(table, version.id, from_json(version.columns))

    def earliest_time(self) -> str | None:
        """Return the earliest `at` that is not empty."""
        return min((version.at for rows in self._rows.values() for version in rows.values() if version.at), default=None)


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the source from one item to another. `id` is the id of its row."""

    item: str
    other: str
    kind: LinkKind
    id: str = ""

    @property
    def edge(self) -> tuple[str, str]:
        """The two ends in working order: a part before its parent, a blocker before the blocked item."""
        return (self.other, self.item) if self.kind is LinkKind.BLOCKS else (self.item, self.other)


class LinkChecker:
    """Checks which links can be imported: one per pair of tasks, one parent per task, and no cycles."""

    def __init__(self, gathered: GatheredRows, items: str) -> None:
        self._gathered = gathered
        self._items = items
        self._links: dict[str, Link] = {}
        self._by_task: dict[str, list[Link]] = {}
        self._refused: dict[str, str] = {}

    def add(self, link: Link) -> None:
        if link.id not in self._links:
            self._links[link.id] = link
            self._by_task.setdefault(link.item, []).append(link)

    def check(self, present: Iterable[tuple[str, str, str]], is_here: Callable[[str], bool]) -> None:
        """Refuse links that conflict with each other or with the present ones, given as task, other and kind."""
        for link in self._links.values():
            ends = (link.item, link.other)
            gone = next((end for end in ends if not self._gathered.has(self._items, end) and not is_here(end)), None)
            if gone is not None:
                self._refused[link.id] = f"{gone} is not in the source"
            elif link.item == link.other:
                self._refused[link.id] = f"it links {link.item} with itself"
        self._refuse_repeated()
        self._refuse_cycles(present)

    def _refuse_repeated(self) -> None:
        pairs: dict[tuple[str, str], Link] = {}
        parents: dict[str, Link] = {}
        for link in sorted(self._links.values(), key=lambda link: (_LINK_RANKS[link.kind], link.id)):
            if link.id in self._refused:
                continue
            if (first := pairs.setdefault((link.item, link.other), link)) is not link:
                self._refused[link.id] = f"{link.item} is linked with {link.other} already, as {first.kind}"
            elif link.kind is LinkKind.PARENT and (whole := parents.setdefault(link.item, link)) is not link:
                self._refused[link.id] = f"{link.item} is a part of {whole.other} already"

    def _refuse_cycles(self, present: Iterable[tuple[str, str, str]]) -> None:
        here = [Link(task, other, LinkKind(kind)) for task, other, kind in present]
        ordering = (link for link in self._links.values() if link.kind in (LinkKind.BLOCKS, LinkKind.PARENT))
        links = [*here, *(link for link in ordering if link.id not in self._refused)]
        blocked = _find_cyclic_nodes(link.edge for link in links)
        after: dict[str, set[str]] = {}
        for link in sorted(links, key=lambda link: (link.id, link.edge)):
            first, later = link.edge
            if not {first, later} <= blocked:
                continue
            if link.id and _has_path(after, later, first):
                self._refused[link.id] = f"{first} and {later} would wait for each other in a circle"
            else:
                after.setdefault(first, set()).add(later)

    def refusal(self, link_id: str) -> str | None:
        """Return why a link was refused; None if it was not."""
        return self._refused.get(link_id)

    def count_open_blockers(self, task: str) -> int:
        """Count the open blockers of a task in the source."""
        return sum(
            link.kind is LinkKind.BLOCKS and link.id not in self._refused and not self._gathered.is_done(self._items, link.other)
            for link in self._by_task.get(task, ())
        )

    def linked_items(self, task: str) -> set[str]:
        """Return the items that a task links to in the source."""
        return {link.other for link in self._by_task.get(task, ())}


def _find_cyclic_nodes(edges: Iterable[tuple[str, str]]) -> set[str]:
    """Return the nodes in or after a cycle."""
    before: dict[str, set[str]] = {}
    for first, later in edges:
        before.setdefault(later, set()).add(first)
        before.setdefault(first, set())
    sorter = TopologicalSorter(before)
    with suppress(CycleError):
        sorter.prepare()
    left = set(before)
    while ready := sorter.get_ready():
        left.difference_update(ready)
        sorter.done(*ready)
    return left


def _has_path(after: dict[str, set[str]], start: str, goal: str) -> bool:
    """Return whether a path leads from one node to another."""
    waiting, seen = [start], {start}
    while waiting:
        node = waiting.pop()
        if node == goal:
            return True
        new = after.get(node, set()) - seen
        seen |= new
        waiting += new
    return False
