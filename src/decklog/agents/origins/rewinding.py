"""Restoring of a worktree to a snapshot. The current state is saved first; only files of the worktree change."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from decklog.agents.intake import run_intake
from decklog.agents.session_views import find_session
from decklog.agents.spool import Spool
from decklog.core.errors import Conflict, NotFound
from decklog.log import Decklog
from decklog.provenance.capture import Capture
from decklog.provenance.git import GitRepository
from decklog.provenance.git_output import parse_raw
from decklog.provenance.recording import keep_objects, record_captured
from decklog.records.record import find_all
from decklog.stores.provenance.edits import WorktreeSnapshot

# Session name of the states that a rewind saves.
SAVED = "decklog:rewind"
_PAGE = 200
_SUBMODULE = "160000"
_FEWEST_DIGITS = 7


@dataclass(frozen=True, kw_only=True)
class FileRestore:
    """A file that a rewind modifies (`M`), adds (`A`) or deletes (`D`)."""

    path: str
    status: str


@dataclass(frozen=True, kw_only=True)
class RewindPlan:
    """Planned changes of a rewind. `left_out` maps skipped files to reasons; `saved` is the snapshot to return to."""

    target: WorktreeSnapshot
    files: list[FileRestore]
    left_out: dict[str, str] = field(default_factory=dict)
    head: str | None = None
    saved: str | None = None
    resume: str | None = None

    def as_dict(self) -> dict[str, Any]:
        target = self.target
        return {
            "snapshot": target.id,
            "session": target.session,
            "moment": target.moment.value,
            "turn": target.turn,
            "taken_at": target.taken_at.isoformat(),
            "files": [vars(one) for one in self.files],
            "left_out": self.left_out,
            "head": self.head,
            "head_then": target.head,
            "saved": self.saved,
            "return": None if self.saved is None else f"decklog rewind --to {self.saved}",
            "resume": self.resume,
        }


def snapshots_of(repo: GitRepository, log: Decklog) -> Iterator[WorktreeSnapshot]:
    """Yield the snapshots of a worktree, the newest first."""
    return find_all(log.edits.snapshots, worktree=repo.top)


def find_snapshot(repo: GitRepository, log: Decklog, name: str | None) -> WorktreeSnapshot:
    """Return the snapshot for a snapshot id, turn, entry or commit; by default the start of the last turn."""
    if name is None:
        starts = (one for one in snapshots_of(repo, log) if one.moment.value == "start" and one.session != SAVED)
        found = next(starts, None)
    else:
        found = _by_name(repo, log, name)
    if found is None:
        what = "no turn of an agent is recorded here" if name is None else f"no snapshot of this worktree fits {name}"
        raise NotFound(what, hint="List snapshots: decklog rewind --list")
    return found


def _by_name(repo: GitRepository, log: Decklog, name: str) -> WorktreeSnapshot | None:
    if ":" in name and name.rpartition(":")[2].isdecimal():
        entry = log.journal.get(name)
        earlier = (one for one in snapshots_of(repo, log) if one.run_id == entry.stream and one.taken_at <= entry.at)
        return next(earlier, None)
    is_commit = len(name) >= _FEWEST_DIGITS
    of_turn: WorktreeSnapshot | None = None
    for one in snapshots_of(repo, log):
        if one.id == name or (is_commit and one.commit_id.startswith(name)):
            return one
        if one.turn == name and one.moment.value == "start":
            of_turn = one
    return of_turn


def rewind(
    repo: GitRepository, log: Decklog, name: str | None = None, *, files: Sequence[str] = (), dry_run: bool = False
) -> RewindPlan:
    """Restore a worktree, or some files of it, to a snapshot; raise Conflict during a merge or a rebase."""
    if repo.is_unfinished:
        raise Conflict("a merge, rebase or the like is not finished", hint="Finish or abort it first: git status")
    target = find_snapshot(repo, log, name)
    if repo.resolve(f"{target.commit_id}^{{commit}}") is None:
        raise NotFound(f"the files of snapshot {target.id} are gone from git", hint="List others: decklog rewind --list")
    present = Capture(repo, SAVED).snapshot("start")
    commit = str(present["snapshot"]["commit"])
    found, left_out = _changes(repo, commit, target, files)
    left_out |= {path: reason for path, reason in present["snapshot"]["skipped"].items() if not files or path in files}
    saved = None
    if not dry_run and found:
        saved = _save(log, present)
        _restore(repo, target.commit_id, found)
    return RewindPlan(
        target=target, files=found, left_out=left_out, head=repo.head(), saved=saved, resume=_resume(log, target.session)
    )


def _changes(
    repo: GitRepository, present: str, target: WorktreeSnapshot, files: Sequence[str]
) -> tuple[list[FileRestore], dict[str, str]]:
    """Return the files that differ between two snapshots. Files that one of them skipped stay unchanged."""
    words = ("diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", present, target.commit_id, "--", *files)
    found: list[FileRestore] = []
    left_out: dict[str, str] = {}
    for change in parse_raw(os.fsdecode(repo.call("--literal-pathspecs", *words)).split("\0")):
        if change.path in target.skipped:
            left_out[change.path] = target.skipped[change.path]
        elif _SUBMODULE in (change.old_mode, change.mode):
            left_out[change.path] = "a submodule"
        else:
            found.append(FileRestore(path=change.path, status="M" if change.status == "T" else change.status))
    return found, left_out


def _save(log: Decklog, present: dict[str, Any]) -> str:
    """Record the current state and return the id of its snapshot."""
    record_captured(log, present, session=SAVED)
    keep_objects(SAVED, [present])
    commit = present["snapshot"]["commit"]
    return next(one.id for one in log.edits.snapshots(session=SAVED, limit=_PAGE) if one.commit_id == commit)


def _restore(repo: GitRepository, commit: str, files: list[FileRestore]) -> None:
    """Write files of a commit through a private index, and delete files that the commit lacks."""
    for file in files:
        if file.status == "D":
            _delete(repo.top, file.path)
    index = os.path.join(repo.state, f"index-rewind-{os.getpid()}")
    try:
        repo.call("read-tree", commit, index=index)
        given = b"".join(os.fsencode(file.path) + b"\0" for file in files if file.status != "D")
        repo.call("checkout-index", "--force", "-z", "--stdin", given=given, index=index)
    finally:
        if os.path.exists(index):
            os.unlink(index)


def _delete(top: str, path: str) -> None:
    """Delete a file, and the folders that become empty."""
    whole = os.path.join(top, path)
    if not os.path.lexists(whole):
        return
    os.unlink(whole)
    folder = os.path.dirname(whole)
    while folder != top and not os.listdir(folder):
        os.rmdir(folder)
        folder = os.path.dirname(folder)


def _resume(log: Decklog, session: str) -> str | None:
    """Return the command that resumes a session, or None."""
    try:
        return find_session(log, session.partition(":")[2]).resume
    except NotFound:
        return None


_LONGEST_SECONDS = 5.0
_STEP_SECONDS = 0.02


def catch_up(log: Decklog, spool: Spool) -> None:
    """Record waiting events; wait briefly if another process is already doing so."""
    if log.db.read_only:
        return
    end = time.monotonic() + _LONGEST_SECONDS
    while run_intake(log, spool).was_locked and not spool.is_empty and time.monotonic() < end:
        time.sleep(_STEP_SECONDS)
