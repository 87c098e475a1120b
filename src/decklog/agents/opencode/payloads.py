"""Conversion of payloads from Decklog's opencode plugin: Claude Code's hook events, plus messages and usage."""

from datetime import datetime
from typing import Any

from decklog.agents.claude import payloads as claude
from decklog.agents.events import Answered, Said, SessionEvent, Spawned, Thought
from decklog.agents.reading import answered
from decklog.agents.texts import as_text, text_or_none, whole

_MOST_DOLLARS = 10**6


def events_of(told: dict[str, Any], at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload."""
    session, name = told.get("session_id"), told.get("message_id")
    if not isinstance(session, str) or not session:
        return []
    place: dict[str, Any] = {"session_id": session, "at": at, "agent_id": text_or_none(told.get("agent_id"))}
    match told.get("hook_event_name"):
        case "AssistantText" if isinstance(name, str):
            text = as_text(told.get("text"))
            return [Said(**place, text=text, message_id=name)] if text.strip() else []
        case "AssistantThought" if isinstance(name, str):
            text = as_text(told.get("text"))
            return [Thought(**place, text=text, message_id=name)] if text.strip() else []
        case "ModelAnswer" if isinstance(name, str):
            return [*answers_of(told, name, place)]
        case "SubagentStart":
            return [Spawned(**place, role=as_text(told.get("agent_type")), task=text_or_none(told.get("description")))]
        case _:
            return claude.events_of(told, at)


def answers_of(told: dict[str, Any], name: str, place: dict[str, Any]) -> list[Answered]:
    """Return the usage of an answer: its tokens, and its cost if it is known."""
    tokens = told.get("tokens")
    if not isinstance(tokens, dict):
        return []
    kept = tokens.get("cache")
    cache = kept if isinstance(kept, dict) else {}
    given, read, created = whole(tokens.get("input")), whole(cache.get("read")), whole(cache.get("write"))
    # Reasoning is charged as output. The total shows whether the output count already includes it.
    output = max(whole(tokens.get("output")), whole(tokens.get("total")) - given - read - created)
    model, cost = str(told.get("model") or "unknown"), _microdollars(told.get("cost"))
    return list(answered(place, name, model, [given, read, created, output], cost))


def _microdollars(cost: object) -> int | None:
    """Return a cost in microdollars; None for a model without a price."""
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 < cost < _MOST_DOLLARS:
        return None
    return round(cost * 1_000_000)
