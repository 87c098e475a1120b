"""The outermost layer of the server: it admits or refuses requests and sets the security headers on every answer."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from decklog.web.admission import MOST_BODY, RequestRefusal, refusal
from decklog.web.names import Names

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
_OF_FILES = [(name, SANDBOX.encode() if name == b"content-security-policy" else value) for name, value in _ENCODED]
# Headers of the application that are dropped: those above replace them.
_OWN = {name for name, _ in _ENCODED} | {b"server", b"access-control-allow-origin"}


class BodyTooLarge(Exception):
    """A request's body is larger than what it announced, or than anything here needs."""


class Safety:
    """Middleware around the whole application; every request and response passes it."""

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
            await _refuse(refused, send)
        else:
            await self._app(scope, _limited(receive), send)


def _limited(receive: Receive) -> Receive:
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
            own = [(name, value) for name, value in given if name.lower() not in _OWN]
            is_file = (b"content-security-policy", SANDBOX.encode()) in given
            kept = [] if any(name.lower() == b"cache-control" for name, _ in own) else [(b"cache-control", b"no-store")]
            message = {**message, "headers": [*own, *kept, *(_OF_FILES if is_file else _ENCODED)]}
        await send(message)

    return sent


async def _refuse(refused: RequestRefusal, send: Send) -> None:
    body = f"{refused.said}\n".encode() if refused.said else b""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
