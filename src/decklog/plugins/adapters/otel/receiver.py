"""Receive spans by OTLP over HTTP. Every request must show the token, name this receiver and come from no web page."""

import asyncio
import socket
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from decklog.core.errors import Conflict, DecklogError, Denied, Invalid, TooLarge, Unavailable
from decklog.log import Decklog
from decklog.plugins.adapters.otel import otlp
from decklog.plugins.adapters.otel.export import PATH
from decklog.plugins.adapters.otel.importer import SpanWriter
from decklog.plugins.adapters.otel.protobuf import REQUEST, RESPONSE, STATUS

# Plug-ins must not import surfaces; only the type is needed.
if TYPE_CHECKING:
    from decklog.mcp.token import Token

HOST, PORT = "127.0.0.1", 4318
LOOPBACK = (HOST, "localhost", "::1")
MOST_BYTES = 16 * 1024**2
_MOST_CONNECTIONS = 16
# Collectors send some thousands at once; each takes several kilobytes until it is written.
_MOST_SPANS = 20_000
_IDLE_SECONDS, _REQUEST_SECONDS, _DISCARD_SECONDS = 60, 30.0, 2.0
_GZIP = 16 + zlib.MAX_WBITS
# The HTTP status of an error, by the first matching class. Senders retry after 503 only.
_STATUSES: tuple[tuple[type[DecklogError], int], ...] = (
    (TooLarge, 413),
    (Invalid, 400),
    (Denied, 403),
    (Unavailable, 503),
    (DecklogError, 500),
)
# The gRPC code of an HTTP status, for the body of an error.
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 413: 8, 415: 3, 421: 9, 500: 13, 503: 14}


