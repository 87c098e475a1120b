"""The receiver: OpenTelemetry's own library sends to it, whoever has no token does not, and no request costs more than it may."""

import gzip
import http.client
import json
import socket
import ssl
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from decklog import Conflict, Decklog, Invalid, RunStatus
from decklog.mcp.token import Token
from decklog.plugins.adapters.otel import otlp, protobuf, receiver
from decklog.plugins.adapters.otel.receiver import Receiver
from tests.plugins.adapters.otel.sample_spans import TRACE, chat, entries, list_bodies, span
from tests.plugins.adapters.otel.servers import TOKEN, Listening, receiving
from tests.web.test_elsewhere import certificate

RUN = f"trace-{TRACE}"
ONE = otlp.encoded(protobuf.REQUEST, otlp.request_of([chat(1)]), otlp.JSON)


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_library_of_opentelemetry_sends_a_loop(log: Decklog, compression: Compression) -> None:
    with receiving(log) as listening:
        headers = {"authorization": f"Bearer {TOKEN}"}
        exporter = OTLPSpanExporter(f"{listening.address}/v1/traces", headers=headers, compression=compression)
        provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("loop", "1")
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "finder"}
        with tracer.start_as_current_span("invoke_agent finder", attributes=agent):
            paid = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "a-model", "gen_ai.usage.input_tokens": 90}
            with tracer.start_as_current_span("chat a-model", attributes={**paid, "gen_ai.usage.output_tokens": 7}):
                pass
            used = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "read",
                "gen_ai.tool.call.arguments": '{"path":"a.py"}',
            }
            with pytest.raises(ValueError), tracer.start_as_current_span("execute_tool read", attributes=used):
                raise ValueError("no such file")
        provider.shutdown()
    (run,) = log.runs.find()
    assert (run.goal, run.status) == ("invoke_agent finder", RunStatus.COMPLETED)
    assert list_bodies(log, run.id) == [
        ("resource", "shop"),
        ("step", "invoke_agent finder"),
        ("step", "chat a-model"),
        ("step.ended", "chat a-model: ok"),
        ("call", "read a.py"),
        ("exception", "no such file"),
        ("result", "ValueError: no such file"),
        ("step.ended", "invoke_agent finder: ok"),
    ]
    (charge,) = log.ledger.find(run_id=run.id)
    assert (charge.model, charge.input_tokens, charge.output_tokens) == ("a-model", 90, 7)


# Who may send


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"authorization": None}, 401),
        ({"authorization": "Bearer " + "x" * 32}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": "Bearer é"}, 401),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": None}, 415),
        ({"content_encoding": "br"}, 415),
        ({"content_type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_whoever_may_not_send_is_refused_and_nothing_is_written(
    listening: Listening, there: Decklog, headers: dict[str, str | None], status: int
) -> None:
    assert listening.post(ONE, **headers)[0] == status
    assert len(there.runs.find()) == (status == 200)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/metrics", 404),
        ("POST", "/", 404),
        ("GET", "/v1/traces", 405),
        ("OPTIONS", "/v1/traces", 405),
        ("PUT", "/", 405),
    ],
)
def test_there_is_one_path_and_one_method(listening: Listening, method: str, path: str, status: int) -> None:
    assert listening.post(ONE, path=path, method=method)[0] == status


