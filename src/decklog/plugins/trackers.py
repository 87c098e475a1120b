"""Start a run from a tracker: import its items, work on some of them, and write their states back."""

import re
from collections.abc import Callable
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from decklog.conductor.git.repository import Repository
from decklog.conductor.plan import plan_from_tasks
from decklog.conductor.starting import RunRequest
from decklog.core.clock import from_text, to_text
from decklog.core.errors import Invalid
from decklog.core.plugins import PluginKind, plugin_failure, report_failures
from decklog.importing.importer import Link
from decklog.importing.row import Row, to_storable
from decklog.importing.sync import Sync, SyncReport
from decklog.importing.tracker import COMMENTS, LINKS, Tracker
from decklog.importing.writer import Mapping, PendingEntry, PendingRecord, pure_mapping
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.plugins import ImportContext, Imported, ImportedComment, ImportedEvent, ImportedLink, ImportedTask, Importer
from decklog.plugins.importers.beads import BeadsSync
from decklog.plugins.importers.github import GithubSync
from decklog.plugins.importers.taskmaster.sync import TaskMasterSync
from decklog.stores.checks import check_filled, check_integer, check_object, check_text
from decklog.stores.tasks.task import LinkKind, Task, TaskState

_SYNCS: dict[str, type[Sync]] = {"beads": BeadsSync, "github": GithubSync, "taskmaster": TaskMasterSync}
TRACKERS = tuple(_SYNCS)
_GITHUB = re.compile(r"github\.com[:/]+([\w.-]+)/([\w.-]+?)(?:\.git)?/?$")


@dataclass(frozen=True)
class RepositoryTracker:
    """One tracker of a repository. Its items become tasks of the run with its name."""

    name: str
    path: str

    @classmethod
    def of(cls, name: str, repository: Repository) -> "RepositoryTracker":
        """Find the tracker of a repository: its files, or the issues of the repository that the remote origin names."""
        if name not in _SYNCS:
            raise Invalid(f"there is no tracker {name!r}", hint=f"Use one of {', '.join(TRACKERS)}.", field="from")
        if name != "github":
            return cls(name, str(repository.folder))
        url = repository.on_refs("config", "--get", "remote.origin.url", accepted=(0, 1)).text
        found = _GITHUB.search(url)
        if found is None:
            hint = "Add it: git remote add origin https://github.com/OWNER/REPOSITORY"
            raise Invalid("the remote origin names no repository of GitHub", hint=hint, field="from")
        return cls(name, f"{found[1]}/{found[2]}")

    def sync(self, log: Decklog) -> SyncReport:
        """Apply each side's changes to the other."""
        return _SYNCS[self.name](log, self.path, run_id=self.name).run()

    def wanted(self, log: Decklog, query: str) -> RunRequest:
        """Build the plan of the items that match a query."""
        found = plan_from_tasks(log, self.name, parse_query(query))
        # The plan has only open items, so that no work is paid for twice.
        return RunRequest(found.goal, f"{self.name} {query}".encode(), found, is_again=True)


def parse_query(query: str) -> Callable[[Task], bool]:
    """Parse a query: `label:NAME` for labels, `#12` or an id for single items, other words for the title.

    All labels and words must match, and one of several ids. An empty query matches every open item.
    """
    words = query.split()
    labels = {word.removeprefix("label:").casefold() for word in words if word.startswith("label:")}
    others = [word for word in words if not word.startswith("label:")]

    ids = [word for word in others if _looks_like_id(word)]
    texts = [word.casefold() for word in others if not _looks_like_id(word)]

    def is_wanted(task: Task) -> bool:
        return (
            labels <= {tag.casefold() for tag in task.tags}
            and all(word in task.title.casefold() for word in texts)
            and (not ids or any(_is_id(task.id, word) for word in ids))
        )

    return is_wanted


def _is_id(task_id: str, word: str) -> bool:
    return word == task_id or re.split(r"[#/-]", task_id)[-1] == word.removeprefix("#")


def _looks_like_id(word: str) -> bool:
    """Return whether a word can only be an id: a number, or letters and digits with a hyphen, such as `bd-a1b2`."""
    return word.startswith("#") or word.isdecimal() or re.fullmatch(r"[a-z]+-\w*\d\w*", word) is not None


_TASKS, _EVENTS = "tasks", "events"


