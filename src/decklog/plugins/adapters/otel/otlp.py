"""Spans, and their OTLP documents: resources, scopes and lists of keys with typed values."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import isfinite
from typing import Any, TypeVar

from decklog.core.errors import Invalid
from decklog.plugins.adapters.otel import protobuf

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(slots=True, kw_only=True)
class SpanEvent:
    """An event of a span."""

    name: str
    at: int
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class OtelSpan:
    """One span. Times are nanoseconds since 1970; an unfinished one has 0 as its end."""

    trace_id: str
    span_id: str
    name: str
    start: int
    end: int = 0
    parent_id: str = ""
    kind: int = 1
    flags: int = 0
    status: int = 0
    message: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    # Unparsed fields: links, the trace state, counts of dropped items.
    rest: dict[str, Any] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)
    scope: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Identifies resource and scope; empty for a span without them."""
        return digest_of(self.resource, self.scope) if self.resource or self.scope else ""


def nanoseconds_of(moment: datetime) -> int:
    """Convert a time to nanoseconds, as spans have it."""
    return (moment - _EPOCH) // _MICROSECOND * 1000


def moment_of(nanoseconds: int) -> datetime:
    """Parse a time of a span; drop the part below a microsecond."""
    try:
        return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        raise Invalid(f"{nanoseconds} is no time in nanoseconds that a log can hold") from None


JSON, PROTOBUF = "application/json", "application/x-protobuf"
_DEEPEST = 20
_SPAN_FIELDS = ("traceId", "spanId", "parentSpanId", "name", "kind", "flags", "startTimeUnixNano", "endTimeUnixNano")
_SPAN_PARTS = frozenset({*_SPAN_FIELDS, "attributes", "events", "status"})
_TRACE, _SPAN = re.compile(r"[0-9a-f]{32}\Z"), re.compile(r"[0-9a-f]{16}\Z")
_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_CODES = ("UNSET", "OK", "ERROR")
# A larger integer is written as a float.
_MOST = 2**63


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A span that can't be read, with the reason."""

    name: str
    why: str


# Message encoding


def encoded(message: str, document: dict[str, Any], kind: str) -> bytes:
    """Encode a document as JSON or as protobuf."""
    if kind == PROTOBUF:
        return protobuf.encoded(message, document)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def decoded(message: str, body: bytes, kind: str) -> dict[str, Any]:
    """Decode a document from JSON or protobuf."""
    if kind == PROTOBUF:
        return protobuf.decoded(message, body)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"the message is no JSON: {problem}") from None
    if not isinstance(found, dict):
        raise Invalid("the message is no JSON object")
    return found


# Writing


