"""Takes over beads' issues from `.beads/issues.jsonl` or what `bd export` wrote: tasks with links, comments, and memories."""

from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.importing.draft import RecordDraft, describes
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row, kept_columns
from decklog.importing.text_files import file_in, has_markers, json_lines
from decklog.importing.tracker import COMMENTS, LINKS, WAS_RUNNING, Link, NestedRow, Tracker, moment_of, set_time
from decklog.plugins.importers.beads.words import (
    DELETED,
    DERIVED,
    KINDS,
    NO_WORK,
    PLACES,
    PRIORITIES,
    SHOWN,
    STATES,
    USUAL_TYPE,
    WORDS,
)
from decklog.stores.tasks.task import LinkKind, Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from decklog.importing.landing import Mapping

ISSUES = "issues"
MEMORIES = "memories"
TOPIC = "project_notes"
_ABOUT = "what a project's people and agents noted down for later"
_MOST_PREFIXES = 50
_OF_A_LINK = ("created_at", "created_by", "metadata", "thread_id")


class BeadsImport(Tracker):
    """One line an issue, in any order; dependencies and comments stand within."""

    system = "beads"
    items = ISSUES
    goal = "What beads tracked"

    def mappings(self) -> "dict[str, Mapping]":
        """Name the tables with their mappings."""
        return {**super().mappings(), MEMORIES: self.memory}

    def gather(self) -> None:
        """Read the file line by line; bad lines are held too."""
        path = file_in(self.path, PLACES, "Write it first: bd export -o issues.jsonl --all --include-memories")
        if has_markers(path):
            self.report.note(f"{path} has conflicts of git's in it; of two versions of an issue the newer one is taken")
        prefixes: dict[str, int] = {}
        for line in json_lines(path):
            if line.trouble is not None:
                self.hold_line(line.text, line.trouble)
            elif line.found.get("_type") == "memory":
                self._hold_memory(line.found)
            elif not isinstance(name := line.found.get("id"), str) or not name.strip():
                self.hold_line(line.text, "an issue needs an id")
            else:
                self._hold_issue(name, line.found)
                prefix = name.rpartition("-")[0]
                if prefix in prefixes or len(prefixes) < _MOST_PREFIXES:
                    prefixes[prefix] = prefixes.get(prefix, 0) + 1
        self._tell_prefixes(prefixes)

    def _tell_prefixes(self, prefixes: "dict[str, int]") -> None:
        """Tell of issues that may have come from another project."""
        first = max(sorted(prefixes), key=lambda prefix: prefixes[prefix], default="")
        for prefix, count in sorted(prefixes.items()):
            if prefix != first:
                self.report.note(f"{count} issues begin with {prefix!r} and not with {first!r}; they were taken too")

    def _hold_issue(self, name: str, found: "dict[str, Any]") -> None:
        at, clock = moment_of(found.get("created_at")), moment_of(found.get("updated_at"))
        is_done = found.get("status") == "closed"
        self.hold(name, found, at=at, clock=clock, is_done=is_done)

    def parts_of(self, item: Row) -> "Iterator[NestedRow]":
        """Yield an issue's dependencies and comments."""
        for link in _listed(item, LINKS) or ():
            ends = f"{link.get('issue_id', item.id)}/{link.get('depends_on_id')}/{link.get('type', 'blocks')}"
            yield NestedRow(LINKS, ends, {"issue_id": item.id, **link})
        for comment in _listed(item, COMMENTS) or ():
            said = moment_of(comment.get("created_at"))
            yield NestedRow(COMMENTS, f"{item.id}#{comment.get('id') or said}", {**comment, "issue_id": item.id}, said)

    def _hold_memory(self, found: "dict[str, Any]") -> None:
        self.gathered.add(MEMORIES, str(found.get("key")), kept_columns(found)[1])

    # Mappings

    @describes
    def item(self, row: Row) -> RecordDraft:
        """Describe the task that an issue becomes."""
        row.stream = self.run_id
        for name in ("id", *DERIVED, *(part for part in (LINKS, COMMENTS) if _listed(row, part) is not None)):
            row.left.pop(name, None)
        created, updated = set_time(row, "created_at"), set_time(row, "updated_at")
        not_before = set_time(row, "defer_until")
        shown = self._shown(row)
        state, reason = self._state(row, not_before, shown)
        return self.task(
            row,
            title=row.text("title", ""),
            objective=row.text("description", ""),
            state=state,
            reason=reason,
            priority=self._priority(row),
            tags=row.tags("labels"),
            acceptance=[text] if (text := row.text("acceptance_criteria", "")) else [],
            inputs={"beads": shown} if shown else {},
            not_before=not_before,
            assigned_to=row.text("assignee") or None,
            summary=row.text("close_reason") or None,
            created_at=created or updated or EPOCH,
            updated_at=updated,
        )

    def _state(self, row: Row, not_before: "datetime | None", shown: "dict[str, Any]") -> "tuple[TaskState, str | None]":
        """Read how an issue stands; what nobody is to work on, or somebody there may, is paused."""
        word = row.take("status", "open")
        if word == DELETED:
            if self.landing.intake.seek(Task, row.id) is None:
                raise Invalid("it was deleted in beads")
            return self._other_word(row, TaskState.ABANDONED), "deleted in beads"
        state = STATES.get(word, TaskState.PAUSED) if isinstance(word, str) else TaskState.PAUSED
        if word == "deferred" and not_before is not None:
            state = TaskState.PENDING
        if state is TaskState.PENDING and (shown.get("is_template") or shown.get("issue_type") in NO_WORK):
            return self._other_word(row, TaskState.PAUSED), "it is no piece of work by itself"
        if word != WORDS[state]:
            self._other_word(row, state)
        if state is not TaskState.PAUSED:
            return state, None
        return state, WAS_RUNNING if word in ("in_progress", "hooked") else f"{word} in beads"

    def _other_word(self, row: Row, state: TaskState) -> TaskState:
        row.replace("status", WORDS[state])
        return state

    def _priority(self, row: Row) -> int:
        word = row.whole("priority", 2, high=max(PRIORITIES))
        return PRIORITIES[word]

    def _shown(self, row: Row) -> "dict[str, Any]":
        if "issue_type" not in row.columns and "type" in row.columns:
            row.columns["issue_type"] = row.take("type")
        # Of all that an issue can have, most have little.
        found = row.shown([name for name in SHOWN if name in row.columns])
        if found.get("issue_type") == USUAL_TYPE:
            del found["issue_type"]
        return {name: value for name, value in found.items() if value or (value == 0 and value is not False)}

    def link_of(self, row: Row) -> Link:
        """Read a dependency: `issue_id` needs `depends_on_id`; kinds that hold nothing back become `related`."""
        row.usual = _OF_A_LINK
        item, other, word = row.text("issue_id"), row.text("depends_on_id"), row.take("type", "blocks")
        if not item or not other:
            raise Invalid("a dependency needs both its ends")
        kind = KINDS.get(word) if isinstance(word, str) else None
        if word != (kind or LinkKind.RELATED) and word != "parent-child":
            row.replace("type", (kind or LinkKind.RELATED).value)
        return Link(item, other, kind or LinkKind.RELATED)

    @describes
    def comment(self, row: Row) -> RecordDraft:
        """Describe a comment; before version 1.0 its id was a number."""
        item = str(row.take("issue_id"))
        row.stream = self.run_of(item)
        body = row.text("text", "")
        if not body.strip():
            raise Invalid("it says nothing")
        row.take("id")
        return self.said(row, item, author=row.text("author", ""), body=body, at=row.time("created_at", EPOCH))

    def memory(self, row: Row) -> Fate:
        """Learn what was remembered; what a key said before is superseded."""
        row.take("_type")
        name, body = row.text("key", ""), row.text("value", "")
        self.log.memory.add_topic(TOPIC, _ABOUT)
        source = {"source_kind": "beads", "source_id": name}
        learned = self.log.memory.remember(TOPIC, body, key=self.landing.key(row), **source)
        if learned.already:
            return Fate.ALREADY
        older = [lesson.id for lesson in self.log.memory.find(topic=TOPIC, limit=200, **source) if lesson.id != learned.id]
        for lesson_id in older:
            self.log.memory.supersede(lesson_id, learned.id)
        return Fate.CHANGED if older else Fate.NEW


def _listed(item: Row, part: str) -> "list[dict[str, Any]] | None":
    """Return a list of objects that stands in an issue; what is none is kept with the issue."""
    listed = item.columns.get(part)
    if isinstance(listed, list) and all(isinstance(one, dict) for one in listed):
        return listed
    return None
