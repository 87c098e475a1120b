"""Beads: import, export and sync issues with their dependencies, comments and memories."""

from collections.abc import Iterator
from datetime import datetime
from io import BytesIO
from typing import Any, ClassVar

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Invalid
from decklog.importing.exports import TASK_FIELDS, TextExport, each, json_text, short_time
from decklog.importing.files import find_file, has_markers, json_lines, parse_lenient_json
from decklog.importing.importer import Link
from decklog.importing.report import Outcome
from decklog.importing.row import EPOCH, Row, to_storable, to_storable_json
from decklog.importing.sync import FileSync, Items
from decklog.importing.tracker import COMMENTS, LINES, LINKS, WAS_RUNNING, Tracker, link_result_name, read_set_time, sortable_time
from decklog.importing.writer import Mapping, PendingRecord, pure_mapping
from decklog.records.record import find_all
from decklog.stores.tasks.task import Dependency, LinkKind, Task, TaskComment, TaskState

PLACES = (".beads/issues.jsonl", "issues.jsonl")

STATES = {
    "open": TaskState.PENDING,
    "in_progress": TaskState.PAUSED,
    "blocked": TaskState.BLOCKED,
    "deferred": TaskState.PAUSED,
    "closed": TaskState.DONE,
    "pinned": TaskState.PAUSED,
    "hooked": TaskState.PAUSED,
}
# Waiting and running tasks are in progress there, so that no agent claims them.
WORDS = {
    TaskState.PENDING: "open",
    TaskState.RUNNING: "in_progress",
    TaskState.WAITING: "in_progress",
    TaskState.BLOCKED: "blocked",
    TaskState.PAUSED: "deferred",
    TaskState.DONE: "closed",
    TaskState.ABANDONED: "closed",
}
DELETED = "tombstone"
# Types that are no work and can't be claimed.
NO_WORK = frozenset(["message", "molecule", "gate", "event"])

USUAL_TYPE = "task"

# Beads' priorities range from 0, the highest, to 4.
PRIORITIES = {0: 90, 1: 70, 2: 50, 3: 30, 4: 10}

KINDS = {
    "blocks": LinkKind.BLOCKS,
    "conditional-blocks": LinkKind.BLOCKS,
    "waits-for": LinkKind.BLOCKS,
    "parent-child": LinkKind.PARENT,
    "discovered-from": LinkKind.DISCOVERED_FROM,
    "related": LinkKind.RELATED,
}
KIND_WORDS = {
    LinkKind.BLOCKS: "blocks",
    LinkKind.PARENT: "parent-child",
    LinkKind.DISCOVERED_FROM: "discovered-from",
    LinkKind.RELATED: "related",
}

# Columns without a field here that workers need: stored as task inputs under the system's name.
SHOWN = (
    *("issue_type", "design", "notes", "spec_id", "owner", "estimated_minutes", "created_by", "started_at", "closed_at"),
    *("closed_by_session", "due_at", "external_ref", "source_system", "metadata", "compaction_level", "compacted_at", "pinned"),
    *("is_template", "ephemeral", "await_type", "await_id", "timeout", "waiters", "mol_type", "work_type", "event_kind", "actor"),
    *("target", "payload", "sender"),
)
# Columns that beads computes.
DERIVED = ("_type", "dependency_count", "dependent_count", "comment_count")


def priority_word(priority: int) -> int:
    """Return the nearest of beads' priorities."""
    return min(PRIORITIES, key=lambda word: (abs(PRIORITIES[word] - priority), word))


ISSUES = "issues"
MEMORIES = "memories"
TOPIC = "project_notes"
_ABOUT = "what a project's people and agents noted down for later"
_MOST_PREFIXES = 50
_OF_A_LINK = ("created_at", "created_by", "metadata", "thread_id")


