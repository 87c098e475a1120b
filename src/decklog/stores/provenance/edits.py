"""Edits: which session changed a file from one git blob to another, and snapshots of the worktree around its turns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from decklog.core.clock import from_text
from decklog.core.errors import Invalid
from decklog.db.where import Where, parse_enum
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.records.values import from_json, to_json
from decklog.stores.base import Store
from decklog.stores.intake import ANY_OF, parameter_batches

_TABLE = "line_origins"


class EditKind(StrEnum):
    """How an edit is known: by the tool that wrote it, by snapshots around a command, by a transcript, or by an editor."""

    TOOL = "tool"
    SHELL = "shell"
    RECONSTRUCTED = "reconstructed"
    PERSON = "person"


EditKindLike = EditKind | str


class SnapshotMoment(StrEnum):
    """When a snapshot was taken: before or after the agent's turn."""

    START = "start"
    END = "end"


SnapshotMomentLike = SnapshotMoment | str


@dataclass(frozen=True, kw_only=True)
class Edit(Record):
    """A file was changed from one blob to another; an empty `new_blob` means that it was deleted.

    `repository` is the root commit of the history, `session` is PROGRAM:ID, and `head` the commit that was checked out.
    """

    table = "edits"
    home = "@edits"

    id: str
    repository: str
    path: str
    kind: EditKind
    edited_at: datetime
    session: str | None = None
    person: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    call_id: str | None = None
    mixed_with: list[str] | None = None
    old_path: str | None = None
    old_blob: str | None = None
    new_blob: str | None = None
    head: str | None = None


@dataclass(frozen=True, kw_only=True)
class WorktreeSnapshot(Record):
    """The files of a worktree at one moment, as a commit under refs/decklog/sessions; `skipped` maps paths to reasons."""

    table = "worktree_snapshots"
    home = "@edits"

    id: str
    repository: str
    worktree: str
    session: str
    moment: SnapshotMoment
    commit_id: str
    taken_at: datetime
    head: str | None = None
    run_id: str | None = None
    turn: str | None = None
    skipped: dict[str, str] = field(default_factory=dict)


