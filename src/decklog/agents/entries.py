"""Conversion of session events into journal entries, from the event alone."""

import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

from decklog.agents.events import Called, Compacted, Noted, Prompted, Returned, Said, SessionEvent, Thought
from decklog.agents.texts import as_name, storable, storable_value
from decklog.journal.entry import EntryKind

# Longer texts are cut; their digest is recorded.
MOST_CHARACTERS = 200_000
# Argument names that describe a call best, in order of preference.
_DESCRIPTIVE = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt")


@lru_cache(maxsize=256)
def run_of_session(program: str, session_id: str) -> str:
    """Return the run id of a session."""
    return f"{as_name(program)}-{as_name(session_id)}"


def run_of(program: str, event: SessionEvent) -> str:
    """Return the run id of an event; each sub-agent has a separate run."""
    return run_of_agent(program, event.session_id, event.agent_id)


@lru_cache(maxsize=256)
def run_of_agent(program: str, session_id: str, agent_id: str | None) -> str:
    """Return the run id of a session's agent: the session's run, or a sub-agent's separate run."""
    own = run_of_session(program, session_id)
    return own if agent_id is None else f"{own}-{as_name(agent_id)}"


class EntryParts(NamedTuple):
    """What an event becomes as an entry, apart from its run and its time."""

    kind: EntryKind
    subtype: str
    body: str | None
    key: str | None
    facts: dict[str, Any] | None = None
    agent: str | None = None


def entry_of(program: str, run_id: str, event: SessionEvent) -> dict[str, Any] | None:
    """Return the entry arguments of an event; None for an event that needs a lookup in the log."""
    parts = _parts_of(event)
    return None if parts is None else entry_arguments(program, run_id, event, parts)


def _parts_of(event: SessionEvent) -> EntryParts | None:
    match event:
        case Called():
            # The key omits the tool, because sources name it differently.
            return EntryParts(EntryKind.TOOL, "call", *describe_call(event.call_id, event.tool, event.arguments))
        case Returned():
            output, cut = cut_of(event.output)
            facts = {"call": event.call_id, "tool": event.tool, "outcome": event.outcome.value, **event.facts, **cut}
            return EntryParts(EntryKind.TOOL, "result", output or event.outcome.value, f"result:{event.call_id}", facts)
        case Said():
            return EntryParts(EntryKind.INTERACTION, "said", event.text, event.message_id and f"said:{event.message_id}")
        case Thought():
            return EntryParts(EntryKind.REASONING, "thought", event.text, f"thought:{event.message_id}")
        case Compacted():
            name = "compacted" if event.is_over else "compacting"
            return EntryParts(EntryKind.EVENT, name, event.summary or event.trigger, key_of(name, event, event.summary))
        case Noted():
            key = event.note_id or key_of(event.name, event, event.text)
            return EntryParts(EntryKind.EVENT, event.name, event.text, key, event.facts)
        case _:
            return None


def prompt_of(program: str, run_id: str, event: Prompted) -> dict[str, Any]:
    """Return the entry arguments of a prompt, to be written unless another source recorded it."""
    key = f"prompt:{event.prompt_id}" if event.prompt_id else key_of("prompt", event, event.text)
    parts = EntryParts(EntryKind.INTERACTION, "prompt", event.text, key, agent=event.by)
    return entry_arguments(program, run_id, event, parts)


def entry_arguments(program: str, run_id: str, event: SessionEvent, parts: EntryParts) -> dict[str, Any]:
    """Return the arguments of an entry with storable texts of limited length."""
    text, cut = cut_of(storable(parts.body)) if parts.body else (parts.body, None)
    payload = {name: value for name, value in (parts.facts or {}).items() if value is not None and name != "way"}
    if cut:
        payload |= cut
    if event.way is not None:
        payload["way"] = event.way
    return {
        "stream": run_id,
        "body": text,
        "kind": parts.kind.value,
        "subtype": parts.subtype,
        "agent": parts.agent or program,
        "agent_id": storable(event.agent_id or event.session_id),
        "payload": storable_value(payload) if payload else None,
        "key": storable(parts.key) if parts.key else parts.key,
        "at": event.at,
    }


def describe_call(call_id: str, tool: str, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return a call as one line (its command, or its tool with the best argument), its key and its other facts."""
    argument = _best_argument(arguments)
    line = argument if tool == "Bash" and argument else f"{tool} {argument}".strip()
    rest = {name: cut_of(value)[0] if isinstance(value, str) else value for name, value in arguments.items() if value != argument}
    return line, f"call:{call_id}", {"call": call_id, "tool": tool, "arguments": rest or None}


def _best_argument(arguments: dict[str, Any]) -> str:
    for name in _DESCRIPTIVE:
        if name in arguments and isinstance(value := arguments[name], str) and value.strip():
            return value
    return ""


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
