"""Server on standard input and output, which carry only messages of the protocol."""

import json
import re
import sys
from collections.abc import AsyncIterator
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

_MOST_BYTES = 16 * 1024 * 1024
_ID = re.compile(r'"id":\s*(?:\d+|"[^"\\\\]*")')


class MessageLines:
    """Input lines that are messages. An invalid line is answered with an error, because its sender waits for an answer."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.answers: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await run_sync(self._source.readline, _MOST_BYTES):
            if not line.endswith(b"\n") and len(line) == _MOST_BYTES:
                await self._send_error(None, f"a message has at most {_MOST_BYTES} bytes")
                while line and not line.endswith(b"\n"):
                    line = await run_sync(self._source.readline, _MOST_BYTES)
            elif text := line.decode(errors="replace").strip():
                if (problem := _find_error(text)) is None:
                    yield text
                else:
                    await self._send_error(_find_request_id(text), problem)

    async def _send_error(self, request_id: str | int | None, problem: str) -> None:
        error = types.ErrorData(code=types.PARSE_ERROR, message=problem)
        await self.answers.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))


def _find_error(text: str) -> str | None:
    """Return why the SDK could not read a line; None when it can."""
    try:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as problem:
        return f"this is not a JSON-RPC message: {problem.errors(include_url=False, include_input=False)[0]['msg']}"
    return None


def _find_request_id(text: str) -> str | int | None:
    """Return the id of the request in an invalid line, if it can be found."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        # Only arguments can be nested too deeply: the id is before or after them.
        named = _ID.search(text.partition('"params"')[0]) or _ID.search(text.rpartition("}")[0][-100:])
        message = json.loads(f"{{{named[0]}}}") if named else None
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def serve(server: Server[Any]) -> None:
    """Serve requests until the input ends."""

    async def main() -> None:
        messages = MessageLines(sys.stdin.buffer)
        async with stdio_server(stdin=messages) as (come, go):  # type: ignore[arg-type]
            messages.answers = go
            await server.run(come, go, server.create_initialization_options())

    anyio.run(main)
