"""OpenAI Agents SDK: conversion of its traces. A trace is a session, and an agent run by a tool is a sub-agent."""

from collections.abc import Callable, Iterator
from datetime import datetime

from decklog.agents.events import (
    CallOutcome,
    MessageSent,
    OtherEvent,
    PromptSubmitted,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    SubagentEnded,
    SubagentStarted,
    ToolCalled,
    ToolReturned,
)
from decklog.agents.programs.base import (
    Common,
    Payload,
    TranscriptInput,
    TranscriptReader,
    arguments_of,
    number_id,
    outcome_of,
    usage_events,
)
from decklog.agents.texts import as_text, as_time, dict_of, text_or_none, whole


def events_of(payload: Payload, at: datetime | None) -> list[SessionEvent]:
    """Return the events of a payload; an unknown kind becomes a note."""
    name = str(payload.get("hook_event_name") or "")
    common: Common = {
        "session_id": str(payload["session_id"]),
        "at": as_time(payload.get("at")) or at,
        "agent_id": text_or_none(payload.get("agent_id")),
    }
    return list(_EVENTS.get(name, _other)(payload, common))


def transcripts_of(_payload: Payload) -> list[tuple[str, str | None]]:
    """Return no transcripts: the SDK leaves none."""
    return []


def reader(_reading: TranscriptInput) -> TranscriptReader:
    """Raise AssertionError: there are no transcripts."""
    raise AssertionError("the OpenAI Agents SDK leaves no transcripts")


def _begun(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    yield SessionStarted(
        **common,
        source=str(payload.get("source") or "startup"),
        cwd=text_or_none(payload.get("cwd")),
        goal=text_or_none(payload.get("goal")),
        process=text_or_none(payload.get("process")),
        version=text_or_none(payload.get("version")),
    )
    if facts := {name: payload[name] for name in ("workflow", "group", "metadata") if payload.get(name)}:
        yield OtherEvent(**common, name="trace", text=as_text(payload.get("workflow")), facts=facts, note_id="trace")


def _ended(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    yield SessionEnded(
        **common, outcome=outcome_of(payload), text=text_or_none(payload.get("text")), reason=payload.get("outcome")
    )


def _agent_begun(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    name = as_text(payload.get("name")) or "agent"
    if payload.get("is_below"):
        yield SubagentStarted(**common, role=name)
    span = payload.get("span")
    facts = {"step": span, "tools": payload.get("tools"), "handoffs": payload.get("handoffs")}
    yield OtherEvent(**common, name="step", text=name, facts=facts, note_id=f"step:{span}")


def _agent_ended(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    name, span, outcome = as_text(payload.get("name")) or "agent", payload.get("span"), outcome_of(payload)
    facts = {"step": span, "name": name, "outcome": outcome.value}
    text = as_text(payload.get("error")) or f"{name}: {outcome.value}"
    yield OtherEvent(**common, name="step.ended", text=text, facts=facts, note_id=f"step-ended:{span}")


def _joined(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    yield SubagentEnded(**common, outcome=outcome_of(payload), text=text_or_none(payload.get("text")))


def _called(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    yield ToolCalled(
        **common,
        call_id=str(payload["span"]),
        tool=as_text(payload.get("name")) or "tool",
        arguments=arguments_of(payload.get("arguments")),
    )


def _returned(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    yield ToolReturned(
        **common,
        call_id=str(payload["span"]),
        tool=text_or_none(payload.get("name")),
        outcome=outcome_of(payload),
        output=as_text(payload.get("error")) or as_text(payload.get("output")),
        facts={name: payload[name] for name in ("arguments", "mcp") if payload.get(name)},
    )


def _answered(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    span, answer = str(payload["span"]), str(payload.get("answer") or payload["span"])
    for number, text in payload.get("prompts") or ():
        yield PromptSubmitted(**common, prompt_id=f"{common['agent_id'] or common['session_id']}:{number}", text=as_text(text))
    for number, text in enumerate(payload.get("said") or (), 1):
        yield MessageSent(**common, text=as_text(text), message_id=number_id(answer, number))
    if payload.get("error") or outcome_of(payload) is not CallOutcome.OK:
        text = as_text(payload.get("error")) or outcome_of(payload).value
        yield OtherEvent(**common, name="error", text=text, facts={"model": payload.get("model")}, note_id=f"error:{span}")
    # The SDK includes cached tokens in its input count.
    usage, model = dict_of(payload.get("usage")), as_text(payload.get("model")) or "unknown"
    details = dict_of(usage.get("input_tokens_details"))
    given, read = whole(usage.get("input_tokens")), whole(details.get("cached_tokens"))
    created = whole(details.get("cache_write_tokens"))
    yield from usage_events(
        common, answer, model, [max(0, given - read - created), read, created, whole(usage.get("output_tokens"))]
    )


def _guardrail(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    name, is_tripped = as_text(payload.get("name")) or "guardrail", bool(payload.get("triggered"))
    outcome = outcome_of(payload)
    result = "tripped" if is_tripped else "passed" if outcome is CallOutcome.OK else outcome.value
    facts = {"guardrail": name, "triggered": is_tripped, "outcome": outcome.value, "error": payload.get("error")}
    yield OtherEvent(
        **common, name="guardrail", text=f"{name}: {result}", facts=facts, note_id=f"guardrail:{payload.get('span')}"
    )


def _handoff(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    facts = {name: payload.get(name) for name in ("from", "to", "error")}
    text = f"{as_text(payload.get('from')) or 'agent'} → {as_text(payload.get('to')) or 'nobody'}"
    yield OtherEvent(**common, name="handoff", text=text, facts=facts, note_id=f"handoff:{payload.get('span')}")


def _other(payload: Payload, common: Common) -> Iterator[SessionEvent]:
    known = ("session_id", "agent_id", "hook_event_name", "at", "name")
    facts = {name: value for name, value in payload.items() if name not in known}
    name = str(payload.get("hook_event_name") or "unknown")
    note = f"{name}:{payload['span']}" if payload.get("span") else None
    yield OtherEvent(**common, name=name, text=text_or_none(payload.get("name")), facts=facts, note_id=note)


_EVENTS: dict[str, Callable[[Payload, Common], Iterator[SessionEvent]]] = {
    "trace": _begun,
    "trace.ended": _ended,
    "agent": _agent_begun,
    "agent.ended": _agent_ended,
    "agent.joined": _joined,
    "function": _called,
    "function.ended": _returned,
    "response.ended": _answered,
    "generation.ended": _answered,
    "guardrail.ended": _guardrail,
    "handoff.ended": _handoff,
}
