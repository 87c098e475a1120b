"""The OpenAI Agents SDK on a log: a processor of its traces, which records them and never raises."""

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
# What the SDK calls a workflow that nobody has named.
_UNNAMED = "Agent workflow"
# Recorded at the start, too; others only at the end.
_BEGUN = frozenset(["agent", "function", "task"])
# They only frame others.
_FRAMES = frozenset(["task", "turn"])


def _handled() -> BaseException | None:
    """Return the exception that is being handled: one that was there before a span is no news when the span ends."""
    return sys.exc_info()[1]


@dataclass(slots=True)
class _Within:
    """Where a span is: in the trace's own loop, or in that of an agent which a tool runs."""

    span: Span[Any]
    agent_id: str | None
    is_in_call: bool
    # The span that a sub-agent's loop ends with.
    is_root: bool
    problem: BaseException | None = field(default_factory=_handled)


@dataclass(slots=True)
class _Loop:
    """What is known of one agent's loop: which prompts are recorded, and its last text."""

    is_recorded: bool = False
    # What the conversation holds that people said, and how much of what they said is on record.
    prompts: list[str] = field(default_factory=list)
    count: int = 0
    said: str | None = None
    outcome: CallOutcome = CallOutcome.OK


@dataclass
class _Traced:
    """One trace that goes on."""

    facts: dict[str, Any]
    spans: dict[str, _Within] = field(default_factory=dict)
    loops: dict[str | None, _Loop] = field(default_factory=lambda: {None: _Loop()})
    problem: BaseException | None = field(default_factory=_handled)


class DecklogTracing(EventRecorder, TracingProcessor):
    """Records every trace of this process: `set_trace_processors([DecklogTracing(log)])`.

    A trace is a run, or a part of the run around it (`recorded`). Recording problems are logged as warnings of
    `decklog.plugins.adapters` and never raised.
    """

    def __init__(self, log: Decklog | AsyncDecklog) -> None:
        super().__init__(log, PROGRAM)
        self._traces: dict[str, _Traced] = {}
        self._lock = Lock()

    # Called by the SDK in any thread or task

    def on_trace_start(self, trace: Trace) -> None:
        """Record the start of a trace."""
        traced = _Traced(surrounding_run(self.log))
        with self._lock:
            self._traces[trace.trace_id] = traced
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
        self.record(trace.trace_id, traced.facts, {**place, **values})

    def on_trace_end(self, trace: Trace) -> None:
        """Note how a trace ended."""
        with self._lock:
            traced = self._traces.pop(trace.trace_id, None)
        if traced is not None:
            make = partial(_trace_ended, trace.trace_id, traced, _outcome_of(_handled(), traced.problem))
            self._later(trace.trace_id, traced, make)

    def on_span_start(self, span: Span[Any]) -> None:
        """Note what begins, once the SDK has put into the span what it is about."""
        traced = self._traces.get(span.trace_id)
        if traced is None:
            return
        within = _within(traced, span)
        traced.spans[span.span_id] = within
        if span.span_data.type in _BEGUN:
            self._later(span.trace_id, traced, partial(_begun, traced, within))

    def on_span_end(self, span: Span[Any]) -> None:
        """Note what has ended."""
        traced = self._traces.get(span.trace_id)
        within = None if traced is None else traced.spans.pop(span.span_id, None)
        if traced is None or within is None:
            return
        outcome = CallOutcome.FAILED if span.error else _outcome_of(_handled(), within.problem)
        self._later(span.trace_id, traced, partial(_ended, traced, within, outcome))

    def force_flush(self) -> None:
        """Wait until all events are in the log, for some seconds at most."""
        self.flush()

    def shutdown(self) -> None:
        """Take in what waits, as far as that is possible, and end."""
        self.close()

    def _later(self, trace_id: str, traced: _Traced, make: Callable[[], list[dict[str, Any]]]) -> None:
        """Record later, when the SDK has completed its objects."""
        self.soon(lambda: [(trace_id, traced.facts, values) for values in make()])


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it is gone


def _outcome_of(problem: BaseException | None, before: BaseException | None) -> CallOutcome:
    """Return how a block is left: by an error, by being cancelled, or by its end."""
    if problem is None or problem is before:
        return CallOutcome.OK
    return CallOutcome.FAILED if isinstance(problem, Exception) else CallOutcome.INTERRUPTED