class BeadsImport(Tracker):
    """Imports issues, one per line in any order, with their dependencies and comments."""

    system = "beads"
    items = ISSUES
    goal = "What beads tracked"

    def mappings(self) -> dict[str, Mapping]:
        return {**super().mappings(), MEMORIES: self.memory}

    def gather(self) -> None:
        """Read the file line by line; collect bad lines too."""
        path = find_file(self.path, PLACES, "Write it first: bd export -o issues.jsonl --all --include-memories")
        if has_markers(path):
            self.report.note(f"{path} has git conflict markers; of two versions of an issue the newer one is taken")
        prefixes: dict[str, int] = {}
        for line in json_lines(path):
            if line.trouble is not None:
                self.add_line(line.text, line.trouble)
                continue
            found = to_storable(line.found)
            if found.get("_type") == "memory":
                self.gathered.add(MEMORIES, str(found.get("key")), found)
            elif not isinstance(name := found.get("id"), str) or not name.strip():
                self.add_line(line.text, "an issue needs an id")
            else:
                at, clock = sortable_time(found.get("created_at")), sortable_time(found.get("updated_at"))
                self.gathered.add(ISSUES, name, found, at=at, clock=clock, is_done=found.get("status") == "closed")
                prefix = name.rpartition("-")[0]
                if prefix in prefixes or len(prefixes) < _MOST_PREFIXES:
                    prefixes[prefix] = prefixes.get(prefix, 0) + 1
        # Dependencies of other issues may belong to another project.
        first = max(sorted(prefixes), key=lambda prefix: prefixes[prefix], default="")
        for prefix, count in sorted(prefixes.items()):
            if prefix != first:
                self.report.note(f"{count} issues begin with {prefix!r} and not with {first!r}; they were taken too")

    def gather_parts(self, item: Row) -> None:
        for link in _get_objects(item, LINKS) or ():
            ends = f"{link.get('issue_id', item.id)}/{link.get('depends_on_id')}/{link.get('type', 'blocks')}"
            self.gathered.add(LINKS, ends, {"issue_id": item.id, **link})
        for comment in _get_objects(item, COMMENTS) or ():
            at = sortable_time(comment.get("created_at"))
            self.gathered.add(COMMENTS, f"{item.id}#{comment.get('id') or at}", {**comment, "issue_id": item.id}, at=at)

    # Mappings

    @pure_mapping
    def item(self, row: Row) -> PendingRecord:
        row.stream = self.run_id
        for name in ("id", *DERIVED, *(part for part in (LINKS, COMMENTS) if _get_objects(row, part) is not None)):
            row.leftovers.pop(name, None)
        created, updated = read_set_time(row, "created_at"), read_set_time(row, "updated_at")
        not_before = read_set_time(row, "defer_until")
        shown = self._shown(row)
        state, reason = self._state(row, not_before, shown)
        return self.task(
            row,
            title=row.text("title", ""),
            objective=row.text("description", ""),
            state=state,
            reason=reason,
            priority=PRIORITIES[row.integer("priority", 2, high=max(PRIORITIES))],
            tags=row.tags("labels"),
            acceptance=[text] if (text := row.text("acceptance_criteria", "")) else [],
            inputs={"beads": shown} if shown else {},
            not_before=not_before,
            assigned_to=row.text("assignee") or None,
            summary=row.text("close_reason") or None,
            created_at=created or updated or EPOCH,
            updated_at=updated,
        )

    def _state(self, row: Row, not_before: datetime | None, shown: dict[str, Any]) -> tuple[TaskState, str | None]:
        """Convert the status of an issue; pause one that is deferred or may be in progress there."""
        word = row.take("status", "open")
        if word == DELETED:
            if self.writer.intake.seek(Task, row.id) is None:
                raise Invalid("it was deleted in beads")
            return self._other_word(row, TaskState.ABANDONED), "deleted in beads"
        state = STATES.get(word, TaskState.PAUSED) if isinstance(word, str) else TaskState.PAUSED
        if word == "deferred" and not_before is not None:
            state = TaskState.PENDING
        if state is TaskState.PENDING and (shown.get("is_template") or shown.get("issue_type") in NO_WORK):
            return self._other_word(row, TaskState.PAUSED), "it is no work item"
        if word != WORDS[state]:
            self._other_word(row, state)
        if state is not TaskState.PAUSED:
            return state, None
        return state, WAS_RUNNING if word in ("in_progress", "hooked") else f"{word} in beads"

    def _other_word(self, row: Row, state: TaskState) -> TaskState:
        row.replace("status", WORDS[state])
        return state

    def _shown(self, row: Row) -> dict[str, Any]:
        if "issue_type" not in row.columns and "type" in row.columns:
            row.columns["issue_type"] = row.take("type")
        # Skip empty columns: most issues use only a few.
        found = row.non_empty([name for name in SHOWN if name in row.columns])
        if found.get("issue_type") == USUAL_TYPE:
            del found["issue_type"]
        return {name: value for name, value in found.items() if value or (value == 0 and value is not False)}

    def read_link(self, row: Row) -> Link:
        """Parse a dependency: `issue_id` needs `depends_on_id`; types that don't block become `related`."""
        row.expected = _OF_A_LINK
        item, other, word = row.text("issue_id"), row.text("depends_on_id"), row.take("type", "blocks")
        if not item or not other:
            raise Invalid("a dependency needs both its ends")
        kind = KINDS.get(word) if isinstance(word, str) else None
        if word != (kind or LinkKind.RELATED) and word != "parent-child":
            row.replace("type", (kind or LinkKind.RELATED).value)
        return Link(item, other, kind or LinkKind.RELATED)

    @pure_mapping
    def comment(self, row: Row) -> PendingRecord:
        """Convert a comment; before version 1.0 its id was a number."""
        item, body = str(row.take("issue_id")), row.text("text", "")
        row.take("id")
        return self.comment_record(row, item, author=row.text("author", ""), body=body, at=row.time("created_at", EPOCH))

    def memory(self, row: Row) -> Outcome:
        """Import a memory as a lesson; it supersedes the earlier ones of its key."""
        row.take("_type")
        name, body = row.text("key", ""), row.text("value", "")
        self.log.memory.add_topic(TOPIC, _ABOUT)
        source = {"source_kind": "beads", "source_id": name}
        learned = self.log.memory.remember(TOPIC, body, key=self.writer.key(row), **source)
        if learned.already:
            return Outcome.ALREADY
        older = [lesson.id for lesson in self.log.memory.find(topic=TOPIC, limit=200, **source) if lesson.id != learned.id]
        for lesson_id in older:
            self.log.memory.supersede(lesson_id, learned.id)
        return Outcome.CHANGED if older else Outcome.NEW


