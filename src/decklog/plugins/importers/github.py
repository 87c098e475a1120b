"""GitHub issues: import them from `gh` or a file, and sync them with the tasks of a run."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

from decklog.core.errors import Invalid, TimedOut, Unavailable
from decklog.importing.exports import each
from decklog.importing.files import json_values
from decklog.importing.importer import Link
from decklog.importing.row import EPOCH, Row, to_storable, to_storable_json
from decklog.importing.sync import Items, Sync
from decklog.importing.tracker import COMMENTS, LINKS, Tracker, read_set_time, sortable_time
from decklog.importing.writer import PendingRecord, pure_mapping
from decklog.stores.tasks.task import LinkKind, Task, TaskComment, TaskState

REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+\Z")
FIELDS = (
    *("number", "title", "body", "state", "stateReason", "labels", "assignees", "author", "comments", "createdAt", "updatedAt"),
    *("closedAt", "milestone", "url", "id"),
)
_MOST = 1_000_000
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_ADDRESS = re.compile(r"([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")
# A line of an issue that names a dependency.
_NEEDS = re.compile(r"^[^\w\n]*(?:depends on|blocked by)\b(.*)$", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w/])#(\d+)\b")
# An invisible mark at the end of an issue that was created from a task.
_MARK_START = "<!-- decklog: "
_MARK = re.compile(rf"\s*{_MARK_START}(\S+) -->\s*\Z")


def issues_by_gh(repository: str, seconds: float) -> tuple[list[Any], list[str]]:
    """Fetch all issues of a repository with `gh`, which has the login; return them and any incomplete texts."""
    words = ("issue", "list", "--state", "all", "--limit", str(_MOST), "--json", ",".join(FIELDS))
    saving = f"gh {' '.join(words)} --repo {repository} > issues.json"
    with tempfile.TemporaryDirectory(prefix="decklog-import-") as folder:
        path = os.path.join(folder, "issues.json")
        with open(path, "wb") as file:
            _run_gh(repository, words, seconds, file, hint=f"Install gh, or import a file that it wrote elsewhere: {saving}")
        return json_values(path)


def _run_gh(repository: str, words: Sequence[str], seconds: float, output: Any, *, hint: str, is_needed: bool = True) -> None:
    program = shutil.which("gh")
    if program is None:
        raise Unavailable("there is no program gh to reach GitHub with", hint=hint)
    command = [program, *words, "--repo", repository]
    try:
        done = subprocess.run(
            command, stdout=output, stderr=subprocess.PIPE, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise TimedOut(f"gh took longer than {seconds:.0f} s", hint="Give it more time, with --seconds, or try again.") from None
    if done.returncode and is_needed:
        message = done.stderr.decode("utf-8", "replace").strip()[:500]
        hint = "Run it again once that is fixed: what is done stays."
        raise Unavailable(f"gh {' '.join(words[:2])} failed: {message}", hint=hint)


@lru_cache(maxsize=256)
def _plain_name(name: str) -> str:
    return _CAPITAL.sub(lambda letter: f"_{letter[1].lower()}", name)


def plain_names(found: dict[str, Any]) -> dict[str, Any]:
    """Convert an object's names to those of the API, and people to their logins."""
    named = {_plain_name(name): value for name, value in found.items()}
    for name in ("author", "user"):
        if isinstance(value := named.get(name), dict):
            named[name] = value.get("login")
    for name, inner in (("labels", "name"), ("assignees", "login")):
        if isinstance(value := named.get(name), list):
            named[name] = [one.get(inner) if isinstance(one, dict) else one for one in value]
    if isinstance(milestone := named.get("milestone"), dict):
        named["milestone"] = milestone.get("title")
    return named


@lru_cache(maxsize=256)
def _name_at(address: str) -> str | None:
    """Return the name of the issue at a URL."""
    found = _ADDRESS.search(address)
    return f"{found[1]}#{found[2]}" if found else None


def name_of(issue: dict[str, Any], otherwise: str) -> str:
    """Return the name that people use for an issue: OWNER/REPOSITORY#NUMBER."""
    for address in (issue.get("html_url"), issue.get("url"), issue.get("issue_url")):
        if isinstance(address, str) and (name := _name_at(address)) is not None:
            return name
    number = issue.get("number")
    if isinstance(number, bool) or not isinstance(number, int):
        raise Invalid("an issue needs a number")
    return f"{otherwise}#{number}"


def marked(body: str, task_id: str) -> str:
    """Add the mark with the task's id to an issue's text."""
    return f"{body}\n\n<!-- decklog: {task_id} -->".lstrip()


