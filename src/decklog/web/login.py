"""Login with the link that the terminal prints, and the middleware that requires a login."""

import json
import re
from urllib.parse import quote, urlencode

from decklog.web.admission import value_of
from decklog.web.peer import peer_uid
from decklog.web.safety import App, Receive, Scope, Send
from decklog.web.sessions import BrowserSessions
from decklog.web.site import MetricsToken

# Monitoring has no session: whether the server lives is no secret, and metrics need a token.
_OPEN = ("/login", "/favicon.ico", "/livez", "/readyz")
_METRICS = "/metrics"


# A path on this dashboard: printable ASCII, and no address of another host ("//host", "/\\host").
_OUR_PAGE = re.compile(r"/(?![/\\])[!-~]{0,1500}")
_NEVER_NEXT = re.compile(r"/(login|logout|static|events)\b")


def page_after_login(text: str | None) -> str | None:
    """Return the page to open after the login; None if the text is no page of this dashboard."""
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
            return token.is_shown_by((value_of(scope["headers"], b"authorization") or "").encode("latin-1"))
        return path in _OPEN or path.startswith("/static/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_open(scope):
            await self._app(scope, receive, send)
            return
        session = self._sessions.known(value_of(scope["headers"], b"cookie"), peer_uid(scope))
        if session is None:
            await _send_away(scope, send)
            return
        scope.setdefault("state", {})["session"] = session
        await self._app(scope, receive, send)


async def _send_away(scope: Scope, send: Send) -> None:
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