def request_of(spans: Sequence[OtelSpan]) -> dict[str, Any]:
    """Build a request from spans of one resource and one scope."""
    first = spans[0]
    within = {"scope": first.scope, "spans": [_span_document(span) for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": _pairs(first.resource)}, "scopeSpans": [within]}]}


def _span_document(span: OtelSpan) -> dict[str, Any]:
    document: dict[str, Any] = {"traceId": span.trace_id, "spanId": span.span_id}
    if span.parent_id:
        document["parentSpanId"] = span.parent_id
    document |= {"name": span.name, "kind": span.kind, "startTimeUnixNano": str(span.start), "endTimeUnixNano": str(span.end)}
    document["attributes"] = _pairs(span.attributes)
    if span.events:
        document["events"] = [
            {"timeUnixNano": str(event.at), "name": event.name, "attributes": _pairs(event.attributes)} for event in span.events
        ]
    if span.status:
        document["status"] = {"code": span.status, **({"message": span.message} if span.message else {})}
    return document | span.rest


def _pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _any(value)} for name, value in attributes.items()]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -_MOST <= value < _MOST:
        return {"intValue": str(value)}
    if isinstance(value, int | float):
        return {"doubleValue": float(value)} if isfinite(value) else {"stringValue": repr(value)}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_any(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    return {"stringValue": str(value)}


# Reading


def spans_in(request: dict[str, Any]) -> Iterator[OtelSpan | Unreadable]:
    """Yield the spans of a request, and an Unreadable for each that can't be read."""
    for resource_spans in _objects(request, "resourceSpans"):
        resource = _attributes(_object(resource_spans, "resource"))
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            scope = _scope(_object(scope_spans, "scope"))
            for found in _objects(scope_spans, "spans"):
                try:
                    yield _span(found, resource, scope)
                except Invalid as problem:
                    yield Unreadable(str(found.get("spanId") or found.get("name") or "a span")[:80], problem.message)


def _span(found: dict[str, Any], resource: dict[str, Any], scope: dict[str, Any]) -> OtelSpan:
    status = _object(found, "status")
    start, end = _whole(found, "startTimeUnixNano"), _whole(found, "endTimeUnixNano")
    if start <= 0:
        raise Invalid("it does not say when it began")
    return OtelSpan(
        trace_id=_id(found, "traceId", _TRACE),
        span_id=_id(found, "spanId", _SPAN),
        parent_id=_id(found, "parentSpanId", _SPAN) if found.get("parentSpanId") else "",
        name=_text(found, "name"),
        kind=_named(found, "kind", "SPAN_KIND_", _KINDS),
        flags=_whole(found, "flags"),
        start=start,
        # A clock that is set back can end spans before they begin.
        end=max(start, end) if end else 0,
        status=_named(status, "code", "STATUS_CODE_", _CODES),
        message=_text(status, "message"),
        attributes=_attributes(found),
        events=[
            SpanEvent(name=_text(event, "name"), at=_whole(event, "timeUnixNano") or start, attributes=_attributes(event))
            for event in _objects(found, "events")
        ],
        rest={name: value for name, value in found.items() if name not in _SPAN_PARTS and value},
        resource=resource,
        scope=scope,
    )


def digest_of(*parts: dict[str, Any]) -> str:
    """Return a digest of some attributes."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode(errors="replace")).hexdigest()[:16]


def _scope(found: dict[str, Any]) -> dict[str, Any]:
    content = {"name": _text(found, "name"), "version": _text(found, "version"), "attributes": _attributes(found)}
    return {name: value for name, value in content.items() if value}


def _attributes(found: dict[str, Any]) -> dict[str, Any]:
    return {_text(pair, "key"): _plain(pair.get("value"), 0) for pair in _objects(found, "attributes")}


def _plain(value: Any, depth: int) -> Any:
    """Convert a typed value to JSON; keep bytes in base64, and replace numbers that JSON does not have."""
    if not isinstance(value, dict) or not value:
        return None
    if depth > _DEEPEST:
        raise Invalid(f"an attribute is nested deeper than {_DEEPEST} levels")
    ((kind, held), *_) = value.items()
    match kind:
        case "intValue":
            return _whole(value, kind)
        case "doubleValue":
            return _double(held)
        case "arrayValue":
            return [_plain(item, depth + 1) for item in _objects(_object(value, kind), "values")]
        case "kvlistValue":
            pairs = _objects(_object(value, kind), "values")
            return {_text(pair, "key"): _plain(pair.get("value"), depth + 1) for pair in pairs}
        case "bytesValue":
            return {"base64": held}
    return held if isinstance(held, str | bool) else str(held)


def _double(held: object) -> float | str:
    if not isinstance(held, int | float):
        return str(held)
    number = float(held)
    return number if isfinite(number) else repr(number)


def _of_kind(found: dict[str, Any], name: str, kind: type[T], word: str) -> T:
    value = found.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise Invalid(f"{name} is no {word}")
    return value


def _object(found: dict[str, Any], name: str) -> dict[str, Any]:
    return _of_kind(found, name, dict, "object")


def _objects(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = _of_kind(found, name, list, "list of objects")
    if not all(isinstance(item, dict) for item in value):
        raise Invalid(f"{name} is no list of objects")
    return value


def _text(found: dict[str, Any], name: str) -> str:
    return _of_kind(found, name, str, "text")


def _whole(found: dict[str, Any], name: str) -> int:
    """Parse a whole number, which JSON may write as a text."""
    value = found.get(name)
    if value is None or value == "":
        return 0
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Invalid(f"{name} is no whole number")
    try:
        return int(value)
    except ValueError:
        raise Invalid(f"{name} is no whole number") from None


def _named(found: dict[str, Any], name: str, start: str, names: tuple[str, ...]) -> int:
    """Parse an enum value, which programs write as its number or its name."""
    value = found.get(name)
    if isinstance(value, str) and value.removeprefix(start) in names:
        return names.index(value.removeprefix(start))
    return _whole(found, name)


def _id(found: dict[str, Any], name: str, shape: re.Pattern[str]) -> str:
    text = _text(found, name).lower()
    if shape.match(text) is None or not text.strip("0"):
        raise Invalid(f"its {name} is none: {text[:40]!r}")
    return text
