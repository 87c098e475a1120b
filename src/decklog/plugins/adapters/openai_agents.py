"""The OpenAI Agents SDK on a log: a trace processor that records traces and never raises."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

from agents.tracing import Span, Trace, TracingProcessor
from agents.version import __version__ as sdk_version

from decklog.agents.closing import own_identity
from decklog.agents.events import CallOutcome
from decklog.aio.log import AsyncDecklog
from decklog.log import Decklog
from decklog.plugins.adapters.loops.calls import surrounding_run
from decklog.plugins.adapters.recording import EventRecorder

PROGRAM = "openai-agents"
# The SDK's default name of a workflow.
_UNNAMED = "Agent workflow"
# Span types recorded at the start and the end; others only at the end.
_RECORDED_AT_START = frozenset(["agent", "function", "task"])
# Span types that only group others.
_FRAME_TYPES = frozenset(["task", "turn"])


def _current_exception() -> BaseException | None:
    """Return the exception being handled. One from before a span does not count as the span's error."""
    return sys.exc_info()[1]


@dataclass(slots=True)
class _SpanPlace:
    """The loop of a span: the trace's, or that of a sub-agent run by a tool."""

    span: Span[Any]
    agent_id: str | None
    is_in_call: bool
    # Whether a sub-agent's loop ends with this span.
    is_root: bool
    problem: BaseException | None = field(default_factory=_current_exception)


@dataclass(slots=True)
class _AgentLoop:
    """The state of one agent's loop: the recorded prompts and the last text."""

    is_recorded: bool = False
    # The prompts in the conversation, and the number of recorded prompts.
    prompts: list[str] = field(default_factory=list)
    count: int = 0
    said: str | None = None
    outcome: CallOutcome = CallOutcome.OK


@dataclass
class _OpenTrace:
    """The state of an open trace."""

    facts: dict[str, Any]
    spans: dict[str, _SpanPlace] = field(default_factory=dict)
    loops: dict[str | None, _AgentLoop] = field(default_factory=lambda: {None: _AgentLoop()})
    problem: BaseException | None = field(default_factory=_current_exception)


class DecklogTracing(EventRecorder, TracingProcessor):
    """Records every trace of this process: `set_trace_processors([DecklogTracing(log)])`.

    A trace is a run, or a part of the run around it (`recorded`). Recording problems are logged as warnings of
    `decklog.plugins.adapters` and never raised.
    """

    def __init__(self, log: Decklog | AsyncDecklog) -> None:
        super().__init__(log, PROGRAM)
        self._traces: dict[str, _OpenTrace] = {}
        self._lock = Lock()

    # Called by the SDK in any thread or task

    def on_trace_start(self, trace: Trace) -> None:
        """Record the start of a trace."""
        open_trace = _OpenTrace(surrounding_run(self.log))
        with self._lock:
            self._traces[trace.trace_id] = open_trace
        exported = trace.export() or {}
        values = {
            "workflow": trace.name,
            "goal": None if trace.name == _UNNAMED else trace.name,
            "group": exported.get("group_id"),
            "metadata": exported.get("metadata"),
            "cwd": _folder(),
            "process": own_identity(),
            "version": sdk_version,
        }
        place = {"session_id": trace.trace_id, "hook_event_name": "trace"}
        self.record(trace.trace_id, open_trace.facts, {**place, **values})

    def on_trace_end(self, trace: Trace) -> None:
        """Record the end of a trace."""
        with self._lock:
            open_trace = self._traces.pop(trace.trace_id, None)
        if open_trace is not None:
            make = partial(_build_trace_end, trace.trace_id, open_trace, _outcome_of(_current_exception(), open_trace.problem))
            self._record_after(trace.trace_id, open_trace, make)

    def on_span_start(self, span: Span[Any]) -> None:
        """Record the start of a span once the SDK has filled in its data."""
        open_trace = self._traces.get(span.trace_id)
        if open_trace is None:
            return
        within = _place_span(open_trace, span)
        open_trace.spans[span.span_id] = within
        if span.span_data.type in _RECORDED_AT_START:
            self._record_after(span.trace_id, open_trace, partial(_build_start_events, open_trace, within))

    def on_span_end(self, span: Span[Any]) -> None:
        """Record the end of a span."""
        open_trace = self._traces.get(span.trace_id)
        within = None if open_trace is None else open_trace.spans.pop(span.span_id, None)
        if open_trace is None or within is None:
            return
        outcome = CallOutcome.FAILED if span.error else _outcome_of(_current_exception(), within.problem)
        self._record_after(span.trace_id, open_trace, partial(_build_end_events, open_trace, within, outcome))

    def force_flush(self) -> None:
        """Wait until all events are in the log, for some seconds at most."""
        self.flush()

    def shutdown(self) -> None:
        """Import waiting events, if possible, and stop."""
        self.close()

    def _record_after(self, trace_id: str, open_trace: _OpenTrace, make: Callable[[], list[dict[str, Any]]]) -> None:
        """Record later, when the SDK has completed its objects."""
        self.record_later(lambda: [(trace_id, open_trace.facts, values) for values in make()])


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # the folder was removed


