"""Git AI standard 3.0.0: parse and write the note that attests the lines of one commit.

A note has attestations (a path, then lines of key and ranges), a line `---`, and JSON metadata.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.provenance.git import GitFailed, GitRepository

# First and last line, both included.
Span = tuple[int, int]


def parse_ranges(text: str) -> tuple[Span, ...]:
    """Parse ranges such as `1-4,9,12-20`; raise Invalid unless they are positive and ascending."""
    spans = tuple(_parse_span(part, text) for part in text.split(","))
    for (_, end), (start, _) in pairwise(spans):
        if start <= end:
            raise Invalid(f"line ranges must ascend without overlap: {text}")
    return spans


def _parse_span(part: str, text: str) -> Span:
    first, dash, last = part.partition("-")
    if not _is_number(first) or (dash and not _is_number(last)):
        raise Invalid(f"not a line range: {part or '(empty)'} in {text}")
    start = int(first)
    end = int(last) if dash else start
    if start < 1 or end < start:
        raise Invalid(f"not a line range: {part} in {text}")
    return start, end


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def format_ranges(spans: Iterable[Span]) -> str:
    """Write ranges as `1-4,9,12-20`."""
    return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in spans)


def join_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort ranges, and join those that touch or overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


SCHEMA_VERSION = "authorship/3.0.0"
_DIVIDER = "---"
_INDENT = "  "
_DIGITS = 14
_KEYS = (
    ("session", re.compile(r"s_[0-9a-f]{14}(::t_[0-9a-f]{14})?")),
    ("human", re.compile(r"h_[0-9a-f]{14}")),
    ("legacy", re.compile(r"[0-9a-f]{16}|[0-9a-f]{7}")),
)
_KNOWN = frozenset(("schema_version", "base_commit_sha", "prompts", "sessions", "humans"))
_COUNTS = ("total_additions", "total_deletions", "accepted_lines", "overriden_lines")


class KeyKind(StrEnum):
    """What an attestation's key names. `UNKNOWN` keys are kept and attribute nothing."""

    SESSION = "session"
    HUMAN = "human"
    LEGACY = "legacy"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Attestation:
    """Lines of one file that a key wrote."""

    key: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True)
class NotedSession:
    """A session of an agent. `extra` has fields that this version does not know."""

    tool: str
    conversation: str
    model: str
    human_author: str | None = None
    custom_attributes: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AuthorshipNote:
    """The note of one commit. `prompts` has the sessions of legacy keys."""

    base_commit: str
    files: dict[str, tuple[Attestation, ...]] = field(default_factory=dict)
    sessions: dict[str, NotedSession] = field(default_factory=dict)
    prompts: dict[str, NotedSession] = field(default_factory=dict)
    humans: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def session_of(self, key: str) -> NotedSession | None:
        """Return the session that a key names; None for people, and where the note has no record of it."""
        match kind_of_key(key):
            case KeyKind.SESSION:
                return self.sessions.get(key.partition("::")[0])
            case KeyKind.LEGACY:
                return self.prompts.get(key)
            case _:
                return None

    def author_of(self, key: str) -> str | None:
        """Return the person that a key names."""
        return self.humans.get(key) if kind_of_key(key) is KeyKind.HUMAN else None

    def spans_of(self, path: str) -> Iterator[tuple[Span, tuple[str, ...]]]:
        """Yield the attested ranges of a file in ascending order, each with its keys: more than one where keys overlap."""
        found = self.files.get(path, ())
        edges = sorted({edge for one in found for start, end in one.spans for edge in (start, end + 1)})
        for start, after in pairwise(edges):
            keys = tuple(one.key for one in found if any(first <= start <= last for first, last in one.spans))
            if keys:
                yield (start, after - 1), keys


def kind_of_key(key: str) -> KeyKind:
    """Return what a key names."""
    return KeyKind(next((kind for kind, pattern in _KEYS if pattern.fullmatch(key)), "unknown"))


def session_key(tool: str, conversation: str) -> str:
    """Return the key of a session."""
    return f"s_{_digest(f'{tool}:{conversation}')}"


