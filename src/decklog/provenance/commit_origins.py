"""Origins of the lines that commits added, for many commits at once."""

from decklog.log import Decklog
from decklog.provenance.attribution import UNKNOWN, Attribution, LineRange, edit_origin, group_ranges
from decklog.provenance.git import GitRepository
from decklog.provenance.history import CommitChanges, FileChange, read_changes
from decklog.stores.provenance.edits import Edit

_LONGEST_CHAIN = 500


class CommitOrigins:
    """Finds the origins of the lines that commits added."""

    def __init__(self, repo: GitRepository, log: Decklog) -> None:
        self._repo = repo
        self._attribution = Attribution(repo, log)
        # The blobs of all files before the range, if known, and the paths of each blob that commits wrote.
        self._blobs_before: set[str] | None = None
        self._paths: dict[str, set[str]] = {}
        self._not_looked_up: list[str] = []

    @property
    def missing(self) -> int:
        """The number of lines that are unknown because objects are gone."""
        return self._attribution.missing

    def begin(self, base: str | None) -> None:
        """Start a range of commits after a base; None for all of the history."""
        self._blobs_before = set(self._repo.tree(base).values()) if base is not None else set()

    def add_commit(self, commit: CommitChanges) -> None:
        """Remember the changes of a commit."""
        self._attribution.add_commit(commit)
        for file in commit.files:
            if file.blob is not None:
                self._paths.setdefault(file.blob, set()).add(file.path)
                self._not_looked_up.append(file.blob)

    def find_line_origins(self, commit: CommitChanges, file: FileChange) -> list[LineRange]:
        """Return the origins of the lines that a commit added to a file, line by line."""
        lines = (line for start, end in file.added for line in range(start, end + 1))
        return group_ranges({line: self._attribution.find_in_commit(commit.commit, file.path, line) for line in lines})

    def find_session_origins(self, commit: CommitChanges, file: FileChange) -> list[LineRange]:
        """Return the origins for counts by session and task, with fewer calls of git.

        If edits of one session and task lead from the former blob to the new one, that session wrote all added lines.
        """
        self._attribution.look_up_edits(self._not_looked_up)
        self._not_looked_up = []
        if self._has_no_edit(commit, file):
            return [LineRange(start, end, UNKNOWN) for start, end in file.added]
        chain = self._chain(file)
        if not chain or len({(edit.session, edit.task_id, edit.person) for edit in chain}) > 1:
            return self.find_line_origins(commit, file)
        origin = edit_origin(chain[0])
        return [LineRange(start, end, origin) for start, end in file.added]

    def _has_no_edit(self, commit: CommitChanges, file: FileChange) -> bool:
        """Return whether no edit of a file is recorded, so that all its lines are unknown."""
        known, is_new = self._attribution, file.old_blob is None and file.old_path == file.path
        # A merge lists the file's path in each parent; it must exist in the first one.
        is_merge = len(commit.parents) > 1
        may_have_come = file.old_paths[:1] != [file.path] if is_merge else is_new and self._may_be_copy(file)
        if file.blob is None or may_have_come:
            return False
        return known.edit_of_blob(file.blob) is None and not any(map(known.has_edits, {file.path, file.old_path}))

    def _may_be_copy(self, file: FileChange) -> bool:
        """Return whether a new file may be a copy of another one, whose lines have origins."""
        if self._blobs_before is None:
            return True
        return file.blob in self._blobs_before or len(self._paths.get(file.blob or "", ())) > 1

    def _chain(self, file: FileChange) -> list[Edit]:
        """Return the edits that lead from the former blob to the new one, newest first; empty if there is no such chain."""
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
    """Count the lines of commits that agents wrote."""
    commits, origins = list(read_changes(repo, revisions)), CommitOrigins(repo, log)
    for commit in commits:
        origins.add_commit(commit)
    ranges = (one for commit in commits for file in commit.files for one in origins.find_session_origins(commit, file))
    return count_lines([one for one in ranges if one.origin.sessions])


def count_lines(ranges: list[LineRange]) -> int:
    """Count the lines of ranges."""
    return sum(one.end - one.start + 1 for one in ranges)