def _outcome_of(problem: BaseException | None, before: BaseException | None) -> CallOutcome:
    """Return the outcome of a block: an error, a cancellation or success."""
    if problem is None or problem is before:
        return CallOutcome.OK
    return CallOutcome.FAILED if isinstance(problem, Exception) else CallOutcome.INTERRUPTED


def _place_span(open_trace: _OpenTrace, span: Span[Any]) -> _SpanPlace:
    """Find the loop of a span. A loop inside a tool call belongs to a sub-agent."""
    above = open_trace.spans.get(span.parent_id or "")
    agent_id, is_in_call = (None, False) if above is None else (above.agent_id, above.is_in_call)
    kind = span.span_data.type
    is_root = is_in_call and kind in ("task", "agent")
    if is_root:
        agent_id, is_in_call = span.span_id, False
        open_trace.loops[agent_id] = _AgentLoop()
    is_in_call = is_in_call or kind == "function"
    return _SpanPlace(span, agent_id, is_in_call, is_root)


def _payload(within: _SpanPlace, name: str, at: str | None) -> dict[str, Any]:
    span = within.span
    place = {"session_id": span.trace_id, "agent_id": within.agent_id, "span": span.span_id}
    return {**place, "hook_event_name": name, "at": at, "name": getattr(span.span_data, "name", None)}


def _build_trace_end(trace_id: str, open_trace: _OpenTrace, outcome: CallOutcome) -> list[dict[str, Any]]:
    loop, values = open_trace.loops[None], []
    if outcome is not CallOutcome.OK:
        # The SDK does not wait for tools of a cancelled run. End its open spans, the newest first.
        for within in reversed(open_trace.spans.values()):
            values += _build_end_events(open_trace, within, CallOutcome.INTERRUPTED)
    # A streamed run ends before its trace; then the outcome of its last agent counts.
    end = outcome if outcome is not CallOutcome.OK else loop.outcome
    return [*values, {"session_id": trace_id, "hook_event_name": "trace.ended", "outcome": end.value, "text": loop.said}]


def _build_start_events(open_trace: _OpenTrace, within: _SpanPlace) -> list[dict[str, Any]]:
    span, loop = within.span, open_trace.loops.setdefault(within.agent_id, _AgentLoop())
    data = span.span_data
    if data.type == "task":
        # A new conversation; the trace may have had others before.
        loop.prompts = []
        return []
    values = _payload(within, data.type, span.started_at)
    if data.type == "function":
        return [{**values, "arguments": _arguments(data.input)}]
    is_first, loop.is_recorded = not loop.is_recorded, True
    is_below = within.agent_id is not None and is_first
    return [{**values, "is_below": is_below, "tools": data.tools, "handoffs": data.handoffs}]


