"""Extraction of file names from tool calls of any coding agent or MCP server."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Words in a tool's name which mean that it changes its files; any other tool reads them.
_CHANGES = frozenset(
    (
        *("write", "edit", "replace", "create", "update", "delete", "remove", "move", "rename", "copy"),
        *("append", "insert", "patch", "save", "mkdir", "put", "upload", "set"),
    )
)
# Arguments that name a file or a folder.
_PATHS = (
    *("file_path", "filePath", "notebook_path", "absolute_path", "abs_path", "path", "paths", "file", "files", "filename"),
    *("dir_path", "directory", "folder", "source", "destination", "old_path", "new_path", "target_file", "relative_path"),
)
# Arguments with patterns of files below that folder. The `pattern` of a tool that finds files is one too.
_PATTERNS = ("glob", "include", "include_pattern", "file_pattern")
_FINDS_FILES = frozenset(["glob", "find"])
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def files_of(tool: str, arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the files that a call reads and those that it writes."""
    words = {word.lower() for word in _WORDS.findall(tool)}
    paths = list(_texts(arguments, _PATHS))
    if words & _CHANGES:
        return [], paths
    names = (*_PATTERNS, "pattern") if words & _FINDS_FILES else _PATTERNS
    patterns = [pattern for pattern in _texts(arguments, names) if not pattern.startswith("!")]
    below = [_joined(folder, pattern) for folder in paths or ["."] for pattern in patterns]
    return [*paths, *(path for pattern in below for path in _alternatives(pattern))], []


def _texts(arguments: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = arguments.get(name)
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str) and text)


def _joined(folder: str, pattern: str) -> str:
    return pattern if pattern.startswith("~") else os.path.join(folder, pattern)


def _alternatives(pattern: str) -> list[str]:
    """Expand braces such as `{a,b}`, as search tools do."""
    if "{" not in pattern:
        return [pattern]
    from decklog.guard.policy.words import expand_braces

    return expand_braces(pattern)
