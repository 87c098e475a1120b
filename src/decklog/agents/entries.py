"""Conversion of session events into journal entries, from the event alone."""

import hashlib
from functools import lru_cache
from typing import Any

from decklog.agents.events import (
    Begun,
    Called,
    Compacted,
    Ended,
    Joined,
    Noted,
    Prompted,
    Rested,
    Returned,
    Said,
    SessionEvent,
    Thought,
)
from decklog.agents.texts import as_name, storable, storable_value
from decklog.journal.entry import EntryKind

# Longer texts are cut; their digest is recorded.
MOST_CHARACTERS = 200_000
# Argument names that describe a call best, in order of preference.
_DESCRIPTIVE = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt")


@lru_cache(maxsize=256)
def run_of(program: str, session_id: str, agent_id: str | None = None) -> str:
    """Return the run id of a session, or of one of its sub-agents: each has a separate run."""
    own = f"{as_name(program)}-{as_name(session_id)}"
    return own if agent_id is None else f"{own}-{as_name(agent_id)}"


def entry_of(program: str, run_id: str, event: SessionEvent) -> dict[str, Any] | None:
    """Return the entry arguments of an event, with storable texts of limited length; None for an event without an entry."""
    agent, facts = program, dict[str, Any]()
    text: str | None
    key: str | None
    match event:
        case Begun():
            kind, name, text = EntryKind.EVENT, "session", f"session {event.source}"
            # Two starts at the same moment count as one.
            key = f"begun:{event.source}:{event.at.isoformat()}" if event.at else None
            facts = {"cwd": event.cwd, "model": event.model, "version": event.version, "transcript": event.transcript}
        case Prompted():
            kind, name, text, agent = EntryKind.INTERACTION, "prompt", event.text, event.by
            key = f"prompt:{event.prompt_id}" if event.prompt_id else key_of("prompt", event, event.text)
        case Called():
            # The key omits the tool, because sources name it differently.
            kind, name = EntryKind.TOOL, "call"
            text, key, facts = describe_call(event.call_id, event.tool, event.arguments)
        case Returned():
            kind, name, key = EntryKind.TOOL, "result", f"result:{event.call_id}"
            output, cut = cut_of(event.output)
            text = output or event.outcome.value
            facts = {"call": event.call_id, "tool": event.tool, "outcome": event.outcome.value, **event.facts, **cut}
        case Said():
            kind, name, text = EntryKind.INTERACTION, "said", event.text
            key = event.message_id and f"said:{event.message_id}"
        case Thought():
            kind, name, text, key = EntryKind.REASONING, "thought", event.text, f"thought:{event.message_id}"
        case Compacted():
            kind, name = EntryKind.EVENT, "compacted" if event.is_over else "compacting"
            text, key = event.summary or event.trigger, key_of(name, event, event.summary)
        case Noted():
            kind, name, text, facts = EntryKind.EVENT, event.name, event.text, event.facts
            key = event.note_id or key_of(event.name, event, event.text)
        case Rested():
            kind, name, said = EntryKind.EVENT, "turn", event.error or event.text
            text, key, facts = said or "turn ended", key_of("turn", event, said), {**event.facts, "error": event.error}
        case Ended() | Joined():
            kind, name, reason = EntryKind.EVENT, "session", event.reason if isinstance(event, Ended) else None
            text, key = f"session ended: {reason or 'done'}", key_of("ended", event, reason)
        case _:
            return None
    body, cut = cut_of(storable(text)) if text else (text, {})
    payload = {name: value for name, value in facts.items() if value is not None and name != "way"} | cut
    if event.way is not None:
        payload["way"] = event.way
    return {
        "stream": run_id,
        "body": body,
        "kind": kind.value,
        "subtype": name,
        "agent": agent,
        "agent_id": storable(event.agent_id or event.session_id),
        "payload": storable_value(payload) if payload else None,
        "key": storable(key) if key else key,
        "at": event.at,
    }


def describe_call(call_id: str, tool: str, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return a call as one line (its command, or its tool with the best argument), its key and its other facts."""
    texts = (value for name in _DESCRIPTIVE if isinstance(value := arguments.get(name), str))
    argument = next((text for text in texts if text.strip()), "")
    line = argument if tool == "Bash" and argument else f"{tool} {argument}".strip()
    rest = {name: cut_of(value)[0] if isinstance(value, str) else value for name, value in arguments.items() if value != argument}
    return line, f"call:{call_id}", {"call": call_id, "tool": tool, "arguments": rest or None}


def cut_of(text: str) -> tuple[str, dict[str, Any]]:
    if len(text) <= MOST_CHARACTERS:
        return text, {}
    whole = text.encode(errors="replace")
    return text[:MOST_CHARACTERS], {"cut": {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}}


def key_of(name: str, event: SessionEvent, text: str | None) -> str | None:
    """Return a key for an event without an id, made of its time and a digest of its text."""
    if event.at is None:
        return None
    words = hashlib.sha256((text or "").encode(errors="replace")).hexdigest()[:16]
    return f"{name}:{event.at.isoformat()}:{words}"
