"""`decklog serve` as a process: its sockets, its link and its end."""

import asyncio
import http.client
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from uvicorn.server import ServerState

from decklog import Decklog
from decklog.cli.call import Invocation
from decklog.cli.commands.serving import _log_name, serve_dashboard
from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint
from decklog.location.locate import LogLocation
from decklog.web import server as web_server
from decklog.web.server import listening, ready
from tests.every import every
from tests.web.client import NAMES, Browser
from tests.web.serving import Server, free_port

Words = tuple[str, ...]
FULL = bool(os.environ.get("DECKLOG_TEST_FULL"))


@contextmanager
def request(
    server: Server, method: str, path: str, body: str | None = None, **headers: str
) -> Iterator[http.client.HTTPResponse]:
    host = {"Host": server.origin.removeprefix("http://")}
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
        connection.request(method, path, body, host | {name.replace("_", "-"): value for name, value in headers.items()})
        with connection.getresponse() as answer:
            yield answer


@pytest.mark.slow
def test_server_listens_on_loopback_logs_in_by_link_and_ends_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Decklog.open(path) as log:
        log.runs.start("Teach the parser to read trailing commas", run_id="commas")
    server = Server(str(path), tmp_path).start()
    try:
        token = server.link.partition("#")[2]
        assert token not in Path(f"/proc/{server.pid}/cmdline").read_text()
        follow(server, path, token)
    finally:
        server.stop(signal.SIGKILL)
    assert len(server.printed.splitlines()) == 1
    state_files = [one for one in (tmp_path / "state").rglob("*") if one.is_file()]
    assert [stat.S_IMODE(one.stat().st_mode) for one in state_files] == [0o600]
    assert token not in state_files[0].read_text()


def follow(server: Server, path: Path, token: str) -> None:
    """Log in, read a page, follow new entries, and end the server during that."""
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.origin}
    with request(server, "GET", "/", Host="attacker.example") as answer:
        assert answer.status == 421
    with request(server, "POST", "/login", urlencode({"token": token}), **form) as answer:
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
    with request(server, "GET", "/", Cookie=cookie) as page:
        assert (page.status, b"Teach the parser" in page.read(), page.getheader("server")) == (200, True, None)
    with request(server, "GET", "/events", Cookie=cookie) as stream:
        assert stream.readline().startswith(b"data:")
        with Decklog.open(path) as log:
            log.journal.append("commas", "hello")
        while b'"commas": 2' not in stream.readline():
            pass
        began = time.monotonic()
        assert server.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < 30


def test_used_port_is_refused_with_its_number() -> None:
    port = free_port()
    sockets = listening(port)
    try:
        with pytest.raises(Unavailable, match=f"port {port}"):
            listening(port)
        assert {opened.getsockname()[0] for opened in sockets} <= {"127.0.0.1", "::1"}
    finally:
        for opened in sockets:
            opened.close()


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "decklog.web.server", raising=False)
    monkeypatch.delattr("decklog.web.server", raising=False)
    with pytest.raises(Unavailable, match="uvicorn") as problem:
        serve_dashboard(Invocation(["--db", str(tmp_path / "log.db")]), None, False, None)
    assert problem.value.hint == install_hint("web")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/srv/parser/.decklog/decklog.db", "parser"),
        ("/srv/logs/team.db", "logs"),
        ("postgresql://ana@host/team?sslmode=require", "team"),
    ],
)
def test_log_is_named_after_its_project_or_database(target: str, name: str) -> None:
    assert _log_name(LogLocation(target, "named")) == name


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signal_before_the_first_request_ends_the_server(stranger: Browser, sent: signal.Signals) -> None:
    """The link is printed before the first request."""
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    with ready(stranger.site) as answer:
        signal.raise_signal(sent)
        answer(listening(free_port()))
    assert stranger.site.feed.is_closed
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers


_HEAD = f"Host: {NAMES.host}\r\nOrigin: {NAMES.origin}\r\n".encode()
_BODY = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\ntok"


@every(
    "sent",
    [b"", b"G", b"GET / HTTP/1.1\r\nHost: x", b"POST /login HTTP/1.1\r\n" + _HEAD + _BODY],
    ids=["nothing", "one byte", "half a head", "half a body"],
)
def test_incomplete_request_times_out(stranger: Browser, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(web_server, "QUERY_SECONDS", 0.02)
    assert stranger.runner.run(read_response(stranger, sent)) == b""


def test_complete_request_is_answered(stranger: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "QUERY_SECONDS", 60.0)
    sent = b"GET /login HTTP/1.1\r\n" + _HEAD + b"Connection: close\r\n\r\n"
    assert stranger.runner.run(read_response(stranger, sent)).startswith(b"HTTP/1.1 200")


async def read_response(browser: Browser, sent: bytes) -> bytes:
    """Send bytes to a server and return all that it answers."""
    config = web_server._config(browser.site, None)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: web_server.Impatient(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
    return answer


# How often the server is started and ended.
_TIMES = 25 if FULL else 1
_SECONDS = 0.5 if FULL else 5.0


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--read-only",)], ids=["writable", "read-only"])
def test_server_ends_in_half_a_second_with_open_streams(
    target: str, log: Decklog, run_id: str, tmp_path: Path, words: Words
) -> None:
    """The small run allows more time: a busy machine is slower."""
    server, durations = Server(target, tmp_path, *words), []
    for _ in range(_TIMES):
        server.start()
        opened = [_stream(server, cookie) for cookie in [_logged_in(server)] * 3]
        log.journal.append(run_id, "hello")
        began = time.monotonic()
        assert server.stop() == 0
        durations.append(time.monotonic() - began)
        assert len(server.printed.splitlines()) == 1
        for stream in opened:
            stream.close()
    assert max(durations) < _SECONDS, durations


def _logged_in(server: Server) -> str:
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.origin}
    with request(server, "POST", "/login", urlencode({"token": server.link.partition("#")[2]}), **form) as answer:
        return (answer.getheader("set-cookie") or "").partition(";")[0]


def _stream(server: Server, cookie: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", "/events", headers={"Host": server.origin.removeprefix("http://"), "Cookie": cookie})
    assert connection.getresponse().readline().startswith(b"data:")
    return connection