def checkpoint_key(session: str, edit: str) -> str:
    """Return the key of one edit of a session. It is the same each time, so a second export changes nothing."""
    return f"{session}::t_{_digest(edit)}"


def human_key(author: str) -> str:
    """Return the key of a person, given as `Name <mail>`."""
    return f"h_{_digest(author)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


# Reading


def parse_note(text: str) -> AuthorshipNote:
    """Parse a note; raise Invalid where it is not one."""
    lines = text.split("\n")
    try:
        divider = lines.index(_DIVIDER)
    except ValueError:
        raise Invalid("not a Git AI note: it has no line `---`") from None
    metadata = _parse_metadata("\n".join(lines[divider + 1 :]))
    return AuthorshipNote(
        base_commit=str(metadata.get("base_commit_sha") or ""),
        files=_parse_attestations(lines[:divider]),
        sessions=_parse_sessions(metadata, "sessions"),
        prompts=_parse_sessions(metadata, "prompts"),
        humans={key: str(one.get("author") or "") for key, one in _objects(metadata, "humans")},
        extra={name: value for name, value in metadata.items() if name not in _KNOWN},
    )


def _parse_metadata(text: str) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"the metadata of the note is not JSON: {problem}") from None
    if not isinstance(metadata, dict):
        raise Invalid("the metadata of the note is not a JSON object")
    version = metadata.get("schema_version")
    if not isinstance(version, str) or not version.startswith("authorship/3."):
        raise Invalid(f"unknown schema_version of a Git AI note: {version}", hint="Decklog reads authorship/3.")
    return metadata


def _parse_attestations(lines: list[str]) -> dict[str, tuple[Attestation, ...]]:
    files: dict[str, list[Attestation]] = {}
    current: list[Attestation] | None = None
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        if not line.startswith(_INDENT):
            current = files.setdefault(_unquote(line), [])
        elif current is None:
            raise Invalid(f"line {number} of the note attests lines of no file")
        else:
            current.append(_parse_attestation(line, number))
    return {path: tuple(found) for path, found in files.items() if found}


def _parse_attestation(line: str, number: int) -> Attestation:
    words = line[len(_INDENT) :].split(" ")
    if len(words) != 2 or not all(words):
        raise Invalid(f"line {number} of the note is not `  KEY RANGES`: {line!r}")
    return Attestation(words[0], parse_ranges(words[1]))


def _unquote(path: str) -> str:
    return path[1:-1] if len(path) > 1 and path[0] == path[-1] == '"' else path


