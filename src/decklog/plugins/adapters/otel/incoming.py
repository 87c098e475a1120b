"""Convert spans to entries and charges: any program's by the conventions, and ours to the original run."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

from decklog.agents.entries import cut_text, describe_call
from decklog.agents.events import CallOutcome
from decklog.agents.texts import storable, storable_value
from decklog.core.clock import to_text
from decklog.core.display import DOLLAR
from decklog.core.errors import Invalid
from decklog.importing.row import parse_json
from decklog.journal.entry import EntryKind
from decklog.plugins.adapters.loops.calls import output_text, to_json_value
from decklog.plugins.adapters.otel import conventions as names
from decklog.plugins.adapters.otel.otlp import OtelSpan, SpanEvent, digest_of, moment_of
from decklog.stores.money.records import MOST

_ANSWERS = ("assistant", "model", "ai", "")


def texts_in(messages: Any) -> list[tuple[EntryKind, str, str]]:
    """Return a person's prompt, and a model's reasoning and answer, each as one text; skip other parts."""
    found = parse_json(messages) if isinstance(messages, str) else messages
    texts: dict[tuple[EntryKind, str], list[str]] = {}
    for message in found if isinstance(found, list) else ():
        if isinstance(message, dict):
            for place, text in _message_texts(message):
                texts.setdefault(place, []).append(text)
    return [(kind, subtype, "\n".join(content)) for (kind, subtype), content in texts.items()]


def _message_texts(message: dict[str, Any]) -> Iterator[tuple[tuple[EntryKind, str], str]]:
    role = str(message.get("role") or "")
    parts = message.get("parts", message.get("content"))
    for part in parts if isinstance(parts, list) else [parts]:
        kind, text = ("text", part) if isinstance(part, str) else _part(part)
        if not text:
            continue
        if kind in ("reasoning", "thinking"):
            yield (EntryKind.REASONING, "thought"), text
        elif kind == "text" and role in _ANSWERS:
            yield (EntryKind.INTERACTION, "said"), text
        elif kind == "text" and role == "user":
            yield (EntryKind.INTERACTION, "prompt"), text


def _part(part: Any) -> tuple[str, str]:
    if not isinstance(part, dict):
        return "", ""
    text = part.get("content", part.get("text"))
    return str(part.get("type") or "text"), text if isinstance(text, str) else ""


ENTRY, CHARGE, RUN = "entry", "charge", "run"
# The subtype of the entry with the source of spans.
SOURCE = "resource"
_LAST = "~"
_LONGEST_NAME = 200
_TEXTS = ("kind", "subtype", "agent", "agent_id", "group_id", "task_id", "phase", "confidence", "key")
_CHARGE_TEXTS = ("call_site", "agent", "agent_id", "group_id", "task_id", "answer_id")
_RUN_TEXTS = ("status", "goal", "summary", "repo", "branch", "worktree")
# Attributes that become entries or charges.
_CONVERTED = frozenset({names.TOOL_ARGUMENTS, names.TOOL_RESULT, names.OUTPUT_MESSAGES})


@dataclass(slots=True)
class SpanPart:
    """One part of a span: an entry, a charge, or a change of its run. `values` is JSON.

    `origin` is the trace or conversation of the run, and `order` the place among the parts of the run.
    """

    span: str
    run_id: str
    origin: dict[str, Any]
    at: str
    order: str
    what: str
    values: dict[str, Any]


def run_of_trace(trace_id: str) -> str:
    """Return the run id of a trace that names no run."""
    return f"trace-{trace_id}"


def pieces_of(span: OtelSpan, run_id: str, origin: dict[str, Any], recorded: set[tuple[str, str]]) -> list[SpanPart]:
    """Convert a span to parts of its run. `recorded` has the runs and sources that an earlier span recorded."""
    is_ours = isinstance(span.attributes.get(names.RUN), str)
    own = _OwnSpan(span) if is_ours else OtherSpan(span)
    source = (run_id, "" if is_ours else span.source)
    name, pieces = f"{span.trace_id}/{span.span_id}", []
    for number, (order, what, content) in own.pieces(with_source=source not in recorded):
        content[_RUN_OF[what]] = run_id
        pieces.append(SpanPart(name, run_id, origin, own.begin, f"{order}|{number:04d}|{span.span_id}", what, content))
    # Only now: a refused span records nothing.
    recorded.add(source)
    return pieces


_RUN_OF = {ENTRY: "stream", CHARGE: "run_id", RUN: "id"}


class OtherSpan:
    """A span of any program."""

    def __init__(self, span: OtelSpan) -> None:
        self.span = span
        self.attributes = span.attributes
        self.begin, self.end = to_text(moment_of(span.start)), to_text(moment_of(span.end or span.start))
        self.operation = str(self.attributes.get(names.OPERATION) or "")
        agent = self.attributes.get(names.AGENT) or span.resource.get(names.SERVICE) or "otel"
        self.who = {"agent": _short(agent), "agent_id": _short(self.attributes.get(names.AGENT_ID) or "") or None}
        self._is_tool = self.operation == names.EXECUTE_TOOL or isinstance(self.attributes.get(names.TOOL), str)

    def pieces(self, *, with_source: bool) -> Iterator[tuple[int, tuple[str, str, dict[str, Any]]]]:
        """Yield each part by its number, with its sort key, which is its time."""
        if self.span.source and with_source:
            yield 0, self._comes_from()
        yield from enumerate(self._pieces(), int(bool(self.span.source)))

    def _comes_from(self) -> tuple[str, str, dict[str, Any]]:
        span, begin = self.span, self.begin
        content = {
            "resource": to_json_value(span.resource),
            "scope": to_json_value(span.scope),
            "source": self.span.source,
            "within": None,
        }
        name = str(span.resource.get(names.SERVICE) or span.scope.get("name") or "a program")
        return begin, ENTRY, self._entry(begin, EntryKind.EVENT, SOURCE, name, f"resource:{self.span.source}", content)

    def _pieces(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        span, begin, end = self.span, self.begin, self.end
        yield begin, ENTRY, self._begins(begin)
        for number, event in enumerate(span.events):
            at = to_text(moment_of(event.at))
            yield at, ENTRY, self._event(at, number, event)
        if not span.end:
            # The span is unfinished, and arrives again when it has ended.
            return
        for kind, subtype, text in texts_in(self.attributes.get(names.OUTPUT_MESSAGES)):
            yield end, ENTRY, self._entry(end, kind, subtype, text, f"{subtype}:{span.span_id}", {"within": span.span_id})
        if (charge := self._charge()) is not None:
            yield end, CHARGE, charge
        yield end, ENTRY, self._ends(end)
        if not span.parent_id or span.flags & names.REMOTE_PARENT == names.REMOTE_PARENT:
            yield _LAST, RUN, self._run(begin, end)

    # Its start and end

    @property
    def _tool(self) -> str:
        return str(self.attributes.get(names.TOOL) or self.span.name or "tool")

    def _begins(self, at: str) -> dict[str, Any]:
        span_id = self.span.span_id
        if self._is_tool:
            line, key, facts = describe_call(span_id, self._tool, _arguments(self.attributes.get(names.TOOL_ARGUMENTS)))
            return self._entry(at, EntryKind.TOOL, "call", line, key, facts)
        return self._entry(at, EntryKind.EVENT, "step", self.span.name or "step", f"step:{span_id}", {"step": span_id})

    def _ends(self, at: str) -> dict[str, Any]:
        span, is_failed = self.span, self.span.status == names.ERROR
        outcome = CallOutcome.FAILED.value if is_failed else CallOutcome.OK.value
        rest = {name: value for name, value in self.attributes.items() if name not in _CONVERTED}
        facts: dict[str, Any] = {
            "outcome": outcome,
            "attributes": to_json_value(rest) or None,
            "source": self.span.source or None,
        }
        facts |= {name: to_json_value(value) for name, value in span.rest.items()}
        if self._is_tool:
            body = output_text(self.attributes.get(names.TOOL_RESULT)) or span.message or outcome
            return self._entry(
                at, EntryKind.TOOL, "result", body, f"result:{span.span_id}", {"call": span.span_id, "tool": self._tool, **facts}
            )
        body = span.message or f"{span.name or 'step'}: {outcome}"
        facts = {"step": span.span_id, "name": _short(span.name), **facts}
        return self._entry(at, EntryKind.EVENT, "step.ended", body, f"step-ended:{span.span_id}", facts)

    def _event(self, at: str, number: int, event: SpanEvent) -> dict[str, Any]:
        body = event.attributes.get("exception.message") or event.name or "event"
        facts = {"attributes": to_json_value(event.attributes) or None}
        key = f"event:{self.span.span_id}:{number}"
        return self._entry(at, EntryKind.EVENT, _short(event.name or "event"), str(body), key, facts, self.span.span_id)

    def _entry(
        self,
        at: str,
        kind: EntryKind,
        subtype: str,
        body: str,
        key: str,
        facts: dict[str, Any],
        within: str | None = None,
    ) -> dict[str, Any]:
        text, cut = cut_text(storable(body))
        known = {"within": within or self.span.parent_id or None, **facts, **cut}
        payload = {name: value for name, value in known.items() if value is not None}
        content = {"kind": kind.value, "subtype": subtype, "body": text, "key": key, "payload": storable_value(payload)}
        return {**content, "at": at, **self.who}

    # Costs

    def _charge(self) -> dict[str, Any] | None:
        """Return the charge of a model call; None for an agent's span, which sums up those of its calls."""
        given = self.attributes
        model = given.get(names.RESPONSE_MODEL) or given.get(names.REQUEST_MODEL)
        used = (names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.OLD_INPUT_TOKENS, names.OLD_OUTPUT_TOKENS, names.COST)
        is_paid = self.operation in INFERENCE_OR_UNSAID and any(name in given for name in used)
        if not is_paid or self._is_tool or not isinstance(model, str) or not model.strip():
            return None
        tokens = tokens_of(given)
        content = {**tokens, "model": _short(model), "cost_microdollars": _cost(given.get(names.COST)), **self.who}
        return {**content, "occurred_at": self.end, "answer_id": self._answer(tokens)}

    def _answer(self, tokens: dict[str, int]) -> str:
        """Return the identity of a paid answer: two programs that trace one call report the same answer and tokens."""
        answer = self.attributes.get(names.RESPONSE_ID)
        if not isinstance(answer, str) or not answer:
            return f"{names.ANSWER}{self.span.trace_id}:{self.span.span_id}"
        # Some programs number their answers from one, so the name alone is not enough.
        return f"{names.ANSWER}{self.span.trace_id}:{digest_of({'answer': answer}, dict(tokens))}"

    # The run

    def _run(self, begin: str, end: str) -> dict[str, Any]:
        asked = [text for _, subtype, text in texts_in(self.attributes.get(names.INPUT_MESSAGES)) if subtype == "prompt"]
        goal = " ".join(storable(asked[0] if asked else self.span.name).split())[:_LONGEST_NAME]
        answers = [text for _, subtype, text in texts_in(self.attributes.get(names.OUTPUT_MESSAGES)) if subtype == "said"]
        is_failed = self.span.status == names.ERROR
        summary = self.span.message if is_failed else answers[-1] if answers else None
        content: dict[str, Any] = {"goal": goal or "A trace without a name", "status": "failed" if is_failed else "completed"}
        content |= {"started_at": begin, "ended_at": end, "summary": storable(summary)[:2000] if summary else None}
        return {**content, "is_whole": not self.span.parent_id}