def _get_objects(item: Row, part: str) -> list[dict[str, Any]] | None:
    """Return a list of objects of an issue; None for anything else."""
    listed = item.columns.get(part)
    if isinstance(listed, list) and all(isinstance(one, dict) for one in listed):
        return listed
    return None


# The order in which beads writes columns.
_FIRST = (
    *("_type", "id", "title", "description", "design", "acceptance_criteria", "notes", "status", "priority", "issue_type"),
    *("assignee", "owner", "estimated_minutes", "created_at", "created_by", "updated_at", "started_at", "closed_at"),
)
_PLACED = (
    *(*TASK_FIELDS, "priority", "tags", "inputs", "not_before", "assigned_to", "summary", "reason", "outcome", "failures"),
    *("attempts", "blocker_repeats", "reservation_id", "max_attempts", "key"),
)


class BeadsExport(TextExport):
    """Exports the tasks of a run, or of all runs."""

    system = "beads"

    def write_all(self) -> None:
        self._gone = dict(self.kept.rows(ISSUES))
        self._kept_links = _group_by_issue(row for _, row in self.kept.rows(LINKS))
        self._kept_comments = _group_by_issue(row for _, row in self.kept.rows(COMMENTS))
        condition, bound = ("where run_id = :run_id", {"run_id": self.run_id}) if self.run_id else ("", {})
        for task in each(self.log, Task, "id", condition, **bound):
            self._write_line(ISSUES, self._issue(task))
            self._gone.pop(task.id, None)
            self.report.leave_out_fields("tasks", task, _PLACED)
        for _, row in sorted(self._gone.items()):
            # Issues that were deleted there before the import.
            self._write_line(ISSUES, row)
        lessons = find_all(self.log.memory.find, topic=TOPIC, source_kind="beads", oldest_first=True)
        for key, body in sorted((lesson.source_id or lesson.id, lesson.body) for lesson in lessons):
            self._write_line(MEMORIES, {"_type": "memory", "key": key, "value": body})
        self.report.leave_out(LINES, sum(1 for _ in self.kept.rows(LINES)))

    def _write_line(self, table: str, row: dict[str, Any]) -> None:
        line = {name: row[name] for name in (*_FIRST, *sorted(row.keys() - {*_FIRST})) if row.get(name) not in (None, "", [], {})}
        self.write(json_text(line, separators=(",", ":")) + "\n")
        self.report.count(table)

    def _issue(self, task: Task) -> dict[str, Any]:
        shown = task.inputs.get("beads")
        row: dict[str, Any] = {
            **(shown if isinstance(shown, dict) else {}),
            "_type": "issue",
            "id": task.id,
            "title": task.title,
            "description": task.objective,
            "status": WORDS[task.state],
            "priority": priority_word(task.priority),
            "acceptance_criteria": "\n".join(task.acceptance),
            "labels": task.tags,
            "assignee": task.assigned_to,
            "close_reason": task.summary or (task.reason if task.state is TaskState.ABANDONED else None),
            "defer_until": short_time(task.not_before),
            "created_at": short_time(None if task.created_at == EPOCH else task.created_at),
            "updated_at": short_time(task.updated_at),
            LINKS: [*self._links(task), *self._kept_links.get(task.id, ())],
            COMMENTS: [*self._comments(task), *self._kept_comments.get(task.id, ())],
        }
        defaults = {"issue_type": USUAL_TYPE, "created_at": short_time(task.created_at)}
        if task.state in (TaskState.DONE, TaskState.ABANDONED):
            defaults["closed_at"] = short_time(task.updated_at)
        return self.kept.restored(f"{ISSUES} {task.id}", row, defaults)

    def _links(self, task: Task) -> Iterator[dict[str, Any]]:
        for link in each(self.log, Dependency, "depends_on", "where task_id = :id", id=task.id):
            word = link.kind.value if link.kind is not LinkKind.PARENT else KIND_WORDS[link.kind]
            row = {"issue_id": task.id, "depends_on_id": link.depends_on, "type": word}
            yield self.kept.restored(link_result_name(task.id, link.depends_on), row, {"created_at": short_time(task.created_at)})

    def _comments(self, task: Task) -> Iterator[dict[str, Any]]:
        for comment in each(self.log, TaskComment, "created_at, id", "where task_id = :id", id=task.id):
            name = comment.id.removeprefix(f"{task.id}#")
            row = {
                "id": int(name) if name.isdecimal() else name,
                "issue_id": task.id,
                "author": comment.author,
                "text": comment.body,
                "created_at": short_time(comment.created_at),
            }
            yield self.kept.restored(f"{COMMENTS} {task.id}#{name}", row)


