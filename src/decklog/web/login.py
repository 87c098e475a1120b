"""Logging in by a link that the terminal showed, and the layer that lets nobody else see anything."""

import json

from decklog.web.admission import value_of
from decklog.web.peer import peer_uid
from decklog.web.safety import App, Receive, Scope, Send
from decklog.web.sessions import BrowserSessions

_OPEN = ("/login", "/favicon.ico")


class LoginRequired:
    """Lets only those who logged in through to the pages."""

    def __init__(self, app: App, sessions: BrowserSessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN or scope["path"].startswith("/static/"):
            await self._app(scope, receive, send)
            return
        session = self._sessions.known(value_of(scope["headers"], b"cookie"), peer_uid(scope))
        if session is None:
            await _send_away(scope, send)
            return
        scope.setdefault("state", {})["session"] = session
        await self._app(scope, receive, send)


async def _send_away(scope: Scope, send: Send) -> None:
    """Lead a person to the login, and tell a program that it is needed."""
    is_page = scope["method"] in ("GET", "HEAD") and not scope["path"].endswith((".json", "/events", "/rows"))
    error = {"code": "not_logged_in", "message": "log in first", "hint": "The terminal of decklog serve shows a link."}
    envelope = {"ok": False, "error": {**error, "retryable": False, "details": {}}, "warnings": []}
    body = b"" if is_page else json.dumps(envelope).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    headers += [(b"location", b"/login")] if is_page else [(b"content-type", b"application/json; charset=utf-8")]
    await send({"type": "http.response.start", "status": 303 if is_page else 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
