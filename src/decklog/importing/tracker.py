"""Import the work items of a tracker as tasks of a run, with their links and comments."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Damaged, Invalid
from decklog.core.ids import is_ours
from decklog.importing.importer import GatheredRows, Import, Link, LinkChecker
from decklog.importing.report import Outcome, Report
from decklog.importing.row import EPOCH, Row, to_storable
from decklog.importing.source import SqliteSource
from decklog.importing.writer import IMPORT_NOTE, Mapping, PendingEntry, PendingRecord, pure_mapping
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.intake import ANY_OF, parameter_batches
from decklog.stores.tasks.task import Dependency, Task, TaskComment, TaskState

WAS_RUNNING = "it was being worked on when it was imported, and nobody here holds it; resume it when nobody there does"
LINES = "lines"
LINKS = "dependencies"
COMMENTS = "comments"
_LONGEST_TITLE = 500
_ID_FIELDS = ("id", "run_id")
_OPEN_DEPENDENCIES = """
(select count(*) from dependencies d join tasks b on b.id = d.depends_on
  where d.task_id = tasks.id and d.kind = 'blocks' and b.state <> 'done')
"""
_RECOUNT = f"""
update tasks set open_dependencies = {_OPEN_DEPENDENCIES}
 where run_id = :run_id and open_dependencies <> {_OPEN_DEPENDENCIES}
