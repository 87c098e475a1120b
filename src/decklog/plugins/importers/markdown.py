"""A run's plan as Markdown: exported for people, edited by them, and merged back."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from decklog.core.display import one_line
from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound
from decklog.importing.exports import TASK_FIELDS, TextExport, each
from decklog.importing.files import read_text
from decklog.importing.report import Outcome, Report
from decklog.importing.sync import Base, ThreeWayMerge, report_conflicts
from decklog.importing.writer import RowWriter
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.tasks.task import Dependency, LinkKind, Task

FACTS = ("state", "priority", "role", "assigned to", "tags", "needs", "part of")
LISTS = ("acceptance", "verification")
_SETS = ("tags", "needs")
_IDS = ("needs", "part of")
_LINE_END = re.compile("\r\n?")
# Match whole lines only: a goal or a text may quote a mark.
_RUN = re.compile(r"(?m)^<!-- plan of run (\S+) -->[ \t]*$")
_TASK = re.compile(r"(?m)^<!-- task (.+) as of entry (\d+) -->[ \t]*$")
_HEADING = re.compile(r"##[ \t]+(.*)")
_PART = re.compile(r"###[ \t]+(.*)")
_FACT = re.compile(r"[-*+] ([A-Za-z ]+):(?:[ \t]+(.*))?\Z")
_LISTED = re.compile(r"(?:[-*+]|\d+[.)])(?:[ \t]+|\Z)(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# A line of a text that would be parsed as markup of the plan.
_STARTS = r"(#{1,3}[ \t]|<!-- |<{7} |>{7} |[-*+] (?:" + "|".join(FACTS) + "):)"
_MARKUP = re.compile(rf"(?mi)^(\\*){_STARTS}")
_ESCAPED = re.compile(rf"(?mi)^\\(\\*){_STARTS}")
_MARKER = re.compile(r"(?m)^(<{7} |>{7} )")
# Members of a set are separated by commas; a backslash escapes a comma in a name.
_MEMBER = re.compile(r"(?:\\[\\,]|[^,])+")
_SPECIAL = re.compile(r"[\\,]")
_ESCAPED_SEPARATOR = re.compile(r"\\([\\,])")
# Longer code blocks are not recognized, so that parsing takes linear time.
_LONGEST_CODE = 2000
_PLAIN_ID = re.compile(r'[^"\s]\S*')


@dataclass(frozen=True, slots=True)
class Section:
    """The content of a section; without an id, it is a new task."""

    task_id: str | None
    entry: int
    item: dict[str, Any]


def head(goal: str, run_id: str) -> str:
    """Format the head of a plan."""
    return f"# {one_line(goal)}\n\n<!-- plan of run {run_id} -->\n"


def section(task_id: str, entry: int, item: dict[str, Any]) -> str:
    """Format a task."""
    facts = [f"- {name}: {_spelled(name, item[name])}" for name in FACTS if item.get(name) not in (None, "", [])]
    named = f"<!-- task {_spelled_id(task_id)} as of entry {entry} -->"
    text = f"\n## {one_line(item['title'])}\n\n{named}\n\n" + "\n".join(facts) + "\n"
    if item.get("objective"):
        text += "\n" + _MARKUP.sub(r"\\\g<0>", item["objective"]) + "\n"
    for name in LISTS:
        if item.get(name):
            text += f"\n### {name.capitalize()}\n\n" + "".join(f"- {one_line(one)}\n" for one in item[name])
    return text


def read(text: str, path: str) -> tuple[str, list[Section]]:
    """Parse a plan: the id of its run, and its sections."""
    text = unix_lines(text)
    if _MARKER.search(text):
        raise Conflict(f"{path} has git conflict markers; resolve them first", hint="Edit the file.", path=path)
    found = _RUN.search(text)
    if found is None:
        raise Invalid(f"{path} is no plan: it does not say of which run", hint="Write one: decklog export markdown", path=path)
    return found[1], [_section(title, lines, path) for title, lines in _split(text.split("\n"), _HEADING) if title is not None]


def _split(lines: list[str], heading: re.Pattern[str]) -> Iterator[tuple[str | None, list[str]]]:
    """Split lines at their headings, except in code; lines before the first heading have none."""
    title: str | None = None
    held: list[str] = []
    behind_code = 0
    for place, line in enumerate(lines):
        if place >= behind_code:
            behind_code = _end_of_code(lines, place)
        if place >= behind_code and (found := heading.match(line)) is not None:
            yield title, held
            title, held = found[1].strip(), []
        else:
            held.append(line)
    yield title, held


def _end_of_code(lines: list[str], place: int) -> int:
    """Return the line after a code block that starts here; the same line if none does, or if it does not end within its task."""
    opening = _FENCE.match(lines[place])
    if opening is None:
        return place
    for later in range(place + 1, min(len(lines), place + _LONGEST_CODE)):
        if _TASK.match(lines[later]):
            return place
        closing = _FENCE.match(lines[later])
        if closing and closing[1].startswith(opening[1]) and lines[later].strip() == closing[1]:
            return later + 1
    return place


def _section(title: str, lines: list[str], path: str) -> Section:
    if not title:
        raise Invalid(f"{path} has a section without a title", hint="Write it behind the ##.", path=path)
    (_, body), *lists = _split(lines, _PART)
    rest = "\n".join(body)
    named = _TASK.search(rest)
    if named is not None:
        rest = rest[: named.start()] + rest[named.end() :]
    item: dict[str, Any] = {"title": one_line(title), **_body(rest, f"{path}: {title}")}
    for name, listed in lists:
        if (known := str(name).lower()) not in LISTS:
            raise Invalid(f"{path}: {title} has a part {name!r}; there are {', '.join(LISTS)}", path=path)
        item[known] = _items(listed)
    return Section(_read_id(named[1]) if named else None, int(named[2]) if named else 0, item)


def _items(lines: list[str]) -> list[str]:
    """Parse a list. A line that begins no item continues the previous one."""
    items: list[str] = []
    for line in filter(None, map(str.strip, lines)):
        found = _LISTED.match(line)
        if found is not None or not items:
            items.append(found[1] if found else line)
        else:
            items[-1] += f" {line}"
    return [one_line(item) for item in items if item.strip()]


def _body(body: str, where: str) -> dict[str, Any]:
    """Parse the facts, which come first, and the text after them."""
    facts: dict[str, Any] = {}
    lines = body.strip().split("\n")
    is_within = False
    while lines:
        found = _FACT.match(lines[0].rstrip())
        name = found[1].lower() if found else ""
        if found is not None and name in FACTS:
            facts[name] = _read_fact(name, (found[2] or "").strip())
        elif found is not None and is_within:
            hint = "Put an empty line before it where the text begins."
            raise Invalid(f"{where} has a fact {name!r}; there are {', '.join(FACTS)}", hint=hint)
        elif lines[0].strip():
            break
        is_within = found is not None
        lines.pop(0)
    return {**facts, "objective": _ESCAPED.sub(r"\1\2", "\n".join(lines).strip())}


def _read_fact(name: str, text: str) -> Any:
    if name in _SETS:
        members = [one_line(_ESCAPED_SEPARATOR.sub(r"\1", word)) for word in _MEMBER.findall(text)]
        return [_read_id(word) if name in _IDS else word for word in members if word]
    if name == "priority" and text.isdecimal():
        return int(text)
    if name == "state":
        return text.lower()
    return _read_id(text) if name in _IDS and text else one_line(text) or None


def _spelled(name: str, value: Any) -> str:
    if isinstance(value, list):
        members = (_spelled_id(one) if name in _IDS else one_line(one) for one in value)
        return ", ".join(_SPECIAL.sub(r"\\\g<0>", one) for one in members)
    return _spelled_id(value) if name in _IDS else one_line(str(value))


def _spelled_id(task_id: str) -> str:
    """Format an id; another tracker's may contain blanks and line breaks."""
    return task_id if _PLAIN_ID.fullmatch(task_id) else json.dumps(task_id)


