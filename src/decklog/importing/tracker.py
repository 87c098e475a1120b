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
from decklog.importing.importer import Gathered, Import, Link, LinkOrder
from decklog.importing.report import Outcome, Report
from decklog.importing.row import EPOCH, Row, plain
from decklog.importing.source import SqliteSource
from decklog.importing.writer import NOTE, Mapping, PendingEntry, PendingRecord, describes
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
_NAMED_BY = ("id", "run_id")
_COUNTED = """
(select count(*) from dependencies d join tasks b on b.id = d.depends_on
  where d.task_id = tasks.id and d.kind = 'blocks' and b.state <> 'done')
"""
_RECOUNT = f"""
update tasks set open_dependencies = {_COUNTED}
 where run_id = :run_id and open_dependencies <> {_COUNTED}
returning *
"""
_RUNS = f"select id, run_id from tasks where id in {ANY_OF}"
_LINKED = f"select task_id, depends_on from dependencies where task_id in {ANY_OF}"


class Tracker(Import):
    """Imports a tracker's items. A subclass gathers rows, and maps items, links and comments."""

    tables: ClassVar[dict[str, tuple[str, ...]]] = {}
    keys: ClassVar[dict[str, tuple[str, ...]]] = {}
    # The table whose rows become tasks, and the others in the order in which they are taken.
    items: ClassVar[str]
    goal: ClassVar[str]

    def __init__(self, log: Decklog, path: str, *, run_id: str, **settings: Any) -> None:
        super().__init__(log, path, **settings)
        self.run_id = run_id
        self.gathered = Gathered()
        self.links = LinkOrder(self.gathered, self.items)
        # The metadata of runs that an export needs.
        self.facts: dict[str, dict[str, object]] = {}
        # Items as the tasks that are here would be written: of these only what differs is brought.
        self.as_here: dict[str, dict[str, Any]] = {}
        # Items whose tasks are here in another run, which may be of another source.
        self.elsewhere: set[str] = set()

    @abstractmethod
    def gather(self) -> None:
        """Read the source, and hold its rows."""

    @abstractmethod
    def link_of(self, row: Row) -> Link:
        """Read a link, and take the columns that say it."""

    def gather_parts(self, item: Row) -> None:
        """Hold the links and comments nested in an item; called for the newest version of each."""

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
        """Refuse what is not this tracker's; a file of text is looked at line by line."""

    def run(self) -> Report:
        """Import everything, or only report what would change."""
        self.gather()
        for row in self.gathered.rows(self.items):
            self.gather_parts(row)
        self._find_elsewhere()
        self._judge_links()
        with self.writer.open():
            self._make_runs()
            for table, mapping in self.mappings().items():
                self._take_table(table, mapping)
            self._recount()
        return self.report

    def mappings(self) -> dict[str, Mapping]:
        """Return the tables with their mappings; a subclass adds its own."""
        return {self.items: self.item, LINKS: self.link, COMMENTS: self.comment, LINES: self.unread}

    # Before anything is written

    def add_line(self, text: str, trouble: str) -> None:
        """Add a line that is no row, named by its content."""
        row = Row(LINES, "", plain({"line": text, "why": trouble}))
        self.gathered.add(LINES, row.digest(), row.columns)

    def _find_elsewhere(self) -> None:
        """Find the items whose tasks belong to another run; neither they nor their links and comments are imported."""
        items = {self.task_of(item): item for item in self.gathered.ids(self.items)}
        for batch in parameter_batches([*items]):
            for task_id, run_id in self.log.db.read(partial(self.log.db.rows, _RUNS, batch))[1]:
                if run_id != self.run_of(items[task_id]):
                    self.elsewhere.add(items[task_id])

    def _refuse_elsewhere(self, *items: str) -> None:
        for item in items:
            if item in self.elsewhere:
                raise Invalid(f"task {self.task_of(item)} belongs to another run here")

    def _judge_links(self) -> None:
        for row in self.gathered.rows(LINKS):
            try:
                link = self.link_of(row)
            except Invalid:
                # It is kept, with the reason, once its turn comes.
                continue
            self.links.add(replace(link, id=row.id))
        self.log.db.read(lambda: self.links.judge(self._present_links(), self._is_here))

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

    def first_at(self) -> str | None:
        """Return when the work began."""
        return self.gathered.first_at()

    def _make_runs(self) -> None:
        started = from_text(self.first_at() or to_text(self.log.clock.now()))
        for run_id, goal in self.goals().items():
            self.writer.ensure_run(run_id, goal, started, self.facts.get(run_id))

    # Tables

    def _take_table(self, table: str, mapping: Mapping) -> None:
        after = self._remove_lost_links if table == self.items else None
        self.writer.import_rows(self.gathered.rows(table), mapping, self.gathered.count(table), after)
        self.writer.import_rows(self.gathered.replaced(table, differing=False), _is_older)
        self.writer.import_rows(self.gathered.replaced(table, differing=True), self._differs)

    @abstractmethod
    def item(self, row: Row) -> Any:
        """Describe the task that an item becomes."""

    def task(self, row: Row, *, created_at: datetime, updated_at: datetime | None, **fields: Any) -> PendingRecord:
        """Describe the task of an item; a task that is being worked on stays unchanged.

        Without a time of its last change, what was changed here stays.
        """
        run_id = row.stream = self.run_of(row.id)
        title = fields.pop("title") or row.id
        if len(title) > _LONGEST_TITLE:
            title = row.replace("title", title[:_LONGEST_TITLE])
        content = {"id": self.task_of(row.id), "run_id": run_id, "title": title, **fields}
        changed = {"updated_at": max(created_at, updated_at or created_at)}
        first = {"created_at": created_at, "open_dependencies": self.links.open_count(row.id)}
        content = self._what_differs(row, content)
        if updated_at is None:
            return PendingRecord(row, Task, content, at_first={**first, **changed}, stays=partial(_why_stays, run_id))
        return PendingRecord(
            row, Task, {**content, **changed}, clock="updated_at", at_first=first, stays=partial(_why_stays, run_id)
        )

    def _what_differs(self, row: Row, content: dict[str, Any]) -> dict[str, Any]:
        """Leave out fields in which the item agrees with the task here: its values may be coarser than ours."""
        here = self.as_here.get(row.id)
        if here is None or row.columns is here:
            return content
        mine = self.item(Row(row.table, row.id, here)).fields
        differs = {name: value for name, value in content.items() if name in _NAMED_BY or mine[name] != value}
        present = self.writer.intake.seek(Task, content["id"]) if "inputs" in differs else None
        if present is not None:
            # What the source does not know of stays.
            differs["inputs"] = {**present.inputs, **differs["inputs"]}
        return differs

    @describes
    def link(self, row: Row) -> PendingRecord:
        """Describe a link, unless it can't be made."""
        self._at_home(row)
        link = self.link_of(row)
        run_id = row.stream = self.run_of(link.item)
        self._refuse_elsewhere(link.item, link.other)
        if (why := self.links.refusal(row.id)) is not None:
            raise Invalid(why)
        ends = {"task_id": self.task_of(link.item), "depends_on": self.task_of(link.other)}
        row.made = link_name(**ends)
        return PendingRecord(row, Dependency, {"run_id": run_id, **ends, "kind": link.kind})

    def comment(self, row: Row) -> Any:
        """Describe the comment on an item; some trackers have none."""
        raise Invalid(f"{row} has no place")

    def comment_record(self, row: Row, item: str, *, author: str, body: str, at: datetime) -> PendingRecord:
        """Describe the comment on an item."""
        run_id = row.stream = self.run_of(item)
        self._refuse_elsewhere(item)
        if not body.strip():
            raise Invalid("it is empty")
        name = row.id.rpartition("#")[2]
        # One that was said here and written there is known by the id that it has here.
        comment_id = name if is_ours(name) else f"{self.task_of(item)}#{name}"
        content = {"id": comment_id, "run_id": run_id, "task_id": self.task_of(item)}
        return PendingRecord(row, TaskComment, {**content, "author": author or "unknown", "body": body, "created_at": at})

    @describes
    def unread(self, row: Row) -> Any:
        """Keep what is no row."""
        self._at_home(row)
        raise Invalid(str(row.columns["why"]))

    def _at_home(self, row: Row) -> None:
        """Place a row that may belong to no item in the run that is named first, if there is one."""
        if self.run_id in self.goals():
            row.stream = self.run_id

    def _differs(self, row: Row) -> Outcome:
        row.stream = self.run_of(row.id)
        return self.writer.keep(row, "there is another version of the same time, which was taken")

    # What follows from a batch

    def _remove_lost_links(self, taken: list[tuple[Row, Outcome]]) -> None:
        """Remove the links that the source no longer has from the items of a batch."""
        changed = [row.id for row, outcome in taken if outcome is Outcome.CHANGED]
        same = {
            self.task_of(row.id): row for row, outcome in taken if outcome is Outcome.ALREADY and row.id not in self.elsewhere
        }
        for item in [*changed, *self._with_lost_links(same)]:
            self._remove_links(item)

    def _with_lost_links(self, rows: dict[str, Row]) -> Iterator[str]:
        """Yield the unchanged items that lost a link in the source."""
        lost: dict[str, Task | None] = {}
        for batch in parameter_batches([*rows]):
            for task_id, other in self.log.db.rows(_LINKED, batch)[1]:
                if other not in {self.task_of(one) for one in self.links.others_of(rows[task_id].id)}:
                    lost[task_id] = self.writer.intake.seek(Task, task_id)
        for task_id, present in lost.items():
            row = rows[task_id]
            updated_at = self.item(Row(row.table, row.id, row.columns)).fields.get("updated_at")
            # An older version of the item has other links, and they are not the present ones.
            if present is not None and (updated_at is None or updated_at >= present.updated_at):
                yield row.id

    def _remove_links(self, item: str) -> None:
        task_id, run_id = self.task_of(item), self.run_of(item)
        content = {self.task_of(other) for other in self.links.others_of(item)}
        for link in self.writer.intake.select(Dependency, "select * from dependencies where task_id = :id", id=task_id):
            history = self.log.journal.history(Dependency.table, link.id_of(link.values()), limit=200)
            if link.depends_on in content or any(entry.body != NOTE for entry in history):
                continue
            sql = "delete from dependencies where task_id = :task_id and depends_on = :other returning *"
            ends = {"run_id": run_id, "task_id": task_id, "other": link.depends_on}
            self.writer.intake.remove(Dependency, sql, note=NOTE, **ends)

    def _recount(self) -> None:
        """Count again what each task waits for; also what an import that was killed left behind."""
        for run_id in self.goals():
            with self.log.transaction():
                self.writer.intake.change_all(Task, _RECOUNT, note=NOTE, run_id=run_id)


