"""What Gemini CLI tells a hook, as events. A tool's use has no id here, and in the chat file it has one: so that one tells it."""

import os

from decklog.agents.claude import payloads as claude
from decklog.agents.events import Called, Compacted, Event, Outcome, Prompted, Rested, Returned
from decklog.agents.texts import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

_TOLD_BY_THE_CHAT = frozenset(["BeforeAgent", "BeforeTool", "AfterTool"])
_AFTER_WHICH_IT_IS_READ = frozenset(["SessionStart", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"])


def events_of(told: "dict[str, Any]", at: "datetime | None") -> list[Event]:
    """Give what a payload tells; what the chat file tells is left to that, where there is one."""
    event, session = str(told.get("hook_event_name") or ""), told.get("session_id")
    if not isinstance(session, str) or not session or (event in _TOLD_BY_THE_CHAT and transcripts_named(told)):
        return []
    place: dict[str, Any] = {"session_id": session, "at": at}
    match event:
        case "BeforeAgent":
            return [Prompted(**place, prompt_id=None, text=as_text(told.get("prompt")))]
        case "AfterAgent":
            return [Rested(**place)]
        case "PreCompress":
            return [Compacted(**place, trigger=str(told.get("trigger") or "auto"), is_over=False)]
        case "BeforeTool" | "AfterTool":
            return [_used(event, told, place)]
        case _:
            return claude.events_of(told, at)


def _used(event: str, told: "dict[str, Any]", place: "dict[str, Any]") -> Event:
    """Tell of a tool's use by its moment, for want of an id."""
    name, moment = str(told.get("tool_name") or "tool"), told.get("timestamp") or place["at"]
    if event == "BeforeTool":
        arguments = told.get("tool_input")
        given = arguments if isinstance(arguments, dict) else {"input": arguments}
        return Called(**place, call_id=f"{name}:{moment}", tool=name, arguments=given)
    response = told.get("tool_response")
    error = response.get("error") if isinstance(response, dict) else None
    outcome = Outcome.FAILED if error else Outcome.OK
    return Returned(**place, call_id=f"{name}:{moment}", tool=name, outcome=outcome, output=as_text(error or response))


def transcripts_named(told: "dict[str, Any]") -> "list[tuple[str, str | None]]":
    """Name the chat file of a payload's session, if it is there."""
    path = told.get("transcript_path")
    return [(path, None)] if isinstance(path, str) and os.path.isfile(path) else []


def transcripts_of(told: "dict[str, Any]") -> "list[tuple[str, str | None]]":
    """Name the chat file that has grown by then."""
    return transcripts_named(told) if told.get("hook_event_name") in _AFTER_WHICH_IT_IS_READ else []