returning *
"""
_RUNS = f"select id, run_id from tasks where id in {ANY_OF}"
_LINKED = f"select task_id, depends_on from dependencies where task_id in {ANY_OF}"


class Tracker(Import):
    """Imports a tracker's items. A subclass gathers rows, and maps items, links and comments."""

    tables: ClassVar[dict[str, tuple[str, ...]]] = {}
    keys: ClassVar[dict[str, tuple[str, ...]]] = {}
    # The table whose rows become tasks.
    items: ClassVar[str]
    goal: ClassVar[str]

    def __init__(self, log: Decklog, path: str, *, run_id: str, **settings: Any) -> None:
        super().__init__(log, path, **settings)
        self.run_id = run_id
        self.gathered = GatheredRows()
        self.links = LinkChecker(self.gathered, self.items)
        # The metadata of runs that an export needs.
        self.facts: dict[str, dict[str, object]] = {}
        # The existing tasks in the form of items; only fields that differ from them are imported.
        self.local_items: dict[str, dict[str, Any]] = {}
        # Items whose tasks exist in another run, possibly from another source.
        self.elsewhere: set[str] = set()

    @abstractmethod
    def gather(self) -> None:
        """Read the source and gather its rows."""

    @abstractmethod
    def read_link(self, row: Row) -> Link:
        """Return the link of a row, and take its columns."""

    def gather_parts(self, item: Row) -> None:
        """Gather the links and comments nested in an item; called for the newest version of each."""

    def run_of(self, _item: str) -> str:
        """Return the run of an item."""
        return self.run_id

    def task_of(self, item: str) -> str:
        """Return the task id of an item."""
        return item

    def goals(self) -> dict[str, str]:
        """Return the runs of the items with their goals."""
        return {self.run_id: self.goal}

    def check(self, source: SqliteSource) -> None:
        """Do nothing: text files are checked line by line."""

    def run(self) -> Report:
        """Import everything, or only report what would change."""
        self.gather()
        for row in self.gathered.rows(self.items):
            self.gather_parts(row)
        self._find_elsewhere()
        self._check_links()
        with self.writer.open():
            self._make_runs()
            for table, mapping in self.mappings().items():
                self._import_table(table, mapping)
            self._recount()
        return self.report

    def mappings(self) -> dict[str, Mapping]:
        """Return the tables with their mappings; a subclass adds its own."""
        return {self.items: self.item, LINKS: self.link, COMMENTS: self.comment, LINES: self.keep_unread}

    # Before anything is written

    def add_line(self, text: str, trouble: str) -> None:
        """Gather a line that is not a valid row, with the reason."""
        row = Row(LINES, "", to_storable({"line": text, "why": trouble}))
        self.gathered.add(LINES, row.digest(), row.columns)

    def _find_elsewhere(self) -> None:
        """Find the items whose tasks belong to another run; they are not imported, nor are their links and comments."""
        items = {self.task_of(item): item for item in self.gathered.ids(self.items)}
        for batch in parameter_batches([*items]):
            for task_id, run_id in self.log.db.read(partial(self.log.db.rows, _RUNS, batch))[1]:
                if run_id != self.run_of(items[task_id]):
                    self.elsewhere.add(items[task_id])

    def _refuse_elsewhere(self, *items: str) -> None:
        for item in items:
            if item in self.elsewhere:
                raise Invalid(f"task {self.task_of(item)} belongs to another run here")

    def _check_links(self) -> None:
        for row in self.gathered.rows(LINKS):
            try:
                link = self.read_link(row)
            except Invalid:
                # `link` keeps the row later, with the reason.
                continue
            self.links.add(replace(link, id=row.id))
        self.log.db.read(lambda: self.links.check(self._present_links(), self._is_here))

    def _present_links(self) -> Iterator[tuple[str, str, str]]:
        sql = "select task_id, depends_on, kind from dependencies where run_id = :run_id"
        for run_id in self.goals():
            for task, other, kind in self.log.db.each(sql, {"run_id": run_id}):
                yield self.item_of(run_id, task), self.item_of(run_id, other), kind

    def item_of(self, _run_id: str, task_id: str) -> str:
        """Return the item of a task."""
        return task_id

    def _is_here(self, item: str) -> bool:
        found = self.log.db.read(lambda: self.writer.intake.seek(Task, self.task_of(item)))
        return found is not None and found.run_id == self.run_of(item)

    def earliest_time(self) -> str | None:
        """Return the earliest time in the source."""
        return self.gathered.earliest_time()

    def _make_runs(self) -> None:
        started = from_text(self.earliest_time() or to_text(self.log.clock.now()))
        for run_id, goal in self.goals().items():
            self.writer.ensure_run(run_id, goal, started, self.facts.get(run_id))

    # Tables

    def _import_table(self, table: str, mapping: Mapping) -> None:
        after = self._remove_lost_links if table == self.items else None
        self.writer.import_rows(self.gathered.rows(table), mapping, self.gathered.count(table), after)
        self.writer.import_rows(self.gathered.older_versions(table, differing=False), _count_older_version)
        self.writer.import_rows(self.gathered.older_versions(table, differing=True), self._keep_other_version)

    @abstractmethod
    def item(self, row: Row) -> Any:
        """Build the task of an item."""

    def task(self, row: Row, *, created_at: datetime, updated_at: datetime | None, **fields: Any) -> PendingRecord:
        """Build the task of an item; a running task stays unchanged.

        Without `updated_at`, local changes stay.
        """
        run_id = row.stream = self.run_of(row.id)
        title = fields.pop("title") or row.id
        if len(title) > _LONGEST_TITLE:
            title = row.replace("title", title[:_LONGEST_TITLE])
        content = {"id": self.task_of(row.id), "run_id": run_id, "title": title, **fields}
        changed = {"updated_at": max(created_at, updated_at or created_at)}
        first = {"created_at": created_at, "open_dependencies": self.links.count_open_blockers(row.id)}
        content = self._select_differing_fields(row, content)
        refusal = partial(_refuse_update, run_id)
        if updated_at is None:
            return PendingRecord(row, Task, content, initial_fields={**first, **changed}, update_refusal=refusal)
        content = {**content, **changed}
        return PendingRecord(row, Task, content, clock="updated_at", initial_fields=first, update_refusal=refusal)

    def _select_differing_fields(self, row: Row, content: dict[str, Any]) -> dict[str, Any]:
        """Omit fields in which the item equals the existing task: the source's values may be less precise."""
        here = self.local_items.get(row.id)
        if here is None or row.columns is here:
            return content
        mine = self.item(Row(row.table, row.id, here)).fields
        differs = {name: value for name, value in content.items() if name in _ID_FIELDS or mine[name] != value}
        present = self.writer.intake.seek(Task, content["id"]) if "inputs" in differs else None
        if present is not None:
            # Keep inputs that the source does not have.
            differs["inputs"] = {**present.inputs, **differs["inputs"]}
        return differs

    @pure_mapping
    def link(self, row: Row) -> PendingRecord:
        """Build the dependency of a link; raise Invalid if the link was refused."""
        self._place_in_first_run(row)
        link = self.read_link(row)
        run_id = row.stream = self.run_of(link.item)
        self._refuse_elsewhere(link.item, link.other)
        if (why := self.links.refusal(row.id)) is not None:
            raise Invalid(why)
        ends = {"task_id": self.task_of(link.item), "depends_on": self.task_of(link.other)}
        row.result_name = link_result_name(**ends)
        return PendingRecord(row, Dependency, {"run_id": run_id, **ends, "kind": link.kind})

    def comment(self, row: Row) -> Any:
        """Build the comment of a row. A tracker with comments overrides this."""
        raise Invalid(f"{row} has no place")

    def comment_record(self, row: Row, item: str, *, author: str, body: str, at: datetime) -> PendingRecord:
        """Build the comment on an item."""
        run_id = row.stream = self.run_of(item)
        self._refuse_elsewhere(item)
        if not body.strip():
            raise Invalid("it is empty")
        name = row.id.rpartition("#")[2]
        # A comment that was exported from here keeps its id.
        comment_id = name if is_ours(name) else f"{self.task_of(item)}#{name}"
        content = {"id": comment_id, "run_id": run_id, "task_id": self.task_of(item)}
        return PendingRecord(row, TaskComment, {**content, "author": author or "unknown", "body": body, "created_at": at})

    @pure_mapping
    def keep_unread(self, row: Row) -> Any:
        """Refuse an invalid line, so that it is kept in the journal."""
        self._place_in_first_run(row)
        raise Invalid(str(row.columns["why"]))

    def _place_in_first_run(self, row: Row) -> None:
        """Place a row without an item in the first run, if there is one."""
        if self.run_id in self.goals():
            row.stream = self.run_id

    def _keep_other_version(self, row: Row) -> Outcome:
        row.stream = self.run_of(row.id)
        return self.writer.keep_raw(row, "there is another version of the same time, which was taken")

    # After each batch

    def _remove_lost_links(self, taken: list[tuple[Row, Outcome]]) -> None:
        """Remove the links that the source no longer has from the items of a batch."""
        changed = [row.id for row, outcome in taken if outcome is Outcome.CHANGED]
        same = {
            self.task_of(row.id): row for row, outcome in taken if outcome is Outcome.ALREADY and row.id not in self.elsewhere
        }
        for item in [*changed, *self._find_items_with_lost_links(same)]:
            self._remove_links(item)

    def _find_items_with_lost_links(self, rows: dict[str, Row]) -> Iterator[str]:
        """Yield the unchanged items that lost a link in the source."""
        lost: dict[str, Task | None] = {}
        for batch in parameter_batches([*rows]):
            for task_id, other in self.log.db.rows(_LINKED, batch)[1]:
                if other not in {self.task_of(one) for one in self.links.linked_items(rows[task_id].id)}:
                    lost[task_id] = self.writer.intake.seek(Task, task_id)
        for task_id, present in lost.items():
            row = rows[task_id]
            updated_at = self.item(Row(row.table, row.id, row.columns)).fields.get("updated_at")
            # An older version of the item may have other links.
            if present is not None and (updated_at is None or updated_at >= present.updated_at):
                yield row.id

    def _remove_links(self, item: str) -> None:
        task_id, run_id = self.task_of(item), self.run_of(item)
        content = {self.task_of(other) for other in self.links.linked_items(item)}
        for link in self.writer.intake.select(Dependency, "select * from dependencies where task_id = :id", id=task_id):
            history = self.log.journal.history(Dependency.table, link.id_of(link.values()), limit=200)
            if link.depends_on in content or any(entry.body != IMPORT_NOTE for entry in history):
                continue
            sql = "delete from dependencies where task_id = :task_id and depends_on = :other returning *"
            ends = {"run_id": run_id, "task_id": task_id, "other": link.depends_on}
            self.writer.intake.remove(Dependency, sql, note=IMPORT_NOTE, **ends)

    def _recount(self) -> None:
        """Recount the open dependencies of each task, also after a killed import."""
        for run_id in self.goals():
            with self.log.transaction():
                self.writer.intake.change_all(Task, _RECOUNT, note=IMPORT_NOTE, run_id=run_id)


