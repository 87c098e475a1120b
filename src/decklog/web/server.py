"""The server: it listens on this machine's loopback, or where it is told to, and ends at once when it is told to."""

import signal
import socket
from contextlib import suppress
from types import FrameType

import uvicorn

from decklog.errors import Unavailable
from decklog.web.admission import MOST_HEADERS
from decklog.web.application import application
from decklog.web.elsewhere import Elsewhere
from decklog.web.live import Feed
from decklog.web.site import Site

_GRACE_SECONDS = 1


class _Server(uvicorn.Server):
    """Ends the streams of open pages before it waits for requests to end: a stream has no end of its own."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self._feed = feed

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._feed.close()
        super().handle_exit(sig, frame)


_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


def listening(port: int, host: str | None = None) -> list[socket.socket]:
    """Take a port of the loopback, in both of its forms where the machine has them, or of another address."""
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
        # From here on whoever comes waits to be answered: the link can be shown.
        one.listen(128)
        taken.append(one)
    return taken


def _addresses(host: str, port: int) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise Unavailable(f"{host} is no address of this machine", hint="Give one with --host, as 192.0.2.7.") from None
    return list(dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found))


def serve(site: Site, sockets: list[socket.socket], elsewhere: Elsewhere | None = None) -> None:
    """Answer until SIGINT or SIGTERM comes."""
    tls = (elsewhere.certificate, elsewhere.certificate_key) if elsewhere is not None else (None, None)
    config = uvicorn.Config(
        application(site),
        log_level="error",
        access_log=False,
        ws="none",
        http="h11",
        server_header=False,
        proxy_headers=False,
        ssl_certfile=tls[0],
        ssl_keyfile=tls[1],
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEADERS + 16 * 1024,
    )
    # The server tells itself the signal once more when it has ended; by then there is nothing left to do.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with suppress(KeyboardInterrupt):
            _Server(config, site.feed).run(sockets=sockets)
    finally:
        signal.signal(signal.SIGTERM, before)
