"""Work items of a tracker become tasks of a run, with their links and what was said of them, whatever order they come in."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Invalid, NotFound
from decklog.core.ids import is_ours
from decklog.importing.draft import RecordDraft, describes
from decklog.importing.gathering import Gathered
from decklog.importing.importing import Import
from decklog.importing.link_order import LinkOrder
from decklog.importing.report import Fate, Report
from decklog.importing.row import EPOCH, Row, kept_columns, kept_json, plain
from decklog.importing.source import SqliteSource
from decklog.importing.versions import NOTE
from decklog.records.values import to_json
from decklog.stores.intake import ANY_OF, together
from decklog.stores.runs.run import Run, RunStatus
from decklog.stores.tasks.task import Dependency, LinkKind, Task, TaskComment, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from typing import Any

    from decklog.importing.landing import Mapping
    from decklog.log import Decklog

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
 where run_id = :run_id and id in {ANY_OF} and open_dependencies <> {_COUNTED}
returning *
"""
_RUNS = f"select id, run_id from tasks where id in {ANY_OF}"
_TOGETHER = 10_000
_LINKED = f"select task_id, depends_on from dependencies where task_id in {ANY_OF}"
_WAITING = f"select run_id, task_id from dependencies where kind = 'blocks' and depends_on in {ANY_OF}"


@dataclass(frozen=True, slots=True)
class Link:
    """A link as the source has it: which item, with which other, and how."""

    item: str
    other: str
    kind: LinkKind


@dataclass(frozen=True, slots=True)
class NestedRow:
    """A row that stands within another one."""

    table: str
    id: str
    columns: "dict[str, Any]"
    at: str = ""