def unmarked(body: str) -> tuple[str, str | None]:
    """Split an issue's text into the text and the id of the task it was created from, if any."""
    # Few texts have a mark, and the regular expression takes as long as reading the issue.
    found = _MARK.search(body) if _MARK_START in body else None
    return (body[: found.start()], found[1]) if found else (body, None)


def needed_by(issue: dict[str, Any], name: str) -> dict[str, str]:
    """Return the names of linked issues: dependencies, and the parent."""
    repository = name.rpartition("#")[0]
    numbers = (number for line in _NEEDS.findall(str(issue.get("body") or "")) for number in _NUMBER.findall(line))
    links = {f"{repository}#{number}": "blocks" for number in numbers}
    for one in _listed(issue.get("blocked_by")):
        links[name_of(plain_names(one), repository)] = "blocks"
    if isinstance(above := issue.get("parent"), dict) and "number" in above:
        links[name_of(plain_names(above), repository)] = "parent"
    return links


def _listed(value: object) -> list[dict[str, Any]]:
    found = value.get("nodes") if isinstance(value, dict) else value
    return [one for one in found if isinstance(one, dict) and "number" in one] if isinstance(found, list) else []


ISSUES = "issues"
NOT_DONE = ("not_planned", "duplicate")
# Labels for priorities.
URGENCY = {
    **dict.fromkeys(("p0", "critical", "urgent"), 90),
    **dict.fromkeys(("p1", "high"), 70),
    **dict.fromkeys(("p2", "medium", "normal"), 50),
    **dict.fromkeys(("p3", "low"), 30),
    "p4": 10,
}
_DEFAULT_PRIORITY = 50
_SHOWN = ("author", "milestone", "html_url", "number", "assignees", "closed_at", "state_reason")
# Columns that repeat others, or have no use outside GitHub.
_PASSED_OVER = (
    *("url", "repository_url", "labels_url", "comments_url", "events_url", "timeline_url", "id", "node_id", "user", "assignee"),
    *("comments", "reactions", "parent", "blocked_by", "sub_issues_summary", "issue_dependencies_summary", "score"),
    *("author_association", "performed_via_github_app", "active_lock_reason", "locked", "closed_by", "draft", "type"),
)


class GithubImport(Tracker):
    """Imports issues of one repository or several; pull requests are kept unchanged."""

    system = "github"
    items = ISSUES
    goal = "Issues of GitHub"

    def gather(self) -> None:
        """Load the issues from `gh` or from a file."""
        is_remote = REPOSITORY.match(self.path) is not None
        values, broken = issues_by_gh(self.path, self.seconds) if is_remote else json_values(self.path)
        for found in values:
            self._hold(found, self.path if is_remote else self.run_id)
        for text in broken:
            self.add_line(text, "the document was not written to its end; the issues in it that are whole were taken")

    def _hold(self, found: object, otherwise: str) -> None:
        if isinstance(found, dict) and isinstance(found.get("items"), list):
            found = found["items"]
        if isinstance(found, list):
            for one in found:
                self._hold(one, otherwise)
            return
        issue: dict[str, Any] = to_storable(plain_names(found)) if isinstance(found, dict) else {}
        try:
            name = name_of(issue, otherwise)
        except Invalid as problem:
            self.add_line(to_storable_json(found), problem.message)
            return
        if isinstance(issue.get("body"), str):
            issue["body"], made_of = unmarked(issue["body"])
            # An issue that was created from a task is that task.
            name = made_of or name
        at, clock = sortable_time(issue.get("created_at")), sortable_time(issue.get("updated_at"))
        if "issue_url" in issue and "title" not in issue:
            self.gathered.add(COMMENTS, f"{name}#{issue.get('id')}", {**issue, "issue": name}, at=at, clock=clock)
            return
        is_done = str(issue.get("state")).lower() == "closed" and not is_given_up(issue)
        self.gathered.add(ISSUES, name, issue, at=at, clock=clock, is_done=is_done)

    def gather_parts(self, item: Row) -> None:
        for other, kind in needed_by(item.columns, name_of(item.columns, item.id.rpartition("#")[0])).items():
            self.gathered.add(LINKS, f"{item.id}/{other}", {"item": item.id, "other": other, "kind": kind})
        comments = item.columns.get("comments")
        for comment in comments if isinstance(comments, list) else ():
            if isinstance(comment, dict):
                named = {**plain_names(comment), "issue": item.id}
                self.gathered.add(COMMENTS, f"{item.id}#{named.get('id')}", named, at=sortable_time(named.get("created_at")))

    def read_link(self, row: Row) -> Link:
        return Link(row.take("item"), row.take("other"), LinkKind(row.take("kind")))

    @pure_mapping
    def item(self, row: Row) -> PendingRecord:
        row.stream = self.run_id
        if row.columns.get("pull_request"):
            raise Invalid("it is a pull request")
        row.columns.setdefault("author", row.columns.get("user"))
        row.columns.setdefault("html_url", row.columns.get("url"))
        row.expected = _PASSED_OVER
        row.ignore(_PASSED_OVER)
        shown = row.non_empty(_SHOWN)
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
            created_at=read_set_time(row, "created_at") or EPOCH,
            updated_at=read_set_time(row, "updated_at"),
        )

    def _state(self, row: Row, shown: dict[str, Any]) -> TaskState:
        word = str(row.take("state", "open")).lower()
        if word == "closed":
            return TaskState.ABANDONED if is_given_up(shown) else TaskState.DONE
        if word != "open":
            row.replace("state", "open")
        return TaskState.PENDING

    @pure_mapping
    def comment(self, row: Row) -> PendingRecord:
        item, body = row.take("issue"), row.text("body", "")
        author = row.text("author") or row.text("user") or ""
        at = row.time("created_at", EPOCH)
        # The other columns are GitHub's presentation.
        row.leftovers = {}
        return self.comment_record(row, item, author=author, body=body, at=at)


