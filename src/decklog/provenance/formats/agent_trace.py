"""Agent Trace 0.1.0: parse and write records that name the conversations behind the lines of files."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from decklog.core.errors import Invalid

VERSION = "0.1.0"
_KNOWN = frozenset(("version", "id", "timestamp", "files", "vcs", "tool", "metadata"))


class ContributorType(StrEnum):
    """Who wrote a range of lines."""

    HUMAN = "human"
    AI = "ai"
    MIXED = "mixed"
    UNKNOWN = "unknown"


_TYPES = frozenset(one.value for one in ContributorType)


@dataclass(frozen=True)
class TraceRange:
    """A range of lines, both ends included."""

    start_line: int
    end_line: int
    content_hash: str | None = None


@dataclass(frozen=True, kw_only=True)
class TraceConversation:
    """The lines of a file that came from one conversation. `related` has pairs of type and address."""

    contributor: ContributorType
    model_id: str | None = None
    url: str | None = None
    ranges: tuple[TraceRange, ...] = ()
    related: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraceRecord:
    """One record: the attribution of some files at a revision."""

    id: str
    timestamp: str
    files: dict[str, tuple[TraceConversation, ...]]
    revision: str | None = None
    vcs: str = "git"
    tool: str | None = None
    tool_version: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


# Reading


def parse_traces(text: str) -> Iterator[TraceRecord]:
    """Parse records: JSON lines, or one JSON document that is a record or a list of them."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield _parse_line(line, number)
        return
    for record in document if isinstance(document, list) else [document]:
        yield parse_trace(record)


def _parse_line(line: str, number: int) -> TraceRecord:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"line {number} is not JSON: {problem}") from None
    return parse_trace(record)


def parse_trace(record: Any) -> TraceRecord:
    """Check a record and return it; raise Invalid where it is not one."""
    record = _object(record, "an Agent Trace record")
    version = record.get("version")
    if not isinstance(version, str) or not version.startswith("0.1"):
        raise Invalid(f"unknown version of an Agent Trace record: {version}", hint="Decklog reads 0.1.")
    vcs, tool = _object(record.get("vcs") or {}, "vcs"), _object(record.get("tool") or {}, "tool")
    return TraceRecord(
        id=_identity(record.get("id")),
        timestamp=_text(record.get("timestamp"), "timestamp"),
        files=dict(_parse_file(one) for one in _list(record.get("files"), "files")),
        revision=vcs.get("revision"),
        vcs=str(vcs.get("type") or "git"),
        tool=tool.get("name"),
        tool_version=tool.get("version"),
        metadata=_object(record.get("metadata") or {}, "metadata"),
        extra={name: value for name, value in record.items() if name not in _KNOWN},
    )


def _identity(value: Any) -> str:
    try:
        return str(UUID(_text(value, "id")))
    except ValueError:
        raise Invalid(f"the id of an Agent Trace record must be a UUID: {value}") from None


def _parse_file(value: Any) -> tuple[str, tuple[TraceConversation, ...]]:
    found = _object(value, "a file")
    conversations = tuple(_parse_conversation(one) for one in _list(found.get("conversations"), "conversations"))
    return _text(found.get("path"), "path"), conversations


def _parse_conversation(value: Any) -> TraceConversation:
    found = _object(value, "a conversation")
    contributor = _object(found.get("contributor") or {}, "contributor")
    kind = contributor.get("type") or "unknown"
    if kind not in _TYPES:
        raise Invalid(f"unknown type of a contributor: {kind}")
    related = (_object(one, "related") for one in _list(found.get("related") or [], "related"))
    return TraceConversation(
        contributor=ContributorType(kind),
        model_id=contributor.get("model_id"),
        url=found.get("url"),
        ranges=tuple(_parse_range(one) for one in _list(found.get("ranges"), "ranges")),
        related=tuple((_text(one.get("type"), "type"), _text(one.get("url"), "url")) for one in related),
    )


def _parse_range(value: Any) -> TraceRange:
    found = _object(value, "a range")
    start, end = found.get("start_line"), found.get("end_line")
    is_whole = all(isinstance(line, int) and not isinstance(line, bool) for line in (start, end))
    if not is_whole or not 1 <= start <= end:  # type: ignore[operator]
        raise Invalid(f"not a range of lines: {start} to {end}")
    return TraceRange(start, end, found.get("content_hash"))  # type: ignore[arg-type]


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(f"{name} must be a JSON object")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Invalid(f"{name} must be a JSON list")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise Invalid(f"{name} must be a text")
    return value


# Writing


def format_trace(record: TraceRecord) -> str:
    """Write a record as one line of JSON."""
    document: dict[str, Any] = {"version": VERSION, "id": record.id, "timestamp": record.timestamp}
    if record.revision is not None:
        document["vcs"] = {"type": record.vcs, "revision": record.revision}
    if record.tool is not None:
        document["tool"] = _without_none(name=record.tool, version=record.tool_version)
    document["files"] = [
        {"path": path, "conversations": [_format_conversation(one) for one in found]} for path, found in record.files.items()
    ]
    if record.metadata:
        document["metadata"] = record.metadata
    return json.dumps(document | record.extra, ensure_ascii=False) + "\n"


def _format_conversation(one: TraceConversation) -> dict[str, Any]:
    ranges = [
        _without_none(start_line=span.start_line, end_line=span.end_line, content_hash=span.content_hash) for span in one.ranges
    ]
    return _without_none(
        url=one.url,
        contributor=_without_none(type=one.contributor.value, model_id=one.model_id),
        ranges=ranges,
        related=[{"type": kind, "url": url} for kind, url in one.related] or None,
    )


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
