"""Conversion of Gemini CLI's hook payloads into events. Tool calls are read from the chat file, because payloads lack ids."""

import os
from datetime import datetime
from typing import Any

from decklog.agents.claude import payloads as claude
from decklog.agents.events import Called, CallOutcome, Compacted, Joined, Prompted, Rested, Returned, SessionEvent
from decklog.agents.texts import as_name, as_text

_IN_THE_CHAT = frozenset(["BeforeAgent", "BeforeTool", "AfterTool"])
_AFTER_WHICH_IT_IS_READ = frozenset(["SessionStart", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"])


def events_of(told: dict[str, Any], at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload. If the chat file exists, its events are left out here."""
    event, session = str(told.get("hook_event_name") or ""), told.get("session_id")
    if not isinstance(session, str) or not session or (event in _IN_THE_CHAT and transcripts_named(told)):
        return []
    place: dict[str, Any] = {"session_id": session, "at": at}
    match event:
        case "BeforeAgent":
            return [Prompted(**place, prompt_id=None, text=as_text(told.get("prompt")))]
        case "AfterAgent":
            return [*_joined(told, place), Rested(**place)]
        case "SessionEnd":
            return [*_joined(told, place), *claude.events_of(told, at)]
        case "PreCompress":
            # Automatic triggers occur before every request, even if nothing is compressed.
            return [Compacted(**place, trigger="manual", is_over=False)] if told.get("trigger") == "manual" else []
        case "BeforeTool" | "AfterTool":
            return [_used(event, told, place)]
        case _:
            return claude.events_of(told, at)


def _joined(told: dict[str, Any], place: dict[str, Any]) -> list[SessionEvent]:
    """Return the ends of the sub-agents: all have ended when a turn ends, and nothing else reports it."""
    return [Joined(**place, agent_id=agent) for _, agent in transcripts_named(told) if agent is not None]


def _used(event: str, told: dict[str, Any], place: dict[str, Any]) -> SessionEvent:
    """Return a tool event; its call id is made of the tool name and the time."""
    name, moment = str(told.get("tool_name") or "tool"), told.get("timestamp") or place["at"]
    if event == "BeforeTool":
        arguments = told.get("tool_input")
        given = arguments if isinstance(arguments, dict) else {"input": arguments}
        return Called(**place, call_id=f"{name}:{moment}", tool=name, arguments=given)
    response = told.get("tool_response")
    error = response.get("error") if isinstance(response, dict) else None
    outcome = CallOutcome.FAILED if error else CallOutcome.OK
    return Returned(**place, call_id=f"{name}:{moment}", tool=name, outcome=outcome, output=as_text(error or response))


def transcripts_named(told: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return the session's chat file, if it exists, and those of its sub-agents."""
    path, session = told.get("transcript_path"), as_name(str(told.get("session_id")))
    if not isinstance(path, str) or not os.path.isfile(path):
        return []
    below = os.path.join(os.path.dirname(path), session)
    names = sorted(os.listdir(below)) if os.path.isdir(below) else []
    agents = (name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl"))
    return [(path, None), *((os.path.join(below, f"{agent}.jsonl"), agent) for agent in agents)]


def transcripts_of(told: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return the chat files that have grown by this event."""
    return transcripts_named(told) if told.get("hook_event_name") in _AFTER_WHICH_IT_IS_READ else []
