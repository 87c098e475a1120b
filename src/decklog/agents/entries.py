"""Conversion of session events into journal entries, from the event alone."""

import hashlib
from functools import lru_cache
from typing import Any

from decklog.agents.events import (
    ConversationCompacted,
    MessageSent,
    OtherEvent,
    PromptSubmitted,
    ReasoningShown,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from decklog.agents.texts import as_name, storable, storable_value
from decklog.journal.entry import EntryKind

# Longer texts are cut; their digest is recorded.
MOST_CHARACTERS = 200_000
# Argument names that describe a call best, in order of preference.
_DESCRIPTIVE = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt")


@lru_cache(maxsize=256)
def session_run_id(program: str, session_id: str, agent_id: str | None = None) -> str:
    """Return the run id of a session, or of one of its sub-agents: each has a separate run."""
    own = f"{as_name(program)}-{as_name(session_id)}"
    return own if agent_id is None else f"{own}-{as_name(agent_id)}"


def build_event_entry(program: str, run_id: str, event: SessionEvent) -> dict[str, Any] | None:
    """Return the entry arguments of an event, with storable texts of limited length; None for an event without an entry."""
    content = _content_of(event)
    if content is None:
        return None
    kind, subtype, text, key, facts = content
    body, cut = cut_text(storable(text)) if text else (text, {})
    payload = {name: value for name, value in facts.items() if value is not None and name != "way"} | cut
    if event.way is not None:
        payload["way"] = event.way
    return {
        "stream": run_id,
        "body": body,
        "kind": kind.value,
        "subtype": subtype,
        "agent": event.by if isinstance(event, PromptSubmitted) else program,
        "agent_id": storable(event.agent_id or event.session_id),
        "payload": storable_value(payload) if payload else None,
        "key": storable(key) if key else key,
        "at": event.at,
    }


def _content_of(event: SessionEvent) -> tuple[EntryKind, str, str | None, str | None, dict[str, Any]] | None:
    """Return the kind, subtype, text, key and facts of an event's entry."""
    match event:
        case SessionStarted():
            # Two starts at the same moment count as one.
            key = f"begun:{event.source}:{event.at.isoformat()}" if event.at else None
            facts = {"cwd": event.cwd, "model": event.model, "version": event.version, "transcript": event.transcript}
            return EntryKind.EVENT, "session", f"session {event.source}", key, facts
        case PromptSubmitted():
            key = f"prompt:{event.prompt_id}" if event.prompt_id else event_key("prompt", event, event.text)
            return EntryKind.INTERACTION, "prompt", event.text, key, {}
        case ToolCalled():
            # The key omits the tool, because sources name it differently.
            return EntryKind.TOOL, "call", *describe_call(event.call_id, event.tool, event.arguments)
        case ToolReturned():
            output, cut = cut_text(event.output)
            result = {"call": event.call_id, "tool": event.tool, "outcome": event.outcome.value, **event.facts, **cut}
            return EntryKind.TOOL, "result", output or event.outcome.value, f"result:{event.call_id}", result
        case MessageSent():
            return EntryKind.INTERACTION, "said", event.text, event.message_id and f"said:{event.message_id}", {}
        case ReasoningShown():
            return EntryKind.REASONING, "thought", event.text, f"thought:{event.message_id}", {}
        case ConversationCompacted():
            name = "compacted" if event.is_over else "compacting"
            return EntryKind.EVENT, name, event.summary or event.trigger, event_key(name, event, event.summary), {}
        case OtherEvent():
            key = event.note_id or event_key(event.name, event, event.text)
            return EntryKind.EVENT, event.name, event.text, key, event.facts
        case TurnEnded():
            said, facts_of_turn = event.error or event.text, {**event.facts, "error": event.error}
            return EntryKind.EVENT, "turn", said or "turn ended", event_key("turn", event, said), facts_of_turn
        case SessionEnded() | SubagentEnded():
            reason = event.reason if isinstance(event, SessionEnded) else None
            return EntryKind.EVENT, "session", f"session ended: {reason or 'done'}", event_key("ended", event, reason), {}
    return None


def describe_call(call_id: str, tool: str, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return a call as one line (its command, or its tool with the best argument), its key and its other facts."""
    texts = (value for name in _DESCRIPTIVE if isinstance(value := arguments.get(name), str))
    argument = next((text for text in texts if text.strip()), "")
    line = argument if tool == "Bash" and argument else f"{tool} {argument}".strip()
    rest = {
        name: cut_text(value)[0] if isinstance(value, str) else value for name, value in arguments.items() if value != argument
    }
    return line, f"call:{call_id}", {"call": call_id, "tool": tool, "arguments": rest or None}


def cut_text(text: str) -> tuple[str, dict[str, Any]]:
    if len(text) <= MOST_CHARACTERS:
        return text, {}
    whole = text.encode(errors="replace")
    return text[:MOST_CHARACTERS], {"cut": {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}}


def event_key(name: str, event: SessionEvent, text: str | None) -> str | None:
    """Return a key for an event without an id, made of its time and a digest of its text."""
    if event.at is None:
        return None
    words = hashlib.sha256((text or "").encode(errors="replace")).hexdigest()[:16]
    return f"{name}:{event.at.isoformat()}:{words}"