def is_given_up(issue: dict[str, Any]) -> bool:
    """Return whether an issue was closed without being done."""
    return str(issue.get("state_reason")).lower() in NOT_DONE


def _priority(labels: list[str]) -> int:
    """Parse a priority from a label such as `P1` or `priority: high`."""
    words = (label.lower().removeprefix("priority").strip(" :/-_") for label in labels)
    return max((URGENCY[word] for word in words if word in URGENCY), default=_DEFAULT_PRIORITY)


_OPEN, _GIVEN_UP = "open", "not planned"
_STATES = {TaskState.DONE: "closed", TaskState.ABANDONED: _GIVEN_UP}
_FIELDS = ("title", "body", "state")
_RAW = "as it was content"
_SPECIAL = re.compile(r'[",\r\n]')


class GithubSync(Sync):
    """Syncs titles, texts, labels, comments, and whether issues are closed."""

    system = "github"
    file_name, imports = "issues.json", GithubImport
    fields = _FIELDS
    # GitHub compares labels without case.
    sets: ClassVar = {
        "labels": lambda label: label.casefold() if isinstance(label, str) and label.strip() else None,
        "comments": lambda comment: comment["body"],
    }

    def __init__(self, log: Any, path: str, *, seconds: float = 600, **settings: Any) -> None:
        super().__init__(log, path, **settings)
        self._seconds = seconds
        if REPOSITORY.match(path) is None:
            raise Invalid(f"{path!r} names no repository; say OWNER/REPOSITORY", field="path")

    def theirs(self) -> Items:
        """Fetch all issues with `gh`."""
        values, broken = issues_by_gh(self.path, self._seconds)
        if broken:
            raise Unavailable("the output of gh was cut off", hint="Try it again.")
        listed = [one for found in values for one in (found if isinstance(found, list) else [found])]
        return dict(_item(plain_names(one), self.path) for one in listed if isinstance(one, dict))

    def ours(self) -> Items:
        """Return the tasks of the run as issues."""
        return self.log.db.read(self._tasks)

    def _tasks(self) -> Items:
        said: dict[str, list[dict[str, str]]] = {}
        run = {"run_id": self.run_id}
        for one in each(self.log, TaskComment, "created_at, id", "where run_id = :run_id", **run):
            said.setdefault(one.task_id, []).append({"body": one.body})
        return {
            task.id: {
                "title": task.title,
                "body": task.objective,
                "state": _STATES.get(task.state, _OPEN),
                "labels": task.tags,
                "comments": said.get(task.id, []),
            }
            for task in each(self.log, Task, "id", "where run_id = :run_id", **run)
        }

    def is_wanted(self, item: dict[str, Any]) -> bool:
        """Return whether to create an issue: not for a finished task."""
        return bool(item["state"] == _OPEN)

    def take(self, items: Items, ours: Items) -> None:
        """Import the issues, as newer than all local changes."""
        at = self.later()
        local_items = {name: {**item[_RAW], **_values_of(ours[name])} for name, item in items.items() if name in ours}
        self.import_text(json.dumps([_issue(name, item, ours.get(name), at) for name, item in items.items()]), local_items)

    def give(self, items: Items) -> None:
        """Update the issues that differ, and create the missing ones."""
        there = self.theirs()
        for name, item in items.items():
            if name in there:
                self._change(str(there[name]["number"]), there[name], item)
            else:
                self._make(name, item)

    def _make(self, name: str, item: dict[str, Any]) -> None:
        self._need_labels(item["labels"])
        labels = [word for label in item["labels"] for word in ("--label", _quoted_label(label))]
        self._gh("issue", "create", "--title", item["title"], "--body", marked(item.get("body", ""), name), *labels)

    def _change(self, number: str, there: dict[str, Any], item: dict[str, Any]) -> None:
        words = []
        if item.get("title") != there.get("title"):
            words += ["--title", item["title"]]
        if item.get("body", "") != there.get("body", ""):
            body, made_of = item.get("body", ""), unmarked(there[_RAW].get("body") or "")[1]
            words += ["--body", marked(body, made_of) if made_of else body]
        new, old = ({label.casefold(): label for label in one.get("labels") or ()} for one in (item, there))
        added, gone = ([one[name] for name in sorted(one.keys() - other)] for one, other in ((new, old), (old, new)))
        self._need_labels(added)
        words += [word for label in added for word in ("--add-label", _quoted_label(label))]
        words += [word for label in gone for word in ("--remove-label", _quoted_label(label))]
        if words:
            self._gh("issue", "edit", number, *words)
        known = {comment["body"] for comment in there.get("comments", ())}
        for comment in item.get("comments", ()):
            if comment["body"] not in known:
                self._gh("issue", "comment", number, "--body", comment["body"])
        if item["state"] != there["state"]:
            self._set_state(number, there["state"], item["state"])

    def _set_state(self, number: str, was: str, state: str) -> None:
        if was != _OPEN:
            # GitHub does not change the reason of a closed issue, so reopen it first.
            self._gh("issue", "reopen", number)
        if state != _OPEN:
            self._gh("issue", "close", number, *(("--reason", _GIVEN_UP) if state == _GIVEN_UP else ()))

    def _need_labels(self, labels: list[str]) -> None:
        for label in labels:
            # Creating an existing label fails and leaves it unchanged.
            self._gh("label", "create", label, is_needed=False)

    def _gh(self, *words: str, is_needed: bool = True) -> None:
        hint = "Install gh, and log in: gh auth login"
        _run_gh(self.path, words, self._seconds, subprocess.DEVNULL, hint=hint, is_needed=is_needed)