def link_result_name(task_id: str, depends_on: str) -> str:
    """Return the result name of a link, by which an export finds its leftovers."""
    return f"{LINKS} {to_json([task_id, depends_on])}"


def sortable_time(value: object) -> str:
    """Return a time as sortable text; an empty text for anything else."""
    if not isinstance(value, str):
        return ""
    try:
        return to_text(from_text(value.strip()))
    except (ValueError, OverflowError):
        return ""


def read_set_time(row: Row, name: str) -> datetime | None:
    """Take a time; return None for the epoch, which some programs write for no time."""
    moment: datetime | None = row.time(name)
    return None if moment is None or moment <= EPOCH else moment


def _refuse_update(run_id: str, present: Task) -> str | None:
    if present.run_id != run_id:
        raise Invalid(f"task {present.id} belongs to run {present.run_id} here")
    if present.state == TaskState.RUNNING:
        return f"is being worked on here by {present.worker}; what is here stays"
    return None


def _count_older_version(row: Row) -> Outcome:
    row.leftovers = {}
    return Outcome.ALREADY


# The column with the item that a row belongs to.
ITEM_COLUMN = "its item"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns by which a table's rows are identified, ordered and versioned, and linked to items."""

    columns: str
    key: tuple[str, ...] = ("id",)
    at: str = "created_at"
    clock: str = ""
    # References, as `column=table`; they differ between versions of a program.
    of: str = ""
    # LINKS or COMMENTS, for tables that hold those.
    kind: str | None = None


