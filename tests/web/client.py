"""A client of a dashboard in this process: no socket, and requests are sent exactly as given."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from decklog import Decklog
from decklog.web.application import application
from decklog.web.hosts import Names
from decklog.web.live import ChangeFeed
from decklog.web.login import App
from decklog.web.sessions import COOKIE, BrowserSession, BrowserSessions
from decklog.web.site import DashboardSite

NAMES = Names("dl-0a1b2c.localhost", 8471)
PASSWORD = " ".join(("a", "password", "of", "the", "owner"))
Pairs = list[tuple[str, str]]


class Seconds:
    """A clock of seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Answer:
    """An HTTP response."""

    status: int
    pairs: Pairs
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.pairs)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def data(self) -> Any:
        return json.loads(self.body)


async def _call(app: App, scope: dict[str, Any], body: bytes) -> Answer:
    sent: list[Any] = []
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return parts.pop(0) if parts else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    pairs = [(name.decode(), value.decode("latin-1")) for name, value in sent[0].get("headers", ())]
    return Answer(sent[0].get("status", 0), pairs, b"".join(message.get("body", b"") for message in sent[1:]))


async def send_request(app: App, method: str, url: str, headers: Pairs, body: bytes = b"") -> Answer:
    """Send one request with exactly these headers."""
    path, _, query = url.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "server": ("127.0.0.1", NAMES.port),
        "client": ("127.0.0.1", 50000),
    }
    return await _call(app, scope, body)


@dataclass
class Browser:
    """A browser with a page of the dashboard and its cookie."""

    site: DashboardSite
    seconds: Seconds
    app: App
    cookie: str | None = None
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def get(self, url: str, **headers: str) -> Answer:
        return self._send("GET", url, {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", **headers})

    def post(self, url: str, form: dict[str, str], **headers: str) -> Answer:
        content_type = {"content-type": "application/x-www-form-urlencoded"}
        return self._send(
            "POST", url, {"sec-fetch-site": "same-origin", "origin": NAMES.origin, **content_type, **headers}, urlencode(form)
        )

    def request(self, method: str, url: str, headers: Pairs, body: bytes = b"") -> Answer:
        """Send a request with exactly these headers."""
        return self.runner.run(send_request(self.app, method, url, headers, body))

    def _send(self, method: str, url: str, headers: dict[str, str], body: str = "") -> Answer:
        sent = {"host": NAMES.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookie is not None:
            sent["cookie"] = f"{COOKIE}={self.cookie}"
        answer = self.request(method, url, list(sent.items()), body.encode())
        if (cookie := answer.headers.get("set-cookie")) is not None:
            self.cookie = cookie.partition(";")[0].partition("=")[2] or None
        return answer

    def log_in(self) -> "Browser":
        answer = self.post("/login", {"token": self.site.sessions.new_link()})
        assert answer.status == 303, answer.text
        return self

    @property
    def session(self) -> BrowserSession:
        session = self.site.sessions.known(f"{COOKIE}={self.cookie}")
        assert session is not None
        return session


def make_browser(log: Decklog, **more: Any) -> Browser:
    """Make a dashboard of a log and a browser that has not logged in."""
    seconds = Seconds()
    site = DashboardSite(log, "parser", NAMES, BrowserSessions(seconds, log.clock.now), ChangeFeed(log), **more)
    return Browser(site, seconds, application(site))


@contextmanager
def logged_in(log: Decklog, **more: Any) -> Iterator[Browser]:
    """Yield a browser that has logged in to a dashboard of a log."""
    browser = make_browser(log, **more)
    with browser.runner:
        yield browser.log_in()
