"""A collector that keeps what it is sent, read by OpenTelemetry's own library; and a receiver of ours in a thread."""

import gzip
import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from threading import Thread
from typing import Any

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from decklog import Decklog
from decklog.mcp.token import Token
from decklog.plugins.adapters.otel.receiver import Receiver

TOKEN = "t" * 32


@dataclass
class Collector:
    """What came, request by request, and what is to be answered: statuses with headers and bodies, and then 200."""

    server: HTTPServer
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Collect until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            found.headers.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
            status, headers, answer = found.answers.pop(0) if found.answers else (200, {}, b"")
            if status == 200:
                found.requests.append(_read(body, self.headers["content-type"]))
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Collector(server)
    with serving(server):
        yield found


def _read(body: bytes, kind: str) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    if kind == "application/json":
        document = json.loads(body)
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    _as_base64(span)
        return Parse(json.dumps(document), request)
    request.ParseFromString(body)
    return request


def _as_base64(span: dict[str, Any]) -> None:
    """Spell ids as the library's own JSON does; OTLP's has them in hexadecimal."""
    import base64

    for name in ("traceId", "spanId", "parentSpanId"):
        if name in span:
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()


@dataclass(frozen=True)
class Listening:
    """A receiver of ours."""

    receiver: Receiver

    @property
    def address(self) -> str:
        return self.receiver.address

    def post(self, body: bytes, path: str = "/v1/traces", method: str = "POST", **headers: str | None) -> tuple[int, bytes]:
        """Send a request with headers of its own; give the status and the body of the answer."""
        port = self.receiver.port
        usual = {"host": f"127.0.0.1:{port}", "authorization": f"Bearer {TOKEN}", "content_type": "application/json"}
        given = {name.replace("_", "-"): value for name, value in {**usual, **headers}.items() if value is not None}
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, answer.read()


@contextmanager
def receiving(log: Decklog, **settings: Any) -> Iterator[Listening]:
    """Receive until the block is left."""
    receiver = Receiver(log, Token(TOKEN), port=0, **settings)
    thread = Thread(target=receiver.serve)
    thread.start()
    try:
        yield Listening(receiver)
    finally:
        receiver.stop()
        thread.join()


@contextmanager
def serving(server: HTTPServer) -> Iterator[None]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