def test_headers_that_come_twice_are_refused(listening: Listening) -> None:
    port = listening.receiver.port
    for name, value in (("Host", f"127.0.0.1:{port}"), ("Authorization", f"Bearer {TOKEN}"), ("Content-Length", "5")):
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.putrequest("POST", "/v1/traces", skip_host=True, skip_accept_encoding=True)
            told = {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {TOKEN}", "Content-Length": str(len(ONE))}
            for known, text in {**told, "Content-Type": otlp.JSON}.items():
                connection.putheader(known, text)
            connection.putheader(name, value)
            # The server closes the connection when it can't tell the length of the body.
            connection.endheaders(None if name == "Content-Length" else ONE)
            answer = connection.getresponse()
            answer.read()
            assert answer.status in (400, 401, 421)


def test_sender_of_a_large_body_sees_why_it_is_refused(listening: Listening) -> None:
    for _ in range(10):
        assert listening.post(b"x" * 3_000_000, authorization="Bearer wrong")[0] == 401


def test_another_name_is_answered_to_when_told(there: Decklog) -> None:
    with receiving(there, names=["Collector.local"]) as listening:
        port = listening.receiver.port
        assert listening.post(ONE, host=f"collector.local:{port}")[0] == 200


def test_a_port_that_is_taken_is_named(listening: Listening, here: Decklog) -> None:
    port = listening.receiver.port
    with pytest.raises(Conflict, match=f"127.0.0.1:{port} can't be had"):
        Receiver(here, Token(TOKEN), port=port)


def test_other_machines_need_tls_or_a_proxy_that_has_it(there: Decklog, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="by TLS or behind a proxy"):
        Receiver(there, Token(TOKEN), host="0.0.0.0", port=0)
    with pytest.raises(Invalid, match="certificate and its key can't be used"):
        Receiver(there, Token(TOKEN), port=0, certificate=(str(tmp_path / "none"), str(tmp_path / "none")))
    with receiving(there, proxy="Spans.example") as listening:
        assert listening.post(ONE, host="spans.example")[0] == 200


def test_a_receiver_with_a_certificate_speaks_tls_and_nothing_else(there: Decklog, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with receiving(there, certificate=(str(cert), str(key))) as listening:
        trusting = ssl.create_default_context(cafile=str(cert))
        trusting.check_hostname = False
        port = listening.receiver.port
        with closing(http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=30)) as connection:
            connection.request("POST", "/v1/traces", ONE, {"authorization": f"Bearer {TOKEN}", "content-type": otlp.JSON})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"{}")
        with pytest.raises(OSError):
            listening.post(ONE)
        assert listening.address == f"https://127.0.0.1:{port}"


# What a request may be


def test_what_can_not_be_read_is_answered_with_the_reason_in_the_same_encoding(listening: Listening) -> None:
    status, told = listening.post(b"{", content_type=otlp.JSON)
    assert (status, json.loads(told)["code"]) == (400, 3)
    status, told = listening.post(b"\x0a", content_type=otlp.PROTOBUF)
    assert status == 400
    assert "the message is no ExportTraceServiceRequest" in protobuf.decoded(protobuf.STATUS, told)["message"]
    assert listening.post(b'{"resourceSpans": 5}')[0] == 400
    assert listening.post(b"{}") == (200, b"{}")
    assert listening.post(b"", content_type=otlp.PROTOBUF) == (200, b"")


