"""opencode: conversion of payloads from Decklog's plugin, and reader of its session database.

The payloads are Claude Code's hook events, plus messages and usage. Tables of accounts and credentials are not read.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from decklog.agents.events import (
    IMPORTED,
    CallOutcome,
    ConversationCompacted,
    MessageSent,
    OtherEvent,
    PromptSubmitted,
    ReasoningShown,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    SubagentStarted,
    TokensUsed,
    ToolCalled,
    ToolReturned,
)
from decklog.agents.programs import claude
from decklog.agents.programs.base import Common, Payload, common_fields, number_id, usage_events
from decklog.agents.texts import as_text, dict_of, text_or_none, whole
from decklog.core.display import DOLLAR
from decklog.core.errors import Invalid
from decklog.importing.row import parse_json
from decklog.importing.source import SqliteSource

_MOST_DOLLARS = 10**6
reader = claude.reader
transcripts_of = claude.transcripts_of


def events_of(payload: Payload, at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload."""
    common, name = common_fields(payload, at), payload.get("message_id")
    if common is None:
        return []
    match payload.get("hook_event_name"):
        case "AssistantText" | "AssistantThought" as kind if isinstance(name, str):
            event, text = MessageSent if kind == "AssistantText" else ReasoningShown, as_text(payload.get("text"))
            return [event(**common, text=text, message_id=name)] if text.strip() else []
        case "ModelAnswer" if isinstance(name, str):
            return [*answers_of(payload, name, common)]
        case "SubagentStart":
            return [
                SubagentStarted(**common, role=as_text(payload.get("agent_type")), task=text_or_none(payload.get("description")))
            ]
        case _:
            return claude.events_of(payload, at)


def answers_of(payload: Payload, name: str, common: Common) -> list[TokensUsed]:
    """Return the usage of an answer: its tokens, and its cost if it is known."""
    tokens = payload.get("tokens")
    if not isinstance(tokens, dict):
        return []
    cache = dict_of(tokens.get("cache"))
    given, read, created = whole(tokens.get("input")), whole(cache.get("read")), whole(cache.get("write"))
    # Reasoning is charged as output. The total shows whether the output count already includes it.
    output = max(whole(tokens.get("output")), whole(tokens.get("total")) - given - read - created)
    model, cost = str(payload.get("model") or "unknown"), _microdollars(payload.get("cost"))
    return list(usage_events(common, name, model, [given, read, created, output], cost))


def _microdollars(cost: object) -> int | None:
    """Return a cost in microdollars; None for a model without a price."""
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 < cost < _MOST_DOLLARS:
        return None
    return round(cost * DOLLAR)


# The database

Data = dict[str, Any]

_TABLES = ("session", "message", "part")
_NAMES = {"bash": "Bash", "read": "Read", "write": "Write", "edit": "Edit"}
_LATEST = 253_402_300_799_000
_DENIED = ("rejected permission", "permission to use this specific tool call", "denied by", "held by")
_ABORTED = "aborted"


def events_in(path: str, unread: Callable[[], None]) -> Iterator[SessionEvent]:
    """Yield the events of all sessions in a database, in message order. `unread` counts unreadable rows."""
    with SqliteSource(path) as source:
        missing = [table for table in _TABLES if table not in source]
        if missing:
            raise Invalid(f"{path} is no database of opencode's: it has no {', '.join(missing)}", path=path)
        sessions = _Sessions(source)
        yield from sessions.begun()
        parts = _Parts(source, unread)
        for row in source.rows("message", ("id",)):
            data, name, session = _data(row, unread), row.get("id"), row.get("session_id")
            if data is not None and isinstance(name, str) and isinstance(session, str):
                yield from sessions.message(session, name, data, parts.of(name), row.get("time_created"))
        yield from sessions.ended()


class _Parts:
    """Reader of message parts in the same order as the messages, with the parts of one message in memory."""

    def __init__(self, source: SqliteSource, unread: Callable[[], None]) -> None:
        self._rows = source.rows("part", ("message_id", "id"))
        self._unread = unread
        self._next = next(self._rows, None)

    def of(self, message: str) -> list[tuple[str, Data]]:
        """Return a message's parts with their ids; skip parts of missing messages."""
        found: list[tuple[str, Data]] = []
        while self._next is not None and str(self._next.get("message_id")) <= message:
            row, self._next = self._next, next(self._rows, None)
            data = _data(row, self._unread)
            if str(row.get("message_id")) == message and data is not None:
                found.append((str(row.get("id")), data))
        return found


