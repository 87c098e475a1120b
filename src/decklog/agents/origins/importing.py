"""Import of other tools' attribution as edits.

A note names lines of a file in a commit. The import writes the file without these lines, so that the difference is what the
session wrote. A file is left out if git's diff does not find exactly the named lines.
"""

import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import chain, pairwise
from tempfile import TemporaryDirectory
from typing import Any

from decklog.agents.history import HistoryImport
from decklog.agents.origins.exporting import session_in_address
from decklog.agents.sessions import ensure_run
from decklog.agents.spool import Spool
from decklog.core.errors import Invalid
from decklog.log import Decklog
from decklog.provenance.attribution import Attribution
from decklog.provenance.formats.agent_trace import ContributorType, TraceRecord
from decklog.provenance.formats.entire import EntireCheckpoint, EntireSession, read_checkpoints, read_transcript
from decklog.provenance.formats.git_ai import STASH_REF, AuthorshipNote, Span, parse_note, read_blobs, read_notes
from decklog.provenance.git import GitFailed, GitRepository
from decklog.provenance.recording import keep_objects

_UNKNOWN_MODEL = "unknown"


@dataclass(frozen=True)
class Author:
    """Author of lines in another tool: sessions or a person. `model` is that of the first session."""

    sessions: tuple[str, ...] = ()
    person: str | None = None
    model: str | None = None


@dataclass
class ImportSummary:
    """Result of an import; `left_out` has the reasons."""

    commits: int = 0
    files: int = 0
    edits: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    already: int = 0
    sessions: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)


def import_notes(
    repo: GitRepository, log: Decklog, *, commits: Container[str] | None = None, dry_run: bool = False
) -> ImportSummary:
    """Import the Git AI notes of a repository and its stashes, or of the given commits."""
    taken = _AttributionImport(repo, log, dry_run)
    for commit, text in chain(read_notes(repo), read_notes(repo, ref=STASH_REF)):
        if commits is not None and commit not in commits:
            continue
        try:
            note = parse_note(text)
        except Invalid as problem:
            taken.summary.left_out.append(f"note of {commit[:10]}: {problem.message}")
            continue
        taken.take(commit, {path: list(_authors_of(note, path)) for path in note.files})
    return taken.summary


def import_traces(repo: GitRepository, log: Decklog, records: Iterable[TraceRecord], *, dry_run: bool = False) -> ImportSummary:
    """Import Agent Trace records."""
    taken = _AttributionImport(repo, log, dry_run)
    for record in records:
        commit = None if record.revision is None else repo.resolve(f"{record.revision}^{{commit}}")
        if commit is None:
            taken.summary.left_out.append(f"record {record.id}: there is no commit {record.revision}")
            continue
        taken.take(commit, {path: list(_traced_authors(record, path)) for path in record.files})
    return taken.summary


def _authors_of(note: AuthorshipNote, path: str) -> Iterator[tuple[Span, Author]]:
    """Yield the ranges of a file with certain authors; skip ranges with an unknown key."""
    for span, keys in note.spans_of(path):
        sessions = [note.session_of(key) for key in keys]
        if all(one is not None for one in sessions):
            names = tuple(dict.fromkeys(f"{one.tool}:{one.conversation}" for one in sessions if one is not None))
            model = next(one.model for one in sessions if one is not None)
            yield span, Author(names, model=model)
        elif len(keys) == 1 and (person := note.author_of(keys[0])):
            yield span, Author(person=person)


def _traced_authors(record: TraceRecord, path: str) -> Iterator[tuple[Span, Author]]:
    """Yield the ranges of conversations that name their session. The format has no names for people."""
    for one in record.files[path]:
        if one.contributor is not ContributorType.AI or one.url is None:
            continue
        session = session_in_address(one.url) or f"{record.tool or 'agent'}:{one.url}"
        for found in one.ranges:
            yield (found.start_line, found.end_line), Author((session,), model=one.model_id)


