"""Reconstruct edits from transcripts. A transcript has the arguments of tools; the proof is in git.

An edit counts only if applying it gives, byte for byte, a content that was committed after the edit, and not before. Edits
whose results were not committed are joined with those that follow them in the same session.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from decklog.log import Decklog
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.git_output import parse_raw_log
from decklog.provenance.recording import keep_objects
from decklog.provenance.settings import read_settings
from decklog.provenance.tool_calls import FileCall, expected_content

_ANY_REF = ("--exclude=refs/decklog/*", "--all", "--reflog")


@dataclass(frozen=True)
class CommittedBlob:
    """A content that a commit gave a path. Its time is the author's or the committer's, whichever is earlier."""

    blob: str
    commit: str
    at: int


@dataclass
class CommittedContents:
    """When each content was committed first, at any path, and the contents of each path, newest first."""

    first: dict[str, int] = field(default_factory=dict)
    by_path: dict[str, list[CommittedBlob]] = field(default_factory=dict)

    @classmethod
    def read(cls, repo: GitRepository) -> "CommittedContents":
        """Read all commits that refs and reflogs lead to."""
        words = ("-m", "--raw", "-z", "--no-renames", "--no-abbrev", "--format=%x01%H %at %ct")
        out = os.fsdecode(repo.call("log", *_ANY_REF, *words, "--", accepted=(0, 128)))
        found = cls()
        for head, changes in parse_raw_log(out):
            commit, *times = head.split()
            at = min(map(int, times))
            for change in changes:
                if change.new is not None:
                    found.first[change.new] = min(at, found.first.get(change.new, at))
                    found.by_path.setdefault(change.path, []).append(CommittedBlob(change.new, commit, at))
        for blobs in found.by_path.values():
            blobs.sort(key=lambda one: one.at, reverse=True)
        return found


_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _UPDATE, _DELETE, _MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "
_END_OF_FILE = "*** End of File"


@dataclass
class _Hunk:
    """Lines that replace others. `headings` are lines that come before it in the file."""

    headings: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass
class PatchSection:
    """What a patch does to one file. `former` is the path that the file was moved from."""

    path: str
    is_new: bool = False
    former: str | None = None
    hunks: list[_Hunk] = field(default_factory=list)

    def apply(self, before: str) -> str | None:
        """Return the text after the patch; None if the patch does not fit."""
        if self.is_new:
            return "".join(f"{line}\n" for hunk in self.hunks for line in hunk.new)
        lines, place = before.removesuffix("\n").split("\n") if before else [], 0
        for hunk in self.hunks:
            found = _find_hunk(hunk, lines, place)
            if found is None:
                return None
            lines[found : found + len(hunk.old)] = hunk.new
            place = found + len(hunk.new)
        return "".join(f"{line}\n" for line in lines)


def parse_patch(text: str) -> list[PatchSection]:
    """Return the files that a patch adds or changes; none if the text has no whole patch."""
    _, begin, rest = text.partition(_BEGIN)
    body, end, _ = rest.partition(_END)
    files: list[PatchSection] = []
    current: PatchSection | None = None
    for line in body.splitlines() if begin and end else []:
        if line.startswith((_ADD, _UPDATE, _DELETE)):
            kind, _, path = line.partition(": ")
            current = None if line.startswith(_DELETE) else PatchSection(path.strip(), is_new=f"{kind}: " == _ADD)
            files += [current] if current is not None else []
        elif current is not None and line.startswith(_MOVE):
            current.former, current.path = current.path, line.removeprefix(_MOVE).strip()
        elif current is not None and line != _END_OF_FILE:
            _take_line(current, line)
    return files


def _take_line(file: PatchSection, line: str) -> None:
    if line.startswith("@@"):
        heading = line.removeprefix("@@").strip()
        last = file.hunks[-1] if file.hunks else None
        if last is None or last.old or last.new:
            file.hunks.append(last := _Hunk())
        last.headings += [heading] if heading else []
        return
    if not file.hunks:
        file.hunks.append(_Hunk())
    hunk, sign, text = file.hunks[-1], line[:1], line[1:]
    if sign in ("", " ", "-"):
        hunk.old.append(text)
    if sign in ("", " ", "+"):
        hunk.new.append(text)


def _find_hunk(hunk: _Hunk, lines: list[str], start: int) -> int | None:
    """Return where the old lines of a hunk are; a hunk without old lines adds to the end."""
    place = start
    for heading in hunk.headings:
        place = next((number + 1 for number in range(place, len(lines)) if lines[number].strip() == heading), -1)
        if place < 0:
            return None
    if not hunk.old:
        return place if hunk.headings else len(lines)
    last = len(lines) - len(hunk.old)
    return next((number for number in range(place, last + 1) if lines[number : number + len(hunk.old)] == hunk.old), None)


_EDITS = frozenset(["Edit", "MultiEdit", "Write"])
_PATCH_MARK = "*** Begin Patch"
# The most committed contents of a file that an edit is applied to, and the most results that are kept.
_MOST_STARTS = 20
_MOST_STATES = 40
# The most contents that are remembered.
_MOST_TEXTS = 500


@dataclass(frozen=True)
class EditCall:
    """A call that changed files, as a transcript has it. `original` is the file before, where that is known.

    `session` is PROGRAM:ID.
    """

    session: str
    run_id: str
    task_id: str | None
    call_id: str
    at: datetime
    folder: str
    tool: str
    arguments: dict[str, Any]
    original: str | None


def is_edit(tool: str, arguments: dict[str, Any]) -> bool:
    """Return whether a call has the content that it writes: an edit of a file, a whole file, or a patch."""
    return tool in _EDITS or _find_patch(arguments) is not None


@dataclass(frozen=True)
class _FileEdit:
    """What an edit does to one file: a content before gives a content after, or None where it does not fit."""

    path: str
    apply: Callable[[bytes], bytes | None]
    original: bytes | None
    former: str | None = None


# Contents that a session may have left: where it started, and what it has made of that.
_State = tuple[bytes, bytes]


@dataclass
class _RepoState:
    """A repository of imported sessions, with its commits and the contents that sessions may have left."""

    repo: GitRepository
    committed: CommittedContents
    states: "dict[tuple[str, str], list[_State]]" = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)


class Reconstruction:
    """Records the proven edits of imported sessions. `count` is their number."""

    def __init__(self, log: Decklog) -> None:
        self._log = log
        self._places: dict[str, _RepoState | None] = {}
        self._kept: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.count = 0
        # Errors of git, by repository or call.
        self.problems: list[str] = []

    def add(self, edits: Sequence[EditCall]) -> None:
        """Record the edits that git proves."""
        # Reading a long history is slow, so it happens before the transaction.
        placed = [(place, edit) for edit in edits if (place := self._place(edit.folder)) is not None]
        if not placed:
            return
        with self._log.transaction():
            for place, edit in placed:
                try:
                    self._take(place, edit)
                except GitFailed as problem:
                    self.problems.append(f"{edit.call_id}: {problem}")

    def finish(self) -> None:
        """Keep the objects of the recorded edits."""
        for session, captured in self._kept.items():
            try:
                keep_objects(session, captured)
            except (GitFailed, OSError) as problem:
                self.problems.append(f"objects of {session} are not kept: {problem}")
        self._kept.clear()

    def _place(self, folder: str) -> _RepoState | None:
        repo = GitRepository.find(folder)
        if repo is None:
            return None
        if repo.top not in self._places:
            self._places[repo.top] = None
            try:
                if _is_captured(repo):
                    self._places[repo.top] = _RepoState(repo, CommittedContents.read(repo))
            except GitFailed as problem:
                self.problems.append(f"no edits in {repo.top} were reconstructed: {problem}")
        return self._places[repo.top]

    def _take(self, place: _RepoState, call: EditCall) -> None:
        for edit in _file_edits(call):
            path = place.repo.relative(os.path.join(call.folder, edit.path))
            former = place.repo.relative(os.path.join(call.folder, edit.former)) if edit.former else None
            if path is None or (edit.former and former is None):
                continue
            at = int(call.at.timestamp())
            states = [
                (start, after)
                for start, before in _find_starts(place, call.session, former or path, edit, at)
                if (after := edit.apply(before)) is not None
            ]
            place.states[call.session, path] = self._record_committed(place, call, (path, former), states)

    def _record_committed(
        self, place: _RepoState, call: EditCall, paths: tuple[str, str | None], states: list[_State]
    ) -> list[_State]:
        """Record the first state whose content is committed. Return the states that the session may have left."""
        at = int(call.at.timestamp())
        for start, after in states:
            blob = _blob_name(place.repo, after)
            committed_at = place.committed.first.get(blob)
            if committed_at is None:
                continue
            if committed_at >= at and start != after:
                self._record(place, call, paths, (start, after))
            return [(after, after)]
        return states[:_MOST_STATES]

    def _record(self, place: _RepoState, call: EditCall, paths: tuple[str, str | None], state: _State) -> None:
        (path, former), (start, after) = paths, state
        repo = place.repo
        new = _blob_name(repo, after)
        if any(one.repository in repo.identities for one in self._log.edits.of_blobs([new])):
            # Hooks have captured the edit, or another session wrote the content first.
            return
        old = None
        if start:
            old = _blob_name(repo, start)
            if old not in place.committed.first:
                repo.call("hash-object", "-w", "--stdin", given=start)
        below = (one.commit for one in place.committed.by_path.get(former or path, ()) if one.blob == old)
        self._log.edits.record(
            repo.identity,
            path,
            old_path=former,
            old_blob=old,
            new_blob=new,
            kind="reconstructed",
            session=call.session,
            run_id=call.run_id,
            task_id=call.task_id,
            call_id=call.call_id,
            head=next(below, None),
            edited_at=call.at,
        )
        self.count += 1
        self._kept[call.session].append({"top": repo.top, "edits": [{"old": old, "new": new}]})


def _find_starts(place: _RepoState, session: str, path: str, edit: _FileEdit, at: int) -> list[_State]:
    """Return the contents that an edit may have been applied to, each with the session's first content."""
    known = place.states.get((session, path), [])
    if edit.original is not None:
        return [one for one in known if one[1] == edit.original] or [(edit.original, edit.original)]
    earlier = [one.blob for one in place.committed.by_path.get(path, ()) if one.at <= at]
    texts = (_text(place, blob) for blob in list(dict.fromkeys(earlier))[:_MOST_STARTS])
    return [*known, *((text, text) for text in texts)]


