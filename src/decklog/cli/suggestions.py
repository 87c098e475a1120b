"""Suggestions for unknown commands and options."""

from collections.abc import Iterable, Sequence
from typing import Any

from decklog.cli.call import WrongUsage

# Other common names for our verbs.
_SUGGESTED_VERBS = {
    "list": "find",
    "ls": "find",
    "recent": "find",
    "latest": "find",
    "all": "find",
    "get": "show",
    "view": "show",
    "info": "show",
    "create": "add",
    "new": "add",
    "insert": "add",
    "complete": "finish",
    "close": "finish",
    "done": "finish",
    "end": "finish",
    "heartbeat": "extend",
    "renew": "extend",
    "edit": "update",
    "change": "update",
    "log": "append",
    "write": "append",
    "cancel": "abandon",
    "unpause": "resume",
    "stop": "pause",
}


def suggest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word closest to a mistyped one; None if none is close."""
    from difflib import get_close_matches

    words = list(known)
    if (verb := _SUGGESTED_VERBS.get(word)) in words:
        return verb
    # `--task` and `--task-id` suggest each other.
    if (variant := word.removesuffix("-id") if word.endswith("-id") else f"{word}-id") in words:
        return variant
    near = get_close_matches(word, words, 3, 0.7)
    # Prefer swapped letters: `strat` is `start` rather than `stats`.
    swapped = [one for one in near if sorted(one) == sorted(word)]
    return next(iter(swapped or near), None)


def suggestion_hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint with the closest known word, or `otherwise` if none is close."""
    near = suggest(word, known)
    return otherwise if near is None else f"Did you mean {near}?"


def unknown_command(path: str, name: str, names: Sequence[str], *, is_listed: bool = True, **details: Any) -> WrongUsage:
    """Return the error for an unknown command of a group at `path`, with the closest known one."""
    message = f"unknown command: {path} {name}".replace("decklog ", "", 1)
    near = suggest(name, names)
    if near is not None:
        return WrongUsage(f"{message} (did you mean {near}?)", hint=f"See its options: {path} {near} --help", **details)
    listed = f"Commands: {', '.join(names)}. " if is_listed else ""
    return WrongUsage(message, hint=f"{listed}See: {path} --help", **details)