def _within(traced: _Traced, span: Span[Any]) -> _Within:
    """Place a span: a loop inside of a tool's call is that of a sub-agent."""
    above = traced.spans.get(span.parent_id or "")
    agent_id, is_in_call = (None, False) if above is None else (above.agent_id, above.is_in_call)
    kind = span.span_data.type
    is_root = is_in_call and kind in ("task", "agent")
    if is_root:
        agent_id, is_in_call = span.span_id, False
        traced.loops[agent_id] = _Loop()
    is_in_call = is_in_call or kind == "function"
    return _Within(span, agent_id, is_in_call, is_root)


def _payload(within: _Within, name: str, at: str | None) -> dict[str, Any]:
    span = within.span
    place = {"session_id": span.trace_id, "agent_id": within.agent_id, "span": span.span_id}
    return {**place, "hook_event_name": name, "at": at, "name": getattr(span.span_data, "name", None)}


def _trace_ended(trace_id: str, traced: _Traced, outcome: CallOutcome) -> list[dict[str, Any]]:
    loop, values = traced.loops[None], []
    if outcome is not CallOutcome.OK:
        # The SDK waits for no tool of a run that is cancelled: what is open, the newest first, ends with it.
        for within in reversed(traced.spans.values()):
            values += _ended(traced, within, CallOutcome.INTERRUPTED)
    # A streamed run is over before its trace is: then its last agent decides.
    end = outcome if outcome is not CallOutcome.OK else loop.outcome
    return [*values, {"session_id": trace_id, "hook_event_name": "trace.ended", "outcome": end.value, "text": loop.said}]


def _begun(traced: _Traced, within: _Within) -> list[dict[str, Any]]:
    span, loop = within.span, traced.loops.setdefault(within.agent_id, _Loop())
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


def _ended(traced: _Traced, within: _Within, outcome: CallOutcome) -> list[dict[str, Any]]:
    span, loop = within.span, traced.loops.setdefault(within.agent_id, _Loop())
    data = span.span_data
    end = {"outcome": outcome.value, "error": _error(span)}
    values = {**_payload(within, f"{data.type}.ended", span.ended_at), **end}
    found = [] if data.type in _FRAMES else [{**values, **_DETAILS.get(data.type, _exported)(data, loop)}]
    if data.type == "agent":
        loop.outcome = outcome
    if within.is_root:
        joined = {**values, "hook_event_name": "agent.joined", "text": loop.said}
        found.append({**joined, "outcome": (loop.outcome if outcome is CallOutcome.OK else outcome).value})
        traced.loops.pop(within.agent_id, None)
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


def _response(data: Any, loop: _Loop) -> dict[str, Any]:
    """Return an answer of the Responses interface."""
    response = data.response
    items = [] if response is None else [item.model_dump() for item in response.output]
    values = _output_facts(loop, [text for item in items for text in _texts(item)])
    answer = data.export().get("response_id")
    model = None if response is None else response.model
    return {**values, "answer": answer, "model": model, "usage": data.usage, "prompts": _prompts(loop, data.input)}


def _generation(data: Any, loop: _Loop) -> dict[str, Any]:
    """Return an answer of any other interface; only some of these name it."""
    items = [item for item in data.output or () if isinstance(item, dict)]
    parts = [part for item in items for part in (item.get("output") or [item])]
    values = _output_facts(loop, [text for part in parts for text in _texts(part)])
    return {**values, "model": data.model, "usage": data.usage, "prompts": _prompts(loop, data.input)}


def _output_facts(loop: _Loop, texts: list[str]) -> dict[str, Any]:
    if texts:
        loop.said = texts[-1]
    return {"said": texts}


def _texts(item: Any) -> list[str]:
    """Return the texts of an answer's part: a message of either interface."""
    content = item.get("content") if isinstance(item, dict) and item.get("role") == "assistant" else None
    if isinstance(content, str):
        return [content] if content.strip() else []
    found = [part.get("text") for part in content or () if isinstance(part, dict)]
    return [text for text in found if isinstance(text, str) and text.strip()]


def _prompts(loop: _Loop, given: Any) -> list[tuple[int, str]]:
    """Return what people said since the last answer; of a conversation that was there before, only what came last."""
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


def _exported(data: Any, _loop: _Loop) -> dict[str, Any]:
    """Return what the SDK itself would send elsewhere; sounds by their length."""
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
