"""Login with the link that the terminal prints, and the middleware that requires a login."""

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from decklog.web.hosts import Names
from decklog.web.sessions import BrowserSessions
from decklog.web.site import MetricsToken

Headers = Sequence[tuple[bytes, bytes]]
LONGEST_URL = 8 * 1024
MOST_HEADERS = 16 * 1024
MOST_BODY = 64 * 1024
_METHODS = ("GET", "HEAD", "POST")
# Browsers report these destinations for embedded content. No page of the dashboard may be embedded.
_NESTED = ("iframe", "frame", "object", "embed", "fencedframe")


@dataclass(frozen=True)
class RequestRefusal:
    """Why a request is refused: its HTTP status and the message."""

    status: int
    message: str


def header_value(headers: Headers, name: bytes) -> str | None:
    """Return a header's value. A repeated header returns all values joined, which matches no expected value."""
    found = [value.decode("latin-1") for key, value in headers if key.lower() == name]
    return ", ".join(found) if found else None


def refusal(method: str, headers: Headers, names: Names, *, length: int = 0) -> RequestRefusal | None:
    """Return why a request is refused; None if it is allowed. `length` is the length of its URL."""
    host = header_value(headers, b"host")
    if host != names.host:
        return RequestRefusal(421, "Open the address that the terminal printed.")
    if header_value(headers, b"upgrade") is not None:
        return RequestRefusal(426, "")
    if method not in _METHODS:
        return RequestRefusal(405, "Only GET, HEAD and POST are allowed.")
    too_much = _find_excess(headers, length)
    if too_much is not None:
        return too_much
    is_ours = _is_own_form(headers, names) if method == "POST" else _is_allowed_read(headers, names)
    return None if is_ours else RequestRefusal(403, "This request comes from a page of another origin.")


def _find_excess(headers: Headers, length: int) -> RequestRefusal | None:
    if length > LONGEST_URL:
        return RequestRefusal(414, "The address is too long.")
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADERS:
        return RequestRefusal(431, "The headers are too large.")
    announced = header_value(headers, b"content-length")
    if announced is not None and (not announced.isdecimal() or int(announced) > MOST_BODY):
        return RequestRefusal(413, "The request is too large.")
    return None


def _is_own_form(headers: Headers, names: Names) -> bool:
    """Return whether a page of this origin sent the form. Old browsers send only `Origin`; one header is required."""
    site, origin = header_value(headers, b"sec-fetch-site"), header_value(headers, b"origin")
    if origin is not None and origin != names.origin:
        return False
    return site == "same-origin" or (site is None and origin is not None)


def _is_allowed_read(headers: Headers, names: Names) -> bool:
    """Return whether a read request comes from our own page, the address bar or a followed link."""
    site, origin = header_value(headers, b"sec-fetch-site"), header_value(headers, b"origin")
    mode, destination = header_value(headers, b"sec-fetch-mode"), header_value(headers, b"sec-fetch-dest")
    if destination in _NESTED or (origin is not None and origin != names.origin):
        return False
    if site in (None, "same-origin", "none"):
        return True
    return mode == "navigate" and destination == "document"


_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOOPBACK = ("127.", "::1", "::ffff:127.")
_LOCAL_ADDRESS, _REMOTE_ADDRESS, _UID = 1, 2, 7


def peer_uid(scope: Any) -> int | None:
    """Return the user id that owns the client's socket; None for a client on another machine, or without /proc."""
    client, server = scope.get("client"), scope.get("server")
    if client is None or server is None or not client[0].startswith(_LOOPBACK):
        return None
    ends = (_port(client[1]), _port(server[1]))
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in (line.split() for line in lines):
            if (fields[_LOCAL_ADDRESS][-5:], fields[_REMOTE_ADDRESS][-5:]) == ends:
                return int(fields[_UID])
    return None


def _port(number: int) -> str:
    return f":{number:04X}"


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{what} 'self'" for what in ("script-src", "style-src", "img-src", "connect-src", "worker-src", "form-action")),
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types decklog",
    )
)
# Downloads are never rendered as a page of ours.
SANDBOX = "sandbox; default-src 'none'"
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # Not `no-referrer`: with it browsers send no `Origin` with our own forms.
    "referrer-policy": "same-origin",
    "x-robots-tag": "noindex",
}
_ENCODED = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
_FILE_HEADERS = [(name, SANDBOX.encode() if name == b"content-security-policy" else value) for name, value in _ENCODED]
# Headers of the application that are dropped: those above replace them.
_REPLACED_HEADERS = {name for name, _ in _ENCODED} | {b"server", b"access-control-allow-origin"}