class TableTracker(Tracker):
    """Gathers rows of databases. Each place, such as a board or a project, is one run."""

    layout: ClassVar[dict[str, TableLayout]]

    def __init_subclass__(cls) -> None:
        cls.tables = {name: tuple(table.columns.split()) for name, table in cls.layout.items()}

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        # The runs and titles of the places.
        self.places: dict[str, str] = {}
        self.titles: dict[str, str] = {}
        self._owners: dict[tuple[str, str], str | None] = {}

    @abstractmethod
    def databases(self) -> dict[str, str]:
        """Return the databases with the places of their items."""

    @abstractmethod
    def place_of(self, table: str, columns: dict[str, Any], database: str) -> str:
        """Return the place of an item."""

    def spelled(self, _name: str, value: Any) -> Any:
        """Return a value in a form that the log accepts; subclasses convert times."""
        return to_storable(value)

    def is_done(self, _columns: dict[str, Any]) -> bool:
        """Return whether an item is done."""
        return False

    def gather(self) -> None:
        """Read every table, referenced tables first."""
        for database, path in self.databases().items():
            with SqliteSource(path, seconds=self.seconds) as source:
                self.check(source)
                self._report_unknown(source)
                for table in self.layout:
                    self._gather_table(source, table, database)

    def _gather_table(self, source: SqliteSource, table: str, database: str) -> None:
        try:
            for found in source.rows(table):
                columns = {name: self.spelled(name, value) for name, value in found.items() if value is not None}
                self._gather_row(table, columns, database)
        except Damaged as problem:
            # Rows before the damage are imported, and the other tables may be intact.
            self.report.lose(f"{table}: {problem.message}; the rows after that were not read")

    def _gather_row(self, table: str, columns: dict[str, Any], database: str) -> None:
        layout = self.layout[table]
        name = "/".join(str(columns[part]) for part in layout.key if part in columns) or Row(table, "", columns).digest()
        item: str | None
        if table == self.items:
            item = name = f"{self.place_of(table, columns, database)}/{name}"
            self._owners.setdefault((table, str(columns.get(layout.key[0]))), item)
        else:
            references = (reference.split("=") for reference in layout.of.split())
            owners = (self.owner(its_table, columns.get(column)) for column, its_table in references)
            columns[ITEM_COLUMN] = item = next(filter(None, owners), None)
            self._owners.setdefault((table, name), item)
        at, clock = sortable_time(columns.get(layout.at)), sortable_time(columns.get(layout.clock))
        is_done = table == self.items and self.is_done(columns)
        self.gathered.add(layout.kind or table, name, columns, at=at, clock=clock, is_done=is_done)

    def owner(self, table: str, row_id: object) -> str | None:
        """Return the item that a row belongs to."""
        return self._owners.get((table, str(row_id)))

    # Names

    def goals(self) -> dict[str, str]:
        """Return a run for each place."""
        return {run_id: self.titles.get(place, self.goal) for place, run_id in sorted(self.places.items())}

    def run_of(self, item: str) -> str:
        """Return the run of an item's place."""
        return self.places[item.rpartition("/")[0]]

    def task_of(self, item: str) -> str:
        """Return the item's id without its place."""
        return item.rpartition("/")[2]

    def item_of(self, run_id: str, task_id: str) -> str:
        """Return an item's name with its place."""
        return f"{next(place for place, its_run in self.places.items() if its_run == run_id)}/{task_id}"

    # Mappings

    def mappings(self) -> dict[str, Any]:
        """Return the tables with their mappings: other tables than items, links and comments become entries."""
        own = {table: self.map_event for table, layout in self.layout.items() if not layout.kind and table != self.items}
        return {**super().mappings(), **own}

    @abstractmethod
    def map_event(self, row: Row) -> PendingEntry:
        """Build the entry of a row."""

    def take_item(self, row: Row) -> str:
        """Take the item that a row belongs to, and place the row in the item's run."""
        item = row.take(ITEM_COLUMN)
        if item is None:
            raise Invalid("the item that it belongs to is not in the source")
        row.stream = self.run_of(item)
        return str(item)

    def event_entry(self, row: Row, *, subtype: str, body: str, at: Any, agent: str | None = None) -> PendingEntry:
        """Build an entry of an item's run, with the remaining columns as its payload."""
        item = self.take_item(row)
        payload, row.leftovers = {name: to_storable(value) for name, value in row.leftovers.items()}, {}
        entry = {"body": body, "kind": EntryKind.EVENT, "subtype": subtype, "agent": agent, "payload": payload or None, "at": at}
        return self.writer.entry(row, {**entry, "task_id": self.task_of(item)})