def link_name(task_id: str, depends_on: str) -> str:
    """Return the name that a link's kept columns are found by."""
    return f"{LINKS} {to_json([task_id, depends_on])}"


def moment_of(value: object) -> str:
    """Return a time as sortable text; an empty text for anything else."""
    if not isinstance(value, str):
        return ""
    try:
        return to_text(from_text(value.strip()))
    except (ValueError, OverflowError):
        return ""


def set_time(row: Row, name: str) -> datetime | None:
    """Take a time that was ever set: some programs write the first moment of their calendar for none."""
    moment: datetime | None = row.time(name)
    return None if moment is None or moment <= EPOCH else moment


def _why_stays(run_id: str, present: Task) -> str | None:
    if present.run_id != run_id:
        raise Invalid(f"task {present.id} belongs to run {present.run_id} here")
    if present.state == TaskState.RUNNING:
        return f"is being worked on here by {present.worker}; what is here stays"
    return None


def _is_older(row: Row) -> Outcome:
    row.left = {}
    return Outcome.ALREADY


# The column with the item that a row belongs to.
ITEM = "its item"


@dataclass(frozen=True, slots=True)
class Table:
    """How a table's rows are named, ordered and versioned, and which column refers to their owner."""

    columns: str
    key: tuple[str, ...] = ("id",)
    at: str = "created_at"
    clock: str = ""
    # Columns with the tables that they refer to, as `column=table`; versions of a program differ in them.
    of: str = ""
    # Holds links or comments, under the name that those have here.
    kind: str | None = None