def test_of_a_request_what_can_be_taken_is_and_the_rest_is_counted(listening: Listening, there: Decklog) -> None:
    request = otlp.request_of([chat(1), chat(2), span(3)])
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["spanId"] = "none"
    forged = otlp.request_of([span(4, attributes={"decklog.run.id": "@memory"})])
    request["resourceSpans"] += forged["resourceSpans"]
    status, told = listening.post(otlp.encoded(protobuf.REQUEST, request, otlp.JSON))
    partial = json.loads(told)["partialSuccess"]
    assert (status, partial["rejectedSpans"]) == (200, "2")
    assert "its spanId is none" in partial["errorMessage"]
    assert len(there.ledger.find(run_id=RUN)) == 1
    assert len(entries(there, RUN)) == 4
    del request["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    _, told = listening.post(protobuf.encoded(protobuf.REQUEST, request), content_type=otlp.PROTOBUF)
    theirs = ExportTraceServiceResponse()
    theirs.ParseFromString(told)
    assert theirs.partial_success.rejected_spans == 1


def test_a_little_that_unpacks_to_very_much_is_refused_before_it_does(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "MOST_BYTES", 100_000)
    bomb = gzip.compress(b"0" * (receiver.MOST_BYTES + 1))
    assert len(bomb) < 1000
    assert listening.post(bomb, content_encoding="gzip")[0] == 413
    # Many small parts, one after the other.
    part = gzip.compress(b"0" * (receiver.MOST_BYTES // 8))
    assert listening.post(part * 9, content_encoding="gzip")[0] == 413
    for broken in (b"no gzip", gzip.compress(ONE)[:-9], zlib.compress(ONE)):
        assert listening.post(broken, content_encoding="gzip")[0] == 400
    half = len(ONE) // 2
    assert listening.post(gzip.compress(ONE[:half]) + gzip.compress(ONE[half:]), content_encoding="gzip")[0] == 200


def test_more_than_is_written_at_once_is_refused_whole(
    listening: Listening, there: Decklog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decklog.plugins.adapters.otel.receiver._MOST_SPANS", 3)
    many = otlp.request_of([chat(number) for number in range(1, 5)])
    assert listening.post(otlp.encoded(protobuf.REQUEST, many, otlp.JSON))[0] == 413
    monkeypatch.setattr(protobuf, "_MOST_MESSAGES", 1000)
    # Two bytes a span, which says nothing.
    assert listening.post(b"\x0a\x81\x10\x12\xfe\x0f" + b"\x12\x00" * 1023, content_type=otlp.PROTOBUF)[0] == 413
    assert list(there.runs.find()) == []


def raw(listening: Listening, *lines: bytes) -> bytes:
    """Write a request as it stands, and read the answer to its end."""
    port = listening.receiver.port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = (b"POST /v1/traces HTTP/1.1", f"Host: 127.0.0.1:{port}".encode(), f"Authorization: Bearer {TOKEN}".encode())
        connection.sendall(b"\r\n".join((*head, b"Content-Type: application/json", b"Connection: close", *lines)))
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_body_may_come_in_chunks(listening: Listening, there: Decklog) -> None:
    parts = (ONE[:7], ONE[7:100], ONE[100:])
    chunks = b"".join(b"%x;name=value\r\n%s\r\n" % (len(part), part) for part in parts)
    answer = raw(listening, b"Transfer-Encoding: chunked", b"", chunks + b"0\r\nTrailer: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(there.ledger.find(run_id=RUN)) == 1


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ((b"Content-Length: 99999999999", b"", b""), b"413"),
        ((b"Content-Length: -5", b"", b""), b"400"),
        ((b"Content-Length: 5", b"Transfer-Encoding: chunked", b"", b"0\r\n\r\n"), b"400"),
        ((b"Transfer-Encoding: gzip", b"", b""), b"400"),
        ((b"Transfer-Encoding: chunked", b"", b"zz\r\n"), b"400"),
        ((b"Transfer-Encoding: chunked", b"", b"2\r\n{}XX0\r\n\r\n"), b"400"),
        ((b"", b""), b"400"),
    ],
)
def test_lengths_that_lie_are_refused(listening: Listening, lines: tuple[bytes, ...], status: bytes) -> None:
    assert raw(listening, *lines).split(b" ", 2)[1] == status


def test_a_sender_that_drips_is_not_waited_for(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decklog.plugins.adapters.otel.receiver._REQUEST_SECONDS", 0.05)
    assert raw(listening, b"Content-Length: 50", b"", b"{").startswith(b"HTTP/1.1 408")
    assert listening.post(ONE)[0] == 200


def test_more_at_once_than_there_is_room_for_are_told_to_come_again(there: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decklog.plugins.adapters.otel.receiver._MOST_CONNECTIONS", 1)
    with receiving(there) as listening:
        port = listening.receiver.port
        with socket.create_connection(("127.0.0.1", port), timeout=30) as idle:
            idle.sendall(b"POST")
            assert listening.post(ONE)[0] == 503


@pytest.mark.slow
def test_many_senders_at_once_each_with_the_same_spans_write_them_once(log: Decklog) -> None:
    spans = [chat(number, 99, at=number) for number in range(1, 5)]
    bodies = [otlp.encoded(protobuf.REQUEST, otlp.request_of(spans[start:]), otlp.PROTOBUF) for start in range(4)]
    with receiving(log) as listening, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda body: listening.post(body, content_type=otlp.PROTOBUF), bodies))
    assert answers == [(200, b"")] * 4
    assert len(log.ledger.find(run_id=RUN, limit=50)) == 4
    assert len(entries(log, RUN)) == 8
    assert log.journal.verify().ok


def test_a_log_that_can_not_be_written_now_asks_to_try_again(there: Decklog, listening: Listening) -> None:
    there.close()
    status, told = listening.post(ONE)
    assert (status, json.loads(told)["code"]) == (503, 14)
