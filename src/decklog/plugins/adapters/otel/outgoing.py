"""A run as spans: the run itself, its steps, calls of tools, attempts at tasks, what it spent, and every other entry.

Ids are made of ours, so that what is sent again is the same span; and a span is given only once nothing more is to be said of
it. What is at one moment is a span without length: collectors show those, and few show events within spans.
"""

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from decklog.agents.events import CallOutcome
from decklog.core.clock import from_text, to_text
from decklog.journal.entry import EntryKind
from decklog.plugins.adapters.otel import conventions as names
from decklog.plugins.adapters.otel.span import OtelSpan, nanoseconds_of
from decklog.stores.runs.run import ENDED, RunStatus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from decklog.journal.entry import Entry
    from decklog.log import Decklog
    from decklog.stores.runs.run import Run

_TOLD = ("agent", "agent_id", "group_id", "task_id", "iteration", "phase", "confidence", "refs", "key", "payload")
_RUN_TEXTS = ("goal", "summary", "repo", "branch", "worktree")
_CHARGE_FACTS = ("call_site", "agent", "agent_id", "group_id", "task_id", "answer_id", "cost_microdollars")
# How a part that began is named in its entries, and which entry ends it.
_BEGINS = {(EntryKind.TOOL, "call"): "call", (EntryKind.EVENT, "step"): "step"}
_ENDS = {(EntryKind.TOOL, "result"): "call", (EntryKind.EVENT, "step.ended"): "step"}
# Records that spans tell in full; of the others it is counted how often they changed.
_TOLD_RECORDS = ("runs", "charges")


def trace_of(log: "Decklog", run: "Run") -> str:
    """Name the trace of a run: that of the topmost run that it is a part of. A fork begins its own."""
    seen = {run.id}
    while run.parent_run_id is not None and run.parent_seq is None and run.parent_run_id not in seen:
        run = log.runs.get(run.parent_run_id)
        seen.add(run.id)
    # Two logs may call a run the same, and hardly begin it in the same microsecond.
    return _digest("trace", run.id, to_text(run.started_at))[:32]


def _digest(*parts: str) -> str:
    return sha256("\0".join(("decklog", *parts)).encode()).hexdigest()


