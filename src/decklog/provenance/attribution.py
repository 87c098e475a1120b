"""Find who wrote each line. Origins belong to blobs, so rewriting history does not change them.

1. Blobs that an edit wrote first: unchanged lines in git's diff keep their origin, all other lines belong to the edit.
2. Other blobs are compared with their past: the file in the parent commits, and the contents that edits wrote to the file.
   Unchanged lines keep the origin that they have there.
3. Lines that were moved, copied or restored are found by their text. It must be among the lines that edits added to the file,
   under any of its names.
4. Without evidence a line is unknown. Similarity and time are not evidence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from decklog.log import Decklog
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.git_output import BlameEntry, LineDifference, LineHunk, parse_porcelain
from decklog.provenance.history import CommitChanges
from decklog.provenance.past import CommitGraph, PathHistory, RelatedPaths, find_deleted_paths, find_most_similar
from decklog.stores.provenance.edits import Edit

# Git's own minimum for moved lines. Without it, every "}" would match.
_LEAST_LETTERS = 20
_LETTER = re.compile(rb"[0-9A-Za-z]")
_MOST_EDITS = 200
_AT_ONCE = 50


class RecordedLines:
    """The lines that edits of some paths added: their text is in the file after the edit, but not before it."""

    def __init__(self, repo: GitRepository, edits: Sequence[Edit]) -> None:
        self._repo = repo
        self._edits = [edit for edit in edits if edit.new_blob is not None][-_MOST_EDITS:]

    def find_writers(self, lines: Sequence[bytes], fresh: range, line: int, is_past: Callable[[Edit], bool]) -> Iterator[Edit]:
        """Yield the edits that added a line of a content, newest first. `fresh` is its block of new lines."""
        for place, number in reversed(self._added_lines.get(lines[line - 1], ())):
            if is_past(self._edits[place]) and self._count_block_letters(lines, fresh, line, (place, number)) >= _LEAST_LETTERS:
                yield self._edits[place]

    def _count_block_letters(self, lines: Sequence[bytes], fresh: range, line: int, start: tuple[int, int]) -> int:
        """Count the letters and digits of the block around a line that one edit added together."""
        place, number = start
        count = _count_letters(lines[line - 1])
        for step in (-1, 1):
            away = step
            while line + away in fresh and (place, number + away) in self._added_lines.get(lines[line + away - 1], ()):
                count += _count_letters(lines[line + away - 1])
                away += step
        return count

    def has_line(self, text: bytes) -> bool:
        """Return whether an edit added a line with this text."""
        return text in self._added_lines

    @cached_property
    def _added_lines(self) -> dict[bytes, list[tuple[int, int]]]:
        """The edit and the line number of each added line, by text."""
        found: dict[bytes, list[tuple[int, int]]] = {}
        for start in range(0, len(self._edits), _AT_ONCE):
            edits = self._edits[start : start + _AT_ONCE]
            blobs = dict.fromkeys(blob for edit in edits for blob in (edit.old_blob, edit.new_blob) if blob is not None)
            contents = self._repo.lines_of(list(blobs))
            for place, edit in enumerate(edits, start):
                if edit.old_blob is not None and edit.old_blob not in contents:
                    continue
                lines = contents.get(edit.new_blob or "", [])
                new = set(lines).difference(contents.get(edit.old_blob or "", ()))
                for number, text in enumerate(lines, 1) if new else ():
                    if text in new:
                        found.setdefault(text, []).append((place, number))
        return found


def _count_letters(text: bytes) -> int:
    return len(_LETTER.findall(text))


# The commit that `git blame` names for lines that are not committed.
UNCOMMITTED = "0" * 40
_MOST_CANDIDATES = 200
_NONE_MET = 1 << 30


@dataclass(frozen=True)
class Origin:
    """Who wrote a line: an agent's session, a person, several of them, or unknown."""

    kind: str = "unknown"
    sessions: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    person: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the origin as JSON values, without empty ones."""
        found: dict[str, Any] = {"kind": self.kind}
        if self.sessions:
            found["sessions"] = list(self.sessions)
        if self.edits:
            found["edits"] = list(self.edits)
        if self.person is not None:
            found["person"] = self.person
        return found

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> "Origin":
        """Read what `as_dict` wrote."""
        sessions, edits = found.get("sessions", ()), found.get("edits", ())
        return cls(found["kind"], tuple(sessions), tuple(edits), found.get("person"))


UNKNOWN = Origin()


@dataclass(frozen=True)
class LineRange:
    """Lines from `start` to `end`, both counted, of one origin."""

    start: int
    end: int
    origin: Origin


@dataclass(frozen=True)
class _Content:
    """A blob at a path and its possible sources: its parent commits, and the edits before `before`."""

    blob: str
    path: str
    parents: tuple[str, ...] = ()
    # The commit that it came with, if it is committed.
    commit: str | None = None
    # Only edits before this one are its past.
    before: str | None = None


class Attribution:
    """Finds the origins of lines in one repository. `missing` counts lines whose objects are gone."""

    def __init__(self, repo: GitRepository, log: Decklog) -> None:
        self._repo = repo
        self._log = log
        self.missing = 0
        self._graph = CommitGraph(repo)
        self._blobs: dict[tuple[str, str], str | None] = {}
        self._by_blob: dict[str, Edit | None] = {}
        self._paths_by_blob = lru_cache(maxsize=8)(self._load_paths_by_blob)
        # What `add_commit` has read of commits: the hunks between two blobs, and the former paths of renamed files.
        self._hunks: dict[tuple[str, str], list[LineHunk]] = {}
        self._renames: dict[str, dict[str, str]] = {}
        self._renames_between = lru_cache(maxsize=4096)(repo.renames)
        self.difference = lru_cache(maxsize=4096)(self._load_difference)
        self._edits_of_path = lru_cache(maxsize=4096)(self._load_path)
        self._past = lru_cache(maxsize=256)(self._load_past)
        self.blamed = lru_cache(maxsize=256)(self._load_blame)
        self._below = lru_cache(maxsize=4096)(self._load_below)
        self._copied_from = lru_cache(maxsize=4096)(self._load_copied_from)
        self._has_past = lru_cache(maxsize=4096)(self._load_has_past)
        self._texts: dict[tuple[str, int], bytes] = {}
        self._lines: dict[str, list[bytes]] = {}
        self._looked_up: set[str] = set()
        self._recorded = lru_cache(maxsize=256)(self._load_recorded)
        # The running lookups with their depth, and the smallest depth that a nested lookup has reached again.
        self._under_way: dict[tuple[_Content, int], int] = {}
        self._outermost = _NONE_MET
        self._known: dict[tuple[_Content, int], Origin | None] = {}

    # Lookups

    def prefetch(self, files: Iterable[tuple[str, str]]) -> None:
        """Look up many files of commits and of their parents at once."""
        self._look_up([(f"{commit}{up}", path) for commit, path in dict.fromkeys(files) for up in ("", "^")])

    def _look_up(self, files: Sequence[tuple[str, str]]) -> None:
        """Look up the blobs of files of commits in one call."""
        wanted = [(commit, path) for commit, path in files if "\n" not in path]
        found = self._repo.existing([f"{commit}:{path}" for commit, path in wanted]) if wanted else []
        self._remember(dict(zip(wanted, found, strict=True)))

    def _remember(self, files: dict[tuple[str, str], str | None]) -> None:
        """Remember the blobs of files of commits, and look up their edits at once."""
        self._blobs.update(files)
        self.look_up_edits(blob for blob in files.values() if blob is not None)

    def look_up_edits(self, blobs: Iterable[str]) -> None:
        """Look up the edits that first wrote some blobs, at once."""
        wanted = [blob for blob in dict.fromkeys(blobs) if blob not in self._by_blob]
        self._by_blob.update(dict.fromkeys(wanted))
        for edit in reversed(self._log.edits.of_blobs(wanted)):
            if edit.new_blob is not None and self._is_ours(edit.repository):
                self._by_blob[edit.new_blob] = edit
        self._looked_up.update(blob for blob in wanted if self._by_blob[blob] is None)

    def add_commit(self, commit: CommitChanges) -> None:
        """Remember the changes of a commit, so that git is not called for them again."""
        has_one_parent = len(commit.parents) == 1
        if has_one_parent:
            self._renames[commit.commit] = {file.path: file.old_path for file in commit.files if file.path != file.old_path}
        for file in commit.files:
            if file.blob is None and not file.is_deleted:
                continue
            self._blobs[commit.commit, file.path] = file.blob
            if has_one_parent:
                self._blobs[f"{commit.commit}^", file.path] = file.old_blob if file.old_path == file.path else None
            if file.old_blob is not None and file.blob is not None:
                self._hunks[file.old_blob, file.blob] = file.hunks

    def find_in_commit(self, commit: str, path: str, line: int, text: bytes | None = None) -> Origin:
        """Return the origin of a line that a commit added according to git blame. With `text` the line is not read from git."""
        return self._in_commit(commit, path, line, text) or UNKNOWN

    def _in_commit(self, commit: str, path: str, line: int, text: bytes | None = None) -> Origin | None:
        try:
            blob = self._blob_at(commit, path)
            if blob is None:
                return UNKNOWN
            if text is not None:
                self._texts[blob, line] = text
            edit, below = self.edit_of_blob(blob), self._blob_at(f"{commit}^", path)
            if edit is not None and edit.old_blob == below:
                return edit_origin(edit)
            if edit is None and below is not None and not self.has_edits(path):
                return UNKNOWN
            return self._line(_Content(blob, path, self._graph.parents_of(commit), commit), line)
        except GitFailed:
            self.missing += 1
            return UNKNOWN

    def find_in_worktree(self, blob: str, path: str, head: str | None, line: int) -> Origin:
        """Return the origin of a line of an uncommitted file."""
        return self._safe_line(_Content(blob, path, (head,) if head else ()), line) or UNKNOWN

    def has_edits(self, path: str) -> bool:
        """Return whether an edit of a file is recorded under any of its names."""
        return bool(self._edits_of_path(path)) or any(map(self._edits_of_path, self._links.others(path)))

    def _blob_at(self, commit: str, path: str) -> str | None:
        key = (commit, path)
        if key not in self._blobs:
            self._blobs[key] = self._repo.blob_at(commit, path)
        return self._blobs[key]

    # Lines

    def _safe_line(self, content: _Content, line: int) -> Origin | None:
        try:
            return self._line(content, line)
        except GitFailed:
            self.missing += 1
            return UNKNOWN

    def _line(self, content: _Content, line: int) -> Origin | None:
        """Return the origin of a line; None if its lookup leads back to itself, which is not evidence."""
        key = (content, line)
        if key in self._known:
            return self._known[key]
        if key in self._under_way:
            self._outermost = min(self._outermost, self._under_way[key])
            return None
        depth = self._under_way[key] = len(self._under_way)
        try:
            found = self._find(content, line)
        finally:
            del self._under_way[key]
        if found or self._outermost >= depth:
            # Otherwise the result depends on an outer lookup that is still running.
            self._known[key] = found
        if self._outermost >= depth:
            self._outermost = _NONE_MET
        return found

    def _find(self, content: _Content, line: int) -> Origin | None:
        edit = self.edit_of_blob(content.blob)
        if edit is not None and (content.before is None or edit.id < content.before):
            return self._in_edit(edit, line)
        if content.commit is not None and not self._has_past(content):
            return UNKNOWN
        ways = (self._in_parents, self._in_candidates, self._in_copied, self._in_recorded)
        for way in ways[content.commit is not None :]:
            if (found := way(content, line)) is not None:
                return found
        return UNKNOWN

    def _in_edit(self, edit: Edit, line: int) -> Origin | None:
        """Return the origin of a line in a blob that an edit wrote."""
        assert edit.new_blob is not None
        if edit.old_blob is not None:
            old = self.difference(edit.old_blob, edit.new_blob).old_line(line)
            if old is not None:
                parents = (edit.head,) if edit.head else ()
                return self._safe_line(_Content(edit.old_blob, edit.old_path or edit.path, parents, before=edit.id), old)
        return edit_origin(edit)

    def _in_parents(self, content: _Content, line: int) -> Origin | None:
        """Return the origin of a line that is unchanged from a parent commit; None if the parents don't have it."""
        for parent, path, blob in self._below(content):
            if blob is None:
                continue
            old = line if blob == content.blob else self.difference(blob, content.blob).old_line(line)
            if old is not None:
                blamed = self.blamed(parent, path).get(old)
                return self._in_commit(blamed.commit, blamed.path, blamed.line, blamed.text) if blamed else UNKNOWN
        return None

    def _in_candidates(self, content: _Content, line: int) -> Origin | None:
        """Return the origin of a line by the newest edit of the file that has it; None if none of them does."""
        for path in dict.fromkeys((content.path, *(path for _, path, _ in self._below(content)))):
            found = self._past(path).candidates(content.blob, content.parents, content.commit, content.before)
            for edit in islice(found, _MOST_CANDIDATES):
                assert edit.new_blob is not None
                try:
                    old = self.difference(edit.new_blob, content.blob).old_line(line)
                except GitFailed:
                    continue
                if old is not None and (origin := self._in_edit(edit, old)) is not None:
                    return origin
        return None

    def _in_copied(self, content: _Content, line: int) -> Origin | None:
        """Return the origin of a line of a file that a commit added as a copy of another one; None for any other file."""
        other = self._copied_from(content)
        blamed = self.blamed(content.commit or "", other).get(line) if other is not None else None
        return self._in_commit(blamed.commit, blamed.path, blamed.line, blamed.text) if blamed else None

    def _load_copied_from(self, content: _Content) -> str | None:
        """Return the path of the file that a commit copied; None for a content that is no copy."""
        if content.commit is None or self._blob_at(f"{content.commit}^", content.path) is not None:
            return None
        others = [path for path in self._paths_by_blob(content.commit).get(content.blob, ()) if path != content.path]
        return next((path for path in others if any(self._blob_at(parent, path) for parent in content.parents)), None)

    def _load_has_past(self, content: _Content) -> bool:
        """Return whether lines of a committed content may come from an edit or from a copied file."""
        names = (content.path, *(path for _, path, _ in self._below(content)))
        return any(map(self.has_edits, names)) or self._copied_from(content) is not None

    def _in_recorded(self, content: _Content, line: int) -> Origin | None:
        """Return the origin of a line by its text among the lines that edits brought; None if several brought it."""
        names = dict.fromkeys((content.path, *(path for _, path, _ in self._below(content))))
        paths = tuple(dict.fromkeys(path for name in names for path in (name, *self._links.others(name))))
        pasts = [self._past(path) for path in paths]
        later = [past.made_after(content.commit) for past in pasts]

        def is_past(edit: Edit) -> bool:
            is_before = content.before is None or edit.id < content.before
            return is_before and not any(past.is_in(edit, bits) for past, bits in zip(pasts, later, strict=True))

        recorded, text = self._recorded(paths), self._texts.get((content.blob, line))
        if text is not None and not recorded.has_line(text):
            return None
        lines = self._lines_of(content.blob)
        if not recorded.has_line(lines[line - 1]):
            return None
        writers = recorded.find_writers(lines, self._fresh(content, line), line, is_past)
        origins = list(map(edit_origin, writers))
        return origins[0] if len({(frozenset(one.sessions), one.person) for one in origins}) == 1 else None

    def _fresh(self, content: _Content, line: int) -> range:
        """Return the block of lines around one that no commit below has."""
        last = len(self._lines_of(content.blob))
        olds = [old for _, _, old in self._below(content) if old not in (None, content.blob)]
        differences = [self.difference(old, content.blob) for old in olds if old is not None]

        def is_fresh(number: int) -> bool:
            return 0 < number <= last and all(one.old_line(number) is None for one in differences)

        start = end = line
        while is_fresh(start - 1):
            start -= 1
        while is_fresh(end + 1):
            end += 1
        return range(start, end + 1)

    # What git and the log know

    def _load_below(self, content: _Content) -> list[tuple[str, str, str | None]]:
        """Return the commits below a content, with the path and the blob that its file has there."""
        found = []
        for parent in content.parents:
            # Use the name under which `prefetch` has cached it.
            name = f"{content.commit}^" if content.commit is not None and parent == content.parents[0] else parent
            path, blob = content.path, self._blob_at(name, content.path)
            if blob is None and (former := self._former_path(parent, content)) is not None:
                path, blob = former, self._blob_at(parent, former)
            found.append((parent, path, blob))
        return found

    def _former_path(self, parent: str, content: _Content) -> str | None:
        """Return the former path of a file at a new path; None if it is a new file."""
        if content.commit is not None:
            known = self._renamed(parent, content.commit).get(content.path)
        else:
            known = next(iter(self._paths_by_blob(parent).get(content.blob, ())), None)
        return known or find_most_similar(self._repo, self._former_contents(parent, content), content.blob)

    def _former_contents(self, parent: str, content: _Content) -> list[tuple[str, str]]:
        """Return the possible former paths and contents of a file at a new path."""
        if content.before is not None:
            # Include files that still existed, which were copied: it is unknown which were gone then.
            edits = self._log.edits.newest_before(content.before)
            newest = [(path, blob) for repository, path, blob in edits if path != content.path and self._is_ours(repository)]
            paths = [path for path, _ in newest if "\n" not in path]
            committed = self._repo.existing([f"{parent}:{path}" for path in paths]) if paths else []
            return [*newest, *((path, blob) for path, blob in zip(paths, committed, strict=True) if blob is not None)]
        gone = find_deleted_paths(self._repo, parent, content.commit)
        if content.commit is not None and not any(map(self.has_edits, (content.path, *gone))):
            return []
        self._look_up([(parent, path) for path in gone])
        found = []
        for path in gone:
            edit = next(self._past(path).candidates(content.blob, (parent,), content.commit, None), None)
            blobs = (edit.new_blob if edit is not None else None, self._blob_at(parent, path))
            found += [(path, blob) for blob in blobs if blob is not None]
        return found

    @cached_property
    def _links(self) -> RelatedPaths:
        moves = [(old, new) for repository, old, new in self._log.edits.moves() if self._is_ours(repository)]
        return RelatedPaths(
            self._repo, moves, [head for repository, head in self._log.edits.heads() if self._is_ours(repository)]
        )

    def _lines_of(self, blob: str) -> list[bytes]:
        if blob not in self._lines:
            # Load other prefetched files in the same call.
            wanted = [blob, *islice(self._looked_up, _MOST_CANDIDATES)] if blob in self._looked_up else [blob]
            self._looked_up.difference_update(wanted)
            self._lines.update(self._repo.lines_of(list(dict.fromkeys(wanted))))
        if blob not in self._lines:
            raise GitFailed(f"{blob} is gone")
        return self._lines[blob]

    def _load_recorded(self, paths: tuple[str, ...]) -> RecordedLines:
        edits = [edit for path in paths for edit in self._edits_of_path(path)]
        return RecordedLines(self._repo, sorted(edits, key=lambda edit: edit.id))

    def _load_path(self, path: str) -> tuple[Edit, ...]:
        return tuple(edit for edit in self._log.edits.of_path(path) if self._is_ours(edit.repository))

    def _load_past(self, path: str) -> PathHistory:
        edits = self._edits_of_path(path)
        return PathHistory(self._repo, self._graph, path, edits, self.edit_of_blob, self._blob_at, self._remember, self.prefetch)

    def edit_of_blob(self, blob: str) -> Edit | None:
        """Return the edit that first wrote a blob; later edits with the same content repeated it."""
        self.look_up_edits([blob])
        return self._by_blob[blob]

    def _is_ours(self, repository: str) -> bool:
        return repository == self._repo.identity or repository in self._repo.identities

    def _load_blame(self, commit: str, path: str) -> dict[int, BlameEntry]:
        out = self._repo.call("blame", "--porcelain", commit, "--", path)
        return {entry.final_line: entry for entry in parse_porcelain(out)}

    def _load_difference(self, old: str, new: str) -> LineDifference:
        hunks = self._hunks.get((old, new))
        return self._repo.difference(old, new) if hunks is None else LineDifference(hunks)

    def _renamed(self, parent: str, commit: str) -> dict[str, str]:
        """Return the former paths of the files that a commit renamed."""
        if commit not in self._renames:
            return self._renames_between(parent, commit)
        return self._renames[commit]

    def _load_paths_by_blob(self, commit: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, blob in self._repo.tree(commit).items():
            found.setdefault(blob, []).append(path)
        return found


def edit_origin(edit: Edit) -> Origin:
    """Return the origin of the lines that an edit wrote."""
    if edit.person is not None:
        return Origin("person", (), (edit.id,), edit.person)
    sessions = (edit.session or "", *(edit.mixed_with or ()))
    return Origin("mixed" if edit.mixed_with else "agent", sessions, (edit.id,))


def group_ranges(origins: "dict[int, Origin]") -> list[LineRange]:
    """Join neighbouring lines of the same origin."""
    found: list[LineRange] = []
    for line in sorted(origins):
        if found and found[-1].end == line - 1 and found[-1].origin == origins[line]:
            found[-1] = LineRange(found[-1].start, line, origins[line])
        else:
            found.append(LineRange(line, line, origins[line]))
    return found
