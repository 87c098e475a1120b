"""Record captured edits, and protect their objects from git's garbage collection.

The capture writes objects first, then entries are recorded here, and refs are written last. So refs and entries never name
missing objects. If a process is killed in between, the next one continues.
"""

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from decklog.log import Decklog
from decklog.provenance.git import GitRepository
from decklog.provenance.git_output import parse_raw

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
    """Record the edits and the snapshot of a capture; return their number."""
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


def session_ref(session: str) -> str:
    """Return the name of the ref that keeps the objects of a session."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-" for letter in session)
    return REFS + plain.strip("-")[:100]


def keep_objects(session: str, captured: Iterable[dict[str, Any]]) -> None:
    """Keep the objects of recorded captures by refs: blobs, snapshots and the commits that they are based on."""
    by_top: dict[str, list[dict[str, Any]]] = {}
    for one in captured:
        by_top.setdefault(one["top"], []).append(one)
    for top, group in by_top.items():
        repo = GitRepository.find(top)
        # The objects of a removed worktree are in its main repository, which is not looked up.
        if repo is not None and repo.top == top:
            _keep(repo, session_ref(session), group)


def _keep(repo: GitRepository, ref: str, captured: list[dict[str, Any]]) -> None:
    edits = [edit for one in captured for edit in one.get("edits", ())]
    blobs = {edit[name] for edit in edits for name in ("old", "new") if edit.get(name)}
    commits = [one["snapshot"]["commit"] for one in captured if "snapshot" in one]
    commits += [one["head"] for one in (*captured, *edits) if one.get("head")]
    newest = repo.resolve(ref)
    if newest is not None:
        blobs -= set(repo.text("ls-tree", "--name-only", newest).split())
        commits = [commit for commit in dict.fromkeys(commits) if not repo.is_ancestor(commit, newest)]
    if not blobs and not commits:
        return
    rows = "".join(f"100644 blob {blob}\t{blob}\n" for blob in sorted(blobs))
    tree = repo.call("mktree", "--missing", given=rows.encode()).decode().strip()
    parents = dict.fromkeys([newest, *commits] if newest else commits)
    words = [word for parent in parents for word in ("-p", parent)]
    commit = repo.call("commit-tree", tree, "-m", "Objects of edits that Decklog recorded", *words).decode().strip()
    repo.call("update-ref", "--no-deref", ref, commit, newest or "")


def session_refs(repo: GitRepository) -> list[str]:
    """Return the names of the refs that keep objects of sessions."""
    return repo.text("for-each-ref", "--format=%(refname)", REFS).split()


def release_objects(repo: GitRepository, refs: Iterable[str]) -> int:
    """Delete refs, so that git can collect their objects. Return the number of refs."""
    names = list(refs)
    given = "".join(f"delete {name}\n" for name in names)
    repo.call("update-ref", "--stdin", given=given.encode())
    return len(names)


def release_old(log: Decklog, folder: str, before: datetime, *, is_applied: bool) -> int:
    """Delete the refs of sessions without changes since a time; return the number of refs."""
    repo = GitRepository.find(folder)
    if repo is None:
        return 0
    # Sessions of other logs are not released here.
    times = log.edits.last_times()
    used = {session_ref(session) for session, at in times.items() if at >= before}
    old = [ref for ref in session_refs(repo) if ref in set(map(session_ref, times)) - used]
    return release_objects(repo, old) if is_applied and old else len(old)


# Modes of a missing and of a regular file. Links and nested repositories have no lines.
_MODES = frozenset(["000000", "100644", "100755"])


def captured_between(repo: GitRepository, start: str, end: str) -> dict[str, Any]:
    """Return the edits between two commits as a capture, without content that git had before."""
    out = os.fsdecode(repo.call("diff-tree", "-r", "-M", "--raw", "--no-abbrev", "-z", start, end))
    changes = [change for change in parse_raw(out.split("\0")) if {change.old_mode, change.mode} <= _MODES]
    known = _find_known_blobs(repo, start, [change.path for change in changes])
    edits = []
    for change in changes:
        if change.new not in known:
            edit = {"path": change.path, "old": change.old, "new": change.new, "old_path": change.old_path}
            edits.append({name: value for name, value in edit.items() if value})
    return {"repository": repo.identity, "top": repo.top, "head": start, "edits": edits}


def _find_known_blobs(repo: GitRepository, start: str, paths: list[str]) -> set[str]:
    """Return the blobs of a commit's files, and the blobs of some paths in its history."""
    if not paths:
        return set()
    words = ("--literal-pathspecs", "log", "--format=", "--raw", "--no-abbrev", "-m", "-z", start, "--", *paths)
    earlier = parse_raw(os.fsdecode(repo.call(*words)).split("\0"))
    return {*repo.tree(start).values(), *(change.new for change in earlier if change.new is not None)}