def _text(place: _RepoState, blob: str) -> bytes:
    if blob not in place.texts:
        if len(place.texts) >= _MOST_TEXTS:
            place.texts.clear()
        place.texts[blob] = place.repo.call("cat-file", "blob", blob)
    return place.texts[blob]


def _file_edits(call: EditCall) -> Iterator[_FileEdit]:
    """Yield the edit of each file of a call."""
    if patch := _find_patch(call.arguments):
        for file in parse_patch(patch):
            before = b"" if file.is_new else None
            yield _FileEdit(file.path, partial(_apply_patch, file), before, file.former)
        return
    path = call.arguments.get("file_path")
    original = None if call.original is None else call.original.encode(errors="surrogatepass")
    # Write does not depend on the former content. Without that content the new lines are unknown.
    if isinstance(path, str) and (call.tool != "Write" or original is not None):
        yield _FileEdit(path, lambda text: expected_content(text, FileCall([path], call.arguments)), original)


def _find_patch(arguments: dict[str, Any]) -> str | None:
    texts = (arguments.get(name) for name in ("command", "input", "patch", "cmd"))
    return next((text for text in texts if isinstance(text, str) and _PATCH_MARK in text), None)


def _apply_patch(file: PatchSection, before: bytes) -> bytes | None:
    after = file.apply(before.decode(errors="surrogateescape"))
    return None if after is None else after.encode(errors="surrogateescape")


def _blob_name(repo: GitRepository, content: bytes) -> str:
    """Return git's object name of a content."""
    digest = hashlib.sha256() if repo.is_sha256 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(content))
    digest.update(content)
    return digest.hexdigest()


def _is_captured(repo: GitRepository) -> bool:
    """Return whether the settings of a repository allow edits to be recorded."""
    try:
        with open(os.path.join(repo.top, "decklog.toml"), "rb") as file:
            return read_settings(file.read()).capture
    except OSError:
        return True