def _read_id(text: str) -> str:
    try:
        found = json.loads(text) if text.startswith('"') else text
    except ValueError:
        return text
    return str(found)


def unix_lines(text: str) -> str:
    """Normalize line breaks, which editors change."""
    return _LINE_END.sub("\n", text)


THREE_WAY = ThreeWayMerge(
    ("title", "state", "priority", "role", "assigned to", "part of", "objective", "acceptance", "verification"),
    {"tags": lambda tag: tag, "needs": lambda task_id: task_id},
)


def item_of(task: Task, links: Iterable[Dependency]) -> dict[str, Any]:
    """Build the plan item of a task with its links; values on one line have no line breaks."""
    listed = list(links)
    return {
        "title": one_line(task.title),
        "state": task.state.value,
        "priority": task.priority,
        "role": one_line(task.role or "") or None,
        "assigned to": one_line(task.assigned_to or "") or None,
        "tags": [one_line(tag) for tag in task.tags],
        "needs": sorted(link.depends_on for link in listed if link.kind is LinkKind.BLOCKS),
        "part of": next((link.depends_on for link in listed if link.kind is LinkKind.PARENT), None),
        "objective": unix_lines(task.objective).strip(),
        "acceptance": [one_line(text) for text in task.acceptance],
        "verification": [one_line(text) for text in task.verification],
    }


