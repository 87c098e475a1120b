"""Asks a dashboard in this process, as a server hands requests on: no socket, and no client that corrects what is sent."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from decklog import Decklog
from decklog.web.application import application
from decklog.web.hosts import Names
from decklog.web.live import Feed
from decklog.web.login import App
from decklog.web.sessions import COOKIE, BrowserSession, BrowserSessions
from decklog.web.site import DashboardSite

NAMES = Names("dl-0a1b2c.localhost", 8471)
PASSWORD = " ".join(("a", "password", "of", "the", "owner"))
Pairs = list[tuple[str, str]]


class Seconds:
    """A clock of seconds that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Answer:
    """What came back."""

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


async def hand_on(app: App, method: str, url: str, headers: Pairs, body: bytes = b"") -> Answer:
    """Hand one request on, with exactly these headers."""
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
    """A browser whose page is ours, with its cookie."""

    site: DashboardSite
    seconds: Seconds
    app: App
    cookie: str | None = None
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def get(self, url: str, **headers: str) -> Answer:
        return self._ask("GET", url, {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", **headers})

    def post(self, url: str, form: dict[str, str], **headers: str) -> Answer:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return self._ask(
            "POST", url, {"sec-fetch-site": "same-origin", "origin": NAMES.origin, **kind, **headers}, urlencode(form)
        )

    def ask(self, method: str, url: str, headers: Pairs, body: bytes = b"") -> Answer:
        """Ask with exactly these headers, whoever's they are."""
        return self.runner.run(hand_on(self.app, method, url, headers, body))

    def _ask(self, method: str, url: str, headers: dict[str, str], body: str = "") -> Answer:
        given = {"host": NAMES.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookie is not None:
            given["cookie"] = f"{COOKIE}={self.cookie}"
        answer = self.ask(method, url, list(given.items()), body.encode())
        if (set_to := answer.headers.get("set-cookie")) is not None:
            self.cookie = set_to.partition(";")[0].partition("=")[2] or None
        return answer

    def log_in(self) -> "Browser":
        answer = self.post("/login", {"token": self.site.sessions.new_link()})
        assert answer.status == 303, answer.text
        return self

    @property
    def session(self) -> BrowserSession:
        found = self.site.sessions.known(f"{COOKIE}={self.cookie}")
        assert found is not None
        return found


def made(log: Decklog, **more: Any) -> Browser:
    """Make a dashboard of a log, and a browser that has not logged in."""
    seconds = Seconds()
    site = DashboardSite(log, "parser", NAMES, BrowserSessions(seconds, log.clock.now), Feed(log), **more)
    return Browser(site, seconds, application(site))
