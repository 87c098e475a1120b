"""Tool calls that arrive in several messages: merge updates and read fields.

Agents differ in where they put the data. Some send arguments only with a later update, some only a title. Some send output as
pieces of a terminal that the client never created. Each update is merged into the known call.
"""

import base64
import hashlib
import os
import shlex
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from decklog.agents.events import CallOutcome, OtherEvent
from decklog.agents.programs.claude import output_of
from decklog.agents.texts import as_text, dict_of, list_of, text_or_none

Call = dict[str, Any]

_KEPT = ("name", "title", "kind", "status", "rawInput", "rawOutput", "content", "locations")
_COMMAND = ("command", "cmd")
_PATH = ("file_path", "filePath", "path", "notebook_path", "abs_path")
# Shell tool names of agents; hooks use the name Bash.
_SHELL = frozenset(["exec_command", "shell", "shell_command", "local_shell", "run_shell_command", "bash", "Terminal"])
_WRITING = frozenset(["edit", "delete", "move"])
ENDED = frozenset(["completed", "failed"])
# Limit on stored output that arrives in pieces.
_MOST_OUTPUT = 200_000


def merged(known: Call | None, update: Call) -> Call:
    """Merge an update into a call; missing and empty fields keep their value."""
    call = dict(known or {})
    for name in _KEPT:
        if update.get(name) not in (None, {}, [], ""):
            call[name] = update[name]
    meta = dict_of(update.get("_meta"))
    claude = dict_of(meta.get("claudeCode"))
    if "toolResponse" in claude:
        call["response"] = claude["toolResponse"]
    for name, place in (("toolName", "tool"), ("parentToolUseId", "parent"), ("nonExecutionKind", "not_run")):
        if claude.get(name):
            call[place] = str(claude[name])
    if isinstance(piece := dict_of(meta.get("terminal_output_delta")).get("data"), str):
        call["printed"] = (call.get("printed", "") + piece)[-_MOST_OUTPUT:]
    if isinstance(code := dict_of(meta.get("terminal_exit")).get("exit_code"), int):
        call["exit_code"] = code
    return call


def with_terminal(known: Call, update: Call) -> Call:
    """Return a call with its terminal's output, which protocol version 2 sends in full as base64."""
    call = dict(known)
    printed, code = dict_of(update.get("output")).get("data"), dict_of(update.get("exitStatus")).get("exitCode")
    if isinstance(printed, str):
        try:
            call["printed"] = base64.b64decode(printed, validate=True).decode(errors="replace")[-_MOST_OUTPUT:]
        except ValueError:
            call["printed"] = printed[-_MOST_OUTPUT:]
    return {**call, "exit_code": code} if isinstance(code, int) else call


def tool_of(call_id: str, call: Call) -> str:
    """Return the tool name of a call; if the message has the name from hooks and transcripts, return that."""
    if name := text_or_none(call.get("tool")) or text_or_none(call.get("name")):
        return "Bash" if name in _SHELL else name
    raw = dict_of(call.get("rawInput"))
    if "server" in raw and "tool" in raw:
        return f"mcp__{raw['server']}__{raw['tool']}"
    if call.get("kind") == "execute" and command_of(call):
        return "Bash"
    before, mark, _ = call_id.partition("__")
    if mark and before:
        return "Bash" if before in _SHELL else before
    return str(call.get("kind") or "tool")


def is_described(call: Call) -> bool:
    """Return whether the purpose of a call is known; its arguments may arrive with a later update."""
    return bool(dict_of(call.get("rawInput"))) or call.get("status") not in (None, "pending")


def arguments_of(call: Call) -> dict[str, Any]:
    """Return the arguments of a call, or else its title and its files."""
    raw = dict_of(call.get("rawInput"))
    if raw:
        command = command_of(call)
        return {**raw, "command": shlex.join(command)} if isinstance(command, list) else raw
    title = {"title": text_or_none(call.get("title"))}
    if call.get("kind") == "execute":
        title = {"command": title["title"]}
    paths = paths_of(call)
    return {name: value for name, value in {**title, "path": paths[0] if paths else None}.items() if value}


