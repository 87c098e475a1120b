"""Origins of the lines that commits added, for many commits at once."""

from decklog.log import Decklog
from decklog.provenance.attribution import UNKNOWN, Attribution, LineRange, origin_of_edit, ranges_of
from decklog.provenance.git import GitRepository
from decklog.provenance.history import CommitChanges, FileChange, read_changes
from decklog.stores.provenance.edits import Edit

_LONGEST_CHAIN = 500


class CommitOrigins:
    """Finds the origins of the lines that commits added."""

    def __init__(self, repo: GitRepository, log: Decklog) -> None:
        self._repo = repo
        self._attribution = Attribution(repo, log)
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
        self._blobs_before = set(self._repo.tree(base).values()) if base is not None else set()

    def take(self, commit: CommitChanges) -> None:
        """Remember what was read of a commit."""
        self._attribution.take(commit)
        for file in commit.files:
            if file.blob is not None:
                self._paths.setdefault(file.blob, set()).add(file.path)
                self._not_looked_up.append(file.blob)

    def of_lines(self, commit: CommitChanges, file: FileChange) -> list[LineRange]:
        """Return the origins of the lines that a commit added to a file, line by line."""
        lines = (line for start, end in file.added for line in range(start, end + 1))
        return ranges_of({line: self._attribution.in_commit(commit.commit, file.path, line) for line in lines})

    def of_sessions(self, commit: CommitChanges, file: FileChange) -> list[LineRange]:
        """Return the same for sums by session and task, with fewer questions to git.

        Where edits of one session and task lead from the blob before the commit to the one after it, it wrote all lines between.
        """
        self._attribution.look_up_edits(self._not_looked_up)
        self._not_looked_up = []
        if self._has_no_edit(commit, file):
            return [LineRange(start, end, UNKNOWN) for start, end in file.added]
        chain = self._chain(file)
        if not chain or len({(edit.session, edit.task_id, edit.person) for edit in chain}) > 1:
            return self.of_lines(commit, file)
        origin = origin_of_edit(chain[0])
        return [LineRange(start, end, origin) for start, end in file.added]

    def _has_no_edit(self, commit: CommitChanges, file: FileChange) -> bool:
        """Return whether no edit is recorded of a file, so that none of its lines has a known origin."""
        known, is_new = self._attribution, file.old_blob is None and file.old_path == file.path
        # A merge names the file in each parent; in the first one it must have been there.
        is_merge = len(commit.parents) > 1
        may_have_come = file.old_paths[:1] != [file.path] if is_merge else is_new and self._may_be_copy(file)
        if file.blob is None or may_have_come:
            return False
        return known.edit_of_blob(file.blob) is None and not any(map(known.has_edits, {file.path, file.old_path}))

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
            edit = self._attribution.edit_of_blob(blob)
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
