"""Writes tasks as beads has them: one line an issue, in the order of their ids, so that git can merge two such files."""

from typing import TYPE_CHECKING

from decklog.importing.exports.rows import each, every
from decklog.importing.exports.texts import TextExport, json_text, short_time
from decklog.importing.row import EPOCH
from decklog.importing.tracker import COMMENTS, LINES, LINKS, link_name
from decklog.plugins.importers.beads.importer import ISSUES, MEMORIES, TOPIC
from decklog.plugins.importers.beads.words import KIND_WORDS, USUAL_TYPE, WORDS, priority_word
from decklog.stores.tasks.task import Dependency, LinkKind, Task, TaskComment, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from decklog.log import Decklog

# In the order in which beads writes them.
_FIRST = (
    *("_type", "id", "title", "description", "design", "acceptance_criteria", "notes", "status", "priority", "issue_type"),
    *("assignee", "owner", "estimated_minutes", "created_at", "created_by", "updated_at", "started_at", "closed_at"),
)
_PLACED = (
    *("id", "run_id", "title", "objective", "state", "priority", "tags", "acceptance", "inputs", "not_before", "assigned_to"),
    *("summary", "created_at", "updated_at", "reason", "open_dependencies", "outcome", "worker", "leased_at", "leased_until"),
    *("fence", "failures", "attempts", "blocker_repeats", "reservation_id", "max_attempts", "key"),
)


class BeadsExport:
    """Writes the tasks of a run, or of all."""

    def __init__(
        self,
        log: "Decklog",
        path: str,
        *,
        run_id: str | None = None,
        replace: bool = False,
        progress: "Callable[[str, int, int], None] | None" = None,
    ) -> None:
        self._log = log
        self._run_id = run_id
        self._out = TextExport(log, path, "beads", replace=replace, progress=progress)

    def run(self) -> "dict[str, Any]":
        """Write everything as it is at one moment."""
        if self._run_id is not None:
            self._log.runs.get(self._run_id)
            self._out.runs = [self._run_id]
        with self._out:
            self._log.db.read(self._write)
            return self._out.finish()

    def _write(self) -> None:
        self._gone = dict(self._out.kept.rows(ISSUES))
        self._kept_links = _by_issue(row for _, row in self._out.kept.rows(LINKS))
        self._kept_comments = _by_issue(row for _, row in self._out.kept.rows(COMMENTS))
        condition = "where run_id = :run_id" if self._run_id else ""
        for task in each(self._log, Task, "id", condition, **({"run_id": self._run_id} if self._run_id else {})):
            self._write_line(ISSUES, self._issue(task))
            self._gone.pop(task.id, None)
            self._out.report.leave_out_fields("tasks", task, _PLACED)
        for _, row in sorted(self._gone.items()):
            # What was deleted there before it came here.
            self._write_line(ISSUES, row)
        self._write_memories()
        self._out.report.leave_out(LINES, sum(1 for _ in self._out.kept.rows(LINES)))

    def _write_line(self, table: str, row: "dict[str, Any]") -> None:
        said = {name: row[name] for name in (*_FIRST, *sorted(row.keys() - {*_FIRST})) if row.get(name) not in (None, "", [], {})}
        self._out.write(json_text(said, separators=(",", ":")) + "\n")
        self._out.report.count(table)

    def _issue(self, task: Task) -> "dict[str, Any]":
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
        over = task.state in (TaskState.DONE, TaskState.ABANDONED)
        return self._out.kept.restored(
            f"{ISSUES} {task.id}",
            row,
            {"issue_type": USUAL_TYPE, "created_at": short_time(task.created_at)}
            | ({"closed_at": short_time(task.updated_at)} if over else {}),
        )

    def _links(self, task: Task) -> "Iterator[dict[str, Any]]":
        for link in each(self._log, Dependency, "depends_on", "where task_id = :id", id=task.id):
            word = link.kind.value if link.kind is not LinkKind.PARENT else KIND_WORDS[link.kind]
            row = {"issue_id": task.id, "depends_on_id": link.depends_on, "type": word}
            yield self._out.kept.restored(link_name(task.id, link.depends_on), row, {"created_at": short_time(task.created_at)})

    def _comments(self, task: Task) -> "Iterator[dict[str, Any]]":
        for comment in each(self._log, TaskComment, "created_at, id", "where task_id = :id", id=task.id):
            name = comment.id.removeprefix(f"{task.id}#")
            row = {
                "id": int(name) if name.isdecimal() else name,
                "issue_id": task.id,
                "author": comment.author,
                "text": comment.body,
                "created_at": short_time(comment.created_at),
            }
            yield self._out.kept.restored(f"{COMMENTS} {task.id}#{name}", row)

    def _write_memories(self) -> None:
        lessons = every(lambda **page: self._log.memory.find(topic=TOPIC, source_kind="beads", oldest_first=True, **page))
        for key, body in sorted((lesson.source_id or lesson.id, lesson.body) for lesson in lessons):
            self._write_line(MEMORIES, {"_type": "memory", "key": key, "value": body})


def _by_issue(rows: "Iterator[dict[str, Any]]") -> "dict[str, list[dict[str, Any]]]":
    """Put kept rows together by the issue that they stood in; there are few."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row.get("issue_id")), []).append(row)
    return found