def _quoted_label(label: str) -> str:
    """Quote a label for `gh`, which parses the argument as a CSV line."""
    return '"' + label.replace('"', '""') + '"' if _SPECIAL.search(label) else label


def _item(issue: dict[str, Any], repository: str) -> tuple[str, dict[str, Any]]:
    body, made_of = unmarked(str(issue.get("body") or ""))
    comments = [one for one in issue.get("comments") or () if isinstance(one, dict) and str(one.get("body") or "").strip()]
    content = {"title": issue.get("title"), "body": body, "state": _state(issue), "labels": issue.get("labels")}
    item = {**content, "comments": comments, "number": issue.get("number"), _RAW: {**issue, "body": body}}
    name = name_of(issue, repository)
    if made_of is None:
        return name, item
    return made_of, {**item, _RAW: {**issue, "body": marked(body, made_of)}}


def _issue(name: str, item: dict[str, Any], ours: dict[str, Any] | None, at: str) -> dict[str, Any]:
    """Build an issue in the importer's format, without comments that exist here."""
    known = {comment["body"] for comment in (ours or {}).get("comments", ())}
    comments = [one for one in item.get("comments", ()) if one["body"] not in known]
    content = _values_of(item)
    if unmarked(item[_RAW].get("body") or "")[1] is not None:
        content["body"] = marked(content["body"], name)
    return {**item[_RAW], **content, "comments": comments, "updated_at": at}


def _state(issue: dict[str, Any]) -> str:
    state = str(issue.get("state")).lower()
    return _GIVEN_UP if state != _OPEN and is_given_up(issue) else state


def _values_of(item: dict[str, Any]) -> dict[str, Any]:
    reason = "not_planned" if item["state"] == _GIVEN_UP else "completed"
    state = {"state": _OPEN} if item["state"] == _OPEN else {"state": "closed", "state_reason": reason}
    return {"title": item.get("title"), "body": item.get("body", ""), "labels": item.get("labels", []), **state}
