"""Tool calls in an agent's output, paired with their results as journal entries."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from decklog.agents.entries import cut_text, describe_call
from decklog.agents.events import CallOutcome
from decklog.agents.texts import as_text
from decklog.conductor.agents.description import Description
from decklog.conductor.agents.stream import INPUT, StreamEvent

_OUTCOMES = {
    **dict.fromkeys(("completed", "success", "ok"), CallOutcome.OK),
    **dict.fromkeys(("failed", "error"), CallOutcome.FAILED),
    **dict.fromkeys(("declined", "denied", "reject", "rejected"), CallOutcome.DENIED),
    **dict.fromkeys(("cancelled", "canceled", "interrupted", "aborted"), CallOutcome.INTERRUPTED),
}


_UNFINISHED = "the session ended before the call did"


@dataclass(frozen=True)
class SessionEntry:
    """A journal entry of a session: a call, a result or another event."""

    kind: str
    body: str
    payload: dict[str, Any] | None = None


class CallPairs:
    """Pairs the calls of one session with their results."""

    def __init__(self, description: Description) -> None:
        self._description = description
        # The tool of each open call, and when it began in nanoseconds if the stream reports it.
        self._open: dict[str, tuple[str, int | None]] = {}

    def entries(self, event: StreamEvent) -> Iterator[SessionEntry]:
        """Yield the entries of a `tool` or `result` event; a result that includes its input is an entry of the call too."""
        call_id = event.taken.get("call")
        if call_id is None:
            yield self._unnamed(event)
        elif event.kind == "tool":
            yield from self._begun(str(call_id), event, event.arrived)
        else:
            if str(call_id) not in self._open and _arguments(event.taken):
                yield from self._begun(str(call_id), event, None)
            yield self._ended(str(call_id), event)

    def unfinished(self) -> Iterator[SessionEntry]:
        """Yield a result for each call without one at the end of the session."""
        for call_id, (tool, _) in self._open.items():
            facts = {"call": call_id, "tool": tool, "outcome": CallOutcome.INTERRUPTED.value}
            yield SessionEntry("result", _UNFINISHED, facts)
        self._open.clear()

    def _tool(self, taken: Mapping[str, Any]) -> str:
        tool = str(taken.get("tool") or "tool")
        return f"mcp__{taken['server']}__{tool}" if taken.get("server") else self._description.tools.get(tool, tool)

    def _unnamed(self, event: StreamEvent) -> SessionEntry:
        """Return the entry of a call without an id, which can't be paired."""
        taken = event.taken
        outcome = {"outcome": self._outcome(taken).value} if event.kind == "result" else {}
        body = taken.get("text") or as_text(taken.get("output")) or taken.get("tool") or event.kind
        text, cut = cut_text(str(body))
        return SessionEntry(
            event.kind, text, {"tool": self._tool(taken), **outcome, **cut} if "tool" in taken or outcome else None
        )

    def _begun(self, call_id: str, event: StreamEvent, began: int | None) -> Iterator[SessionEntry]:
        if call_id in self._open:
            return
        tool = self._tool(event.taken)
        self._open[call_id] = (tool, began)
        line, _, facts = describe_call(call_id, tool, _arguments(event.taken))
        parent = {"parent": event.taken["parent"]} if event.taken.get("parent") else {}
        text, cut = cut_text(line)
        yield SessionEntry("tool", text, {name: value for name, value in {**facts, **parent, **cut}.items() if value is not None})

    def _ended(self, call_id: str, event: StreamEvent) -> SessionEntry:
        taken = event.taken
        tool, began = self._open.pop(call_id, (self._tool(taken), None))
        outcome, output = self._outcome(taken), as_text(taken.get("output"))
        text, cut = cut_text(output)
        facts = {
            "call": call_id,
            "tool": tool,
            "outcome": outcome.value,
            "exit_code": taken.get("exit_code"),
            "duration_ms": _duration(began, event),
            **cut,
        }
        return SessionEntry("result", text or outcome.value, {name: value for name, value in facts.items() if value is not None})

    def _outcome(self, taken: Mapping[str, Any]) -> CallOutcome:
        outcome = _OUTCOMES.get(str(taken.get("outcome")), CallOutcome.OK)
        is_failed = bool(taken.get("is_error")) or taken.get("exit_code") not in (None, 0)
        return CallOutcome.FAILED if is_failed and outcome is CallOutcome.OK else outcome


def _arguments(taken: Mapping[str, Any]) -> dict[str, Any]:
    whole = taken.get("input")
    named = {name.removeprefix(INPUT): value for name, value in taken.items() if name.startswith(INPUT)}
    given = whole if isinstance(whole, dict) else {} if whole is None else {"input": whole}
    return {**given, **named}


def _duration(call_began: int | None, event: StreamEvent) -> int | None:
    """Return a call's milliseconds: by its own times, or else from the arrival of its line to that of its result."""
    began, ended = event.taken.get("began_ms"), event.taken.get("ended_ms")
    if isinstance(began, (int, float)) and isinstance(ended, (int, float)):
        return max(0, round(ended - began))
    if call_began is None or event.arrived is None:
        return None
    return max(0, (event.arrived - call_began) // 1_000_000)