def base_of(log: Decklog, task_id: str, entry: int, others: set[str]) -> Base:
    """Build the item of a task as of an entry, with its links at that moment to some other tasks."""
    try:
        task = log.journal.at(Task, task_id, str(entry))
    except NotFound:
        return {}
    item = item_of(task, [link for other in sorted(others) if (link := _link_at(log, task_id, other, entry))])
    return THREE_WAY.merge_base({}, item, item)


def _link_at(log: Decklog, task_id: str, other: str, entry: int) -> Dependency | None:
    try:
        return log.journal.at(Dependency, to_json([task_id, other]), str(entry))
    except NotFound:
        return None


_TASKS = "tasks"
_PLACED = (*TASK_FIELDS, "priority", "role", "tags", "verification", "assigned_to", "attempts", "key")


class MarkdownExport(TextExport):
    """Exports tasks in the order of creation: a section each, with the number of its newest entry."""

    system = "markdown"

    def write_all(self) -> None:
        run = self.log.runs.get(str(self.run_id))
        self.write(head(run.goal, run.id))
        for task in each(self.log, Task, "created_at, id", "where run_id = :run_id", run_id=run.id):
            links = each(self.log, Dependency, "depends_on", "where task_id = :id", id=task.id)
            [newest] = self.log.journal.find(run.id, task_id=task.id, kind=EntryKind.CHANGE, limit=1)
            self.write(section(task.id, newest.seq, item_of(task, links)))
            self.report.count(_TASKS)
            self.report.leave_out_fields(_TASKS, task, _PLACED)


_SYSTEM = "markdown"
_WHY = "edited in a plan"
_KEYED = "select id from tasks where run_id = :run_id and key = :key"
_USUAL: dict[str, Any] = {"state": "pending", "priority": 50}
_EDITED = ("title", "objective", "priority", "role", "tags", "acceptance", "verification")
_EMPTIED = ("objective", "role", "tags", "acceptance", "verification")


