"""Messages of the protocol: JSON-RPC, one per line, in both directions."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

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


def parse(line: bytes) -> "Message | list[Message] | None":
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


def written(message: "Message | list[Message]") -> bytes:
    """Serialize a message or a batch as a line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass") + b"\n"


def answer(request: "Message", result: "Any") -> "Message":
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": result}


def refusal(request: "Message", reason: str, code: int = REFUSED) -> "Message":
    return {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": reason}}


def params_of(message: "Message") -> "dict[str, Any]":
    """Return the parameters of a request or notification; empty if they are missing or invalid."""
    return dict_of(message.get("params"))


def result_of(message: "Message") -> "dict[str, Any]":
    return dict_of(message.get("result"))


def dict_of(value: "Any") -> "dict[str, Any]":
    """Return a dict unchanged, and an empty dict for any other value."""
    return value if isinstance(value, dict) else {}


def list_of(value: "Any") -> "list[dict[str, Any]]":
    """Return the dicts of a list; empty for any other value."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def call_of(request: "Message") -> "dict[str, Any]":
    """Return the tool call of a permission request; in protocol version 2 it is part of the subject."""
    params = params_of(request)
    return dict_of(params.get("toolCall")) or dict_of(dict_of(params.get("subject")).get("toolCall"))
