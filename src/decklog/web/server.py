"""The server: it listens on loopback or the given address, and stops at once on a signal."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from decklog.core.errors import Unavailable
from decklog.web.application import application
from decklog.web.hosts import Elsewhere
from decklog.web.live import ChangeFeed
from decklog.web.login import MOST_HEADERS
from decklog.web.site import DashboardSite

_GRACE_SECONDS = 1
# Requests fit into one packet, so a complete one arrives within this time.
QUERY_SECONDS = 10.0


class Impatient(H11Protocol):
    """HTTP protocol that closes a connection without a complete request in time, against slow clients that block it."""

    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        self._expect()
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._has_come()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_come()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._overdue is None:
            self._overdue = self.loop.call_later(QUERY_SECONDS, self.transport.close)

    def _has_come(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None


class _Server(uvicorn.Server):
    """Server that ends the event streams before it waits for open requests; a stream never ends otherwise."""

    def __init__(self, config: uvicorn.Config, feed: ChangeFeed) -> None:
        super().__init__(config)
        self._feed = feed

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._feed.close()
        super().handle_exit(sig, frame)

    def end(self, *_: object) -> None:
        """Stop the server. Signals before the first request and repeated signals work too."""
        self._feed.close()
        self.should_exit = True


_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


def listening(port: int, host: str | None = None) -> list[socket.socket]:
    """Open listening sockets on the loopback addresses (IPv4 and IPv6 if available), or on another address."""
    taken: list[socket.socket] = []
    for family, address in _LOOPBACK if host is None else _addresses(host, port):
        try:
            one = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
        except OSError as problem:
            one.close()
            if not taken:
                raise Unavailable(
                    f"port {port} can't be had: {problem.strerror}", hint="Is a dashboard running already? Or give --port."
                ) from None
            continue
        # Connections queue from here on, so the link can be shown.
        one.listen(128)
        taken.append(one)
    return taken


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise Unavailable(f"{host} is no address of this machine", hint="Give one with --host, as 192.0.2.7.") from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


@contextmanager
def ready(site: DashboardSite, elsewhere: Elsewhere | None = None) -> Iterator[Callable[[list[socket.socket]], None]]:
    """Let SIGINT and SIGTERM stop the server, and yield the function that serves until then."""
    server = _Server(_config(site, elsewhere), site.feed)
    before = {sig: signal.signal(sig, server.end) for sig in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield server.run
    finally:
        site.verifying.end()
        for sig, handler in before.items():
            signal.signal(sig, handler)


def _config(site: DashboardSite, elsewhere: Elsewhere | None) -> uvicorn.Config:
    tls = (elsewhere.certificate, elsewhere.certificate_key) if elsewhere is not None else (None, None)
    return uvicorn.Config(
        application(site),
        log_level="error",
        access_log=False,
        ws="none",
        http=Impatient,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=tls[0],
        ssl_keyfile=tls[1],
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEADERS + 16 * 1024,
    )
