"""Sending to a collector: what may be tried again is, what may not is not, and each answer is told as what it is."""

import http.client
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from decklog import Denied, Invalid, ManualClock, Unavailable
from decklog.core.errors import Unreachable
from decklog.plugins.adapters.otel import otlp, protobuf
from decklog.plugins.adapters.otel.export import Sender
from tests.plugins.adapters.otel.sample_spans import span
from tests.plugins.adapters.otel.servers import Collector

Waits = list[float]


@pytest.fixture
def waits() -> Waits:
    return []


@pytest.fixture
def sender(collector: Collector, clock: ManualClock, waits: Waits) -> Iterator[Callable[..., Sender]]:
    made: list[Sender] = []

    def make(**settings: Any) -> Sender:
        made.append(Sender(collector.address, clock, wait=waits.append, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("kind", [otlp.JSON, otlp.PROTOBUF])
def test_spans_arrive_packed_in_either_encoding(collector: Collector, sender: Callable[..., Sender], kind: str) -> None:
    sender(kind=kind, headers={"x-api-key": "v"}).send([span(1, "a", attributes={"n": 5}), span(2, "b", parent=1)])
    assert [(one.name, one.span_id.hex(), one.parent_span_id.hex()) for one in collector.spans] == [
        ("a", f"{1:016x}", ""),
        ("b", f"{2:016x}", f"{1:016x}"),
    ]
    (headers,) = collector.headers
    assert (headers["path"], headers["content-encoding"], headers["x-api-key"]) == ("/v1/traces", "gzip", "v")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_collector_that_is_busy_is_asked_again_after_longer_and_longer(
    collector: Collector, sender: Callable[..., Sender], waits: Waits, status: int
) -> None:
    collector.answers = [(status, {}, b"")] * 3
    sender().send([span(1)])
    assert (waits, len(collector.spans)) == ([0.5, 1.0, 2.0], 1)


def test_a_collector_says_itself_how_long_to_wait(
    collector: Collector, sender: Callable[..., Sender], clock: ManualClock, waits: Waits
) -> None:
    moment = format_datetime(clock.now() + timedelta(seconds=20), usegmt=True)
    collector.answers = [
        (429, {"retry-after": "7"}, b""),
        (503, {"retry-after": moment}, b""),
        (503, {"retry-after": "soon"}, b""),
    ]
    sender().send([span(1)])
    assert waits == [7.0, 20.0, 2.0]


def test_patience_ends(collector: Collector, sender: Callable[..., Sender], waits: Waits) -> None:
    collector.answers = [(503, {}, b"")] * 20
    with pytest.raises(Unreachable, match="answered 503") as raised:
        sender(patience_seconds=10).send([span(1)])
    assert (sum(waits) <= 10, raised.value.retryable) == (True, True)
    collector.answers = [(429, {"retry-after": "3600"}, b"")]
    with pytest.raises(Unreachable):
        sender(patience_seconds=10).send([span(1)])


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, Invalid), (401, Denied), (403, Denied), (404, Invalid), (500, Invalid), (501, Invalid), (307, Invalid)],
)
def test_a_refusal_is_not_tried_again(
    collector: Collector, sender: Callable[..., Sender], waits: Waits, status: int, error: type[Exception]
) -> None:
    told = protobuf.encoded(protobuf.STATUS, {"code": 3, "message": "that is why"})
    collector.answers = [(status, {"content-type": otlp.PROTOBUF, "location": "http://127.0.0.1:1/"}, told)]
    with pytest.raises(error, match=f"answered {status} to 1 spans: that is why"):
        sender().send([span(1)])
    assert (waits, len(collector.headers)) == ([], 1)


def test_what_is_too_large_is_sent_in_halves(collector: Collector, sender: Callable[..., Sender]) -> None:
    collector.answers = [(413, {}, b"")] * 2
    sender().send([span(number) for number in range(1, 9)])
    assert [len(request.resource_spans[0].scope_spans[0].spans) for request in collector.requests] == [2, 2, 4]
    collector.answers = [(413, {}, b"")]
    with pytest.raises(Invalid, match="413"):
        sender().send([span(1)])


def test_spans_that_a_collector_did_not_want_are_counted_and_never_sent_again(
    collector: Collector, sender: Callable[..., Sender]
) -> None:
    document = {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}
    collector.answers = [
        (200, {"content-type": otlp.PROTOBUF}, protobuf.encoded(protobuf.RESPONSE, document)),
        (200, {"content-type": "application/json; charset=utf-8"}, json.dumps(document).encode()),
    ]
    sending = sender()
    for _ in range(2):
        sending.send([span(1), span(2), span(3)])
    assert (sending.rejected, sending.messages, len(collector.requests)) == (4, ["too old", "too old"], 2)


def test_a_collector_that_is_not_there_is_tried_and_named(clock: ManualClock, waits: Waits) -> None:
    sending = Sender("http://127.0.0.1:1", clock, wait=waits.append, patience_seconds=3)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1 was not reached"):
        sending.send([span(1)])
    assert waits == [0.5, 1.0]


def test_a_connection_that_was_closed_in_between_is_made_again(
    collector: Collector, sender: Callable[..., Sender], waits: Waits
) -> None:
    sending = sender()
    sending.send([span(1)])
    assert isinstance(sending._connection, http.client.HTTPConnection)
    assert sending._connection.sock is not None
    sending._connection.sock.shutdown(2)
    sending.send([span(2)])
    assert [one.span_id.hex() for one in collector.spans] == [f"{1:016x}", f"{2:016x}"]


@pytest.mark.parametrize(
    "address", ["localhost:4318", "ftp://localhost", "http://", "http://user:word@localhost:4318", "http://localhost:4318/?a=b"]
)
def test_what_is_no_address_is_refused(address: str, clock: ManualClock) -> None:
    with pytest.raises(Invalid):
        Sender(address, clock)


def test_a_path_of_a_collectors_own_is_kept(clock: ManualClock) -> None:
    paths = {"http://h": "/v1/traces", "http://h/otel/": "/otel/v1/traces", "https://h/a/v1/traces": "/a/v1/traces"}
    assert {address: Sender(address, clock)._path for address in paths} == paths


@pytest.mark.parametrize("header", [{"a\nb": "v"}, {"a": "v\r\nx: y"}, {"": "v"}, {"a b": "v"}])
def test_a_header_that_would_be_two_is_refused(header: dict[str, str], clock: ManualClock) -> None:
    with pytest.raises(Invalid):
        Sender("http://h", clock, headers=header)
