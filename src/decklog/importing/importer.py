"""The base class of importers: a source, its tables in order, and a mapping for each."""

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
from decklog.importing.writer import After, Mapping, RowWriter, run_id_of
from decklog.log import Decklog
from decklog.records.values import from_json, to_json
from decklog.stores.tasks.task import LinkKind


class Import(ABC):
    """Imports an older system's records. A subclass names the tables, and maps a row of each."""

    system: ClassVar[str]
    # Tables by name with the columns that are known, and the columns of the key where that is not `id`.
    tables: ClassVar[dict[str, tuple[str, ...]]]
    keys: ClassVar[dict[str, tuple[str, ...]]]
    # Columns that a table's rows are ordered by, where they don't come as they were written.
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
        # What follows each batch of a table, in its transaction.
        self.after: dict[str, After] = {}
        self._known_runs: set[str] = set()

    @abstractmethod
    def mappings(self) -> dict[str, Mapping]:
        """Return the tables with their mappings, referenced tables first."""

    @abstractmethod
    def check(self, source: SqliteSource) -> None:
        """Refuse a file that is not this system's."""

    def run(self) -> Report:
        """Import everything, or only report what would change."""
        with self.source() as source:
            self.check(source)
            with self.writer.open():
                self.take(source)
        return self.report

    def source(self) -> SqliteSource:
        """Open what is read."""
        return SqliteSource(self.path, seconds=self.seconds)

    def take(self, source: SqliteSource) -> None:
        """Import a file's tables, and report unknown ones."""
        self._name_unknown(source)
        for table, mapping in self.mappings().items():
            if table in source:
                self.writer.import_rows(self.rows_of(source, table), mapping, source.count(table), self.after.get(table))

    def rows_of(self, source: SqliteSource, table: str) -> Iterator[Row]:
        """Yield a table's rows, each named by its key."""
        names = self.keys.get(table, ("id",))
        for columns in source.rows(table, self.orders.get(table, ())):
            yield Row(table, "/".join([str(columns.get(name)) for name in names]), columns)

    def place_in_run(self, row: Row, name: str, what: str) -> str:
        """Place a row in its run, which has another name in the source; return the run's id."""
        run_id = run_id_of(name)
        if run_id not in self._known_runs:
            if not self.writer.has_run(run_id):
                raise NotFound(f"its {what} {name} is not in the file")
            self._known_runs.add(run_id)
        row.stream = run_id
        return run_id

    def _name_unknown(self, source: SqliteSource) -> None:
        """Report what the system does not have: unknown columns are kept with their rows, unknown tables are not taken."""
        for table, columns in source.columns.items():
            if table in self.tables:
                self.report.unknown += [f"{table}.{name}" for name in columns if name not in self.tables[table]]
            elif table not in self.ignored:
                self.report.unknown.append(table)
                self.report.note(f"table {table} is unknown and was not taken ({source.count(table)} rows)")


# Of two kinds between the same two tasks the first is made.
_RANKS = {kind: rank for rank, kind in enumerate(LinkKind)}


@dataclass(frozen=True, slots=True)
class RowVersion:
    """One version of a row, its columns as JSON. `at` is its place in the order; the greater `clock` is newer."""

    id: str
    columns: str
    at: str = ""
    clock: str = ""
    is_done: bool = False


class Gathered:
    """The newest version of every row of a source; older versions, and others of the same time, are listed separately."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, RowVersion]] = {}
        self._others: dict[str, list[RowVersion]] = {}

    def add(
        self, table: str, row_id: str, columns: dict[str, Any], *, at: str = "", clock: str = "", is_done: bool = False
    ) -> None:
        """Add a row. Of two versions with the same clock, the same one is kept in any order."""
        new = RowVersion(row_id, to_json(columns), at, clock, is_done)
        rows = self._rows.setdefault(table, {})
        known = rows.setdefault(row_id, new)
        if known is not new:
            older, rows[row_id] = sorted((known, new), key=lambda version: (version.clock, version.columns))
            self._others.setdefault(table, []).append(older)

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
        """Yield a table's rows, the newest version of each, in their order."""
        for version in sorted(self._rows.get(table, {}).values(), key=lambda version: (version.at, version.id)):
            yield Row(table, version.id, from_json(version.columns))

    def replaced(self, table: str, *, differing: bool) -> Iterator[Row]:
        """Yield the replaced versions: those that differ from a kept one of the same time, or all the rest."""
        for version in sorted(self._others.get(table, ()), key=lambda version: (version.id, version.clock, version.columns)):
            kept = self._rows[table][version.id]
            if differing == (version.clock == kept.clock and version.columns != kept.columns):
                yield Row(table, version.id, from_json(version.columns))

    def first_at(self) -> str | None:
        """Return the earliest place in the order that is not empty."""
        return min((version.at for rows in self._rows.values() for version in rows.values() if version.at), default=None)


@dataclass(frozen=True, slots=True)
class Link:
    """A link as the source has it: from an item to another one, and its kind. `id` names its row."""

    item: str
    other: str
    kind: LinkKind
    id: str = ""

    @property
    def edge(self) -> tuple[str, str]:
        """The two ends in working order: a part before its whole, a blocker before what waits for it."""
        return (self.other, self.item) if self.kind is LinkKind.BLOCKS else (self.item, self.other)


class LinkOrder:
    """Decides which links can be made: one for each pair of tasks, one parent for each part, and no cycles."""

    def __init__(self, gathered: Gathered, items: str) -> None:
        self._gathered = gathered
        self._items = items
        self._links: dict[str, Link] = {}
        self._by_task: dict[str, list[Link]] = {}
        self._refused: dict[str, str] = {}

    def add(self, link: Link) -> None:
        if link.id not in self._links:
            self._links[link.id] = link
            self._by_task.setdefault(link.item, []).append(link)

    def judge(self, present: Iterable[tuple[str, str, str]], is_here: Callable[[str], bool]) -> None:
        """Refuse links that can't be made next to the present ones, which are given as task, other and kind."""
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
        for link in sorted(self._links.values(), key=lambda link: (_RANKS[link.kind], link.id)):
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
        blocked = _behind_cycles(link.edge for link in links)
        after: dict[str, set[str]] = {}
        for link in sorted(links, key=lambda link: (link.id, link.edge)):
            first, later = link.edge
            if not {first, later} <= blocked:
                continue
            if link.id and _leads(after, later, first):
                self._refused[link.id] = f"{first} and {later} would wait for each other in a circle"
            else:
                after.setdefault(first, set()).add(later)

    def refusal(self, link_id: str) -> str | None:
        """Return why a link can't be made; None when it can."""
        return self._refused.get(link_id)

    def open_count(self, task: str) -> int:
        """Count what a task has to wait for, as the source has it."""
        return sum(
            link.kind is LinkKind.BLOCKS and link.id not in self._refused and not self._gathered.is_done(self._items, link.other)
            for link in self._by_task.get(task, ())
        )

    def others_of(self, task: str) -> set[str]:
        """Return the items that the source links a task with."""
        return {link.other for link in self._by_task.get(task, ())}


def _behind_cycles(edges: Iterable[tuple[str, str]]) -> set[str]:
    """Return the nodes that are in a cycle or come after one; usually there are none."""
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


def _leads(after: dict[str, set[str]], start: str, goal: str) -> bool:
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
