"""Edits of an agent that had a worktree to itself: everything between the commit it started from and what it left."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from decklog.provenance.git import GitRepository

# The columns of `git diff-tree --raw`: modes, blobs and the status.
_MODE, _OLD, _NEW, _STATUS = 1, 2, 3, 4


def captured_between(repo: "GitRepository", start: str, end: str) -> "dict[str, Any]":
    """Return the edits between two commits, in the form of a capture. Content that was in git before is left out."""
    out = repo.call("diff-tree", "-r", "-M", "--raw", "--no-abbrev", "-z", start, end)
    edits = list(_edits(os.fsdecode(out).split("\0")))
    known = _known(repo, start, [edit["path"] for edit in edits])
    found = [edit for edit in edits if edit.get("new") not in known]
    return {"repository": repo.identity, "top": repo.top, "head": start, "edits": found}


def _edits(words: list[str]) -> "Iterator[dict[str, str]]":
    """Read the rows of `git diff-tree`."""
    rest = iter(words)
    for head in rest:
        if not head:
            return
        parts, path = head.split(" "), next(rest)
        former = None
        if parts[_STATUS][0] in "RC":
            former, path = path, next(rest)
        # Links and nested repositories have no lines.
        if not all(mode.lstrip(":") in ("000000", "100644", "100755") for mode in parts[: _MODE + 1]):
            continue
        old, new = (blob if blob.strip("0") else None for blob in (parts[_OLD], parts[_NEW]))
        edit = {"path": path, "old": old, "new": new, "old_path": former}
        yield {name: value for name, value in edit.items() if value}


def _known(repo: "GitRepository", start: str, paths: list[str]) -> set[str]:
    """Return the blobs of a commit's files, and those that some paths ever had below it."""
    if not paths:
        return set()
    tree = os.fsdecode(repo.call("ls-tree", "-r", "-z", start)).split("\0")
    found = {row.split("\t")[0].split(" ")[2] for row in tree if row}
    out = repo.call("--literal-pathspecs", "log", "--format=", "--raw", "--no-abbrev", "-m", "-z", start, "--", *paths)
    for row in os.fsdecode(out).split("\0"):
        if row.startswith(":"):
            found.add(row.split(" ")[_NEW])
    return found
