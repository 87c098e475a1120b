"""The server as a process, in a folder with a log and a run; and the official client that talks to it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.db.processes import environment

SERVER = [sys.executable, "-m", "decklog", "mcp"]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw client", "version": "1"}}


def surroundings(folder: Path, **variables: str) -> dict[str, str]:
    return environment(HOME=str(folder / "home"), XDG_DATA_HOME=str(folder / "data"), **variables)


class Raw:
    """A client that writes what it wants, a line at a time, and can kill the server."""

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [*SERVER, *words],
            cwd=folder,
            env=surroundings(folder, **variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None) -> None:
        if self.process.returncode is None:
            self.kill()

    def hello(self) -> "Raw":
        self.ask("initialize", HELLO, 0)
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return self

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def send(self, method: str, params: Any, number: int) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())

    def ask(self, method: str, params: Any, number: int = 1) -> Any:
        """Ask for something and wait for the answer to it."""
        self.send(method, params, number)
        answer = self.read()
        assert answer["id"] == number, answer
        return answer.get("result") or answer

    def call(self, tool: str, /, **given: Any) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": given})

    def kill(self) -> bytes:
        """Kill the server; return its standard error."""
        self.process.kill()
        return self.process.communicate()[1]


def over_stdio(folder: Path, about: Callable[[Any], Any], **variables: str) -> Any:
    """Let the official client start a server, and do something with it."""
    import anyio
    from mcp.client.stdio import StdioServerParameters

    from mcp import Client

    async def main() -> Any:
        words = {"command": SERVER[0], "args": SERVER[1:], "env": surroundings(folder, **variables), "cwd": str(folder)}
        async with Client(StdioServerParameters(**words)) as client:
            return await about(client)

    return anyio.run(main)


def over_http(address: str, token: str, about: Callable[[Any], Any], *, worker: str | None = None, mode: str = "auto") -> Any:
    """Let the official client talk to a server on HTTP."""
    import anyio
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from mcp import Client

    headers = {"authorization": f"Bearer {token}", **({"decklog-worker": worker} if worker else {})}

    async def main() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(address, http_client=http), mode=mode) as client,
        ):
            return await about(client)

    return anyio.run(main)


def listening(folder: Path, token_file: Path, **variables: str) -> tuple["subprocess.Popen[bytes]", str]:
    """Start a server on a free port, and give its address."""
    process = subprocess.Popen(
        [*SERVER, "--http", "0", "--token-file", os.fspath(token_file)],
        cwd=folder,
        env=surroundings(folder, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().decode().strip()