class Tracker(Import):
    """Takes a tracker's items over. A subclass gathers rows, and says what an item, a link and a comment are."""

    tables: ClassVar[dict[str, tuple[str, ...]]] = {}
    keys: ClassVar[dict[str, tuple[str, ...]]] = {}
    # The table whose rows become tasks, and the others in the order in which they are taken.
    items: ClassVar[str]
    goal: ClassVar[str]

    def __init__(self, log: "Decklog", path: str, *, run_id: str, **settings: "Any") -> None:
        super().__init__(log, path, **settings)
        self.run_id = run_id
        self.gathered = Gathered()
        self.links = LinkOrder(self.gathered, self.items)
        # Whether the items' parts were held with them.
        self._has_parts = False
        self.runs: dict[str, str] = {}
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

    def parts_of(self, _item: Row) -> "Iterator[NestedRow]":
        """Yield the links and comments that stand within an item."""
        yield from ()

    def run_of(self, _item: str) -> str:
        """Name the run that an item belongs to."""
        return self.run_id

    def task_of(self, item: str) -> str:
        """Name the task that an item becomes."""
        return item

    def goals(self) -> "dict[str, str]":
        """Name the runs that the items belong to, each with its goal."""
        return {self.run_id: self.goal}

    def facts_of(self, _run_id: str) -> "dict[str, object]":
        """Give what is to be known of a run to write it back."""
        return {}

    def check(self, source: SqliteSource) -> None:
        """Refuse what is not this tracker's; a file of text is looked at line by line."""

    def run(self) -> Report:
        """Take everything over, or only say what would become of it."""
        try:
            self.gather()
            self._take_apart()
            self._find_elsewhere()
            self._judge_links()
            with self.landing.open():
                self._make_runs()
                for table, mapping in self.mappings().items():
                    self._take_table(table, mapping, self.gathered.rows(table))
        finally:
            self.gathered.close()
        return self.report

    def mappings(self) -> "dict[str, Mapping]":
        """Name the tables with their mappings; a subclass adds its own."""
        return {self.items: self.item, LINKS: self.link, COMMENTS: self.comment, LINES: self.unread}

    # Before anything is written

    def hold_line(self, text: str, trouble: str) -> None:
        """Hold a line that is no row, by what it says."""
        row = Row(LINES, "", {"line": text, "why": trouble})
        self.gathered.add(LINES, row.digest(), row.as_json())

    def hold(self, item: str, columns: "dict[str, Any]", *, at: str, clock: str, is_done: bool) -> None:
        """Hold an item with its parts, which are at hand now; for a tracker whose parts tell all of themselves."""
        self._has_parts = True
        held, text = kept_columns(columns)
        if held is not columns and (odd := [name for name, value in columns.items() if _is_odd_within(value)]):
            self.report.note(f"{self.items} {item}: what no record can hold within {', '.join(odd)} is written out as text")
        self.gathered.add(self.items, item, text, at=at, clock=clock, is_done=is_done)
        self._hold_parts(Row(self.items, item, held))

    def _hold_parts(self, item: Row) -> None:
        for part in self.parts_of(item):
            self.gathered.add(part.table, part.id, kept_json(plain(part.columns)), at=part.at, is_part=True)

    def _take_apart(self) -> None:
        """Hold the parts of the items: of the version that is taken, since an older one may have what was removed."""
        if self._has_parts and not self.gathered.has_versions(self.items):
            return
        self.gathered.remove_parts()
        for row in self.gathered.rows(self.items):
            self._hold_parts(row)
        self.gathered.settle()

    def _find_elsewhere(self) -> None:
        """Find the items of which nothing is to be brought: neither they nor their links and comments."""
        names = self.gathered.names(self.items)
        while batch := [*islice(names, _TOGETHER)]:
            items = {self.task_of(item): item for item in batch}
            self.elsewhere |= self.log.db.read(partial(self._elsewhere, items))

    def _elsewhere(self, items: "dict[str, str]") -> set[str]:
        found = (row for asked in together([*items]) for row in self.log.db.rows(_RUNS, asked)[1])
        return {items[task_id] for task_id, run_id in found if run_id != self.run_of(items[task_id])}

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
            self.links.add(row.id, link.item, link.other, link.kind)
        self.log.db.read(lambda: self.links.judge(self._present_links(), self._is_here))

    def _present_links(self) -> "Iterator[tuple[str, str, str]]":
        sql = "select task_id, depends_on, kind from dependencies where run_id = :run_id"
        for run_id in self.goals():
            for task, other, kind in self.log.db.each(sql, {"run_id": run_id}):
                yield self.item_of(run_id, task), self.item_of(run_id, other), kind

    def item_of(self, _run_id: str, task_id: str) -> str:
        """Name the item that a task of a run was made of."""
        return task_id

    def _is_here(self, item: str) -> bool:
        found = self.log.db.read(lambda: self.landing.intake.seek(Task, self.task_of(item)))
        return found is not None and found.run_id == self.run_of(item)

    def first_at(self) -> str | None:
        """Return when the work began."""
        return self.gathered.first_at()

    def _make_runs(self) -> None:
        started = from_text(self.first_at() or to_text(self.log.clock.now()))
        for run_id, goal in self.goals().items():
            try:
                self.log.runs.get(run_id)
            except NotFound:
                times: dict[str, Any] = {"started_at": started, "updated_at": started}
                with self.log.transaction():
                    self.landing.record(
                        Run,
                        new_stream=True,
                        id=run_id,
                        goal=goal,
                        status=RunStatus.ACTIVE,
                        metadata=self.facts_of(run_id),
                        **times,
                    )

    # Tables

    def has_tasks_here(self) -> bool:
        """Return whether a task is here of a run that the items belong to."""
        sql = "select 1 from tasks where run_id = :run_id limit 1"
        return any(self.log.db.read(lambda: self.log.db.one(sql, {"run_id": run_id})) for run_id in self.goals())  # noqa: B023

    def _take_table(self, table: str, mapping: "Mapping", rows: "Iterable[Row]") -> None:
        after = {self.items: self._after_items, LINKS: self._after_links}.get(table)
        self.landing.take_all(rows, mapping, self.gathered.count(table), after)
        self.landing.take_all((row for row, differs in self.gathered.others(table) if not differs), _is_older)
        self.landing.take_all((row for row, differs in self.gathered.others(table) if differs), self._differs)

    @abstractmethod
    def item(self, row: Row) -> "Any":
        """Describe the task that an item becomes."""

    def task(self, row: Row, *, created_at: "datetime", updated_at: "datetime | None", **fields: "Any") -> RecordDraft:
        """Describe a task of an item's run; nobody who has it here is disturbed.

        Without a time of its last change, what was changed here stays.
        """
        run_id = row.stream = self.run_of(row.id)
        title = fields.pop("title") or row.id
        if len(title) > _LONGEST_TITLE:
            title = row.replace("title", title[:_LONGEST_TITLE])
        told = {"id": self.task_of(row.id), "run_id": run_id, "title": title, **fields}
        changed = {"updated_at": max(created_at, updated_at or created_at)}
        first = {"created_at": created_at, "open_dependencies": self.links.open_count(row.id)}
        told = self._what_differs(row, told)
        if updated_at is None:
            return RecordDraft(row, Task, told, at_first={**first, **changed}, stays=partial(_why_stays, run_id))
        return RecordDraft(row, Task, {**told, **changed}, clock="updated_at", at_first=first, stays=partial(_why_stays, run_id))

    def _what_differs(self, row: Row, told: "dict[str, Any]") -> "dict[str, Any]":
        """Leave out what the item says no different than the task that is here: its words may be coarser than ours."""
        here = self.as_here.get(row.id)
        if here is None or row.columns is here:
            return told
        mine = self.item(Row(row.table, row.id, here)).fields
        differs = {name: value for name, value in told.items() if name in _NAMED_BY or mine[name] != value}
        present = self.landing.intake.seek(Task, told["id"]) if "inputs" in differs else None
        if present is not None:
            # What the source does not know of stays.
            differs["inputs"] = {**present.inputs, **differs["inputs"]}
        return differs

    @describes
    def link(self, row: Row) -> RecordDraft:
        """Describe a link, unless it can't be made."""
        self._at_home(row)
        link = self.link_of(row)
        run_id = row.stream = self.run_of(link.item)
        self._refuse_elsewhere(link.item, link.other)
        if (why := self.links.why_not(row.id)) is not None:
            raise Invalid(why)
        ends = {"task_id": self.task_of(link.item), "depends_on": self.task_of(link.other)}
        row.made = link_name(**ends)
        return RecordDraft(row, Dependency, {"run_id": run_id, **ends, "kind": link.kind})

    @abstractmethod
    def comment(self, row: Row) -> "Any":
        """Describe what somebody said of an item."""

    def said(self, row: Row, item: str, *, author: str, body: str, at: "datetime") -> RecordDraft:
        """Describe what somebody said of an item."""
        run_id = row.stream = self.run_of(item)
        self._refuse_elsewhere(item)
        name = row.id.rpartition("#")[2]
        # One that was said here and written there is known by the id that it has here.
        comment_id = name if is_ours(name) else f"{self.task_of(item)}#{name}"
        told = {"id": comment_id, "run_id": run_id, "task_id": self.task_of(item)}
        return RecordDraft(row, TaskComment, {**told, "author": author or "unknown", "body": body, "created_at": at})

    @describes
    def unread(self, row: Row) -> "Any":
        """Keep what is no row."""
        self._at_home(row)
        raise Invalid(str(row.columns["why"]))

    def _at_home(self, row: Row) -> None:
        """Place a row that may belong to no item in the run that is named first, if there is one."""
        if self.run_id in self.goals():
            row.stream = self.run_id

    def _differs(self, row: Row) -> Fate:
        row.stream = self.run_of(row.id)
        return self.landing.keep(row, "there is another version of the same time, which was taken")

    # What follows from a batch

    def _after_items(self, taken: "list[tuple[Row, Fate]]") -> None:
        """Take off the links that an item has lost since, and let those that wait for it know whether it is done."""
        changed = [row.id for row, fate in taken if fate is Fate.CHANGED]
        same = {self.task_of(row.id): row for row, fate in taken if fate is Fate.ALREADY and row.id not in self.elsewhere}
        for item in [*changed, *self._with_lost_links(same)]:
            self._take_links_off(item)
        waiting: dict[str, list[str]] = {}
        for asked in together([self.task_of(item) for item in changed]):
            for run_id, task_id in self.log.db.rows(_WAITING, asked)[1]:
                waiting.setdefault(run_id, []).append(task_id)
        for run_id, tasks in waiting.items():
            self._recount(run_id, tasks)

    def _with_lost_links(self, rows: "dict[str, Row]") -> "Iterator[str]":
        """Name the items that are as they were but for a link that the source no longer has."""
        lost: dict[str, Task | None] = {}
        for asked in together([*rows]):
            for task_id, other in self.log.db.rows(_LINKED, asked)[1]:
                if other not in {self.task_of(one) for one in self.links.others_of(rows[task_id].id)}:
                    lost[task_id] = self.landing.intake.seek(Task, task_id)
        for task_id, present in lost.items():
            row = rows[task_id]
            updated_at = self.item(Row(row.table, row.id, row.columns)).fields.get("updated_at")
            # An older version of the item has other links, and they are not the present ones.
            if present is not None and (updated_at is None or updated_at >= present.updated_at):
                yield row.id

    def _take_links_off(self, item: str) -> None:
        task_id, run_id = self.task_of(item), self.run_of(item)
        told = {self.task_of(other) for other in self.links.others_of(item)}
        for link in self.landing.intake.select(Dependency, "select * from dependencies where task_id = :id", id=task_id):
            history = self.log.journal.history(Dependency.table, link.id_of(link.values()), limit=200)
            if link.depends_on in told or any(entry.body != NOTE for entry in history):
                continue
            sql = "delete from dependencies where task_id = :task_id and depends_on = :other returning *"
            ends = {"run_id": run_id, "task_id": task_id, "other": link.depends_on}
            self.landing.intake.remove(Dependency, sql, note=NOTE, **ends)
        self._recount(run_id, [task_id])

    def _after_links(self, taken: "list[tuple[Row, Fate]]") -> None:
        """Count again what those with new links wait for."""
        tasks: dict[str, list[str]] = {}
        for row, fate in taken:
            if fate in (Fate.NEW, Fate.CHANGED):
                item = self.link_of(Row(row.table, row.id, row.columns)).item
                tasks.setdefault(self.run_of(item), []).append(self.task_of(item))
        for run_id, found in tasks.items():
            self._recount(run_id, found)

    def _recount(self, run_id: str, tasks: "list[str]") -> None:
        for asked in together([*dict.fromkeys(tasks)]):
            self.landing.intake.change_all(Task, _RECOUNT, note=NOTE, run_id=run_id, **asked)


def _is_odd_within(value: object) -> bool:
    """Return whether a list or an object holds what no record can; what is so itself is left over, and told."""
    try:
        return isinstance(value, (list, dict)) and not to_json(value)
    except Invalid:
        return True


def link_name(task_id: str, depends_on: str) -> str:
    """Name a link, so that what was kept beside it is found again."""
    return f"{LINKS} {to_json([task_id, depends_on])}"


def moment_of(value: object) -> str:
    """Spell a time so that texts sort as times do; what is none comes first."""
    if not isinstance(value, str):
        return ""
    try:
        return to_text(from_text(value.strip()))
    except (ValueError, OverflowError):
        return ""


def set_time(row: Row, name: str) -> "datetime | None":
    """Take a time that was ever set: some programs write the first moment of their calendar for none."""
    moment: datetime | None = row.time(name)
    return None if moment is None or moment <= EPOCH else moment


def _why_stays(run_id: str, present: Task) -> str | None:
    if present.run_id != run_id:
        raise Invalid(f"task {present.id} belongs to run {present.run_id} here")
    if present.state == TaskState.RUNNING:
        return f"is being worked on here by {present.worker}; what is here stays"
    return None


def _is_older(row: Row) -> Fate:
    row.left = {}
    return Fate.ALREADY
