"""Takes over GitHub's issues: from `gh` itself, or from a file that `gh` or the API wrote."""

import os
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.importing.draft import RecordDraft, describes
from decklog.importing.json_pieces import JsonFile
from decklog.importing.private_folder import PrivateFolder
from decklog.importing.row import EPOCH, Row, kept_columns, kept_json
from decklog.importing.tracker import COMMENTS, LINKS, Link, NestedRow, Tracker, moment_of, set_time
from decklog.plugins.importers.github.reading import REPOSITORY, ask_gh, name_of, needed_by, plain_names, unmarked
from decklog.stores.tasks.task import LinkKind, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ISSUES = "issues"
NOT_DONE = ("not_planned", "duplicate")
# What says how urgent an issue is, among its labels.
URGENCY = {
    **dict.fromkeys(("p0", "critical", "urgent"), 90),
    **dict.fromkeys(("p1", "high"), 70),
    **dict.fromkeys(("p2", "medium", "normal"), 50),
    **dict.fromkeys(("p3", "low"), 30),
    "p4": 10,
}
_USUAL = 50
_SHOWN = ("author", "milestone", "html_url", "number", "assignees", "closed_at", "state_reason")
# What GitHub counts or says again, and what is of no use without it.
_PASSED_OVER = (
    *("url", "repository_url", "labels_url", "comments_url", "events_url", "timeline_url", "id", "node_id", "user", "assignee"),
    *("comments", "reactions", "parent", "blocked_by", "sub_issues_summary", "issue_dependencies_summary", "score"),
    *("author_association", "performed_via_github_app", "active_lock_reason", "locked", "closed_by", "draft", "type"),
)


class GithubImport(Tracker):
    """Issues of one repository or of several; pull requests are kept as they are."""

    system = "github"
    items = ISSUES
    goal = "Issues of GitHub"

    def gather(self) -> None:
        """Ask `gh`, or read a file."""
        if REPOSITORY.match(self.path) is None:
            self._hold_all(self.path, self.run_id)
            return
        with PrivateFolder() as folder:
            saved = os.path.join(folder, "issues.json")
            ask_gh(self.path, self.seconds, saved)
            self._hold_all(saved, self.path)

    def _hold_all(self, path: str, otherwise: str) -> None:
        values = JsonFile(path)
        for found in values:
            self._hold(found, otherwise)
        if values.rest:
            self.hold_line(values.rest, "the document was not written to its end; the issues in it that are whole were taken")

    def _hold(self, found: object, otherwise: str) -> None:
        if isinstance(found, dict) and isinstance(found.get("items"), list):
            found = found["items"]
        if isinstance(found, list):
            for one in found:
                self._hold(one, otherwise)
            return
        issue = plain_names(found) if isinstance(found, dict) else {}
        try:
            name = name_of(issue, otherwise)
        except Invalid as problem:
            self.hold_line(kept_json(found), problem.message)
            return
        if isinstance(issue.get("body"), str):
            issue["body"], made_of = unmarked(issue["body"])
            # One that was made of a task is that task.
            name = made_of or name
        if "issue_url" in issue and "title" not in issue:
            self._hold_comment(name, issue)
            return
        is_done = str(issue.get("state")).lower() == "closed" and not is_given_up(issue)
        at, clock = moment_of(issue.get("created_at")), moment_of(issue.get("updated_at"))
        self.hold(name, issue, at=at, clock=clock, is_done=is_done)

    def _hold_comment(self, name: str, comment: "dict[str, Any]") -> None:
        at, clock = moment_of(comment.get("created_at")), moment_of(comment.get("updated_at"))
        _, text = kept_columns({**comment, "issue": name})
        self.gathered.add(COMMENTS, f"{name}#{comment.get('id')}", text, at=at, clock=clock)

    def parts_of(self, item: Row) -> "Iterator[NestedRow]":
        """Yield what an issue says that it waits for, and what was said of it."""
        for other, kind in needed_by(item.columns, name_of(item.columns, item.id.rpartition("#")[0])).items():
            yield NestedRow(LINKS, f"{item.id}/{other}", {"item": item.id, "other": other, "kind": kind})
        comments = item.columns.get("comments")
        for comment in comments if isinstance(comments, list) else ():
            if isinstance(comment, dict):
                named = {**plain_names(comment), "issue": item.id}
                yield NestedRow(COMMENTS, f"{item.id}#{named.get('id')}", named, moment_of(named.get("created_at")))

    def link_of(self, row: Row) -> Link:
        """Read a link."""
        return Link(row.take("item"), row.take("other"), LinkKind(row.take("kind")))

    @describes
    def item(self, row: Row) -> RecordDraft:
        """Describe the task that an issue becomes."""
        row.stream = self.run_id
        if row.columns.get("pull_request"):
            raise Invalid("it is a pull request")
        row.columns.setdefault("author", row.columns.get("user"))
        row.columns.setdefault("html_url", row.columns.get("url"))
        row.usual = _PASSED_OVER
        row.pass_over(_PASSED_OVER)
        shown = row.shown(_SHOWN)
        labels = row.tags("labels")
        assignees = shown.get("assignees")
        return self.task(
            row,
            title=row.text("title", ""),
            objective=row.text("body", ""),
            state=self._state(row, shown),
            priority=_priority(labels),
            tags=labels,
            inputs={self.system: shown},
            assigned_to=assignees[0] if isinstance(assignees, list) and isinstance(assignees[0], str) else None,
            created_at=set_time(row, "created_at") or EPOCH,
            updated_at=set_time(row, "updated_at"),
        )

    def _state(self, row: Row, shown: "dict[str, Any]") -> TaskState:
        word = str(row.take("state", "open")).lower()
        if word == "closed":
            return TaskState.ABANDONED if is_given_up(shown) else TaskState.DONE
        if word != "open":
            row.replace("state", "open")
        return TaskState.PENDING

    @describes
    def comment(self, row: Row) -> RecordDraft:
        """Describe a comment."""
        item = row.take("issue")
        row.stream = self.run_of(item)
        body = row.text("body", "")
        if not body.strip():
            raise Invalid("it says nothing")
        author = row.text("author") or row.text("user") or ""
        at = row.time("created_at", EPOCH)
        # The rest is how GitHub shows it.
        row.left = {}
        return self.said(row, item, author=author, body=body, at=at)


def is_given_up(issue: "dict[str, Any]") -> bool:
    """Return whether an issue was closed without being done."""
    return str(issue.get("state_reason")).lower() in NOT_DONE


def _priority(labels: "list[str]") -> int:
    """Read how urgent an issue is from a label such as `P1` or `priority: high`."""
    words = (label.lower().removeprefix("priority").strip(" :/-_") for label in labels)
    return max((URGENCY[word] for word in words if word in URGENCY), default=_USUAL)