def _build_end_events(open_trace: _OpenTrace, within: _SpanPlace, outcome: CallOutcome) -> list[dict[str, Any]]:
    span, loop = within.span, open_trace.loops.setdefault(within.agent_id, _AgentLoop())
    data = span.span_data
    end = {"outcome": outcome.value, "error": _error(span)}
    values = {**_payload(within, f"{data.type}.ended", span.ended_at), **end}
    found = [] if data.type in _FRAME_TYPES else [{**values, **_DETAILS.get(data.type, _export_facts)(data, loop)}]
    if data.type == "agent":
        loop.outcome = outcome
    if within.is_root:
        joined = {**values, "hook_event_name": "agent.joined", "text": loop.said}
        found.append({**joined, "outcome": (loop.outcome if outcome is CallOutcome.OK else outcome).value})
        open_trace.loops.pop(within.agent_id, None)
    return found


def _error(span: Span[Any]) -> str | None:
    error = span.error
    if not error:
        return None
    data = error.get("data")
    return f"{error.get('message')}: {json.dumps(data, default=str)}" if data else str(error.get("message"))


def _arguments(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _response(data: Any, loop: _AgentLoop) -> dict[str, Any]:
    """Return the facts of an answer by the Responses API."""
    response = data.response
    items = [] if response is None else [item.model_dump() for item in response.output]
    values = _output_facts(loop, [text for item in items for text in _texts(item)])
    answer = data.export().get("response_id")
    model = None if response is None else response.model
    return {**values, "answer": answer, "model": model, "usage": data.usage, "prompts": _prompts(loop, data.input)}


def _generation(data: Any, loop: _AgentLoop) -> dict[str, Any]:
    """Return the facts of an answer by any other API; not all of them give it an id."""
    items = [item for item in data.output or () if isinstance(item, dict)]
    parts = [part for item in items for part in (item.get("output") or [item])]
    values = _output_facts(loop, [text for part in parts for text in _texts(part)])
    return {**values, "model": data.model, "usage": data.usage, "prompts": _prompts(loop, data.input)}


def _output_facts(loop: _AgentLoop, texts: list[str]) -> dict[str, Any]:
    if texts:
        loop.said = texts[-1]
    return {"said": texts}


def _texts(item: Any) -> list[str]:
    """Return the texts of an answer's part, a message of either API."""
    content = item.get("content") if isinstance(item, dict) and item.get("role") == "assistant" else None
    if isinstance(content, str):
        return [content] if content.strip() else []
    found = [part.get("text") for part in content or () if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str) and text.strip()]


def _prompts(loop: _AgentLoop, given: Any) -> list[tuple[int, str]]:
    """Return the new prompts since the last answer; only the last prompt of a conversation that began earlier."""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else [item for item in given or () if item]
    texts = [_prompt(item) for item in items if isinstance(item, dict) and item.get("role") == "user"]
    known, loop.prompts = loop.prompts, texts
    new = texts[len(known) :] if known and texts[: len(known)] == known else texts[-1:]
    first, loop.count = loop.count + 1, loop.count + len(new)
    return [(number, text) for number, text in enumerate(new, first) if text.strip()]


def _prompt(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = [part for part in content or () if isinstance(part, dict)]
    return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in parts)


def _export_facts(data: Any, _loop: _AgentLoop) -> dict[str, Any]:
    """Return the facts that the SDK would export, without input and output."""
    facts = {name: value for name, value in data.export().items() if name not in ("type", "input", "output")}
    return {"facts": facts}


_DETAILS: dict[str, Any] = {
    "agent": lambda _data, _loop: {},
    "function": lambda data, _loop: {"output": data.output, "arguments": _arguments(data.input), "mcp": data.mcp_data},
    "response": _response,
    "generation": _generation,
    "guardrail": lambda data, _loop: {"triggered": data.triggered},
    "handoff": lambda data, _loop: {"from": data.from_agent, "to": data.to_agent},
}
