"""What Gemini CLI tells a hook, as events. A tool's use has no id here, and in the chat file it has one: so that one tells it."""

import os
from typing import TYPE_CHECKING

from decklog.agents.claude import payloads as claude
from decklog.agents.events import Called, CallOutcome, Compacted, Joined, Prompted, Rested, Returned, SessionEvent
from decklog.agents.texts import as_name, as_text

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

_TOLD_BY_THE_CHAT = frozenset(["BeforeAgent", "BeforeTool", "AfterTool"])
_AFTER_WHICH_IT_IS_READ = frozenset(["SessionStart", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"])


def events_of(told: "dict[str, Any]", at: "datetime | None") -> list[SessionEvent]:
    """Return what a payload tells; what the chat file tells is left to that, where there is one."""
    event, session = str(told.get("hook_event_name") or ""), told.get("session_id")
    if not isinstance(session, str) or not session or (event in _TOLD_BY_THE_CHAT and transcripts_named(told)):
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
            # By itself it says so before every request, whether there is anything to cut down or not.
            return [Compacted(**place, trigger="manual", is_over=False)] if told.get("trigger") == "manual" else []
        case "BeforeTool" | "AfterTool":
            return [_used(event, told, place)]
        case _:
            return claude.events_of(told, at)


def _joined(told: "dict[str, Any]", place: "dict[str, Any]") -> list[SessionEvent]:
    """Tell that the sub-agents are done: no turn ends before they are, and nobody else says so."""
    return [Joined(**place, agent_id=agent) for _, agent in transcripts_named(told) if agent is not None]


def _used(event: str, told: "dict[str, Any]", place: "dict[str, Any]") -> SessionEvent:
    """Tell of a tool's use by its moment, for want of an id."""
    name, moment = str(told.get("tool_name") or "tool"), told.get("timestamp") or place["at"]
    if event == "BeforeTool":
        arguments = told.get("tool_input")
        given = arguments if isinstance(arguments, dict) else {"input": arguments}
        return Called(**place, call_id=f"{name}:{moment}", tool=name, arguments=given)
    response = told.get("tool_response")
    error = response.get("error") if isinstance(response, dict) else None
    outcome = CallOutcome.FAILED if error else CallOutcome.OK
    return Returned(**place, call_id=f"{name}:{moment}", tool=name, outcome=outcome, output=as_text(error or response))


def transcripts_named(told: "dict[str, Any]") -> "list[tuple[str, str | None]]":
    """Name the chat file of a payload's session, if it is there, and those of its sub-agents."""
    path, session = told.get("transcript_path"), as_name(str(told.get("session_id")))
    if not isinstance(path, str) or not os.path.isfile(path):
        return []
    below = os.path.join(os.path.dirname(path), session)
    names = sorted(os.listdir(below)) if os.path.isdir(below) else []
    agents = (name.removesuffix(".jsonl") for name in names if name.endswith(".jsonl"))
    return [(path, None), *((os.path.join(below, f"{agent}.jsonl"), agent) for agent in agents)]


def transcripts_of(told: "dict[str, Any]") -> "list[tuple[str, str | None]]":
    """Name the chat file that has grown by then."""
    return transcripts_named(told) if told.get("hook_event_name") in _AFTER_WHICH_IT_IS_READ else []
