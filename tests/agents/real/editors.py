"""An editor by script, and the real adapters of agents that speak the Agent Client Protocol, with the proxy between the two."""

import json
import subprocess
from pathlib import Path
from typing import Any

from decklog.agents.spool import Spool
from tests.agents.real.programs import DECKLOG, EVENTS, INSTALLED, MACHINE, Claude, Codex, Desk
from tests.waiting import wait_until

NODE = INSTALLED / f"node-linux-{MACHINE}" / "bin" / "node"
ADAPTERS = INSTALLED / "@agentclientprotocol"
CLAUDE_ADAPTER = ADAPTERS / "claude-agent-acp" / "dist" / "index.js"
CODEX_ADAPTER = ADAPTERS / "codex-acp" / "dist" / "index.js"


class Connection:
    """Talks to an agent: answers what it asks for by the kind of answer that `says` names, and keeps every line."""

    def __init__(self, command: list[str], desk: Desk, environment: dict[str, str], copy: Path | None = None) -> None:
        self.environment = environment
        self._copy = copy
        self.lines: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.says = "allow_once"
        self._numbers = iter(range(1000))
        self._desk = desk
        self._errors = open(desk.folder / "errors", "a+b")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, cwd=desk.repository, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_problem: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self._errors.close()

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self.send({"id": number, "method": method, "params": params})
        return self.until(lambda message: "method" not in message and message.get("id") == number)

    def until(self, fits: Any) -> dict[str, Any]:
        """Read on until a message fits."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if self._copy is not None:
                with self._copy.open("ab") as copy:
                    copy.write(line)
            message: dict[str, Any] = json.loads(line)
            self.lines.append(message)
            if message.get("method") == "session/request_permission":
                self.asked.append(message)
                self.send({"id": message["id"], "result": {"outcome": self._decision(message)}})
            if fits(message):
                return message
        self._errors.seek(0)
        raise EOFError(self._errors.read()[-3000:].decode(errors="replace"))

    def _decision(self, request: dict[str, Any]) -> dict[str, str]:
        options = request["params"]["options"]
        return next(
            ({"outcome": "selected", "optionId": option["optionId"]} for option in options if option["kind"] == self.says),
            {"outcome": "cancelled"},
        )

    def begin(self) -> str:
        """Begin a session of the first version, and give its id."""
        self.call("initialize", protocolVersion=1, clientCapabilities={}, clientInfo={"name": "scripted", "version": "1"})
        answer = self.call("session/new", cwd=str(self._desk.repository), mcpServers=[])
        assert "result" in answer, answer
        return str(answer["result"]["sessionId"])

    def prompt(self, session: str, text: str) -> dict[str, Any]:
        return self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


def settled(desk: Desk) -> None:
    """Wait until everything that was told is in the log."""
    spool = Spool(str(desk.repository / ".decklog" / "decklog.db-spool"))
    wait_until(lambda: spool.is_empty and not spool.find_ended_connections(), 60)


def proxied(adapter: Path, *options: str) -> list[str]:
    return [str(DECKLOG), "acp", *options, "--", str(NODE), str(adapter)]


class ClaudeInEditor(Claude):
    """Claude Code by its adapter."""

    def connect(self, *options: str) -> Connection:
        own = {**self.environment, **self._own, "ANTHROPIC_MODEL": "sonnet"}
        return Connection(proxied(CLAUDE_ADAPTER, *options), self, own)

    def set_up_hooks(self) -> None:
        """Have hooks tell of the same sessions."""
        hook = {"type": "command", "command": str(DECKLOG), "args": ["hook", "claude"], "timeout": 20}
        folder = self.home / ".claude"
        folder.mkdir(exist_ok=True)
        settings = {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS.split()}}
        (folder / "settings.json").write_text(json.dumps(settings))


class CodexInEditor(Codex):
    """Codex by its adapter, in the mode in which it asks."""

    def connect(self, *options: str, mode: str = "read-only") -> Connection:
        self._configure()
        (self.home / ".codex" / "hooks.json").unlink()
        own = {"CODEX_HOME": str(self.home / ".codex"), "FAKE_KEY": "dummy"}
        own |= {"INITIAL_AGENT_MODE": mode} if mode else {}
        return Connection(proxied(CODEX_ADAPTER, *options), self, {**self.environment, **own})