class Edits(Store):
    """Records which session changed which file, and snapshots of worktrees. Contents stay in git."""

    records = (Edit, WorktreeSnapshot)
    derived = (_TABLE,)

    @writes
    def record(
        self,
        repository: str,
        path: str,
        *,
        old_blob: str | None = None,
        new_blob: str | None = None,
        old_path: str | None = None,
        kind: EditKindLike = EditKind.TOOL,
        session: str | None = None,
        person: str | None = None,
        run_id: str | None = None,
        task_id: str | None = None,
        call_id: str | None = None,
        mixed_with: list[str] | None = None,
        head: str | None = None,
        edited_at: datetime | None = None,
    ) -> Edit:
        """Record that a session, or a person, changed a file. The same edit of the same call is recorded once."""
        given: dict[str, Any] = {
            "repository": repository,
            "path": path,
            "old_path": old_path,
            "kind": parse_enum(EditKind, kind, "kind"),
            "session": session,
            "person": person,
            "run_id": run_id,
            "task_id": task_id,
            "call_id": call_id,
            "mixed_with": mixed_with or None,
            "old_blob": old_blob,
            "new_blob": new_blob,
            "head": head,
            "edited_at": edited_at or self._now(),
        }
        _check_edit(given)
        edit = self._find_or_add(lambda: self._known(given), lambda: self._add(Edit, id=self._ids.new("edit"), **given))
        if not edit.already:
            # A new edit can change only unknown lines, and only those that may come from its file.
            self._db.count(
                f"delete from {_TABLE} where path = :path and ranges like '%\"unknown\"%'", {"path": self._stored("path", path)}
            )
        return edit

    def _known(self, given: dict[str, Any]) -> Edit | None:
        names = ("repository", "path", "session", "person", "call_id", "old_blob", "new_blob")
        found = self._select(
            Edit,
            "select * from edits where path = :path and "
            + ("new_blob is null" if given["new_blob"] is None else "new_blob = :new_blob"),
            **{name: given[name] for name in ("path", "new_blob") if given[name] is not None},
        )
        wanted = [self._stored(name, given[name]) for name in names]
        return next((edit for edit in found if [edit.raw(name) for name in names] == wanted), None)

    @writes
    def record_snapshot(
        self,
        repository: str,
        worktree: str,
        session: str,
        moment: SnapshotMomentLike,
        commit_id: str,
        *,
        head: str | None = None,
        run_id: str | None = None,
        turn: str | None = None,
        skipped: dict[str, str] | None = None,
        taken_at: datetime | None = None,
    ) -> WorktreeSnapshot:
        """Record a snapshot of a worktree. The same commit of the same session is recorded once."""
        return self._find_or_add(
            lambda: self._seek_by(WorktreeSnapshot, session=session, commit_id=commit_id),
            lambda: self._add(
                WorktreeSnapshot,
                id=self._ids.new("edit"),
                repository=repository,
                worktree=worktree,
                session=session,
                moment=parse_enum(SnapshotMoment, moment, "moment"),
                commit_id=commit_id,
                head=head,
                run_id=run_id,
                turn=turn,
                skipped=skipped or {},
                taken_at=taken_at or self._now(),
            ),
        )

    @reads
    def get(self, edit_id: str) -> Edit:
        """Get one edit."""
        return self._fetch(Edit, edit_id)

    @reads
    def find(
        self,
        *,
        path: str | None = None,
        run_id: str | None = None,
        task_id: str | None = None,
        session: str | None = None,
        blob: str | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Edit]:
        """List edits, newest first; `blob` finds the edits that wrote that content."""
        where = Where(Edit)
        where.equal(path=path, run_id=run_id, task_id=task_id, session=session, new_blob=blob)
        return self._page(Edit, where, order=("id",), limit=limit, after=after, descending=not oldest_first)

    @reads
    def snapshots(
        self,
        *,
        session: str | None = None,
        worktree: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[WorktreeSnapshot]:
        """List snapshots of worktrees, newest first."""
        where = Where(WorktreeSnapshot)
        where.equal(session=session, worktree=worktree)
        return self._page(WorktreeSnapshot, where, order=("id",), limit=limit, after=after, descending=True)

    # For attribution and maintenance

    def last_times(self) -> dict[str, datetime]:
        """Return the time of the last edit or snapshot of each session or person."""
        sql = (
            "select who, max(at) from (select coalesce(session, person) as who, edited_at as at from edits"
            " union all select session, taken_at from worktree_snapshots) one group by who"
        )
        _, rows = self._db.read(lambda: self._db.rows(sql, {}))
        return {who: from_text(at) for who, at in rows}

    def of_path(self, path: str) -> list[Edit]:
        """Return all edits of a path, oldest first."""
        return self._db.read(lambda: self._select_by(Edit, order="id", path=path))

    def of_blobs(self, blobs: list[str]) -> list[Edit]:
        """Return all edits that wrote some blobs, oldest first."""
        # Names of git objects are digests, in which nothing is redacted.
        sql = f"select * from edits where new_blob in {ANY_OF}"
        found = self._db.read(lambda: [self._db.rows(sql, asked) for asked in parameter_batches(blobs)])
        edits = [edit for names, rows in found for edit in Edit.from_rows(names, rows)]
        return sorted(edits, key=lambda edit: edit.id)

    def heads(self) -> list[tuple[str, str | None]]:
        """Return the repositories and commits that edits were made on, by the time of the first edit on each."""
        sql = "select repository, head from edits group by repository, head order by min(edited_at)"
        _, rows = self._db.read(lambda: self._db.rows(sql, {}))
        return [(repository, head) for repository, head in rows]

    def moves(self) -> list[tuple[str, str, str]]:
        """Return the repositories, former paths and paths of files that edits moved."""
        sql = "select distinct repository, old_path, path from edits where old_path is not null order by 1, 2, 3"
        _, rows = self._db.read(lambda: self._db.rows(sql, {}))
        return [(repository, old, new) for repository, old, new in rows]

    def newest_before(self, edit_id: str) -> list[tuple[str, str, str]]:
        """Return the repositories, paths and blobs of the newest edit of each path before an edit."""
        newest = "select max(id) from edits where id < :edit_id group by repository, path"
        sql = f"select repository, path, new_blob from edits where id in ({newest}) and new_blob is not null order by path"
        _, rows = self._db.read(lambda: self._db.rows(sql, {"edit_id": edit_id}))
        return [(repository, path, blob) for repository, path, blob in rows]

    def origins(self, repository: str, path: str) -> dict[str, Any]:
        """Return the cached origins of a path, by commit."""
        sql = f"select commit_id, ranges from {_TABLE} where path = :path and repository = :repository"
        _, rows = self._db.read(lambda: self._db.rows(sql, {"path": path, "repository": repository}))
        return {commit: from_json(ranges) for commit, ranges in rows}

    def keep_origins(self, repository: str, found: dict[tuple[str, str], list[Any]]) -> None:
        """Cache origins, by commit and path."""
        sql = (
            f"insert into {_TABLE} (repository, commit_id, path, ranges) values (:repository, :commit_id, :path, :ranges)"
            " on conflict (commit_id, path, repository) do update set ranges = excluded.ranges"
        )
        rows = [
            {"repository": repository, "commit_id": commit, "path": path, "ranges": to_json(ranges)}
            for (commit, path), ranges in sorted(found.items())
        ]
        self._db.write(lambda: self._db.many(sql, rows))

    # Derived tables

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        """Yield cached origins that are unreadable or name a missing edit. Their lines are in git, not in the log."""
        known = {row[0] for row in self._db.each_as_is("select id from edits", {})}
        for commit, path, ranges in self._db.each_as_is(f"select commit_id, path, ranges from {_TABLE} order by 1, 2", {}):
            if (problem := _problem(ranges, known)) is not None:
                yield {
                    "what": f"cached origins of {path} {problem}",
                    "table": _TABLE,
                    "record_id": str(commit),
                    "column": "ranges",
                }

    def derive(self) -> None:
        """Drop cached origins; blame computes them again."""
        self._db.write(lambda: self._db.count(f"delete from {_TABLE}", {}))


def _check_edit(given: dict[str, Any]) -> None:
    """Raise Invalid for an edit without an author or without a change."""
    is_person = given["kind"] is EditKind.PERSON
    if is_person is not (given["person"] is not None) or is_person is (given["session"] is not None):
        raise Invalid("an edit has a session, or is of kind person and names the person", field="session")
    if given["old_blob"] == given["new_blob"]:
        raise Invalid("old_blob and new_blob are the same, so nothing was edited", field="new_blob")


def _problem(ranges: object, known: set[object]) -> str | None:
    """Return the problem of cached ranges; None if they are valid."""
    try:
        found = from_json(ranges) if isinstance(ranges, str) else None
        named = {edit for _, _, origin in found for edit in origin.get("edits", ())} if isinstance(found, list) else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        named = None
    if named is None:
        return "can't be read"
    missing = sorted(str(edit) for edit in named - known)
    return f"name edits that are not recorded: {', '.join(missing[:3])}" if missing else None