class Receiver:
    """Listens at one address and writes to one log. `names` are further host names that requests may use.

    Other machines reach it by TLS, with the files of a certificate and its key, or by a proxy with this host name.
    """

    def __init__(
        self,
        log: Decklog,
        token: "Token",
        *,
        host: str = HOST,
        port: int = PORT,
        names: Sequence[str] = (),
        certificate: tuple[str, str] | None = None,
        proxy: str | None = None,
        by_conversation: bool = False,
    ) -> None:
        if host not in LOOPBACK and certificate is None and proxy is None:
            raise Invalid(
                "other machines reach a receiver by TLS or behind a proxy that has it: give one of the two",
                hint="Give --tls-cert and --tls-key, or --behind-proxy. Or forward the port: ssh -L 4318:127.0.0.1:4318 HOST",
                field="host",
            )
        self._server = uvicorn.Server(_config(self, certificate))
        self._socket = _listen(host, port)
        self._token = token
        self.port: int = self._socket.getsockname()[1]
        known = [*names, *(LOOPBACK if host in LOOPBACK else (host,))]
        self._hosts = {f"{_bracketed(name)}:{self.port}".lower() for name in known} | ({proxy.lower()} if proxy else set())
        self.address = f"{'http' if certificate is None else 'https'}://{_bracketed(host)}:{self.port}"
        self._writer = SpanWriter(log, by_conversation=by_conversation)
        # One request at a time is decoded and written: a decoded one takes many times the memory of its body.
        self._lock = Lock()

    def serve(self) -> None:
        """Answer requests until the process is interrupted or `stop` is called."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Make `serve` return."""
        self._server.should_exit = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as an ASGI application."""
        response = await self._respond(Request(scope, receive))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        kind = given if given in (otlp.JSON, otlp.PROTOBUF) else otlp.JSON
        if (refusal := self._refusal(request, given)) is not None:
            await _discard_body(request)
            return _error(kind, *refusal)
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                body = await _read_body(request)
            answer = await run_in_threadpool(self._take, body, kind)
        except (TimeoutError, ClientDisconnect):
            return _error(kind, 408, "the request took too long")
        except DecklogError as problem:
            return _error(kind, next(status for found, status in _STATUSES if isinstance(problem, found)), problem.message)
        return Response(otlp.encoded(RESPONSE, answer, kind), media_type=kind)

    def _refusal(self, request: Request, kind: str) -> tuple[int, str] | None:
        # Refuse repeated headers, which other programs may interpret differently.
        headers = {name: request.headers.getlist(name) for name in ("host", "origin", "authorization", "content-encoding")}
        if len(headers["host"]) != 1 or headers["host"][0].strip().lower() not in self._hosts:
            return 421, "this receiver goes by another name"
        if headers["origin"]:
            return 403, "pages may not send spans"
        shown = headers["authorization"]
        if len(shown) != 1 or not self._token.matches_header(shown[0].encode("latin-1", "replace")):
            return 401, "show the token: Authorization: Bearer TOKEN"
        if request.method != "POST":
            return 405, f"spans come by POST to {PATH}"
        if request.url.path != PATH:
            return 404, f"spans come by POST to {PATH}; nothing else is taken here"
        packing = headers["content-encoding"] or ["identity"]
        if kind not in (otlp.JSON, otlp.PROTOBUF) or packing not in (["identity"], ["gzip"]):
            return 415, f"the content is {otlp.PROTOBUF} or {otlp.JSON}, as it is or packed by gzip"
        return None

    def _take(self, body: bytes, kind: str) -> dict[str, Any]:
        """Record the spans of a request; return what was refused."""
        with self._lock:
            result = self._writer.take(_limited(otlp.spans_in(otlp.decoded(REQUEST, body, kind))))
        if not result.refused:
            return {}
        return {"partialSuccess": {"rejectedSpans": str(result.refused), "errorMessage": "; ".join(result.reasons)[:2000]}}


def _config(app: Receiver, certificate: tuple[str, str] | None) -> uvicorn.Config:
    cert, key = certificate or (None, None)
    config = uvicorn.Config(
        app,
        ssl_certfile=cert,
        ssl_keyfile=key,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        limit_concurrency=_MOST_CONNECTIONS + 1,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=1,
    )
    try:
        config.load()
    except OSError as problem:
        reason = getattr(problem, "reason", None) or problem.strerror or "they can't be read"
        raise Invalid(f"the certificate and its key can't be used: {reason}", field="tls_cert") from None
    return config


def _listen(host: str, port: int) -> socket.socket:
    taken = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
    except OSError as problem:
        taken.close()
        hint = "Name another: decklog receive otlp --port 0"
        raise Conflict(f"{host}:{port} can't be had: {problem.strerror}", hint=hint) from None
    taken.listen(64)
    return taken


async def _discard_body(request: Request) -> None:
    """Read the rest of a refused request: otherwise the sender would see a broken connection, not the reason."""
    size = 0
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(_DISCARD_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    return


async def _read_body(request: Request) -> bytes:
    """Read and unpack a body of limited size."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BYTES:
        raise TooLarge(f"the request is larger than {MOST_BYTES} bytes")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise TooLarge(f"the request is larger than {MOST_BYTES} bytes")
    return unpacked(bytes(body)) if request.headers.get("content-encoding") == "gzip" else bytes(body)


def unpacked(packed: bytes) -> bytes:
    """Decompress gzip; refuse data above the limit before it is fully decompressed."""
    parts: list[bytes] = []
    room = MOST_BYTES
    while packed:
        unpacking = zlib.decompressobj(_GZIP)
        try:
            part = unpacking.decompress(packed, room + 1)
        except zlib.error:
            raise Invalid("the request is not packed by gzip") from None
        room -= len(part)
        if room < 0:
            raise TooLarge(f"the request unpacks to more than {MOST_BYTES} bytes")
        if not unpacking.eof:
            raise Invalid("the packed request is cut off")
        parts.append(part)
        packed = unpacking.unused_data
    return b"".join(parts)


def _error(kind: str, status: int, message: str) -> Response:
    headers = {401: {"www-authenticate": "Bearer"}, 503: {"retry-after": "1"}}.get(status, {})
    body = otlp.encoded(STATUS, {"code": _CODES[status], "message": message}, kind)
    # Close the connection: the rest of a refused body would be parsed as the next request.
    return Response(body, status, {**headers, "connection": "close"}, media_type=kind)


def _limited(found: Iterator[otlp.OtelSpan | otlp.Unreadable]) -> Iterator[otlp.OtelSpan | otlp.Unreadable]:
    for number, one in enumerate(found):
        if number >= _MOST_SPANS:
            raise TooLarge(f"a request has at most {_MOST_SPANS} spans")
        yield one


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
