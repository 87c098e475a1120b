"""What the policy says of a tool call before it runs."""

import os

from decklog.guard.harmless import is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WRITES = frozenset(["Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace"])
_READS = frozenset(["Read", "read_file"])


def held(told: "dict[str, Any]", root: str) -> str | None:
    """Say why a call is held; None lets the program go on to its own rules."""
    command = _command(told)
    return None if command is None else held_command(command, root, str(told.get("cwd") or root))


def held_command(command: "str | list[str]", root: str, cwd: str) -> str | None:
    """Say why a command is held that is to run in a folder; None when it is not."""
    place = os.path.relpath(cwd, root)
    if isinstance(command, str) and is_plain(command) and _is_plain_place(place):
        return None
    from decklog.tools.policy import Decision, judge

    verdict = judge(command, root=root, cwd=place)
    if verdict.decision is not Decision.DENY:
        return None
    return f"Decklog's policy denies this ({verdict.rule}): {verdict.reason} Reach the goal another way, or ask the person."


def writing(path: str) -> list[str]:
    """Give the command that would have to be judged for a file to be written."""
    return ["tee", path]


def reading(path: str) -> list[str]:
    """Give the command that would have to be judged for a file to be read."""
    return ["cat", path]


def _is_plain_place(cwd: str) -> bool:
    """Say whether a folder is one of the repository's own, where a plain name can only be a file's."""
    return cwd == "." or not any(part.startswith(".") for part in cwd.split(os.sep))


def _command(told: "dict[str, Any]") -> "str | list[str] | None":
    """Give what is judged of a call: its command, or what a command would have to do to the file that it names."""
    tool, arguments = told.get("tool_name"), told.get("tool_input")
    if not isinstance(arguments, dict):
        return None
    command = arguments.get("command")
    if isinstance(command, str) and tool != "apply_patch":
        return command
    path = arguments.get("file_path") or arguments.get("notebook_path")
    if not isinstance(path, str):
        return None
    if tool in _WRITES:
        return writing(path)
    return reading(path) if tool in _READS else None
