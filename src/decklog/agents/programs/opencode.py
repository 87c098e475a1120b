"""opencode: conversion of payloads from Decklog's plugin: Claude Code's hook events, plus messages and usage."""

from datetime import datetime

from decklog.agents.events import Answered, Said, SessionEvent, Spawned, Thought
from decklog.agents.programs import claude
from decklog.agents.programs.base import MICRODOLLARS, Common, Payload, answered, common_fields
from decklog.agents.texts import as_text, dict_of, text_or_none, whole

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
            event, text = Said if kind == "AssistantText" else Thought, as_text(payload.get("text"))
            return [event(**common, text=text, message_id=name)] if text.strip() else []
        case "ModelAnswer" if isinstance(name, str):
            return [*answers_of(payload, name, common)]
        case "SubagentStart":
            return [Spawned(**common, role=as_text(payload.get("agent_type")), task=text_or_none(payload.get("description")))]
        case _:
            return claude.events_of(payload, at)


def answers_of(payload: Payload, name: str, common: Common) -> list[Answered]:
    """Return the usage of an answer: its tokens, and its cost if it is known."""
    tokens = payload.get("tokens")
    if not isinstance(tokens, dict):
        return []
    cache = dict_of(tokens.get("cache"))
    given, read, created = whole(tokens.get("input")), whole(cache.get("read")), whole(cache.get("write"))
    # Reasoning is charged as output. The total shows whether the output count already includes it.
    output = max(whole(tokens.get("output")), whole(tokens.get("total")) - given - read - created)
    model, cost = str(payload.get("model") or "unknown"), _microdollars(payload.get("cost"))
    return list(answered(common, name, model, [given, read, created, output], cost))


def _microdollars(cost: object) -> int | None:
    """Return a cost in microdollars; None for a model without a price."""
    if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 < cost < _MOST_DOLLARS:
        return None
    return round(cost * MICRODOLLARS)
