"""Export of commit attribution as Git AI notes and Agent Trace records.

Only certain lines are attested: those of one session or one known person. Prompts are left out unless requested.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import NAMESPACE_URL, uuid5

from decklog.agents.origins.line_story import story_of
from decklog.agents.sessions import model_of_run
from decklog.core.errors import Invalid
from decklog.log import Decklog
from decklog.provenance.attribution import Attribution, LineRange, Origin, group_ranges
from decklog.provenance.commit_origins import CommitOrigins
from decklog.provenance.formats.agent_trace import ContributorType, TraceConversation, TraceRange, TraceRecord
from decklog.provenance.formats.git_ai import (
    AI_REF,
    STASH_REF,
    Attestation,
    AuthorshipNote,
    NotedSession,
    checkpoint_key,
    format_note,
    human_key,
    parse_note,
    quote_path,
    read_notes,
    session_key,
    write_notes,
)
from decklog.provenance.git import GitRepository
from decklog.provenance.history import CommitChanges, FileChange, read_changes, read_stashes

# Metadata field that marks notes written by Decklog.
WRITTEN_BY = "written_by"
_OURS = "decklog"
_NO_COMMIT = "0" * 40
_SESSION_ADDRESS = "urn:decklog:session:"
_TYPES = {"agent": ContributorType.AI, "person": ContributorType.HUMAN, "mixed": ContributorType.MIXED}


@dataclass
class ExportSummary:
    """Result of an export."""

    commits: int = 0
    written: int = 0
    unchanged: int = 0
    kept_of_others: int = 0
    lines: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    people: set[str] = field(default_factory=set)
    prompts: int = 0
    left_out: list[str] = field(default_factory=list)


class NoteExport:
    """Builder of notes and records for commits."""

    def __init__(self, repo: GitRepository, log: Decklog, *, prompts: bool = False) -> None:
        self._repo = repo
        self._log = log
        self._prompts = prompts
        self._origins = CommitOrigins(repo, log)
        self._edit = lru_cache(maxsize=None)(log.edits.get)
        self._model = lru_cache(maxsize=None)(lambda run_id: model_of_run(log, run_id) or "unknown")
        self.summary = ExportSummary()

    def notes(self, revisions: str) -> Iterator[tuple[str, AuthorshipNote]]:
        """Yield each commit with attested lines, with its note."""
        for commit, files in self._attributed(revisions):
            note = self._note(commit, files)
            if note.files:
                yield commit.commit, note

    def stash_notes(self) -> Iterator[tuple[str, AuthorshipNote]]:
        """Yield each stash with attested lines, with its note. A stash is a worktree that was saved."""
        attribution = Attribution(self._repo, self._log)
        for stash in read_stashes(self._repo):
            self.summary.commits += 1
            files = []
            for file in stash.files:
                lines = (line for start, end in file.added for line in range(start, end + 1))
                found = {line: attribution.find_in_worktree(str(file.blob), file.path, stash.parents[0], line) for line in lines}
                files.append((file, group_ranges(found)))
            note = self._note(stash, files)
            if note.files:
                yield stash.commit, note

    def records(self, revisions: str) -> Iterator[TraceRecord]:
        """Yield an Agent Trace record for each commit with attributed lines."""
        for commit, files in self._attributed(revisions):
            found = {file.path: tuple(self._conversations(ranges)) for file, ranges in files}
            found = {path: conversations for path, conversations in found.items() if conversations}
            if found:
                yield TraceRecord(
                    id=str(uuid5(NAMESPACE_URL, f"decklog:{commit.commit}")),
                    timestamp=commit.at.isoformat(),
                    files=found,
                    revision=commit.commit,
                    tool=_OURS,
                )

    def _attributed(self, revisions: str) -> Iterator[tuple[CommitChanges, list[tuple[FileChange, list[LineRange]]]]]:
        commits = list(read_changes(self._repo, revisions))
        for commit in commits:
            self._origins.add_commit(commit)
        for commit in commits:
            self.summary.commits += 1
            yield commit, [(file, self._origins.find_line_origins(commit, file)) for file in commit.files if file.added]

    # Git AI

    def _note(self, commit: CommitChanges, files: list[tuple[FileChange, list[LineRange]]]) -> AuthorshipNote:
        note = AuthorshipNote(base_commit=next(iter(commit.parents), _NO_COMMIT), extra={WRITTEN_BY: _OURS})
        for file, ranges in files:
            try:
                quote_path(file.path)
            except Invalid as problem:
                self.summary.left_out.append(problem.message)
                continue
            found = [Attestation(key, ((one.start, one.end),)) for one in ranges if (key := self._attest(note, one))]
            if found:
                note.files[file.path] = tuple(found)
        return note

    def _attest(self, note: AuthorshipNote, one: LineRange) -> str | None:
        """Add the session or person of a range to the note and return the key; None for uncertain lines."""
        self.summary.lines[one.origin.kind] += one.end - one.start + 1
        if one.origin.kind == "person" and one.origin.person:
            self.summary.people.add(one.origin.person)
            key = human_key(one.origin.person)
            note.humans[key] = one.origin.person
            return key
        if one.origin.kind != "agent" or not one.origin.edits:
            return None
        return self._session_key(note, one.origin)

    def _session_key(self, note: AuthorshipNote, origin: Origin) -> str:
        session, edit = origin.sessions[0], self._edit(origin.edits[0])
        tool, _, conversation = session.partition(":")
        key = session_key(tool, conversation)
        model = self._model(edit.run_id)
        self.summary.sessions.add(session)
        self.summary.models.add(model)
        known = note.sessions.setdefault(key, NotedSession(tool=tool, conversation=conversation, model=model))
        whole = checkpoint_key(key, edit.id)
        if self._prompts and (prompt := story_of(self._log, edit).prompt) is not None:
            self.summary.prompts += 1
            attributes = {**(known.custom_attributes or {}), f"prompt {whole.partition('::')[2]}": prompt.body or ""}
            note.sessions[key] = NotedSession(**{**vars(known), "custom_attributes": attributes})
        return whole

    # Agent Trace

    def _conversations(self, ranges: list[LineRange]) -> Iterator[TraceConversation]:
        by_origin: dict[tuple[str, tuple[str, ...], str | None], list[LineRange]] = {}
        for one in ranges:
            self.summary.lines[one.origin.kind] += one.end - one.start + 1
            if one.origin.kind in _TYPES:
                by_origin.setdefault((one.origin.kind, one.origin.sessions, one.origin.person), []).append(one)
        for (kind, sessions, person), found in by_origin.items():
            self.summary.sessions.update(sessions)
            self.summary.people.update([person] if person else [])
            edits = found[0].origin.edits
            model = self._model(self._edit(edits[0]).run_id) if kind == "agent" and edits else None
            self.summary.models.update([model] if model else [])
            yield TraceConversation(
                contributor=_TYPES[kind],
                model_id=None if model in (None, "unknown") else model,
                url=f"{_SESSION_ADDRESS}{sessions[0]}" if kind == "agent" else None,
                ranges=tuple(TraceRange(one.start, one.end) for one in found),
                related=tuple(("session", f"{_SESSION_ADDRESS}{session}") for session in sessions) if kind == "mixed" else (),
            )


def session_in_address(address: str | None) -> str | None:
    """Return the session in the address of an exported conversation; None for other addresses."""
    if address is None or not address.startswith(_SESSION_ADDRESS):
        return None
    return address.removeprefix(_SESSION_ADDRESS)


def export_notes(
    repo: GitRepository,
    log: Decklog,
    revisions: str | None,
    *,
    prompts: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> ExportSummary:
    """Write Git AI notes for commits, or without revisions for stashes. Notes of other tools are kept unless `force` is set."""
    export = NoteExport(repo, log, prompts=prompts)
    ref = STASH_REF if revisions is None else AI_REF
    known = dict(read_notes(repo, ref=ref))
    new: dict[str, str] = {}
    for commit, note in export.stash_notes() if revisions is None else export.notes(revisions):
        text = format_note(note)
        present = known.get(commit)
        if present == text:
            export.summary.unchanged += 1
        elif present is not None and not force and not _is_ours(present):
            export.summary.kept_of_others += 1
        else:
            new[commit] = text
    if not dry_run:
        write_notes(repo, new, ref=ref, subject="Notes by Decklog")
    export.summary.written = len(new)
    return export.summary


def _is_ours(text: str) -> bool:
    try:
        return parse_note(text).extra.get(WRITTEN_BY) == _OURS
    except Invalid:
        return False


def what_is_published(repo: GitRepository) -> ExportSummary:
    """Summarize the data that a push of the notes ref publishes."""
    found = ExportSummary()
    for commit, text in read_notes(repo, ref=AI_REF):
        try:
            note = parse_note(text)
        except Invalid as problem:
            found.left_out.append(f"{commit[:10]}: {problem.message}")
            continue
        found.commits += 1
        for one in (*note.sessions.values(), *note.prompts.values()):
            found.sessions.add(f"{one.tool}:{one.conversation}")
            found.models.add(one.model)
            found.people.update([one.human_author] if one.human_author else [])
            found.prompts += sum(name.startswith("prompt") for name in one.custom_attributes or {}) + ("messages" in one.extra)
        found.people.update(note.humans.values())
    return found