class RunSpans:
    """Makes spans of the entries of one run, which come in their order."""

    def __init__(self, log: "Decklog", run: "Run", *, texts: bool = True, version: str = "") -> None:
        self.run = run
        self.trace_id = trace_of(log, run)
        self._texts = texts
        self._open: dict[str, Entry] = {}
        # The attempts under way, by their tasks: the span, and the image of the task that began it.
        self._attempts: dict[str, tuple[str, dict[str, Any]]] = {}
        self._resource = {names.SERVICE: "decklog"}
        self._scope = {"name": "decklog", "version": version}
        # How often records changed that no span tells of.
        self.left_out: dict[str, int] = {}

    @property
    def waiting(self) -> int:
        """How many spans have begun and not ended yet, the run's own among them."""
        return len(self._open) + len(self._attempts) + (self.run.status not in ENDED)

    # Entries

    def of(self, entry: "Entry") -> "Iterator[OtelSpan]":
        """Yield the spans that end with an entry."""
        if entry.kind is EntryKind.CHANGE:
            yield from self._of_change(entry)
            return
        place = (entry.kind, entry.subtype or "")
        if (begun := self._part(entry, _BEGINS.get(place))) is not None and begun not in self._open:
            self._open[begun] = entry
        elif (ended := self._part(entry, _ENDS.get(place))) in self._open:
            assert ended is not None
            yield self._pair(ended, self._open.pop(ended), entry)
        else:
            yield self._moment(entry)

    def _part(self, entry: "Entry", name: str | None) -> str | None:
        """Name the step or call that an entry begins or ends; None where it says none."""
        part = entry.payload.get(name) if name is not None and isinstance(entry.payload, dict) else None
        return f"{name}:{part}" if part else None

    def _pair(self, part: str, begun: "Entry", ended: "Entry | None") -> OtelSpan:
        """Make the span of a step or a call; one whose end nobody told lasts as long as the run."""
        start = begun.at
        end = max(start, ended.at if ended is not None else self.run.ended_at or start)
        facts: Any = {**_payload(begun), **_payload(ended)}
        span = self._span(_span_part(part), begun, start, end)
        self._tell(span, names.BEGIN, begun, start)
        if ended is not None:
            self._tell(span, names.END, ended, end)
        if part.startswith("call:"):
            self._tell_tool(span, facts, ended)
        else:
            span.name = str(begun.body or "step") if self._texts else "step"
        outcome = str(facts.get("outcome") or CallOutcome.LOST.value)
        if outcome != CallOutcome.OK.value:
            span.status, span.attributes[names.ERROR_TYPE] = names.ERROR, outcome
        return span

    def _tell_tool(self, span: OtelSpan, facts: "dict[str, Any]", ended: "Entry | None") -> None:
        tool = str(facts.get("tool") or "tool")
        span.name = f"{names.EXECUTE_TOOL} {tool}"
        told = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: tool, names.TOOL_CALL_ID: str(facts.get("call"))}
        if self._texts and facts.get("arguments"):
            told[names.TOOL_ARGUMENTS] = _as_json(facts["arguments"])
        if self._texts and ended is not None:
            told[names.TOOL_RESULT] = ended.body or ""
            span.attributes.pop(names.END + names.BODY, None)
        span.attributes |= told

    def _moment(self, entry: "Entry") -> OtelSpan:
        # One that came as a span goes out as the same.
        seq = entry.key.removeprefix(names.KEY) if entry.key and entry.key.startswith(names.KEY) else entry.seq
        span = self._span(f"entry:{seq}", entry, entry.at, entry.at)
        span.name = entry.subtype or str(entry.kind)
        self._tell(span, names.ENTRY, entry, entry.at)
        return span

    def _span(self, part: str, entry: "Entry", start: "datetime", end: "datetime") -> OtelSpan:
        span = self._empty(part, self._parent(entry), start, end)
        if entry.agent:
            span.attributes[names.AGENT] = entry.agent
        if entry.task_id:
            span.attributes[names.TASK] = entry.task_id
        return span

    def _empty(self, part: str, parent: str, start: "datetime", end: "datetime") -> OtelSpan:
        return OtelSpan(
            trace_id=self.trace_id,
            span_id=self._id(part),
            parent_id=parent,
            name=part,
            kind=names.INTERNAL,
            start=nanoseconds_of(start),
            end=nanoseconds_of(end),
            attributes={names.RUN: self.run.id, names.CONVERSATION: self.run.id},
            resource=self._resource,
            scope=self._scope,
        )

    def _id(self, part: str, run_id: str | None = None) -> str:
        return _digest("span", self.trace_id, run_id or self.run.id, part)[:16]

    def _parent(self, entry: "Entry") -> str:
        """Name the span around an entry: the step or call that it says, the attempt at its task, or the run."""
        within = _payload(entry).get("within")
        if within:
            return self._id(f"part:{within}")
        if entry.task_id in self._attempts:
            return self._attempts[entry.task_id][0]
        return self._id("run")

    def _tell(self, span: OtelSpan, name: str, entry: "Entry", at: "datetime") -> None:
        """Write down all that makes the same entry again."""
        told: dict[str, Any] = {"seq": entry.seq, "kind": entry.kind.value, "subtype": entry.subtype}
        told |= {field: getattr(entry, field) for field in _TOLD if field != "payload" or self._texts}
        if entry.at != at:
            told["at"] = to_text(entry.at)
        span.attributes[name] = _as_json({field: value for field, value in told.items() if value is not None})
        if self._texts and entry.body is not None:
            span.attributes[name + names.BODY] = entry.body

    # Records

    def _of_change(self, entry: "Entry") -> "Iterator[OtelSpan]":
        image, table = _payload(entry), entry.record_table or ""
        if table == "charges" and entry.subtype == "added":
            yield self._charge(image, entry.seq)
        elif table == "tasks" and "attempts" in image:
            yield from self._attempt(image)
        if table not in _TOLD_RECORDS:
            self.left_out[table] = self.left_out.get(table, 0) + 1

    def _charge(self, image: "dict[str, Any]", seq: int) -> OtelSpan:
        at, model = from_text(image["occurred_at"]), str(image["model"])
        task_id = image.get("task_id")
        parent = self._attempts[task_id][0] if task_id in self._attempts else self._id("run")
        span = self._empty(f"charge:{image['id']}", parent, at, at)
        span.name, span.kind = f"{names.CHAT} {model}", names.CLIENT
        came_as = str(image.get("answer_id") or "").partition(f"{names.ANSWER}{self.trace_id}:")[2]
        span.span_id = came_as or span.span_id
        read, created = int(image.get("cache_read_tokens") or 0), int(image.get("cache_create_tokens") or 0)
        facts = {"seq": seq, **{name: image[name] for name in _CHARGE_FACTS if image.get(name) is not None}}
        span.attributes |= {
            names.OPERATION: names.CHAT,
            names.PROVIDER: names.provider_of(model),
            names.REQUEST_MODEL: model,
            # The convention counts what came from a cache among all that went in.
            names.INPUT_TOKENS: int(image.get("input_tokens") or 0) + read + created,
            names.OUTPUT_TOKENS: int(image.get("output_tokens") or 0),
            names.CACHE_READ: read,
            names.CACHE_CREATION: created,
            names.CHARGE: _as_json(facts),
        }
        if image.get("agent"):
            span.attributes[names.AGENT] = str(image["agent"])
        return span

    def _attempt(self, image: "dict[str, Any]") -> "Iterator[OtelSpan]":
        """Follow a task: who has it begins an attempt, and whatever it is next ends that."""
        task_id = str(image["id"])
        part = f"attempt:{task_id}:{image['attempts']}"
        is_running = image.get("state") == "running" and image.get("worker") is not None and image.get("leased_at") is not None
        known = self._attempts.get(task_id)
        if is_running and (known is None or known[0] != self._id(part)):
            if known is not None:
                # The next worker got it before anybody had noticed that the one before was gone.
                yield self._tried(*known, {**image, "outcome": "expired", "summary": None})
            self._attempts[task_id] = (self._id(part), image)
        elif not is_running and known is not None and image.get("outcome"):
            del self._attempts[task_id]
            yield self._tried(*known, image)

    def _tried(self, span_id: str, begun: "dict[str, Any]", image: "dict[str, Any]") -> OtelSpan:
        start, worker = from_text(begun["leased_at"]), str(begun["worker"])
        span = self._empty("", self._id("run"), start, max(start, from_text(image["updated_at"])))
        span.span_id, span.name = span_id, f"{names.INVOKE_AGENT} {worker}"
        told = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: worker, names.TASK: begun["id"]}
        told |= {names.ATTEMPT: begun["attempts"], f"{names.ATTEMPT}.outcome": image["outcome"]}
        if self._texts:
            told |= {f"{names.ATTEMPT}.task": image.get("title"), f"{names.ATTEMPT}.summary": image.get("summary")}
        span.attributes |= {name: value for name, value in told.items() if value is not None}
        if image["outcome"] != "done":
            span.status, span.attributes[names.ERROR_TYPE] = names.ERROR, image["outcome"]
        return span

    # The run itself

    def rest(self) -> "Iterator[OtelSpan]":
        """Yield what is left once the last entry is read: of a run that has ended, what never ended in it and the run itself."""
        if self.run.status not in ENDED:
            return
        for part, begun in self._open.items():
            yield self._pair(part, begun, None)
        self._open.clear()
        self._attempts.clear()
        yield self._whole()

    def _whole(self) -> OtelSpan:
        run, agent = self.run, str(self.run.metadata.get("agent") or self.run.metadata.get("program") or "decklog")
        is_below = run.parent_run_id is not None and run.parent_seq is None
        parent = self._id("run", run.parent_run_id) if is_below else ""
        span = self._empty("run", parent, run.started_at, max(run.started_at, run.ended_at or run.updated_at))
        span.name = f"{names.INVOKE_AGENT} {agent}"
        span.attributes |= {names.OPERATION: names.INVOKE_AGENT, names.AGENT: agent, f"{names.RUN_FIELD}status": run.status.value}
        if is_below:
            span.attributes[names.PARENT_RUN] = run.parent_run_id
        if self._texts:
            texts = {f"{names.RUN_FIELD}{name}": getattr(run, name) for name in _RUN_TEXTS if getattr(run, name) is not None}
            metadata = {name: value for name, value in run.metadata.items() if name != "otel"}
            span.attributes |= {**texts, f"{names.RUN_FIELD}metadata": _as_json(metadata)}
        if run.status is not RunStatus.COMPLETED:
            span.status, span.attributes[names.ERROR_TYPE] = names.ERROR, run.status.value
        return span


def _span_part(part: str) -> str:
    """Name the span of a step or a call: whatever is within it knows its id, and not which of the two it is."""
    return f"part:{part.partition(':')[2]}"


def _payload(entry: "Entry | None") -> "dict[str, Any]":
    return entry.payload if entry is not None and isinstance(entry.payload, dict) else {}


# Made once: `dumps` makes one for each call that asks for anything but the usual.
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
