"""A receiver of spans by OTLP over HTTP. Every request shows the token, names this receiver and comes from no page.

It is the standard library's server: one path, small answers, and nothing to install on a machine that only wants to listen.
"""

import io
import socket
import ssl
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, DecklogError, Denied, Invalid, TooLarge, Unavailable
from decklog.plugins.adapters.otel import otlp
from decklog.plugins.adapters.otel.arrivals import Arrivals
from decklog.plugins.adapters.otel.body import NotSupported, TimedReader, read_body
from decklog.plugins.adapters.otel.protobuf import REQUEST, RESPONSE, STATUS
from decklog.plugins.adapters.otel.sending import PATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from decklog.log import Decklog
    from decklog.mcp.token import Token
    from decklog.plugins.adapters.otel.span import OtelSpan

HOST, PORT = "127.0.0.1", 4318
LOOPBACK = (HOST, "localhost", "::1")
_MOST_CONNECTIONS = 16
# Collectors send some thousands at once; each takes several kilobytes until it is written.
_MOST_SPANS = 20_000
_IDLE_SECONDS, _REQUEST_SECONDS = 60.0, 30.0
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
# What an error is in HTTP; the first that it is an instance of decides. By the protocol, 503 is tried again and the others not.
_STATUSES: "tuple[tuple[type[DecklogError], int], ...]" = (
    (NotSupported, 415),
    (TooLarge, 413),
    (Invalid, 400),
    (Denied, 403),
    (Unavailable, 503),
    (DecklogError, 500),
)
# The same in the words of gRPC, whose message an error's answer is.
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 3, 421: 9, 500: 13, 503: 14}


class Receiver(ThreadingHTTPServer):
    """Listens at one address and writes to one log. `names` are further ones that requests may call it by.

    Other machines reach it by TLS, with the files of a certificate and its key, or by a proxy that has it and leaves this name.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(
        self,
        log: "Decklog",
        token: "Token",
        *,
        host: str = HOST,
        port: int = PORT,
        names: "Sequence[str]" = (),
        certificate: "tuple[str, str] | None" = None,
        proxy: str | None = None,
        by_conversation: bool = False,
    ) -> None:
        if host not in LOOPBACK and certificate is None and proxy is None:
            raise Invalid(
                "other machines reach a receiver by TLS or behind a proxy that has it: give one of the two",
                hint="Give --tls-cert and --tls-key, or --behind-proxy. Or forward the port: ssh -L 4318:127.0.0.1:4318 HOST",
                field="host",
            )
        self._tls = None if certificate is None else _context(*certificate)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as problem:
            hint = "Name another: decklog receive otlp --port 0"
            raise Conflict(f"{host}:{port} can't be had: {problem.strerror}", hint=hint) from None
        self.token = token
        taken = self.server_address[1]
        known = [*names, *(LOOPBACK if host in LOOPBACK else (host,))]
        self.hosts = {f"{_bracketed(name)}:{taken}".lower() for name in known} | ({proxy.lower()} if proxy else set())
        self.address = f"{'http' if self._tls is None else 'https'}://{_bracketed(host)}:{taken}"
        self._arrivals = Arrivals(log, by_conversation=by_conversation)
        self._room = BoundedSemaphore(_MOST_CONNECTIONS)
        # One request at a time is read and written: what is unpacked takes many times the memory of what came.
        self._turn = Lock()

    def server_bind(self) -> None:
        """Take the address, without asking anybody what this machine is called."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def process_request(self, request: "Any", client_address: "Any") -> None:
        """Answer in a thread; past the number of those, say at once that it is to be tried again."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            if self._tls is None:
                request.settimeout(1.0)
                request.sendall(_FULL)
        self.shutdown_request(request)

    def get_request(self) -> "tuple[Any, Any]":
        """Take the next connection. Those of TLS agree on their keys when they are read, each in its own thread and time."""
        request, client_address = super().get_request()
        if self._tls is not None:
            request = self._tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, client_address

    def process_request_thread(self, request: "Any", client_address: "Any") -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def take(self, body: bytes, kind: str) -> "dict[str, Any]":
        """Put the spans of a request on record, and say what was refused."""
        with self._turn:
            arrived = self._arrivals.take(_counted(otlp.spans_in(otlp.decoded(REQUEST, body, kind))))
        if not arrived.refused:
            return {}
        return {"partialSuccess": {"rejectedSpans": str(arrived.refused), "errorMessage": "; ".join(arrived.reasons)[:2000]}}


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Receiver
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "decklog", ""

    def setup(self) -> None:
        super().setup()
        self._timed = TimedReader(self.connection)
        self.rfile = io.BufferedReader(self._timed)

    def handle_one_request(self) -> None:
        self._timed.allow(_IDLE_SECONDS)
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError, ssl.SSLError):
            # It went away, took too long, or does not speak TLS: there is nobody to tell.
            self.close_connection = True

    def log_message(self, *_words: object) -> None:
        """Say nothing: what is sent here is on record, and who shows which token is nobody's business."""

    def do_POST(self) -> None:
        kind = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        self._kind = kind if kind in (otlp.JSON, otlp.PROTOBUF) else otlp.JSON
        if (refusal := self._refusal(kind)) is not None:
            # The body is not read, and would be taken for the next request.
            self.close_connection = True
            self._refuse(*refusal)
            return
        try:
            self._timed.allow(_REQUEST_SECONDS)
            answer = self.server.take(read_body(self.headers, self.rfile), kind)
        except DecklogError as problem:
            self.close_connection = True
            self._refuse(next(status for found, status in _STATUSES if isinstance(problem, found)), problem.message)
        else:
            self._answer(200, otlp.encoded(RESPONSE, answer, self._kind))

    def _other(self) -> None:
        self._kind = otlp.JSON
        self.close_connection = True
        self._refuse(405, f"spans come by POST to {PATH}")

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _other

    def _refusal(self, kind: str) -> tuple[int, str] | None:
        # A header that comes twice could mean one thing here and another further in.
        told = {name: self.headers.get_all(name) or [] for name in ("Host", "Origin", "Authorization", "Content-Encoding")}
        if len(told["Host"]) != 1 or told["Host"][0].strip().lower() not in self.server.hosts:
            return 421, "this receiver goes by another name"
        if told["Origin"]:
            return 403, "pages may not send spans"
        shown = told["Authorization"]
        if len(shown) != 1 or not self.server.token.is_shown_by(shown[0].encode("latin-1", "replace")):
            return 401, "show the token: Authorization: Bearer TOKEN"
        if self.path.partition("?")[0] != PATH:
            return 404, f"spans come by POST to {PATH}; nothing else is taken here"
        if kind not in (otlp.JSON, otlp.PROTOBUF) or len(told["Content-Encoding"]) > 1:
            return 415, f"the content is {otlp.PROTOBUF} or {otlp.JSON}"
        return None

    def _refuse(self, status: int, message: str) -> None:
        document = {"code": _CODES[status], "message": message}
        self._answer(status, otlp.encoded(STATUS, document, self._kind))

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", self._kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        if status == 503:
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _counted(found: "Iterator[OtelSpan | otlp.Unreadable]") -> "Iterator[OtelSpan | otlp.Unreadable]":
    """Give spans, but no more than are written at once."""
    for number, one in enumerate(found):
        if number >= _MOST_SPANS:
            raise TooLarge(f"a request has at most {_MOST_SPANS} spans")
        yield one


def _context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as problem:
        said = getattr(problem, "reason", None) or problem.strerror or "they can't be read"
        raise Invalid(f"the certificate and its key can't be used: {said}", field="tls_cert") from None
    return context


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
