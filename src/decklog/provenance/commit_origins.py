"""Origins of the lines that commits added, for many commits at once.

What one `git log` has read is not asked of git again, commit by commit.
"""

from collections.abc import Iterable

from decklog.log import Decklog
from decklog.provenance.attribution import UNKNOWN, Attribution, LineRange, origin_of_edit, ranges_of
from decklog.provenance.git import GitRepository, LineDifference
from decklog.provenance.history import CommitChanges, FileChange, read_changes
from decklog.stores.provenance.edits import Edit

_LONGEST_CHAIN = 500


class _KnownRepository(GitRepository):
    """A repository that answers from what was read, and asks git for the rest."""

    def __init__(self, repo: GitRepository) -> None:
        super().__init__(repo.top, repo.git_dir, repo.common_dir)
        self.differences: dict[tuple[str, str], list[bytes]] = {}

    def difference(self, old: str, new: str) -> LineDifference:
        hunks = self.differences.get((old, new))
        return super().difference(old, new) if hunks is None else LineDifference(b"\n".join(hunks))


class _KnownAttribution(Attribution):
    """An attribution that knows the files and renames of commits that were read."""

    def __init__(self, repo: _KnownRepository, log: Decklog) -> None:
        super().__init__(repo, log)
        self.commits: dict[str, CommitChanges] = {}

    def take(self, commit: CommitChanges) -> None:
        """Remember a commit and its files, and for one parent those below it."""
        self.commits[commit.commit] = commit
        for file in commit.files:
            if file.blob is None and not file.is_deleted:
                continue
            self._blobs[commit.commit, file.path] = file.blob
            if len(commit.parents) == 1:
                self._blobs[f"{commit.commit}^", file.path] = file.old_blob if file.old_path == file.path else None

    def look_up(self, blobs: Iterable[str]) -> None:
        """Look the edits that wrote contents up at once."""
        wanted = [blob for blob in dict.fromkeys(blobs) if blob not in self._by_blob]
        self._by_blob.update(dict.fromkeys(wanted))
        for edit in reversed(self._log.edits.of_blobs(wanted)):
            if edit.new_blob is not None and self._is_ours(edit.repository):
                self._by_blob[edit.new_blob] = edit
        self._looked_up.update(blob for blob in wanted if self._by_blob[blob] is None)

    def _load_renamed(self, parent: str, commit: str) -> dict[str, str]:
        known = self.commits.get(commit)
        if known is None or len(known.parents) != 1:
            return super()._load_renamed(parent, commit)
        return {file.path: file.old_path for file in known.files if file.path != file.old_path}


class CommitOrigins:
    """Finds the origins of the lines that commits added."""

    def __init__(self, repo: GitRepository, log: Decklog) -> None:
        self._log = log
        self._repo = _KnownRepository(repo)
        self._attribution = _KnownAttribution(self._repo, log)
        # The contents of all files before the range, once it is known, and the paths of each content that commits wrote.
        self._blobs_before: set[str] | None = None
        self._paths: dict[str, set[str]] = {}
        self._not_looked_up: list[str] = []

    @property
    def missing(self) -> int:
        """How many lines are unknown because objects are gone."""
        return self._attribution.missing

    def begin(self, base: str | None) -> None:
        """Start a range of commits after a base; None for all of the history."""
        rows = self._repo.call("ls-tree", "-r", base).splitlines() if base is not None else []
        self._blobs_before = {row.split(None, 3)[2].decode() for row in rows}

    def take(self, commit: CommitChanges) -> None:
        """Remember what was read of a commit."""
        self._attribution.take(commit)
        for file in commit.files:
            if file.blob is not None:
                self._paths.setdefault(file.blob, set()).add(file.path)
                self._not_looked_up.append(file.blob)
            if file.old_blob is not None and file.blob is not None:
                self._repo.differences[file.old_blob, file.blob] = file.hunks

    def of_lines(self, commit: CommitChanges, file: FileChange) -> list[LineRange]:
        """Return the origins of the lines that a commit added to a file, line by line."""
        lines = (line for start, end in file.added for line in range(start, end + 1))
        return ranges_of({line: self._attribution.in_commit(commit.commit, file.path, line) for line in lines})

    def of_sessions(self, commit: CommitChanges, file: FileChange) -> list[LineRange]:
        """Return the same for sums by session and task, with fewer questions to git.

        Where edits of one session and task lead from the blob before the commit to the one after it, it wrote all lines between.
        """
        self._look_up_all()
        if self._has_no_edit(commit, file):
            return [LineRange(start, end, UNKNOWN) for start, end in file.added]
        chain = self._chain(file)
        if not chain or len({(edit.session, edit.task_id, edit.person) for edit in chain}) > 1:
            return self.of_lines(commit, file)
        origin = origin_of_edit(chain[0])
        return [LineRange(start, end, origin) for start, end in file.added]

    def _look_up_all(self) -> None:
        """Look up the edits of all contents that were read since the last time, in one query."""
        if self._not_looked_up:
            self._attribution.look_up(self._not_looked_up)
            self._not_looked_up = []

    def _has_no_edit(self, commit: CommitChanges, file: FileChange) -> bool:
        """Return whether no edit is recorded of a file, so that none of its lines has a known origin."""
        known, is_new = self._attribution, file.old_blob is None and file.old_path == file.path
        # A merge names the file in each parent; in the first one it must have been there.
        is_merge = len(commit.parents) > 1
        may_have_come = file.old_paths[:1] != [file.path] if is_merge else is_new and self._may_be_copy(file)
        if file.blob is None or may_have_come:
            return False
        return known._edit_of_blob(file.blob) is None and not any(map(known.has_edits, {file.path, file.old_path}))

    def _may_be_copy(self, file: FileChange) -> bool:
        """Return whether another file may have the content of a new one; the copied lines then have origins."""
        if self._blobs_before is None:
            return True
        return file.blob in self._blobs_before or len(self._paths.get(file.blob or "", ())) > 1

    def _chain(self, file: FileChange) -> list[Edit]:
        """Return the edits that lead from the blob before a commit to the one after it, newest first; none if they don't."""
        found: list[Edit] = []
        blob = file.blob
        while blob is not None and blob != file.old_blob and len(found) < _LONGEST_CHAIN:
            edit = self._attribution._edit_of_blob(blob)
            if edit is None or edit.mixed_with or (found and edit.id >= found[-1].id):
                return []
            found.append(edit)
            blob = edit.old_blob
        return found if blob == file.old_blob else []


def count_agent_lines(repo: GitRepository, log: Decklog, revisions: str) -> int:
    """Count the lines that commits added and agents wrote."""
    commits, origins = list(read_changes(repo, revisions)), CommitOrigins(repo, log)
    for commit in commits:
        origins.take(commit)
    ranges = (one for commit in commits for file in commit.files for one in origins.of_sessions(commit, file))
    return count_lines([one for one in ranges if one.origin.sessions])


def count_lines(ranges: list[LineRange]) -> int:
    """Count the lines of ranges."""
    return sum(one.end - one.start + 1 for one in ranges)