class _Sessions:
    def __init__(self, source: SqliteSource) -> None:
        self._rows = {str(row["id"]): row for row in source.rows("session", ("time_created", "id")) if row.get("id")}
        self._last: dict[str, datetime | None] = {}

    def _place(self, session: str, at: datetime | None) -> Common:
        """Return the session fields of an event. A nested session is a sub-agent of the topmost one."""
        top, seen = session, {session}
        while (above := self._rows.get(top, {}).get("parent_id")) and above not in seen:
            top = str(above)
            seen.add(top)
        return {"session_id": top, "agent_id": None if top == session else session, "at": at}

    def begun(self) -> Iterator[SessionEvent]:
        """Yield the start of every session, parents first."""
        for name, row in self._rows.items():
            common = self._place(name, _time(row.get("time_created")))
            self._last[name] = common["at"]
            if common["agent_id"] is not None:
                role = text_or_none(row.get("agent")) or "agent"
                yield SubagentStarted(**common, role=role, task=text_or_none(row.get("title")))
                continue
            cwd, version = text_or_none(row.get("directory")), text_or_none(row.get("version"))
            yield SessionStarted(**common, source=IMPORTED, cwd=cwd, version=version)

    def ended(self) -> Iterator[SessionEvent]:
        """Yield the end of every session, children first."""
        for name, at in reversed(self._last.items()):
            common = self._place(name, at)
            yield SubagentEnded(**common) if common["agent_id"] is not None else SessionEnded(**common, reason=IMPORTED)

    def message(
        self, session: str, name: str, data: Data, parts: list[tuple[str, Data]], created: object
    ) -> Iterator[SessionEvent]:
        """Yield the events of a message."""
        times = dict_of(data.get("time"))
        at = _time(times.get("created", created))
        common = self._place(session, at)
        self._last[session] = at or self._last.get(session)
        if data.get("role") == "user":
            yield from _prompt_events(common, name, parts)
        elif data.get("role") == "assistant":
            yield from _answer(common, name, data, parts, is_over=bool(times.get("completed")))


def _prompt_events(common: Common, name: str, parts: list[tuple[str, Data]]) -> Iterator[SessionEvent]:
    texts = [as_text(part.get("text")) for _, part in parts if part.get("type") == "text" and not part.get("synthetic")]
    if "".join(texts).strip():
        yield PromptSubmitted(**common, prompt_id=name, text="\n".join(texts), by="program" if common["agent_id"] else "person")
    for _, part in parts:
        if part.get("type") == "compaction":
            yield ConversationCompacted(**common, trigger="auto" if part.get("auto") else "manual")


def _answer(common: Common, name: str, data: Data, parts: list[tuple[str, Data]], *, is_over: bool) -> Iterator[SessionEvent]:
    number = 0
    for part_id, part in parts:
        is_whole = is_over or bool(dict_of(part.get("time")).get("end"))
        text = as_text(part.get("text"))
        if part.get("type") == "text":
            number += 1
            if is_whole and text.strip():
                yield MessageSent(**common, text=text, message_id=number_id(name, number))
        elif part.get("type") == "reasoning" and is_whole and text.strip():
            yield ReasoningShown(**common, text=text, message_id=part_id)
        elif part.get("type") == "tool":
            yield from _call_events(common, part)
    if is_over:
        usage = {"tokens": data.get("tokens"), "model": data.get("modelID"), "cost": data.get("cost")}
        yield from answers_of(usage, name, common)
    if isinstance(error := data.get("error"), dict):
        message = text_or_none(dict_of(error.get("data")).get("message"))
        yield OtherEvent(**common, name="error", text=message or as_text(error.get("name")), note_id=f"error:{name}")


def _call_events(common: Common, part: Data) -> Iterator[SessionEvent]:
    """Yield a tool call, and its end if there is one."""
    state = dict_of(part.get("state"))
    if not isinstance(call := part.get("callID"), str):
        return
    times, arguments = dict_of(state.get("time")), dict_of(state.get("input"))
    began, ended = _time(times.get("start")), _time(times.get("end"))
    if "filePath" in arguments:
        arguments = {**arguments, "file_path": arguments["filePath"]}
    word = str(part.get("tool") or "tool")
    tool = _NAMES.get(word, word)
    yield ToolCalled(**{**common, "at": began or common["at"]}, call_id=call, tool=tool, arguments=arguments)
    if state.get("status") in ("completed", "error"):
        outcome, output = _result_of(state)
        yield ToolReturned(**{**common, "at": ended or common["at"]}, call_id=call, outcome=outcome, tool=tool, output=output)


def _result_of(state: Data) -> tuple[CallOutcome, str]:
    if state["status"] == "error":
        error = as_text(state.get("error"))
        if any(words in error for words in _DENIED):
            return CallOutcome.DENIED, error
        return CallOutcome.INTERRUPTED if _ABORTED in error else CallOutcome.FAILED, error
    code = dict_of(state.get("metadata")).get("exit")
    output = as_text(state.get("output"))
    return (CallOutcome.FAILED, f"Exit code {code}\n{output}") if code else (CallOutcome.OK, output)


def _data(row: Data, unread: Callable[[], None]) -> Data | None:
    found = parse_json(row.get("data"))
    if isinstance(found, dict):
        return found
    unread()
    return None


def _time(milliseconds: object) -> datetime | None:
    """Parse a time in milliseconds since 1970."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)) or not 0 < milliseconds < _LATEST:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
