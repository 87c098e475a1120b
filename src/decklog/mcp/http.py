"""HTTP server for this machine only. Each request must have the token and a local Host, and no foreign Origin."""

import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from decklog.core.errors import Conflict
from decklog.mcp.token import Token

HOST = "127.0.0.1"
PATH = "/mcp"
_MOST_BYTES = 4 * 1024 * 1024
_MOST_CONNECTIONS = 200
# Idle time after which a client gets a new session. Its task's lease would have expired by then.
_IDLE_SECONDS = 24 * 3600.0
_MOST_SESSIONS = 1000


class HttpGuard:
    """Rejects requests without the token, and those of other origins' pages, before their bodies are read."""

    def __init__(self, app: ASGIApp, token: Token, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}".encode() for name in (HOST, "localhost")}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(scope["headers"])) is not None:
            await refusal(scope, receive, send)
        elif scope["type"] in ("http", "lifespan"):
            await self._app(scope, receive, send)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> PlainTextResponse | None:
        # Reject repeated headers: the application could use the other one.
        sent = {name: [value for other, value in headers if other == name] for name in (b"host", b"origin", b"authorization")}
        if len(sent[b"host"]) != 1 or sent[b"host"][0].lower() not in self._hosts:
            return PlainTextResponse("This server only accepts the hosts 127.0.0.1 and localhost.\n", 421)
        if any(origin.lower() not in self._origins for origin in sent[b"origin"]):
            return PlainTextResponse("Pages of other origins may not call this server.\n", 403)
        if len(sent[b"authorization"]) != 1 or not self._token.matches_header(sent[b"authorization"][0]):
            hint = "Send the token that `decklog mcp --http` printed: Authorization: Bearer TOKEN\n"
            return PlainTextResponse(hint, 401, headers={"www-authenticate": "Bearer"})
        return None


def listen(port: int) -> socket.socket:
    """Listen on a local port; 0 chooses a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as problem:
        listener.close()
        raise Conflict(
            f"port {port} is not available: {problem.strerror}", hint="Use any free one: decklog mcp --http 0"
        ) from None
    listener.listen(128)
    return listener


def serve(server: Server[Any], listener: socket.socket, token: Token, ready: Callable[[str], None]) -> None:
    """Serve on a port until the process is stopped; call `ready` with the address."""
    port = listener.getsockname()[1]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=HOST,
        max_request_body_size=_MOST_BYTES,
        session_idle_timeout=_IDLE_SECONDS,
        max_sessions=_MOST_SESSIONS,
    )
    settings = uvicorn.Config(
        HttpGuard(app, token, port),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    ready(f"http://{HOST}:{port}{PATH}")
    uvicorn.Server(settings).run(sockets=[listener])
