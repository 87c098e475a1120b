"""Both encodings say the same as OpenTelemetry's own library, and bytes that say nothing are refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from decklog import Invalid
from decklog.plugins.adapters.otel import otlp, protobuf
from decklog.plugins.adapters.otel.otlp import OtelSpan, SpanEvent
from tests.plugins.adapters.otel.sample_spans import span
from tests.searches import examples

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
plain = texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6)
attributes = st.dictionaries(texts, values, max_size=4)
times = st.integers(1, 2**63)


@st.composite
def spans(draw: st.DrawFn) -> OtelSpan:
    start = draw(times)
    return OtelSpan(
        trace_id=f"{draw(st.integers(1, 2**128 - 1)):032x}",
        span_id=f"{draw(st.integers(1, 2**64 - 1)):016x}",
        parent_id=draw(st.just("") | st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")),
        name=draw(texts),
        start=start,
        end=max(start, draw(times)),
        kind=draw(st.integers(0, 5)),
        status=draw(st.integers(1, 2)),
        message=draw(texts),
        attributes=draw(attributes),
        events=[SpanEvent(name=draw(texts), at=draw(times), attributes=draw(attributes)) for _ in range(draw(st.integers(0, 2)))],
        resource={"service.name": draw(texts)},
        scope={"name": "decklog", "version": "1"},
    )


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(given=st.lists(spans(), min_size=1, max_size=3))
def test_what_is_written_is_read_as_it_was_by_us_and_by_the_library(given: list[OtelSpan]) -> None:
    for one in given:
        one.resource = given[0].resource
    request = otlp.request_of(given)
    for kind in (otlp.JSON, otlp.PROTOBUF):
        written = otlp.encoded(protobuf.REQUEST, request, kind)
        assert list(otlp.spans_in(otlp.decoded(protobuf.REQUEST, written, kind))) == given
    theirs = ExportTraceServiceRequest()
    theirs.ParseFromString(protobuf.encoded(protobuf.REQUEST, request))
    assert list(otlp.spans_in(protobuf.decoded(protobuf.REQUEST, theirs.SerializeToString()))) == given
    assert not _unknown(theirs)


def _unknown(request: Any) -> bool:
    from google.protobuf.unknown_fields import UnknownFieldSet

    found = [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return any(len(UnknownFieldSet(message)) for message in (request, *found))


@settings(max_examples=examples(200))
@given(data=st.binary(max_size=80))
def test_bytes_that_are_no_message_are_refused_and_nothing_worse(data: bytes) -> None:
    for kind in (otlp.JSON, otlp.PROTOBUF):
        try:
            for found in otlp.spans_in(otlp.decoded(protobuf.REQUEST, data, kind)):
                assert isinstance(found, OtelSpan | otlp.Unreadable)
        except Invalid:
            pass


def test_values_nested_without_end_are_refused() -> None:
    deep: dict[str, Any] = {"stringValue": "bottom"}
    for _ in range(200):
        deep = {"arrayValue": {"values": [deep]}}
    one = {"traceId": "1" * 32, "spanId": "1" * 16, "startTimeUnixNano": "5", "attributes": [{"key": "a", "value": deep}]}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}
    (found,) = otlp.spans_in(request)
    assert isinstance(found, otlp.Unreadable)
    assert "nested deeper" in found.why
    with pytest.raises(Invalid):
        protobuf.encoded(protobuf.REQUEST, request)
    with pytest.raises(Invalid):
        otlp.decoded(protobuf.REQUEST, b"[" * 100_000, otlp.JSON)


def test_fields_that_are_not_known_yet_are_passed_over() -> None:
    known = protobuf.encoded(protobuf.REQUEST, otlp.request_of([span(1)]))
    later = b"\xa2\x06\x03new" + b"\xa8\x06\x05" + b"\xb1\x06" + bytes(8) + b"\xbd\x06" + bytes(4)
    assert list(otlp.spans_in(protobuf.decoded(protobuf.REQUEST, known + later))) == [span(1)]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"traceId": "0" * 32}, "its traceId is none"),
        ({"traceId": "xyz"}, "its traceId is none"),
        ({"spanId": ""}, "its spanId is none"),
        ({"parentSpanId": "12"}, "its parentSpanId is none"),
        ({"startTimeUnixNano": "0"}, "does not say when it began"),
        ({"startTimeUnixNano": "soon"}, "startTimeUnixNano is no whole number"),
        ({"name": 5}, "name is no text"),
        ({"attributes": "a"}, "attributes is no list"),
        ({"attributes": [{"key": "a", "value": {"intValue": "x"}}]}, "intValue is no whole number"),
        ({"events": [3]}, "events is no list"),
        ({"status": 2}, "status is no object"),
    ],
)
def test_a_span_that_is_none_is_named_with_the_reason(wrong: dict[str, Any], why: str) -> None:
    request = otlp.request_of([span(1)])
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0] |= wrong
    (found,) = otlp.spans_in(request)
    assert isinstance(found, otlp.Unreadable)
    assert why in found.why


def test_names_of_kinds_and_numbers_that_json_can_not_hold_are_read() -> None:
    request = otlp.request_of([span(1)])
    written = request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    written |= {"kind": "SPAN_KIND_CLIENT", "status": {"code": "STATUS_CODE_ERROR"}, "traceId": written["traceId"].upper()}
    endless = {"key": "endless", "value": {"doubleValue": "Infinity"}}
    written["attributes"] = [endless, {"key": "raw", "value": {"bytesValue": "AAE="}}, {"key": "none", "value": {}}]
    (found,) = otlp.spans_in(request)
    assert isinstance(found, OtelSpan)
    assert (found.kind, found.status, found.trace_id) == (3, 2, span(1).trace_id)
    assert found.attributes == {"endless": "Infinity", "raw": {"base64": "AAE="}, "none": None}
