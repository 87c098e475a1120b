"""Conversion of Claude Code's hook payloads into events."""

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from decklog.agents.events import (
    Begun,
    Called,
    CallOutcome,
    Compacted,
    Ended,
    Joined,
    Noted,
    Prompted,
    Rested,
    Returned,
    Said,
    SessionEvent,
    Spawned,
)
from decklog.agents.reading import GONE, answered
from decklog.agents.texts import as_text, text_or_none, whole

Payload = dict[str, Any]

# Prefix of a prompt that the program wrote to report the result of a background task.
_NOTICE = "<task-notification>"
# Fields that every payload has, or that carry no information about the event.
_SESSION = ("session_id", "transcript_path", "cwd", "hook_event_name", "prompt_id")
_BASE = frozenset([*_SESSION, "permission_mode", "effort", "agent_id", "agent_type"])

# Fields of a result of the Claude Agent SDK.
RESULT = "Result"
_OF_RESULT = (
    "subtype",
    "is_error",
    "num_turns",
    "duration_ms",
    "total_cost_usd",
    "api_error_status",
    "terminal_reason",
    "errors",
)
_MICRODOLLARS = 1_000_000
# Names of the four token kinds in session totals, in our order.
TOTALS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")


def events_of(payload: Payload, at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload; none without a session, or if other payloads report the same."""
    session = payload.get("session_id")
    if not isinstance(session, str) or not session:
        return []
    name = str(payload.get("hook_event_name") or "")
    agent = payload.get("agent_id")
    place: dict[str, Any] = {"session_id": session, "at": at, "agent_id": agent if isinstance(agent, str) and agent else None}
    if name == RESULT:
        return list(_results(payload, place))
    read = _EVENTS.get(name)
    return [event for event in (read(payload, place) if read else _noted(name, payload, place),) if event is not None]


def transcripts_of(payload: Payload) -> list[tuple[str, str | None]]:
    """Return the transcripts that have grown, each with the id of its sub-agent."""
    found: list[tuple[str, str | None]] = []
    if payload.get("hook_event_name") in _AFTER_WHICH_IT_IS_READ and isinstance(path := payload.get("transcript_path"), str):
        found.append((path, None))
    own = payload.get("agent_transcript_path")
    if payload.get("hook_event_name") == "SubagentStop" and isinstance(own, str) and payload.get("agent_type"):
        found.append((own, str(payload.get("agent_id"))))
    return found


_AFTER_WHICH_IT_IS_READ = ("SessionStart", "Stop", "StopFailure", "SubagentStop", "PreCompact", "SessionEnd", GONE)


def transcripts_below(path: str) -> list[tuple[str, str]]:
    """Return the transcripts of a session's sub-agents, each with the sub-agent's id."""
    folder = os.path.join(path.removesuffix(".jsonl"), "subagents")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    own = [name for name in names if name.startswith("agent-") and name.endswith(".jsonl")]
    return [(os.path.join(folder, name), name.removeprefix("agent-").removesuffix(".jsonl")) for name in own]


def _begun(payload: Payload, place: dict[str, Any]) -> SessionEvent:
    return Begun(
        **{**place, "agent_id": None},
        source=str(payload.get("source") or "startup"),
        cwd=text_or_none(payload.get("cwd")),
        model=text_or_none(payload.get("model")),
        transcript=text_or_none(payload.get("transcript_path")),
        process=text_or_none(payload.get("process")),
    )


def _prompted(payload: Payload, place: dict[str, Any]) -> SessionEvent:
    text = as_text(payload.get("prompt"))
    by = "program" if text.startswith(_NOTICE) or payload.get("source") not in (None, "user", "sdk") else "person"
    return Prompted(**place, prompt_id=text_or_none(payload.get("prompt_id")), text=text, by=by)


def _called(payload: Payload, place: dict[str, Any]) -> SessionEvent | None:
    call, arguments = payload.get("tool_use_id"), payload.get("tool_input")
    if not isinstance(call, str):
        return None
    return Called(
        **place,
        call_id=call,
        tool=str(payload.get("tool_name") or "tool"),
        arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
    )


def _returned(payload: Payload, place: dict[str, Any]) -> SessionEvent | None:
    call = payload.get("tool_use_id")
    if not isinstance(call, str):
        return None
    response, error = payload.get("tool_response"), payload.get("error")
    outcome = CallOutcome.OK if error is None else CallOutcome.INTERRUPTED if payload.get("is_interrupt") else CallOutcome.FAILED
    if isinstance(response, dict) and response.get("interrupted"):
        outcome = CallOutcome.INTERRUPTED
    return Returned(
        **place,
        call_id=call,
        tool=text_or_none(payload.get("tool_name")),
        outcome=outcome,
        output=as_text(error) if error is not None else output_of(response),
        facts={"duration_ms": payload.get("duration_ms")},
    )


def output_of(response: Any) -> str:
    """Return a tool response as text: a command's output, a file's content, or the response itself."""
    if not isinstance(response, dict):
        return as_text(response)
    if "stdout" in response or "stderr" in response:
        return "\n".join(part for part in (as_text(response.get("stdout")), as_text(response.get("stderr"))) if part)
    file = response.get("file")
    if isinstance(file, dict) and isinstance(file.get("content"), str):
        return str(file["content"])
    # Omit the file's full text; the change itself is enough.
    return as_text({name: value for name, value in response.items() if name not in ("originalFile", "content")})


def _denied(payload: Payload, place: dict[str, Any]) -> SessionEvent | None:
    call = payload.get("tool_use_id")
    if not isinstance(call, str):
        return None
    return Returned(
        **place,
        call_id=call,
        tool=text_or_none(payload.get("tool_name")),
        outcome=CallOutcome.DENIED,
        output=as_text(payload.get("reason")),
    )


def _spawned(payload: Payload, place: dict[str, Any]) -> SessionEvent | None:
    return Spawned(**place, role=str(payload.get("agent_type") or "")) if place["agent_id"] else None


def _joined(payload: Payload, place: dict[str, Any]) -> SessionEvent | None:
    # Claude Code reports a compaction as the end of a sub-agent without a type.
    if not place["agent_id"] or not payload.get("agent_type"):
        return None
    return Joined(**place, text=as_text(payload.get("last_assistant_message")) or None)


def _compacting(payload: Payload, place: dict[str, Any]) -> SessionEvent:
    return Compacted(**place, trigger=str(payload.get("trigger") or "auto"), is_over=False)


def _compacted(payload: Payload, place: dict[str, Any]) -> SessionEvent:
    return Compacted(
        **place, trigger=str(payload.get("trigger") or "auto"), summary=as_text(payload.get("compact_summary")) or None
    )


def _rested(payload: Payload, place: dict[str, Any]) -> SessionEvent:
    # The transcript has the last message, with its id.
    return Rested(**place, error=as_text(payload["error"]) if payload.get("error") else None)


def _ended(payload: Payload, place: dict[str, Any]) -> SessionEvent:
    told, outcome = text_or_none(payload.get("text")), payload.get("outcome")
    return Ended(
        **{**place, "agent_id": None},
        reason=text_or_none(payload.get("reason")),
        text=told,
        outcome=CallOutcome(outcome) if outcome in tuple(CallOutcome) else CallOutcome.OK,
    )


def _results(payload: dict[str, Any], place: dict[str, Any]) -> Iterator[SessionEvent]:
    """Yield the result of a turn. Messages and usage are only included if the session has no transcript."""
    name = str(payload.get("uuid") or "")
    for message_id, text in payload.get("said") or ():
        yield Said(**place, text=as_text(text), message_id=text_or_none(message_id))
    for model, used in (payload.get("spent") or {}).items():
        cost = used.get("costUSD")
        microdollars = round(cost * _MICRODOLLARS) if isinstance(cost, (int, float)) and cost > 0 else None
        tokens = [whole(used.get(kind)) for kind in TOTALS]
        yield from answered(place, f"{place['session_id']}:result:{name}:{model}", model, tokens, microdollars)
    facts = {fact: payload.get(fact) for fact in _OF_RESULT}
    text = as_text(payload.get("result")) or as_text(payload.get("subtype"))
    yield Noted(**place, name="turn.result", text=text, facts=facts, note_id=f"turn-result:{name}" if name else None)


def _noted(name: str, payload: Payload, place: dict[str, Any]) -> SessionEvent:
    facts = {key: value for key, value in payload.items() if key not in _BASE}
    return Noted(**place, name=name or "unknown", text=as_text(payload.get("message")) or None, facts=facts)


def _no_event(_payload: Payload, _place: dict[str, Any]) -> None:
    """Return no event: calls of a batch are reported one by one, and ProgramGone only triggers reading."""


_EVENTS: dict[str, Callable[[Payload, dict[str, Any]], SessionEvent | None]] = {
    "SessionStart": _begun,
    "UserPromptSubmit": _prompted,
    "PreToolUse": _called,
    "PostToolUse": _returned,
    "PostToolUseFailure": _returned,
    "PostToolBatch": _no_event,
    GONE: _no_event,
    "PermissionDenied": _denied,
    "SubagentStart": _spawned,
    "SubagentStop": _joined,
    "PreCompact": _compacting,
    "PostCompact": _compacted,
    "Stop": _rested,
    "StopFailure": _rested,
    "SessionEnd": _ended,
}