class _OwnSpan:
    """A span from a Decklog export: its attributes contain the original entries."""

    def __init__(self, span: OtelSpan) -> None:
        self.span = span
        self.attributes = span.attributes
        self.begin, self.end = to_text(moment_of(span.start)), to_text(moment_of(span.end or span.start))

    def pieces(self, *, with_source: bool) -> Iterator[tuple[int, tuple[str, str, dict[str, Any]]]]:  # noqa: ARG002
        """Yield each part by its number, with its sort key, which is the original entry number."""
        yield from enumerate(self._pieces())

    def _pieces(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        begin, end = self.begin, self.end
        is_ours = False
        for name, at in ((names.BEGIN, begin), (names.ENTRY, begin), (names.END, end)):
            if name in self.attributes:
                is_ours = True
                yield self._entry(name, at)
        if names.CHARGE in self.attributes:
            is_ours = True
            yield self._charge(begin)
        if f"{names.RUN_FIELD}status" in self.attributes:
            is_ours = True
            yield _LAST, RUN, self._run(begin, end)
        if not is_ours:
            yield from self._attempt()

    def _attempt(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield an attempt at a task as a step: spans do not contain the task itself."""
        span = copy(self.span)
        # Its parent is the run, which is no step.
        span.parent_id, span.resource, span.scope = "", {}, {}
        yield from (piece for _, piece in OtherSpan(span).pieces(with_source=False) if piece[1] == ENTRY)

    def _entry(self, name: str, at: str) -> tuple[str, str, dict[str, Any]]:
        content = _object(self.attributes[name], name)
        body = _text(self.attributes, name + names.BODY)
        if body is None and name == names.END:
            body = _text(self.attributes, names.TOOL_RESULT)
        entry: dict[str, Any] = {field: text for field in _TEXTS if (text := _text(content, field)) is not None}
        if content.get("iteration") is not None:
            entry["iteration"] = _number(content["iteration"])
        if content.get("refs") is not None:
            entry["refs"] = _texts(content["refs"])
        # Without texts, the name of the span is the only description.
        entry |= {"payload": content.get("payload"), "body": body if body is not None or "payload" in content else self.span.name}
        seq = _number(content.get("seq"))
        key = entry.get("key") or f"{names.KEY}{seq}"
        return f"#{seq:015d}", ENTRY, {**entry, "key": key, "at": str(content.get("at") or at)}

    def _charge(self, at: str) -> tuple[str, str, dict[str, Any]]:
        content = _object(self.attributes[names.CHARGE], names.CHARGE)
        charge: dict[str, Any] = {field: _text(content, field) for field in _CHARGE_TEXTS}
        charge["cost_microdollars"] = content.get("cost_microdollars")
        charge |= {"model": str(self.attributes.get(names.REQUEST_MODEL) or ""), "occurred_at": at, **tokens_of(self.attributes)}
        charge["answer_id"] = charge["answer_id"] or f"{names.ANSWER}{self.span.trace_id}:{self.span.span_id}"
        return f"#{_number(content.get('seq')):015d}", CHARGE, charge

    def _run(self, begin: str, end: str) -> dict[str, Any]:
        content: dict[str, Any] = {name: _text(self.attributes, f"{names.RUN_FIELD}{name}") for name in _RUN_TEXTS}
        content["goal"] = content["goal"] or self.span.name
        if metadata := self.attributes.get(f"{names.RUN_FIELD}metadata"):
            content["metadata"] = _object(metadata, "metadata")
        parent = _text(self.attributes, names.PARENT_RUN)
        return {**content, "started_at": begin, "ended_at": end, "is_whole": True, "parent": parent}


# Older programs report usage without the operation.
INFERENCE_OR_UNSAID = names.INFERENCE | {""}


def tokens_of(given: dict[str, Any]) -> dict[str, int]:
    """Read the four kinds of tokens. By the convention, input includes cached tokens; some programs exclude them."""
    read, created = _count(given.get(names.CACHE_READ)), _count(given.get(names.CACHE_CREATION))
    whole = _count(given.get(names.INPUT_TOKENS, given.get(names.OLD_INPUT_TOKENS)))
    cached = read + created
    return {
        "input_tokens": whole - cached if whole >= cached else whole,
        "cache_read_tokens": read,
        "cache_create_tokens": created,
        "output_tokens": _count(given.get(names.OUTPUT_TOKENS, given.get(names.OLD_OUTPUT_TOKENS))),
    }


def _count(value: object) -> int:
    return min(int(value), MOST) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def _cost(dollars: object) -> int | None:
    """Parse a price in dollars; without one, our own price list applies."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float) or not 0 <= dollars <= MOST // DOLLAR:
        return None
    return round(dollars * DOLLAR)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**15:
        raise Invalid(f"{value!r} is no number of an entry")
    return value


def _text(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{name} is no text")
    return value


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Invalid("refs is no list of texts")
    return value


def _object(text: object, name: str) -> dict[str, Any]:
    found = parse_json(text)
    if not isinstance(found, dict):
        raise Invalid(f"{name} is no JSON object")
    return found


def _arguments(value: Any) -> dict[str, Any]:
    """Parse a tool's arguments, which programs write as an object or as JSON text."""
    found = parse_json(value) if isinstance(value, str) else value
    if isinstance(found, dict):
        content: dict[str, Any] = to_json_value(found)
        return content if isinstance(content, dict) else {"arguments": content}
    return {} if value is None else {"arguments": to_json_value(value)}


def _short(value: object) -> str:
    text: str = storable(str(value))[:_LONGEST_NAME]
    return text
