"""The program of the Claude Agent SDK, played by a script."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import Transport


class Played(Transport):
    """Plays the program: hooks are asked for one after the other, and their answers are kept."""

    def __init__(self, *script: tuple[str, dict[str, Any]]) -> None:
        self._script = script
        self._written: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._callbacks: dict[str, list[str]] = {}
        self.answers: list[Any] = []

    async def connect(self) -> None:
        """Be there."""

    async def write(self, data: str) -> None:
        for line in data.splitlines():
            await self._written.put(json.loads(line))

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        begun = await self._written.get()
        hooks = begun["request"]["hooks"]
        self._callbacks = {event: [id for one in some for id in one["hookCallbackIds"]] for event, some in hooks.items()}
        yield {"type": "control_response", "response": {"subtype": "success", "request_id": begun["request_id"], "response": {}}}
        while (await self._written.get()).get("type") != "user":
            pass
        for kind, told in self._script:
            if kind == "message":
                yield told
                continue
            for callback in self._callbacks[told["hook_event_name"]]:
                asked = {"subtype": "hook_callback", "callback_id": callback, "input": told, "tool_use_id": None}
                yield {"type": "control_request", "request_id": f"r{len(self.answers)}", "request": asked}
                self.answers.append((await self._written.get())["response"])

    async def close(self) -> None:
        """Be gone."""

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        """Hear no more."""
