"""State of a connection: open requests, session folders, and the names of both sides.

Each side numbers its own requests, so an answer belongs to a request of the other side.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from decklog.agents.texts import as_name, dict_of, list_of, text_or_none

Message = dict[str, Any]

EDITOR = "editor"
AGENT = "agent"
# Sender of messages that the proxy writes in place of either side.
OURS = "decklog"

PROMPT = "session/prompt"
UPDATE = "session/update"
PERMISSION = "session/request_permission"
# Methods that open a session, with the name of each in the record.
OPENING = {"session/new": "startup", "session/load": "resume", "session/resume": "resume", "session/fork": "fork"}
CLOSING = frozenset(["session/close", "session/delete"])
SETTING = frozenset(["session/set_mode", "session/set_config_option", "session/set_model"])
WRITE_FILE = "fs/write_text_file"
READ_FILE = "fs/read_text_file"
RUN_COMMAND = "terminal/create"
# JSON-RPC error code of the proxy's refusals.
REFUSED = -32000


def parse(line: bytes) -> Message | list[Message] | None:
    """Parse a line as a message or a JSON-RPC batch; return None if it is neither."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return list_of(found) or None if isinstance(found, list) else found if isinstance(found, dict) else None


def is_unreadable(line: bytes) -> bool:
    """Return whether a line starts like a message but is invalid JSON here; another parser may still accept it."""
    if not line.lstrip().startswith((b"{", b"[")):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def written(message: Message | list[Message]) -> bytes:
    """Serialize a message or a batch as a line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass") + b"\n"


def answer(request: Message, result: Any) -> Message:
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": result}


def refusal(request: Message, reason: str, code: int = REFUSED) -> Message:
    return {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": reason}}


def params_of(message: Message) -> dict[str, Any]:
    """Return the parameters of a request or notification; empty if they are missing or invalid."""
    return dict_of(message.get("params"))


def result_of(message: Message) -> dict[str, Any]:
    return dict_of(message.get("result"))


def call_of(request: Message) -> dict[str, Any]:
    """Return the tool call of a permission request; in protocol version 2 it is part of the subject."""
    params = params_of(request)
    return dict_of(params.get("toolCall")) or dict_of(dict_of(params.get("subject")).get("toolCall"))


# Limit on open requests, so that unanswered requests can't exhaust memory.
_MOST_OPEN = 10_000
# Programs whose sessions hooks or transcripts report too, found by substring of the agent's name.
_PROGRAMS = ("claude", "codex", "gemini", "opencode")


@dataclass(frozen=True)
class AcpMessage:
    """Summary of a message: its method (of the request, for an answer) and its session."""

    method: str
    session: str | None
    is_answer: bool = False
    # Parameters of a request that opens a session or changes a setting.
    asked: dict[str, Any] = field(default_factory=dict)


class Exchange:
    """One connection between an editor and an agent."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._open: dict[tuple[str, object], AcpMessage] = {}
        self._agent: dict[str, Any] = {}
        self._client: dict[str, Any] = {}
        self._protocol: object = None
        # Folder of each session.
        self.folders: dict[str, str] = {}

    def see(self, sender: str, message: Message) -> AcpMessage | None:
        """Register a message; return None for an answer without an open request."""
        if isinstance(method := message.get("method"), str):
            return self._see_request(sender, method, message)
        return self._answered(sender, message)

    def _see_request(self, sender: str, method: str, message: Message) -> AcpMessage:
        params = params_of(message)
        if method == "initialize":
            self._client = dict_of(params.get("clientInfo")) or dict_of(params.get("info"))
        seen = AcpMessage(method, text_or_none(params.get("sessionId")), asked=_request_context(method, params))
        if "id" in message and isinstance(number := message["id"], str | int | float):
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            self._open[sender, number] = seen
        if method in OPENING and method != "session/fork" and seen.session:
            self._place(seen.session, seen)
        return seen

    def _answered(self, sender: str, message: Message) -> AcpMessage | None:
        number = message.get("id")
        asker = EDITOR if sender == AGENT else AGENT
        request = self._open.pop((asker, number), None) if isinstance(number, str | int | float) else None
        if request is None:
            return None
        result = result_of(message)
        if request.method == "initialize":
            self._agent = dict_of(result.get("agentInfo")) or dict_of(result.get("info"))
            self._protocol = result.get("protocolVersion")
        session = request.session
        if request.method in OPENING:
            session = text_or_none(result.get("sessionId")) or session
            if session and "error" not in message:
                self._place(session, request)
        return AcpMessage(request.method, session, is_answer=True, asked=request.asked)

    def _place(self, session: str, request: AcpMessage) -> None:
        if folder := text_or_none(request.asked.get("cwd")):
            self.folders[session] = folder

    def forget(self, sender: str, message: Message) -> None:
        """Remove a request that the proxy answered."""
        self._open.pop((sender, message.get("id")), None)

    def unanswered(self, sender: str) -> list[Any]:
        """Return the ids of a sender's unanswered requests."""
        return [number for who, number in self._open if who == sender]

    @property
    def program(self) -> str:
        """Name of the agent's program, as hooks and transcripts of its sessions use it."""
        name = str(self._agent.get("name") or self._command).lower()
        return next((known for known in _PROGRAMS if known in name), as_name(name.rpartition("/")[2] or "agent"))

    @property
    def about(self) -> dict[str, Any]:
        """Names and versions of both sides."""
        agent, client = self._agent, self._client
        names = {"agent": agent.get("name"), "version": agent.get("version"), "client": client.get("name")}
        return {name: str(value) for name, value in {**names, "protocol": self._protocol}.items() if value}


def _request_context(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request that its answer lacks; never the environment of MCP servers."""
    if method in OPENING:
        servers = params.get("mcpServers")
        names = [str(each.get("name")) for each in servers if isinstance(each, dict)] if isinstance(servers, list) else []
        return {"cwd": params.get("cwd"), "servers": names or None, "of": params.get("sessionId")}
    if method.startswith("session/set_"):
        return {name: params.get(name) for name in ("modeId", "modelId", "configId", "value") if name in params}
    return {}
