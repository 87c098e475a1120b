"""Takes a plan back that a person edited: field by field against the state that it was written from."""

from hashlib import sha256
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.importing.landing import RowWriter
from decklog.importing.report import Fate, Report
from decklog.importing.syncing import shown, tell
from decklog.importing.text_files import text_of
from decklog.plugins.importers.markdown.items import THREE_WAY, base_of, item_of
from decklog.plugins.importers.markdown.plan_text import read
from decklog.stores.tasks.task import Dependency, LinkKind, Task

if TYPE_CHECKING:
    from typing import Any

    from decklog.log import Decklog
    from decklog.plugins.importers.markdown.plan_text import Section

_SYSTEM = "markdown"
_TASKS = "tasks"
_WHY = "edited in a plan"
_KEYED = "select id from tasks where run_id = :run_id and key = :key"
_USUAL: "dict[str, Any]" = {"state": "pending", "priority": 50}
_EDITED = ("title", "objective", "priority", "role", "tags", "acceptance", "verification")
_EMPTIED = ("objective", "role", "tags", "acceptance", "verification")


class MarkdownImport:
    """Brings what was changed in a plan; what was changed here since stays, and what both changed is put to a person."""

    def __init__(self, log: "Decklog", path: str, *, dry_run: bool = False) -> None:
        self._log = log
        self._path = path
        self.report = Report(_SYSTEM, path, dry_run)
        self._landing = RowWriter(log, self.report)
        self._run_id = ""
        self._names: dict[str, str] = {}

    def run(self) -> Report:
        """Take the sections in their order: new tasks first, so that others can name them."""
        self._run_id, sections = read(text_of(self._path), self._path)
        self._log.runs.get(self._run_id)
        with self._landing.open():
            placed = [(self._placed(section), section) for section in sections if not self._is_named_twice(section)]
            for (task_id, entry, is_new), section in placed:
                self.report.count(_TASKS, [self._take(task_id, entry, is_new, section)])
        return self.report

    def _is_named_twice(self, section: "Section") -> bool:
        """Refuse a new task whose title another new one has: by its title it is known when the plan is taken again."""
        title = section.item["title"]
        if section.task_id is not None or title not in self._names:
            return False
        self.report.note(f"{title}: another new task of the plan is called so; give this one another title")
        self.report.count(_TASKS, [Fate.REFUSED])
        return True

    def _placed(self, section: "Section") -> "tuple[str, int, bool]":
        """Find the task of a section, or make the one that it asks for, once."""
        if section.task_id is not None:
            return section.task_id, section.entry, False
        title = section.item["title"]
        key = f"import:{_SYSTEM}:{sha256(title.encode()).hexdigest()[:24]}"
        found = self._log.db.read(lambda: self._log.db.one(_KEYED, {"run_id": self._run_id, "key": key}))
        task_id = found[0] if found else self._log.tasks.add(self._run_id, title, key=key).id
        self._names[title] = task_id
        first = self._log.journal.history(Task.table, task_id, limit=1)[0]
        return task_id, first.seq, found is None

    def _take(self, task_id: str, entry: int, is_new: bool, section: "Section") -> Fate:
        try:
            task = self._log.tasks.get(task_id)
        except NotFound:
            self.report.note(f"{section.item['title']}: there is no task {task_id}; take the line with its id off to add it")
            return Fate.REFUSED
        ours = self._item(task)
        # What every task has stays as it is where the plan no longer says it.
        theirs = {**(_USUAL if section.task_id is None else {name: ours[name] for name in _USUAL}), **section.item}
        theirs["needs"] = [self._names.get(name, name) for name in theirs.get("needs", ())]
        theirs["part of"] = self._names.get(str(theirs.get("part of")), theirs.get("part of"))
        base = base_of(self._log, task_id, entry, {*ours["needs"], *theirs["needs"], *filter(None, (ours["part of"],))})
        merged = THREE_WAY.merge(task_id, base, ours, theirs)
        disputed = [shown(one) for one in merged.differences]
        for one in disputed:
            self.report.note(f"{task_id}: {one['field']} was changed here and in the plan; what is here stays")
        tell(self._log, _SYSTEM, self._run_id, [(one, task_id) for one in disputed])
        if merged.here is None:
            return Fate.NEW if is_new else Fate.ALREADY
        return self._changed(task_id, ours, merged.here, Fate.NEW if is_new else Fate.CHANGED)

    def _item(self, task: Task) -> "dict[str, Any]":
        sql = "select * from dependencies where task_id = :id"
        return item_of(task, self._log.db.read(lambda: self._landing.intake.select(Dependency, sql, id=task.id)))

    def _changed(self, task_id: str, ours: "dict[str, Any]", item: "dict[str, Any]", fate: Fate) -> Fate:
        """Change a task by the verbs that anybody has; what these refuse is told, and the task stays as it was."""
        try:
            with self._log.transaction():
                self._edit(task_id, ours, item)
                self._link(task_id, ours, item)
                if item.get("state") != ours["state"]:
                    self._move(task_id, ours["state"], str(item.get("state")))
        except DecklogError as problem:
            if problem.retryable:
                raise
            self.report.note(f"{task_id} stays as it is: {problem.message}")
            return Fate.REFUSED
        return fate

    def _edit(self, task_id: str, ours: "dict[str, Any]", item: "dict[str, Any]") -> None:
        differing = [name for name in _EDITED if (item.get(name) or None) != (ours[name] or None)]
        if differing:
            cleared = [name for name in differing if name in _EMPTIED and not item.get(name)]
            given = {name: item[name] for name in differing if name not in cleared}
            self._log.tasks.edit(task_id, reason=_WHY, clear=cleared or None, **given)
        if (worker := item.get("assigned to")) != ours["assigned to"]:
            self._log.tasks.assign(task_id, worker, reason=_WHY)

    def _link(self, task_id: str, ours: "dict[str, Any]", item: "dict[str, Any]") -> None:
        was, now = set(ours["needs"]), set(item.get("needs", ()))
        whole, new_whole = ours["part of"], item.get("part of")
        gone = (was - now) | ({whole} if whole and whole != new_whole else set())
        for other in sorted(gone):
            self._log.tasks.undepend(task_id, other, reason=_WHY)
        for other in sorted(now - was):
            self._log.tasks.depend(task_id, other)
        if new_whole and new_whole != whole:
            self._log.tasks.depend(task_id, new_whole, kind=LinkKind.PARENT)

    def _move(self, task_id: str, was: str, state: str) -> None:
        match was, state:
            case _, "paused":
                self._log.tasks.pause(task_id, reason=_WHY)
            case "paused", "pending":
                self._log.tasks.resume(task_id)
            case _, "abandoned":
                self._log.tasks.abandon(task_id, reason=_WHY)
            case _, "done" | "pending" | "running" | "waiting" | "blocked":
                raise Conflict(f"a plan can't make a task that is {was} {state}; it can pause, resume and abandon", state=was)
            case _:
                raise Invalid(f"there is no state {state!r}", field="state")
