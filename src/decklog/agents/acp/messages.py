"""Single messages of the protocol: JSON-RPC, one a line, in either direction."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

EDITOR = "editor"
AGENT = "agent"
# What the proxy itself said, in the place of one of them.
OURS = "decklog"

PROMPT = "session/prompt"
UPDATE = "session/update"
PERMISSION = "session/request_permission"
# What begins a session, with the word for it in the record.
OPENING = {"session/new": "startup", "session/load": "resume", "session/resume": "resume", "session/fork": "fork"}
CLOSING = frozenset(["session/close", "session/delete"])
SETTING = frozenset(["session/set_mode", "session/set_config_option", "session/set_model"])
WRITE_FILE = "fs/write_text_file"
READ_FILE = "fs/read_text_file"
RUN_COMMAND = "terminal/create"
# What a request was refused with: an error of the proxy's own, by the rules of JSON-RPC.
REFUSED = -32000


def parse(line: bytes) -> "Message | list[Message] | None":
    """Read a line: a message, or several at once as JSON-RPC allows; None when it is neither."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return list_of(found) or None if isinstance(found, list) else found if isinstance(found, dict) else None


def is_unreadable(line: bytes) -> bool:
    """Return whether a line begins like a message and is no JSON to us; another parser may still accept it."""
    if not line.lstrip().startswith((b"{", b"[")):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def written(message: "Message | list[Message]") -> bytes:
    """Write a message, or several at once, as a line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass") + b"\n"


def answer(request: "Message", result: "Any") -> "Message":
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": result}


def refusal(request: "Message", reason: str, code: int = REFUSED) -> "Message":
    return {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": reason}}


def params_of(message: "Message") -> "dict[str, Any]":
    """Return what a request or a notification says; nothing where it says nothing that can be read."""
    return dict_of(message.get("params"))


def result_of(message: "Message") -> "dict[str, Any]":
    return dict_of(message.get("result"))


def dict_of(value: "Any") -> "dict[str, Any]":
    """Return an object, and an empty one for whatever else stands in its place."""
    return value if isinstance(value, dict) else {}


def list_of(value: "Any") -> "list[dict[str, Any]]":
    """Return the objects of a list, and none for whatever else stands in its place."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def call_of(request: "Message") -> "dict[str, Any]":
    """Return the tool call that a permission is asked for: the second version names it as the subject."""
    params = params_of(request)
    return dict_of(params.get("toolCall")) or dict_of(dict_of(params.get("subject")).get("toolCall"))
