"""Puts what was captured on record, and keeps its objects from being collected.

Objects are written by the capture, entries here, and refs last: a ref never names what no entry names, and no entry names an
object that was not stored. A process that is killed in between leaves the events to the next one, which does the rest.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from decklog.log import Decklog
from decklog.provenance.git import GitRepository

REFS = "refs/decklog/sessions/"


def record_captured(
    log: Decklog,
    captured: dict[str, Any],
    *,
    session: str | None = None,
    person: str | None = None,
    kind: str = "tool",
    run_id: str | None = None,
    task_id: str | None = None,
    call_id: str | None = None,
    at: datetime | None = None,
) -> int:
    """Record the edits and the snapshot of a capture; return how many there were."""
    repository, head = captured["repository"], captured.get("head")
    for edit in captured.get("edits", ()):
        log.edits.record(
            repository,
            edit["path"],
            old_path=edit.get("old_path"),
            old_blob=edit.get("old"),
            new_blob=edit.get("new"),
            kind=kind,
            session=session,
            person=person,
            run_id=run_id,
            task_id=task_id,
            call_id=call_id,
            mixed_with=edit.get("mixed"),
            head=edit.get("head", head),
            edited_at=at,
        )
    if session is not None and (taken := captured.get("snapshot")) is not None:
        log.edits.record_snapshot(
            repository,
            captured["top"],
            session,
            taken["moment"],
            taken["commit"],
            head=head,
            run_id=run_id,
            turn=taken.get("turn"),
            skipped=taken.get("skipped"),
            taken_at=at,
        )
    return len(captured.get("edits", ())) + ("snapshot" in captured)


def ref_of(session: str) -> str:
    """Name the ref that keeps the objects of a session."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-" for letter in session)
    return REFS + plain.strip("-")[:100]


def keep_objects(session: str, captured: Iterable[dict[str, Any]]) -> None:
    """Keep the objects of captures that are on record: each keeps its blobs, its snapshot and the commit below it."""
    by_top: dict[str, list[dict[str, Any]]] = {}
    for one in captured:
        by_top.setdefault(one["top"], []).append(one)
    for top, ones in by_top.items():
        repo = GitRepository.find(top)
        # A worktree may be gone by now; its objects are in the repository that it was of, and nobody looks there.
        if repo is not None and repo.top == top:
            _keep(repo, ref_of(session), ones)


def _keep(repo: GitRepository, ref: str, captured: list[dict[str, Any]]) -> None:
    edits = [edit for one in captured for edit in one.get("edits", ())]
    blobs = {edit[name] for edit in edits for name in ("old", "new") if edit.get(name)}
    commits = [one["snapshot"]["commit"] for one in captured if "snapshot" in one]
    commits += [one["head"] for one in (*captured, *edits) if one.get("head")]
    newest = repo.resolve(ref)
    if newest is not None:
        blobs -= set(_names_in(repo, newest))
        commits = [commit for commit in dict.fromkeys(commits) if not repo.is_ancestor(commit, newest)]
    if not blobs and not commits:
        return
    rows = "".join(f"100644 blob {blob}\t{blob}\n" for blob in sorted(blobs))
    tree = repo.call("mktree", "--missing", given=rows.encode()).decode().strip()
    parents = dict.fromkeys([newest, *commits] if newest else commits)
    words = [word for parent in parents for word in ("-p", parent)]
    commit = repo.call("commit-tree", tree, "-m", "Objects of edits that Decklog recorded", *words).decode().strip()
    repo.call("update-ref", "--no-deref", ref, commit, newest or "")


def _names_in(repo: GitRepository, commit: str) -> list[str]:
    return repo.text("ls-tree", "--name-only", commit).split()


def session_refs(repo: GitRepository) -> list[str]:
    """Name the refs that keep objects of sessions."""
    return repo.text("for-each-ref", "--format=%(refname)", REFS).split()


def release_objects(repo: GitRepository, refs: Iterable[str]) -> int:
    """Let go of the objects that refs keep; git collects them at its next collection. Return how many refs there were."""
    names = list(refs)
    given = "".join(f"delete {name}\n" for name in names)
    repo.call("update-ref", "--stdin", given=given.encode())
    return len(names)


def release_old(log: Decklog, folder: str, before: datetime, *, is_applied: bool) -> int:
    """Let go of the objects of sessions that changed nothing since a time; return how many refs that are."""
    repo = GitRepository.find(folder)
    if repo is None:
        return 0
    # Sessions of other logs are for those to release.
    times = log.edits.last_times()
    used = {ref_of(session) for session, at in times.items() if at >= before}
    old = [ref for ref in session_refs(repo) if ref in set(map(ref_of, times)) - used]
    return release_objects(repo, old) if is_applied and old else len(old)


# The columns of `git diff-tree --raw`: modes, blobs and the status.
_MODE, _OLD, _NEW, _STATUS = 1, 2, 3, 4


def captured_between(repo: GitRepository, start: str, end: str) -> dict[str, Any]:
    """Return the edits between two commits, in the form of a capture. Content that was in git before is left out."""
    out = repo.call("diff-tree", "-r", "-M", "--raw", "--no-abbrev", "-z", start, end)
    edits = list(_edits(os.fsdecode(out).split("\0")))
    known = _known(repo, start, [edit["path"] for edit in edits])
    found = [edit for edit in edits if edit.get("new") not in known]
    return {"repository": repo.identity, "top": repo.top, "head": start, "edits": found}


def _edits(words: list[str]) -> Iterator[dict[str, str]]:
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


def _known(repo: GitRepository, start: str, paths: list[str]) -> set[str]:
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
