"""Lock files in a change: those a person has to look at, and those that no longer fit their manifest."""

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from decklog.guard.files.gitignore import IgnoreFile
from decklog.review.change import Change
from decklog.review.result import Finding, Severity


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(files("decklog.review").joinpath("lock_files.toml").read_text(encoding="utf-8"))


def find_questions(change: Change) -> Iterator[Finding]:
    """Yield a question for each file that decides which foreign code runs."""
    questions = IgnoreFile(tuple(_table()["questions"]))
    text = "it decides which code of others is run, or what CI runs"
    for one in change.paths:
        if questions.covers(one.path):
            yield Finding(
                severity=Severity.QUESTION, kind="dependencies", text=text, file=one.path, remedy="Have a person look at it."
            )


def find_stale_locks(change: Change) -> Iterator[Finding]:
    """Yield the lock files that stay the same while the dependencies of their manifest change."""
    changed = {one.path for one in change.paths}
    by_name = {row["name"]: row for row in _table()["manifest"]}
    for path in sorted(changed):
        row = by_name.get(posixpath.basename(path))
        before, after = change.content(path, at_base=True), change.content(path)
        if row is None or before is None or after is None or _dependencies(row, before) == _dependencies(row, after):
            continue
        # A workspace has one lock file at its root.
        folders = dict.fromkeys((posixpath.dirname(path), ""))
        locks = [posixpath.join(folder, name) for folder in folders for name in row["locks"]]
        present = [lock for lock in locks if change.content(lock) is not None]
        if present and not changed.intersection(present):
            text = f"the dependencies of {path} change and {present[0]} does not"
            yield Finding(
                severity=Severity.MINOR,
                kind="stale-lock",
                text=text,
                file=present[0],
                remedy="Update the lock file and commit it.",
            )


def _dependencies(row: Mapping[str, Any], content: bytes) -> object:
    """Return the dependencies of a manifest; None when it can't be read, which another check reports."""
    text = content.decode(errors="replace")
    if "lines" in row:
        return re.findall(row["lines"], text, re.MULTILINE)
    try:
        document = json.loads(text) if row["name"].endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    return [_at(document, path) for path in row["tables"]]


def _at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document.get(step) if isinstance(document, dict) else None
    return document