class BodyTooLarge(Exception):
    """A request's body is larger than the limit."""


class RequestGuard:
    """Middleware around the whole application that refuses unsafe requests and adds security headers."""

    def __init__(self, app: App, names: Names) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._answer(scope, receive, _with_headers(send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = quote(scope["path"], safe="/~:@!$&'()*+,;=-._")
        target = path + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        refused = refusal(scope["method"], scope["headers"], self._names, length=len(target))
        if refused is not None:
            await _send_refusal(refused, send)
        else:
            await self._app(scope, _limit_body(receive), send)


def _limit_body(receive: Receive) -> Receive:
    left = MOST_BODY

    async def received() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise BodyTooLarge
        return message

    return received


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", ())
            own = [(name, value) for name, value in given if name.lower() not in _REPLACED_HEADERS]
            is_file = (b"content-security-policy", SANDBOX.encode()) in given
            kept = [] if any(name.lower() == b"cache-control" for name, _ in own) else [(b"cache-control", b"no-store")]
            message = {**message, "headers": [*own, *kept, *(_FILE_HEADERS if is_file else _ENCODED)]}
        await send(message)

    return sent


async def _send_refusal(refused: RequestRefusal, send: Send) -> None:
    body = f"{refused.message}\n".encode() if refused.message else b""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# Monitoring has no session: health checks are public, and metrics need a token.
_OPEN = ("/login", "/favicon.ico", "/livez", "/readyz")
_METRICS = "/metrics"


# A path on this dashboard: printable ASCII, and no address of another host ("//host", "/\\host").
_OUR_PAGE = re.compile(r"/(?![/\\])[!-~]{0,1500}")
_NEVER_NEXT = re.compile(r"/(login|logout|static|events)\b")


def page_after_login(text: str | None) -> str | None:
    """Return the page to open after the login; None if the text is not a page of this dashboard."""
    is_ours = text is not None and _OUR_PAGE.fullmatch(text) is not None and not _NEVER_NEXT.match(text)
    return text if is_ours and text != "/" else None


def login_address(*, wrong: str | None = None, following: str | None = None) -> str:
    """Return the address of the login page, with the page to open afterwards and the field that was wrong."""
    given = {"wrong": wrong, "next": page_after_login(following)}
    query = urlencode({name: value for name, value in given.items() if value}, quote_via=quote, safe="/")
    return f"/login?{query}" if query else "/login"


class LoginRequired:
    """Middleware that passes only requests with a session to the pages."""

    def __init__(self, app: App, sessions: BrowserSessions, metrics_token: MetricsToken | None = None) -> None:
        self._app = app
        self._sessions = sessions
        self._metrics_token = metrics_token

    def _is_open(self, scope: Scope) -> bool:
        """Return whether a request needs no session."""
        path, token = scope["path"], self._metrics_token
        if path == _METRICS and token is not None:
            return token.matches_header((header_value(scope["headers"], b"authorization") or "").encode("latin-1"))
        return path in _OPEN or path.startswith("/static/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_open(scope):
            await self._app(scope, receive, send)
            return
        session = self._sessions.known(header_value(scope["headers"], b"cookie"), peer_uid(scope))
        if session is None:
            await _require_login(scope, send)
            return
        scope.setdefault("state", {})["session"] = session
        await self._app(scope, receive, send)


async def _require_login(scope: Scope, send: Send) -> None:
    """Redirect a page request to the login, and answer a program with an error."""
    is_page = scope["method"] in ("GET", "HEAD") and not scope["path"].endswith((".json", "/events", "/rows", _METRICS))
    error = {"code": "not_logged_in", "message": "log in first", "hint": "The terminal of decklog serve shows a link."}
    envelope = {"ok": False, "error": {**error, "retryable": False, "details": {}}, "warnings": []}
    body = b"" if is_page else json.dumps(envelope).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    if is_page:
        headers.append((b"location", login_address(following=_address(scope)).encode()))
    else:
        headers.append((b"content-type", b"application/json; charset=utf-8"))
    await send({"type": "http.response.start", "status": 303 if is_page else 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _address(scope: Scope) -> str:
    """Return the path and query of a request as sent."""
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope.get("query_string", b"")
    return (path + (b"?" + query if query else b"")).decode("latin-1")