class _AttributionImport:
    def __init__(self, repo: GitRepository, log: Decklog, dry_run: bool) -> None:
        self._repo = repo
        self._log = log
        self._dry_run = dry_run
        self._run = lru_cache(maxsize=None)(self._ensure_run)
        self.summary = ImportSummary()

    def take(self, commit: str, files: dict[str, list[tuple[Span, Author]]]) -> None:
        """Record the authors of a commit's files."""
        try:
            facts = self._repo.text("show", "-s", "--format=%P%x00%cI", f"{commit}^{{commit}}", "--")
        except GitFailed:
            self.summary.left_out.append(f"commit {commit[:10]} is not in this repository")
            return
        parents, _, at = facts.partition("\0")
        self.summary.commits += 1
        for path, authors in files.items():
            problem = self._take_file(commit, path, authors, next(iter(parents.split()), None), datetime.fromisoformat(at))
            if problem is not None:
                self.summary.left_out.append(f"{path} of {commit[:10]}: {problem}")

    def _take_file(
        self, commit: str, path: str, authors: list[tuple[Span, Author]], head: str | None, at: datetime
    ) -> str | None:
        """Record one file; return the reason if it is left out."""
        blob = self._repo.blob_at(commit, path)
        if blob is None:
            return "the commit has no such file"
        if self._log.edits.of_blobs([blob]):
            self.summary.already += 1
            return None
        content = read_blobs(self._repo, [blob])[blob]
        lines = content.split(b"\n")
        if content.endswith(b"\n"):
            lines = lines[:-1]
        by_author = _lines_by_author(authors)
        if not by_author:
            return "no lines with a certain author"
        if max(max(numbers) for numbers in by_author.values()) > len(lines):
            return f"the note names lines behind the last one, {len(lines)}"
        by_author = self._unknown_lines(commit, path, by_author)
        if not by_author:
            self.summary.already += 1
            return None
        steps = list(_contents(lines, by_author, is_ended=content.endswith(b"\n")))
        return self._record(path, steps, head, at)

    def _unknown_lines(self, commit: str, path: str, by_author: dict[Author, set[int]]) -> dict[Author, set[int]]:
        """Return the lines without a known origin; the log's evidence takes precedence over a note."""
        attribution = Attribution(self._repo, self._log)
        found = {
            author: {line for line in numbers if attribution.find_in_commit(commit, path, line).kind == "unknown"}
            for author, numbers in by_author.items()
        }
        return {author: numbers for author, numbers in found.items() if numbers}

    def _record(
        self, path: str, steps: list[tuple[Author | None, set[int], bytes]], head: str | None, at: datetime
    ) -> str | None:
        blobs = [self._repo.call("hash-object", "-w", "--stdin", given=content).decode().strip() for _, _, content in steps]
        for (old, new), (_, numbers, content) in zip(pairwise(blobs), steps[1:], strict=True):
            difference = self._repo.difference(old, new)
            whole = content.count(b"\n") + (not content.endswith(b"\n"))
            if {line for line in range(1, whole + 1) if difference.old_line(line) is None} != numbers:
                return "git's diff does not find exactly the named lines"
        self.summary.files += 1
        for author, numbers, _ in steps[1:]:
            assert author is not None
            self.summary.lines["person" if author.person else "mixed" if len(author.sessions) > 1 else "agent"] += len(numbers)
            self.summary.sessions.update(author.sessions)
        self.summary.edits += len(steps) - 1
        if not self._dry_run:
            for (old, new), (author, _, _) in zip(pairwise(blobs), steps[1:], strict=True):
                assert author is not None
                self._record_edit(path, old, new, author, head, at)
        return None

    def _record_edit(self, path: str, old: str, new: str, author: Author, head: str | None, at: datetime) -> None:
        author_fields: dict[str, Any] = {"kind": "person", "person": author.person}
        if author.sessions:
            author_fields = {
                "kind": "reconstructed",
                "session": author.sessions[0],
                "mixed_with": list(author.sessions[1:]),
                "run_id": self._run(author.sessions[0], author.model, at),
            }
        self._log.edits.record(self._repo.identity, path, old_blob=old, new_blob=new, head=head, edited_at=at, **author_fields)
        kept = {"top": self._repo.top, "edits": [{"old": old, "new": new}], "head": head}
        keep_objects(author.sessions[0] if author.sessions else author.person or "", [kept])

    def _ensure_run(self, session: str, model: str | None, at: datetime) -> str:
        goal = f"Session of {session.partition(':')[0]}, known from notes"
        return ensure_run(self._log, session, goal, source="note", model=None if model == _UNKNOWN_MODEL else model, at=at)


def _lines_by_author(authors: list[tuple[Span, Author]]) -> dict[Author, set[int]]:
    """Return the lines of each author, ordered by first line. A line with two authors belongs to both."""
    of_line: dict[int, list[Author]] = {}
    for (start, end), author in authors:
        for line in range(start, end + 1):
            of_line.setdefault(line, []).append(author)
    found: dict[Author, set[int]] = {}
    for line, named in sorted(of_line.items()):
        if (joined := _merge_authors(named)) is not None:
            found.setdefault(joined, set()).add(line)
    return found


