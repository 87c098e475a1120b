"""Agents that call tools, in this process, through the official client; each is known by its own environment.

The SDK takes a second to import: only what runs these tests pays for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog


@dataclass(frozen=True)
class Agent:
    """A client and its server on a shared log."""

    server: Any
    # How the two agree on a version: by the newest protocol alone, or by the handshake that older ones begin with.
    mode: str = "auto"
    program: str = "mcp"

    def talk(self, about: Callable[[Any], Any]) -> Any:
        """Connect, and do something with the client."""
        import anyio
        from mcp_types import Implementation

        from mcp import Client

        async def main() -> Any:
            client_info = Implementation(name=self.program, version="1")
            async with Client(self.server, mode=self.mode, client_info=client_info) as client:
                return await about(client)

        return anyio.run(main)

    def __call__(self, tool: str, /, **given: Any) -> Any:
        """Call a tool, and give what came back."""
        return self.talk(lambda client: client.call_tool(tool, given))

    def data(self, tool: str, /, **given: Any) -> Any:
        """Call a tool that must not fail, and give its data."""
        result = self(tool, **given)
        assert not result.is_error, result
        return result.structured_content

    def error(self, tool: str, /, **given: Any) -> dict[str, Any]:
        """Call a tool that must fail; return the error with its hint."""
        result = self(tool, **given)
        assert result.is_error, result
        error: dict[str, Any] = result.structured_content["error"]
        assert error["message"] in result.content[0].text
        return error


@pytest.fixture
def agent(log: Decklog, tmp_path: Path) -> Callable[..., Agent]:
    """Make an agent that is known as a worker of a name."""

    def make(name: str = "dev-1", *, mode: str = "auto", **environment: str) -> Agent:
        from decklog.mcp.server import build
        from decklog.mcp.source import LogSource

        source = LogSource(opened=(log, str(tmp_path / "claims")))
        return Agent(build(source, {"DECKLOG_WORKER": name, **environment}), mode)

    return make
