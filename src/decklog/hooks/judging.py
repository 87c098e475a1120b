"""Policy decisions about tool calls before they run."""

import os
from typing import TYPE_CHECKING

from decklog.hooks.called_files import files_of
from decklog.hooks.harmless import is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from decklog.guard.policy import Publication
    from decklog.log import Decklog

_COMMANDS = ("command", "cmd")
_PATCHES = ("command", "input", "patch", "patchText")
# Lines of a patch that name the next file.
_DELETES = "*** Delete File"
_HEADS = frozenset(["*** Add File", "*** Update File", "*** Move to", _DELETES])


def held(told: "dict[str, Any]", root: str) -> str | None:
    """Return why a call is blocked; None leaves it to the program's own rules."""
    return next((reason for decision, reason, _ in decisions(told, root) if decision == "deny"), None)


def decisions(told: "dict[str, Any]", root: str) -> "list[tuple[str, str, dict[str, str]]]":
    """Return the policy's decisions about the commands and files of a call; deny a call that can't be read."""
    if not isinstance(told.get("tool_name"), str) or not isinstance(told.get("tool_input"), dict):
        return [("deny", "Decklog can't read what this call does, so it is blocked.", {})]
    cwd = str(told.get("cwd") or root)
    return [decided(command, root, cwd) for command in _commands(told)]


def held_command(command: "str | list[str]", root: str, cwd: str) -> str | None:
    """Return why a command in a folder is blocked; None if it is not."""
    decision, why, _ = decided(command, root, cwd)
    return why if decision == "deny" else None


def decided(command: "str | list[str]", root: str, cwd: str) -> "tuple[str, str, dict[str, str]]":
    """Return the policy's decision about a command in a folder (`allow`, `ask` or `deny`) and the reason.

    The third value has the rule and its reason for the record, if a rule decided.
    """
    place = os.path.relpath(cwd, root)
    if isinstance(command, str) and is_plain(command) and _is_plain_place(place):
        return "allow", "", {}
    try:
        return _judged(command, root, place)
    except Exception as problem:  # noqa: BLE001
        hint = getattr(problem, "hint", None) or "Run `decklog doctor agents`."
        return "deny", f"Decklog could not judge this, so it is blocked: {problem} {hint}", {"rule": "not-judged", "reason": hint}


def _judged(command: "str | list[str]", root: str, place: str) -> "tuple[str, str, dict[str, str]]":
    """Judge a command by the policy and, if it publishes commits, by the review gate."""
    from decklog.guard.policy import Decision, examine

    verdict, published = examine(command, root=root, cwd=place)
    why, cause = f"({verdict.rule}): {verdict.reason}", {"rule": verdict.rule, "reason": verdict.reason}
    if verdict.decision is Decision.DENY:
        return "deny", f"Decklog's policy denies this {why} Reach the goal another way, or ask the person.", cause
    if published and (reason := held_by_gate(published, root)):
        return "deny", reason, {}
    return verdict.decision.value, why, cause


def held_by_gate(published: "Sequence[Publication]", root: str, log: "Decklog | None" = None) -> str | None:
    """Return why commits must not be published: the repository has a review gate that has not passed them.

    The log is that of the root folder unless one is given.
    """
    from decklog.core.errors import DecklogError
    from decklog.guard.toolbox.toolbox import state_home
    from decklog.location.locate import of_session
    from decklog.review.publishing import push_block_reason

    found = of_session(root, os.environ) if log is None else None
    if found is None:
        return push_block_reason(log, published, root=root, state=state_home())
    try:
        with found.open() as opened:
            return push_block_reason(opened, published, root=root, state=state_home())
    except DecklogError:
        # Without the log, no review is known.
        return push_block_reason(None, published, root=root, state=state_home())


def writing(path: str) -> list[str]:
    """Return the command that is judged in place of writing a file."""
    return ["tee", path]


def reading(path: str) -> list[str]:
    """Return the command that is judged in place of reading a file."""
    return ["cat", path]


def _is_plain_place(cwd: str) -> bool:
    """Return whether a folder has no hidden part, so that plain names in it are ordinary files."""
    return cwd == "." or not any(part.startswith(".") for part in cwd.split(os.sep))


def _commands(told: "dict[str, Any]") -> "Iterator[str | list[str]]":
    """Yield the commands to judge for a call: its own command, or equivalents for the files it names."""
    tool, arguments = told["tool_name"], told["tool_input"]
    command = next((given for name in _COMMANDS if (given := arguments.get(name))), None)
    if tool == "apply_patch":
        patches = [value for name in _PATCHES if isinstance(value := arguments.get(name), str)]
        yield from (judged for patch in patches for judged in _patched(patch))
        return
    if isinstance(command, str) or (isinstance(command, list) and all(isinstance(word, str) for word in command)):
        yield command
        return
    read, written = files_of(tool, arguments)
    yield from map(reading, read)
    yield from map(writing, written)


def _patched(patch: str) -> "Iterator[list[str]]":
    """Yield the commands to judge for the files that a patch names."""
    for line in patch.splitlines():
        head, colon, path = line.strip().partition(": ")
        if colon and head in _HEADS and path.strip():
            yield ["rm", path.strip()] if head == _DELETES else writing(path.strip())
