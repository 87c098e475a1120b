"""Keeps a run and a repository's issues in step, by the program `gh` and the login that it has.

An issue that is made of a task names it in a mark that readers do not see: so it is known even when whoever made it was killed
before it could note that down.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, ClassVar

from decklog.core.errors import Invalid, TimedOut, Unavailable
from decklog.importing.exports.rows import each
from decklog.importing.json_pieces import JsonFile
from decklog.importing.private_folder import PrivateFolder
from decklog.importing.syncing import Sync
from decklog.plugins.importers.github.importer import GithubImport, is_given_up
from decklog.plugins.importers.github.reading import REPOSITORY, ask_gh, marked, name_of, plain_names, unmarked
from decklog.stores.tasks.task import Task, TaskComment, TaskState

if TYPE_CHECKING:
    from typing import Any

    from decklog.importing.syncing import Items

_OPEN, _GIVEN_UP = "open", "not planned"
_STATES = {TaskState.DONE: "closed", TaskState.ABANDONED: _GIVEN_UP}
_FIELDS = ("title", "body", "state")
_RAW = "as it was told"
_SPECIAL = re.compile(r'[",\r\n]')


class GithubSync(Sync):
    """Title, text, labels, comments, and whether it is closed."""

    system = "github"
    fields = _FIELDS
    # To GitHub labels are the same that differ by case alone.
    sets: ClassVar = {
        "labels": lambda label: label.casefold() if isinstance(label, str) and label.strip() else None,
        "comments": lambda comment: comment["body"],
    }

    def __init__(self, log: "Any", path: str, *, seconds: float = 600, **settings: "Any") -> None:
        super().__init__(log, path, **settings)
        self._seconds = seconds
        if REPOSITORY.match(path) is None:
            raise Invalid(f"{path!r} names no repository; say OWNER/REPOSITORY", field="path")

    def theirs(self) -> "Items":
        """Ask `gh` for all issues."""
        with PrivateFolder() as folder:
            saved = os.path.join(folder, "issues.json")
            ask_gh(self.path, self._seconds, saved)
            values = JsonFile(saved)
            listed = [one for found in values for one in (found if isinstance(found, list) else [found])]
        if values.rest:
            raise Unavailable("gh did not tell to its end what issues there are", hint="Try it again.")
        return dict(_item(plain_names(one), self.path) for one in listed if isinstance(one, dict))

    def ours(self) -> "Items":
        """Return the tasks of the run as issues."""
        return self.log.db.read(self._tasks)

    def _tasks(self) -> "Items":
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

    def is_wanted(self, item: "dict[str, Any]") -> bool:
        """Make no issues of what is over."""
        return bool(item["state"] == _OPEN)

    def take(self, items: "Items", ours: "Items") -> None:
        """Import the issues, as newer than all that is here."""
        at = self.later()
        with tempfile.TemporaryDirectory(prefix="decklog-sync-") as folder:
            path = os.path.join(folder, "issues.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump([_issue(name, item, ours.get(name), at) for name, item in items.items()], file)
            taking = GithubImport(self.log, path, run_id=self.run_id)
            taking.as_here = {name: {**item[_RAW], **_told(ours[name])} for name, item in items.items() if name in ours}
            self.report.notes += taking.run().notes

    def give(self, items: "Items") -> None:
        """Write to the issues what differs there, and make those that are not there."""
        there = self.theirs()
        for name, item in items.items():
            if name in there:
                self._change(str(there[name]["number"]), there[name], item)
            else:
                self._make(name, item)

    def _make(self, name: str, item: "dict[str, Any]") -> None:
        self._need_labels(item["labels"])
        labels = [word for label in item["labels"] for word in ("--label", _listed(label))]
        self._gh("issue", "create", "--title", item["title"], "--body", marked(item.get("body", ""), name), *labels)

    def _change(self, number: str, there: "dict[str, Any]", item: "dict[str, Any]") -> None:
        words = []
        if item.get("title") != there.get("title"):
            words += ["--title", item["title"]]
        if item.get("body", "") != there.get("body", ""):
            body, made_of = item.get("body", ""), unmarked(there[_RAW].get("body") or "")[1]
            words += ["--body", marked(body, made_of) if made_of else body]
        new, old = ({label.casefold(): label for label in one.get("labels") or ()} for one in (item, there))
        added, gone = ([one[name] for name in sorted(one.keys() - other)] for one, other in ((new, old), (old, new)))
        self._need_labels(added)
        words += [word for label in added for word in ("--add-label", _listed(label))]
        words += [word for label in gone for word in ("--remove-label", _listed(label))]
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
            # It gives no other reason to one that is closed.
            self._gh("issue", "reopen", number)
        if state != _OPEN:
            self._gh("issue", "close", number, *(("--reason", _GIVEN_UP) if state == _GIVEN_UP else ()))

    def _need_labels(self, labels: "list[str]") -> None:
        for label in labels:
            # Refused where there is one, which then stays as it is.
            self._gh("label", "create", label, is_needed=False)

    def _gh(self, *words: str, is_needed: bool = True) -> None:
        program = shutil.which("gh")
        if program is None:
            raise Unavailable("there is no program gh to write to GitHub with", hint="Install gh, and log in: gh auth login")
        command = [program, *words, "--repo", self.path]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=self._seconds, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise TimedOut(f"gh took longer than {self._seconds:.0f} s", hint="Run it again: what is done stays.") from None
        if done.returncode and is_needed:
            hint = "Run it again once that is mended: what is done stays."
            raise Unavailable(f"gh {' '.join(words[:2])} failed: {done.stderr.strip()[:500]}", hint=hint)


def _listed(label: str) -> str:
    """Spell a label as `gh` takes it: it reads what it is given as a line of a table, with commas and quotation marks."""
    return '"' + label.replace('"', '""') + '"' if _SPECIAL.search(label) else label


def _item(issue: "dict[str, Any]", repository: str) -> "tuple[str, dict[str, Any]]":
    body, made_of = unmarked(str(issue.get("body") or ""))
    comments = [one for one in issue.get("comments") or () if isinstance(one, dict) and str(one.get("body") or "").strip()]
    told = {"title": issue.get("title"), "body": body, "state": _state(issue), "labels": issue.get("labels")}
    item = {**told, "comments": comments, "number": issue.get("number"), _RAW: {**issue, "body": body}}
    name = name_of(issue, repository)
    if made_of is None:
        return name, item
    return made_of, {**item, _RAW: {**issue, "body": marked(body, made_of)}}


def _issue(name: str, item: "dict[str, Any]", ours: "dict[str, Any] | None", at: str) -> "dict[str, Any]":
    """Spell an issue as the importer reads it, without what was said here first."""
    known = {comment["body"] for comment in (ours or {}).get("comments", ())}
    comments = [one for one in item.get("comments", ()) if one["body"] not in known]
    told = _told(item)
    if unmarked(item[_RAW].get("body") or "")[1] is not None:
        told["body"] = marked(told["body"], name)
    return {**item[_RAW], **told, "comments": comments, "updated_at": at}


def _state(issue: "dict[str, Any]") -> str:
    state = str(issue.get("state")).lower()
    return _GIVEN_UP if state != _OPEN and is_given_up(issue) else state


def _told(item: "dict[str, Any]") -> "dict[str, Any]":
    reason = "not_planned" if item["state"] == _GIVEN_UP else "completed"
    state = {"state": _OPEN} if item["state"] == _OPEN else {"state": "closed", "state_reason": reason}
    return {"title": item.get("title"), "body": item.get("body", ""), "labels": item.get("labels", []), **state}
