"""An editor by script: the proxy is forked from a process that has everything imported, its agent does what it is told."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any

from decklog.agents.spool import Spool
from tests import fork_server
from tests.waiting import wait_until

AGENT = [sys.executable, "-I", "-S", str(Path(__file__).parent / "agent.py")]
Step = list[Any]


class Editor:
    """One connection. `heard` is every byte that came, in order; `asked` what the agent asked for, answered by `answers`."""

    def __init__(self, place: Path, *options: str, command: list[str] | None = None, **variables: str) -> None:
        self.place = place
        self._heard: list[bytes] = []
        self.asked: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {"session/request_permission": {"outcome": {"outcome": "selected", "optionId": "y"}}}
        self._numbers = iter(range(1000))
        given, self._in = os.pipe()
        out, told = os.pipe()
        self._out: IO[bytes] = os.fdopen(out, "rb")
        self.errors = open(place.parent / "errors", "w+b")  # noqa: SIM115
        order = {
            "arguments": ["acp", *options, "--", *(AGENT if command is None else command)],
            "timeout": 120,
            "cwd": str(place.parent),
            "environment": fork_server.environment(HOME=str(place.parent / "home"), **variables),
        }
        files = [os.fdopen(given, "rb"), os.fdopen(told, "wb"), self.errors]
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run, args=(order, files), daemon=True)
        self._thread.start()

    def _run(self, order: dict[str, Any], files: list[IO[bytes]]) -> None:
        self.code = fork_server._server("tests.programs").order(order, [file.fileno() for file in files])
        for file in files[:2]:
            file.close()

    def __enter__(self) -> "Editor":
        return self

    def __exit__(self, *_problem: object) -> None:
        self.close()
        self._out.close()
        self.errors.close()

    def write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._in, line) :]

    def send(self, message: dict[str, Any]) -> bytes:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self.write(line)
        return line

    @property
    def heard(self) -> bytes:
        return b"".join(self._heard)

    def read(self) -> bytes:
        """Read one line, or what is left at the end."""
        line = self._out.readline()
        self._heard.append(line)
        return line

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask for something, and wait for the answer; answer what the agent asks for meanwhile."""
        number = next(self._numbers)
        self.send({"id": number, "method": method, "params": params or {}})
        while line := self.read():
            message = _object(line)
            if "method" not in message and message.get("id") == number:
                return message
            if isinstance(message.get("method"), str) and "id" in message:
                self.asked.append(message)
                self.send({"id": message["id"], "result": self.answers.get(message["method"], {})})
        raise EOFError("the proxy ended")

    def open(self, method: str = "session/new", **more: Any) -> "Editor":
        """Begin a session."""
        self.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "scripted", "version": "1"}})
        assert "result" in self.call(method, {"cwd": str(self.place), "mcpServers": [], **more})
        return self

    def prompt(self, *steps: Step, session: str = "s1") -> dict[str, Any]:
        """Have the agent do something, and give how the turn ended."""
        return self.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": json.dumps(steps)}]})

    def close(self) -> int:
        """Say that nothing more comes, take in what is still said, and give the exit code."""
        if self._in >= 0:
            os.close(self._in)
            self._in = -1
        while self.read():
            pass
        self._thread.join(30)
        assert self.code is not None
        return self.code


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def settled(place: Path) -> None:
    """Wait until everything that was told is in the log."""
    spool = Spool(str(place / ".decklog" / "decklog.db-spool"))
    wait_until(lambda: spool.is_empty and not spool.find_ended_connections())