class MarkdownImport:
    """Imports changes of a plan; later local changes stay, and conflicts are put to a person."""

    def __init__(self, log: Decklog, path: str, *, dry_run: bool = False) -> None:
        self._log = log
        self._path = path
        self.report = Report(_SYSTEM, path, dry_run)
        self._writer = RowWriter(log, self.report)
        self._run_id = ""
        self._names: dict[str, str] = {}

    def run(self) -> Report:
        """Import the sections in order: new tasks first, so that others can refer to them."""
        self._run_id, sections = read(read_text(self._path), self._path)
        self._log.runs.get(self._run_id)
        with self._writer.open():
            placed = [(self._placed(section), section) for section in sections if not self._is_named_twice(section)]
            for (task_id, entry, is_new), section in placed:
                self.report.count(_TASKS, [self._take(task_id, entry, is_new, section)])
        return self.report

    def _is_named_twice(self, section: Section) -> bool:
        """Refuse a new task with the title of another one: a repeated import finds new tasks by title."""
        title = section.item["title"]
        if section.task_id is not None or title not in self._names:
            return False
        self.report.note(f"{title}: another new task of the plan is called so; give this one another title")
        self.report.count(_TASKS, [Outcome.REFUSED])
        return True

    def _placed(self, section: Section) -> tuple[str, int, bool]:
        """Find the task of a section, or create a new one once."""
        if section.task_id is not None:
            return section.task_id, section.entry, False
        title = section.item["title"]
        key = f"import:{_SYSTEM}:{sha256(title.encode()).hexdigest()[:24]}"
        found = self._log.db.read(lambda: self._log.db.one(_KEYED, {"run_id": self._run_id, "key": key}))
        task_id = found[0] if found else self._log.tasks.add(self._run_id, title, key=key).id
        self._names[title] = task_id
        first = self._log.journal.history(Task.table, task_id, limit=1)[0]
        return task_id, first.seq, found is None

    def _take(self, task_id: str, entry: int, is_new: bool, section: Section) -> Outcome:
        try:
            task = self._log.tasks.get(task_id)
        except NotFound:
            self.report.note(f"{section.item['title']}: there is no task {task_id}; take the line with its id off to add it")
            return Outcome.REFUSED
        ours = self._item(task)
        # Fields that every task has keep their value if the plan lacks them.
        theirs = {**(_USUAL if section.task_id is None else {name: ours[name] for name in _USUAL}), **section.item}
        theirs["needs"] = [self._names.get(name, name) for name in theirs.get("needs", ())]
        theirs["part of"] = self._names.get(str(theirs.get("part of")), theirs.get("part of"))
        base = base_of(self._log, task_id, entry, {*ours["needs"], *theirs["needs"], *filter(None, (ours["part of"],))})
        merged = THREE_WAY.merge(task_id, base, ours, theirs)
        for one in merged.conflicts:
            self.report.note(f"{task_id}: {one['field']} was changed here and in the plan; what is here stays")
        report_conflicts(self._log, _SYSTEM, self._run_id, [(one, task_id) for one in merged.conflicts])
        if merged.here is None:
            return Outcome.NEW if is_new else Outcome.ALREADY
        return self._changed(task_id, ours, merged.here, Outcome.NEW if is_new else Outcome.CHANGED)

    def _item(self, task: Task) -> dict[str, Any]:
        sql = "select * from dependencies where task_id = :id"
        return item_of(task, self._log.db.read(lambda: self._writer.intake.select(Dependency, sql, id=task.id)))

    def _changed(self, task_id: str, ours: dict[str, Any], item: dict[str, Any], outcome: Outcome) -> Outcome:
        """Change a task by the public verbs; if they refuse, report it and leave the task unchanged."""
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
            return Outcome.REFUSED
        return outcome

    def _edit(self, task_id: str, ours: dict[str, Any], item: dict[str, Any]) -> None:
        differing = [name for name in _EDITED if (item.get(name) or None) != (ours[name] or None)]
        if differing:
            cleared = [name for name in differing if name in _EMPTIED and not item.get(name)]
            given = {name: item[name] for name in differing if name not in cleared}
            self._log.tasks.edit(task_id, reason=_WHY, clear=cleared or None, **given)
        if (worker := item.get("assigned to")) != ours["assigned to"]:
            self._log.tasks.assign(task_id, worker, reason=_WHY)

    def _link(self, task_id: str, ours: dict[str, Any], item: dict[str, Any]) -> None:
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