def command_of(call: Call) -> str | list[str] | None:
    """Return the command that a call runs."""
    raw = dict_of(call.get("rawInput"))
    for name in _COMMAND:
        value = raw.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return list(value)
    is_only_named = call.get("kind") == "execute" and not raw
    return text_or_none(call.get("title")) if is_only_named else None


def paths_of(call: Call) -> list[str]:
    """Return the paths of the files that a call refers to."""
    raw = dict_of(call.get("rawInput"))
    named = [raw.get(name) for name in _PATH]
    places = [place.get("path") for place in list_of(call.get("locations"))]
    changed = [change.get("path") for diff in diffs_of(call) for change in (diff, *list_of(diff.get("changes")))]
    found = [path for path in (*named, *places, *changed) if isinstance(path, str) and path]
    return list(dict.fromkeys(os.path.normpath(path) for path in found))


def writes(call: Call) -> bool:
    """Return whether a call changes the files it refers to."""
    return call.get("kind") in _WRITING or bool(diffs_of(call)) or tool_of("", call) in ("Write", "Edit", "MultiEdit")


def diffs_of(call: Call) -> list[dict[str, Any]]:
    """Return the file changes of a call."""
    return [part for part in list_of(call.get("content")) if part.get("type") == "diff"]


def outcome_of(call: Call, *, is_rejected: bool) -> CallOutcome:
    """Return the outcome of an ended call. Some agents report failed commands as completed."""
    if call.get("not_run") or (is_rejected and call.get("status") != "completed"):
        return CallOutcome.DENIED if is_rejected or call.get("not_run") == "permission-rule" else CallOutcome.INTERRUPTED
    return CallOutcome.FAILED if call.get("status") == "failed" or exit_code_of(call) else CallOutcome.OK


def exit_code_of(call: Call) -> int | None:
    """Return the exit code of a command, if it is known."""
    metadata = dict_of(dict_of(call.get("rawOutput")).get("metadata"))
    code = call.get("exit_code", metadata.get("exit"))
    return code if isinstance(code, int) else None


def output_of_call(call: Call) -> str:
    """Return the output of a call as text."""
    if "response" in call and call.get("status") != "failed":
        return output_of(call["response"])
    if call.get("printed"):
        return str(call["printed"])
    raw = call.get("rawOutput")
    text = raw.get("output") or raw.get("formatted_output") or raw.get("aggregated_output") if isinstance(raw, dict) else raw
    if isinstance(text, str) and text:
        return text
    parts = [as_text(dict_of(part.get("content")).get("text")) for part in list_of(call.get("content"))]
    return "\n".join(part for part in parts if part) or (as_text(raw) if raw else "")


# File changes

# Comparing longer texts line by line is too slow; only their digests are recorded.
_MOST_COMPARED = 200_000


def changed(place: dict[str, Any], call_id: str, call: dict[str, Any]) -> Iterator[OtherEvent]:
    """Yield an event for each file change of a call."""
    for number, change in enumerate(diffs_of(call)):
        facts: dict[str, Any]
        path, before, after = (as_text(change.get(name)) for name in ("path", "oldText", "newText"))
        if isinstance(patch := dict_of(change.get("patch")).get("text"), str):
            # Protocol version 2 sends a patch, which may cover several files.
            paths = [as_text(each.get("path")) for each in list_of(change.get("changes"))]
            text, facts = patch, {"path": ", ".join(paths)}
        else:
            text = _difference(path, before, after)
            facts = {"path": path, "before": _digest(before), "after": _digest(after)}
        yield OtherEvent(**place, name="diff", text=text, facts={"call": call_id, **facts}, note_id=f"diff:{call_id}:{number}")


def _difference(path: str, before: str, after: str) -> str:
    if len(before) + len(after) > _MOST_COMPARED:
        return f"{path}: {len(before)} characters became {len(after)}"
    lines = unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="", n=2)
    return "\n".join(lines) or f"{path}: as it was"


def _digest(text: str) -> str | None:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest() if text else None