def _objects(metadata: Mapping[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    found = metadata.get(name)
    if found is None:
        return
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise Invalid(f"`{name}` of the note must map keys to objects")
    yield from found.items()


def _parse_sessions(metadata: Mapping[str, Any], name: str) -> dict[str, NotedSession]:
    return {key: _parse_session(one) for key, one in _objects(metadata, name)}


def _parse_session(record: dict[str, Any]) -> NotedSession:
    agent = record.get("agent_id")
    if not isinstance(agent, dict):
        raise Invalid("a session of the note has no agent_id")
    human, custom = record.get("human_author"), record.get("custom_attributes")
    return NotedSession(
        tool=str(agent.get("tool") or ""),
        conversation=str(agent.get("id") or ""),
        model=str(agent.get("model") or ""),
        human_author=human if isinstance(human, str) else None,
        custom_attributes=custom if isinstance(custom, dict) else None,
        extra={name: value for name, value in record.items() if name not in ("agent_id", "human_author", "custom_attributes")},
    )


# Writing


def format_note(note: AuthorshipNote) -> str:
    """Write a note. Files and keys are sorted, so the same attribution always gives the same bytes."""
    lines = [line for path in sorted(note.files) for line in _format_file(path, note.files[path])]
    metadata = {
        "schema_version": SCHEMA_VERSION,
        "base_commit_sha": note.base_commit,
        "prompts": {key: _format_prompt(one) for key, one in sorted(note.prompts.items())},
        "sessions": {key: _format_session(one) for key, one in sorted(note.sessions.items())},
        "humans": {key: {"author": author} for key, author in sorted(note.humans.items())},
        **note.extra,
    }
    return "\n".join([*lines, _DIVIDER, json.dumps(metadata, indent=2, ensure_ascii=False)]) + "\n"


def _format_file(path: str, attestations: tuple[Attestation, ...]) -> Iterator[str]:
    spans: dict[str, list[Span]] = {}
    for one in attestations:
        spans.setdefault(one.key, []).extend(one.spans)
    if any(spans.values()):
        yield quote_path(path)
        yield from (f"{_INDENT}{key} {format_ranges(join_spans(found))}" for key, found in sorted(spans.items()) if found)


def quote_path(path: str) -> str:
    """Write a path as a note has it; raise Invalid for a path that a note can't have."""
    if "\n" in path or not path:
        raise Invalid(f"a Git AI note can't name the path {path!r}")
    needs_quotes = path[0] == '"' or path == _DIVIDER or any(character.isspace() for character in path)
    return f'"{path}"' if needs_quotes else path


def _format_session(one: NotedSession) -> dict[str, Any]:
    record: dict[str, Any] = {"agent_id": {"tool": one.tool, "id": one.conversation, "model": one.model}}
    if one.human_author is not None:
        record["human_author"] = one.human_author
    record |= one.extra
    if one.custom_attributes is not None:
        record["custom_attributes"] = one.custom_attributes
    return record


def _format_prompt(one: NotedSession) -> dict[str, Any]:
    """Write a legacy prompt record, whose counts are required."""
    record = _format_session(one)
    return record | {name: record.get(name, 0) for name in _COUNTS}


AI_REF = "refs/notes/ai"
# Notes on stashes. They are not shared: a stash is not pushed.
STASH_REF = "refs/notes/ai-stash"
# Git resolves HEAD and branches by names; only full ids are commits here.
_HEX = frozenset("0123456789abcdef")


def read_blobs(repo: GitRepository, blobs: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of objects; raise NotFound for one that is gone."""
    names = list(blobs)
    found = repo.contents(names)
    if gone := [name for name in names if name not in found]:
        raise NotFound(f"the object {gone[0]} is gone from the repository")
    return found


def read_notes(repo: GitRepository, *, ref: str = AI_REF) -> Iterator[tuple[str, str]]:
    """Yield every commit that has a note, with the note's text."""
    listed = repo.call("notes", f"--ref={ref}", "list", accepted=(0, 1)).decode().split("\n")
    pairs = [line.split(" ") for line in listed if line]
    texts = read_blobs(repo, (note for note, _ in pairs))
    for note, commit in pairs:
        yield commit, texts[note].decode(errors="replace")


def read_note(repo: GitRepository, commit: str, *, ref: str = AI_REF) -> str | None:
    """Return the note of a commit, or None."""
    out = repo.call("notes", f"--ref={ref}", "list", commit, accepted=(0, 1)).decode().strip()
    return None if not out else read_blobs(repo, [out])[out].decode(errors="replace")


def write_notes(repo: GitRepository, notes: Mapping[str, str], *, ref: str = AI_REF, subject: str = "Write notes") -> int:
    """Write notes by full commit ids as one commit of the notes ref, replacing those that are there."""
    if not notes:
        return 0
    if wrong := [commit for commit in notes if len(commit) not in (40, 64) or not set(commit) <= _HEX]:
        raise Invalid(f"not a full commit id: {wrong[0]}")
    who = repo.call("var", "GIT_COMMITTER_IDENT").decode().strip()
    tip = repo.resolve(ref)
    stream = b"".join(_import_stream(notes, ref, subject, who, tip))
    try:
        repo.call("fast-import", "--quiet", "--date-format=raw", "--done", given=stream)
    except GitFailed as problem:
        if "Not updating" in str(problem):
            raise Conflict(f"{ref} changed while notes were written", hint="Run the command again.") from None
        raise
    return len(notes)


def _import_stream(notes: Mapping[str, str], ref: str, subject: str, who: str, tip: str | None) -> Iterator[bytes]:
    yield f"feature done\ncommit {ref}\ncommitter {who}\n".encode()
    yield _data(subject)
    if tip:
        yield f"from {tip}\n".encode()
    for commit, text in notes.items():
        yield f"N inline {commit}\n".encode()
        yield _data(text)
    yield b"done\n"


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%b\n" % (len(content), content)