def _group_by_issue(rows: Iterator[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group kept rows by issue; there are few."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row.get("issue_id")), []).append(row)
    return found


_OWN = ("title", "description", "acceptance_criteria", "status", "priority", "assignee", "defer_until", "close_reason")
_NEVER = to_text(EPOCH)
# Columns that each side writes independently.
_TIMES = ("started_at", "closed_at", "compacted_at")


def _normalize_time(at: Any) -> Any:
    """Normalize a time; the first moment of the calendar means none."""
    moment = sortable_time(at)
    return None if moment and moment <= _NEVER else short_time(from_text(moment)) if moment else at


class BeadsSync(FileSync):
    """The file that beads exports to and imports from."""

    system = "beads"
    file_name, exports, imports = "issues.jsonl", BeadsExport, BeadsImport
    fields = (*_OWN, *(name for name in SHOWN if name not in _TIMES))
    sets: ClassVar = {
        "labels": lambda label: label if isinstance(label, str) and label.strip() else None,
        LINKS: lambda link: [link.get("depends_on_id"), link.get("type", "blocks")] if isinstance(link, dict) else None,
        COMMENTS: lambda comment: [comment.get("author"), comment.get("text")] if isinstance(comment, dict) else None,
    }

    meanings: ClassVar = {
        "status": lambda word: "open" if word is None else word,
        "priority": lambda number: int(number) if str(number).isdecimal() else 2 if number is None else number,
        "defer_until": _normalize_time,
    }

    def __init__(self, log: Any, path: str, **settings: Any) -> None:
        super().__init__(log, find_file(path, PLACES, "Write it first: bd export -o .beads/issues.jsonl"), **settings)

    def theirs(self) -> Items:
        """Read the issues of the file; for duplicate ids, use the newest."""
        found, left = _issues(self.read_file())
        if left and (note := f"{left} lines of {self.path} are no issues, and stay there as they are") not in self.report.notes:
            self.report.notes.append(note)
        return found

    def ours(self) -> Items:
        """Export the run in beads' format, and parse the result."""
        text = self.export_text()
        return _issues(text.encode())[0] if text is not None else {}

    def take(self, items: Items, ours: Items) -> None:
        """Import the issues, as newer than all local changes."""
        at = self.later()
        self.import_text("".join(_line({**item, "updated_at": at}) for item in items.values()), ours)

    def give(self, items: Items) -> None:
        """Rewrite the lines of some issues, and leave every other byte unchanged."""
        lines, left = [], dict(items)
        for line in _lines(self.read_file()):
            issue = _issue(line)
            name = issue["id"] if issue else None
            if name in items:
                # Keep one line of a duplicated issue.
                lines.append(_line(left.pop(name)).encode() if name in left else b"")
            else:
                lines.append(line if line.endswith(b"\n") or not left else line + b"\n")
        lines += [_line(left[name]).encode() for name in sorted(left)]
        self.replace_file(b"".join(lines))


def _issues(text: bytes) -> tuple[Items, int]:
    """Parse issues as an import does; also return the number of lines that are neither issues nor memories."""
    found: Items = {}
    versions: dict[str, tuple[str, str]] = {}
    left = 0
    for line in _lines(text):
        issue = _issue(line)
        if issue is None:
            left += bool(line.strip()) and _read(line).get("_type") != "memory"
            continue
        version = (sortable_time(issue.get("updated_at")), to_storable_json(issue))
        if version >= versions.get(issue["id"], ("", "")):
            issue.setdefault("issue_type", issue.pop("type", "task"))
            issue["title"] = issue.get("title") or issue["id"]
            found[issue["id"]], versions[issue["id"]] = issue, version
    return found, left


def _lines(text: bytes) -> list[bytes]:
    """Split a file into lines at line feeds only: texts may contain other line separators."""
    return BytesIO(text).readlines()


def _read(line: bytes) -> dict[str, Any]:
    found = parse_lenient_json(line.decode("utf-8", "replace").strip().lstrip("\ufeff"))
    return found if isinstance(found, dict) else {}


def _issue(line: bytes) -> dict[str, Any] | None:
    issue = _read(line)
    name = issue.get("id")
    return issue if isinstance(name, str) and name.strip() and issue.get("_type") != "memory" else None


def _line(issue: dict[str, Any]) -> str:
    return json_text(issue, separators=(",", ":")) + "\n"