class TableTracker(Tracker):
    """Gathers rows of databases. Each place, such as a board or a project, is one run."""

    layout: ClassVar[dict[str, Table]]

    def __init_subclass__(cls) -> None:
        cls.tables = {name: tuple(table.columns.split()) for name, table in cls.layout.items()}

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        # The runs of the places, and what those are called.
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
        """Spell a value as texts can hold it, and a time as others do."""
        return plain(value)

    def is_done(self, _columns: dict[str, Any]) -> bool:
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
            # Rows before the damage are imported, and the other tables may be intact.
            self.report.lose(f"{table}: {problem.message}; the rows behind that were not read")

    def _hold(self, table: str, columns: dict[str, Any], database: str) -> None:
        layout = self.layout[table]
        name = "/".join(str(columns[part]) for part in layout.key if part in columns) or Row(table, "", columns).digest()
        item: str | None
        if table == self.items:
            item = name = f"{self.place_of(table, columns, database)}/{name}"
            self._owners.setdefault((table, str(columns.get(layout.key[0]))), item)
        else:
            references = (reference.split("=") for reference in layout.of.split())
            owners = (self.owner(its_table, columns.get(column)) for column, its_table in references)
            columns[ITEM] = item = next(filter(None, owners), None)
            self._owners.setdefault((table, name), item)
        at, clock = moment_of(columns.get(layout.at)), moment_of(columns.get(layout.clock))
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
        """Return the item's own id."""
        return item.rpartition("/")[2]

    def item_of(self, run_id: str, task_id: str) -> str:
        """Return an item's name with its place."""
        return f"{next(place for place, its_run in self.places.items() if its_run == run_id)}/{task_id}"

    # Mappings

    def mappings(self) -> dict[str, Any]:
        """Return the tables with their mappings: other tables than items, links and comments become entries."""
        own = {table: self.happened for table, layout in self.layout.items() if not layout.kind and table != self.items}
        return {**super().mappings(), **own}

    @abstractmethod
    def happened(self, row: Row) -> PendingEntry:
        """Describe the entry that a row becomes."""

    def its_item(self, row: Row) -> str:
        """Take the item that a row belongs to, and place it in that one's run."""
        item = row.take(ITEM)
        if item is None:
            raise Invalid("what it belongs to is not in the source")
        row.stream = self.run_of(item)
        return str(item)

    def event_entry(self, row: Row, *, subtype: str, body: str, at: Any, agent: str | None = None) -> PendingEntry:
        """Describe an entry of an item's run, with all of the row that was not taken yet."""
        item = self.its_item(row)
        payload, row.left = {name: plain(value) for name, value in row.left.items()}, {}
        entry = {"body": body, "kind": EntryKind.EVENT, "subtype": subtype, "agent": agent, "payload": payload or None, "at": at}
        return self.writer.entry(row, {**entry, "task_id": self.task_of(item)})