class RecordImport(Tracker):
    """Writes the tasks, links, comments and events of one source to one run."""

    items = _TASKS
    goal = "Imported tasks"

    def __init__(
        self,
        log: Decklog,
        path: str,
        importer: Importer,
        *,
        name: str,
        run_id: str,
        dry_run: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        # Part of the keys of entries, so that two plug-ins never share one.
        self.system = name  # type: ignore[misc]
        super().__init__(log, path, run_id=run_id, dry_run=dry_run, progress=progress)
        self._importer = importer

    def gather(self) -> None:
        """Read everything that the plug-in yields."""
        path, context = Path(self.path), ImportContext(self.run_id)
        with report_failures(PluginKind.IMPORTER, self.system):
            if not self._importer.detect(path):
                raise Invalid(f"{path} does not look like data of {self.system}", path=self.path)
            for record in self._importer.read(path, context):
                try:
                    self._add(record)
                except Exception as problem:
                    where = f" at {_item_of(record)}"
                    raise plugin_failure(PluginKind.IMPORTER, self.system, problem, where) from problem
            for note in context.notes:
                self.report.note(str(note))

    def _add(self, record: Imported) -> None:
        fields = check_record(record)
        columns = to_storable({name: to_text(value) if isinstance(value, datetime) else value for name, value in fields.items()})
        match record:
            case ImportedTask():
                clock = columns["updated_at"] or ""
                is_done = fields["state"] is TaskState.DONE
                self.gathered.add(_TASKS, record.id, columns, at=columns["created_at"], clock=clock, is_done=is_done)
            case ImportedLink():
                self.gathered.add(LINKS, f"{record.task_id}/{record.other_id}/{record.kind}", columns)
            case ImportedComment() | ImportedEvent():
                table = COMMENTS if isinstance(record, ImportedComment) else _EVENTS
                self.gathered.add(table, f"{record.task_id}#{record.id}", columns, at=columns["at"])

    def mappings(self) -> dict[str, Mapping]:
        return {**super().mappings(), _EVENTS: self.event}

    @pure_mapping
    def item(self, row: Row) -> PendingRecord:
        """Describe the task of an item."""
        row.leftovers = {}
        given: dict[str, Any] = row.columns
        updated = given.get("updated_at")
        return self.task(
            row,
            title=given["title"],
            objective=given["objective"],
            state=TaskState(given["state"]),
            priority=given["priority"],
            tags=list(given["tags"]),
            inputs={self.system: given["more"]} if given["more"] else {},
            created_at=from_text(given["created_at"]),
            updated_at=from_text(updated) if updated else None,
        )

    def read_link(self, row: Row) -> Link:
        return Link(row.take("task_id"), row.take("other_id"), LinkKind(row.take("kind")))

    @pure_mapping
    def comment(self, row: Row) -> PendingRecord:
        given, row.leftovers = row.columns, {}
        return self.comment_record(row, given["task_id"], author=given["author"], body=given["body"], at=from_text(given["at"]))

    @pure_mapping
    def event(self, row: Row) -> PendingEntry:
        """Describe the entry of an event."""
        given, row.leftovers, row.stream = row.columns, {}, self.run_id
        entry = {"kind": EntryKind.EVENT, "subtype": given["kind"], "body": given["body"], "payload": given["payload"] or None}
        return self.writer.entry(row, {**entry, "at": from_text(given["at"]), "task_id": given["task_id"]})


def _item_of(record: object) -> object:
    """Return the id of the item that a record belongs to; without one, the record's type."""
    return getattr(record, "task_id", None) or getattr(record, "id", None) or type(record).__name__


def check_record(record: Imported) -> dict[str, Any]:
    """Return the fields of a record; raise Invalid for a value that its interface does not allow."""
    checks = _CHECKS.get(type(record))
    if checks is None:
        raise Invalid(f"an importer yields tasks, links, comments and events, not {type(record).__name__}")
    return {name: checks[name](name, value) for name, value in vars(record).items()}


def _tags(name: str, value: object) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"{name} is a list of texts; got {value!r}", field=name)
    return [check_text(f"each of {name}", tag) for tag in value]


def _time(name: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise Invalid(f"{name} is a datetime; got {value!r}", field=name)
    if value.utcoffset() is None:
        raise Invalid(f"{name} has no time zone; add one, such as tzinfo=UTC", field=name)
    return value


def _optional_time(name: str, value: object) -> datetime | None:
    return None if value is None else _time(name, value)


def _state(name: str, value: object) -> TaskState:
    state: TaskState = _one_of(TaskState, name, value)
    if state is TaskState.RUNNING:
        raise Invalid("an imported task can't be running; yield TaskState.PAUSED", field=name)
    return state


def _one_of(kind: Any, name: str, value: object) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise Invalid(f"{name} is one of {', '.join(kind)}; got {value!r}", field=name) from None


def _mapping(name: str, value: object) -> dict[str, object]:
    return check_object(name, dict(value) if isinstance(value, AnyMapping) else value)


_IDS = {"id": check_filled, "task_id": check_filled}
_CHECKS: dict[type, dict[str, Callable[[str, object], Any]]] = {
    ImportedTask: {
        "id": check_filled,
        "title": check_text,
        "objective": check_text,
        "state": _state,
        "priority": partial(check_integer, high=100),
        "tags": _tags,
        "created_at": _time,
        "updated_at": _optional_time,
        "more": _mapping,
    },
    ImportedLink: {"task_id": check_filled, "other_id": check_filled, "kind": partial(_one_of, LinkKind)},
    ImportedComment: {**_IDS, "author": check_text, "body": check_text, "at": _time},
    ImportedEvent: {**_IDS, "kind": check_text, "body": check_text, "at": _time, "payload": _mapping},
}