def _merge_authors(authors: list[Author]) -> Author | None:
    """Merge the authors of one line; return None if a person is among several."""
    if len(authors) == 1:
        return authors[0]
    if any(one.person for one in authors):
        return None
    return Author(tuple(dict.fromkeys(name for one in authors for name in one.sessions)), model=authors[0].model)


def _contents(
    lines: list[bytes], by_author: dict[Author, set[int]], *, is_ended: bool
) -> Iterator[tuple[Author | None, set[int], bytes]]:
    """Yield the file without all named lines, then with the lines of one author after the other.

    A missing line is replaced by a unique placeholder, so that git's diff compares lines at their positions.
    """
    present = set(range(1, len(lines) + 1)) - {line for numbers in by_author.values() for line in numbers}
    for author, numbers in ((None, set[int]()), *by_author.items()):
        present |= numbers
        texts = (
            text if line in present else b"\0decklog: line %d is not written yet" % line for line, text in enumerate(lines, 1)
        )
        yield author, numbers, b"\n".join(texts) + (b"\n" if is_ended else b"")


# Entire: sessions with their transcripts, and the commits that name them. It records files, so no line gets an origin.

# Programs whose transcripts are JSON Lines files.
_READABLE = ("claude", "codex", "gemini")
# Older versions put the date before the agent's session id.
_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}-")
CHECKPOINT = "checkpoint.entire"


@dataclass
class EntireSummary:
    """Result of an import of Entire's branch."""

    checkpoints: int = 0
    sessions: set[str] = field(default_factory=set)
    new_entries: int = 0
    linked_commits: int = 0
    left_out: list[str] = field(default_factory=list)


def import_entire(repo: GitRepository, log: Decklog, spool: Spool, *, dry_run: bool = False) -> EntireSummary:
    """Import all sessions of Entire's branch with their commits."""
    summary = EntireSummary()
    for checkpoint in read_checkpoints(repo):
        summary.checkpoints += 1
        for session in checkpoint.sessions:
            if not session.session or not session.agent:
                summary.left_out.append(f"a session of checkpoint {checkpoint.id} names no agent")
                continue
            summary.sessions.add(f"{_program(session)}:{_session_id(session)}")
            summary.linked_commits += len(checkpoint.commits)
            if not dry_run:
                _take_transcript(repo, log, spool, session, summary)
                _link(log, checkpoint, session, summary)
    return summary


def _program(session: EntireSession) -> str:
    return session.program or re.sub(r"[^a-z0-9]+", "-", session.agent.lower()).strip("-")


def _session_id(session: EntireSession) -> str:
    return _DAY.sub("", session.session)


def _take_transcript(repo: GitRepository, log: Decklog, spool: Spool, session: EntireSession, summary: EntireSummary) -> None:
    program = _program(session)
    if program not in _READABLE or not session.transcript:
        return
    with TemporaryDirectory(prefix="decklog-import-") as folder:
        path = os.path.join(folder, f"{_session_id(session)}.jsonl")
        with open(path, "wb") as file:
            file.write(read_transcript(repo, session))
        done = HistoryImport(log, program, path, spool).run()
    summary.new_entries += done.new
    summary.left_out += done.warnings


def _link(log: Decklog, checkpoint: EntireCheckpoint, session: EntireSession, summary: EntireSummary) -> None:
    """Append the checkpoint's files and commits to the session's run. Create the run if no transcript was read."""
    run_id = _ensure_run(log, session)
    payload = {"checkpoint": checkpoint.id, "commits": list(checkpoint.commits), "files": list(session.files or checkpoint.files)}
    named = ", ".join(commit[:10] for commit in checkpoint.commits) or "no commit"
    entry = log.journal.append(
        run_id,
        f"Entire checkpoint {checkpoint.id}: {named}",
        kind="event",
        subtype=CHECKPOINT,
        agent=_program(session),
        payload=payload,
        key=f"entire:{checkpoint.id}:{','.join(checkpoint.commits)}",
    )
    summary.new_entries += not entry.already


def _ensure_run(log: Decklog, session: EntireSession) -> str:
    at = datetime.fromisoformat(session.created_at) if session.created_at else None
    goal = " ".join((session.prompt or "").split())[:200] or f"Session of {session.agent}"
    name = f"{_program(session)}:{_session_id(session)}"
    return ensure_run(log, name, goal, source="entire", model=session.model, at=at, prompt=session.prompt)
