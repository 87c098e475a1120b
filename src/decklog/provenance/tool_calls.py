"""The files that a tool call may change, and the content that it writes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Lines of a patch that name the next file.
DELETES, _MOVES = "*** Delete File", "*** Move to"
_HEADS = frozenset(["*** Add File", "*** Update File", DELETES, _MOVES])
PATCHES = ("command", "input", "patch", "patchText")
COMMANDS = ("command", "cmd")
# Edits of a text, by the names that programs give them.
_OLD, _NEW = ("old_string", "oldString"), ("new_string", "newString")
_ALL = ("replace_all", "replaceAll")


class FileCall:
    """A call of a tool that names its files. `renamed` maps the new paths of moved files to the former ones."""

    def __init__(self, paths: Sequence[str], arguments: dict[str, Any], renamed: dict[str, str] | None = None) -> None:
        self.paths = paths
        self.arguments = arguments
        self.renamed = renamed or {}

    @property
    def has_content(self) -> bool:
        """Whether the call's arguments contain the written content, for one file."""
        names = self.arguments.keys()
        return len(self.paths) == 1 and ("content" in names or "edits" in names or any(name in names for name in _NEW))

    @property
    def needs_former(self) -> bool:
        """Whether the former content is needed to compute the written one."""
        return not isinstance(self.arguments.get("content"), str)


def is_command(tool: str, arguments: dict[str, Any]) -> bool:
    """Return whether a call runs a command, or is an MCP tool, which may do anything."""
    return tool != "apply_patch" and (any(arguments.get(name) for name in COMMANDS) or tool.startswith("mcp__"))


def patched_files(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the kind and path of each file in a patch, such as `*** Add File`."""
    for text in (value for name in PATCHES if isinstance(value := arguments.get(name), str)):
        for line in text.splitlines():
            head, colon, path = line.strip().partition(": ")
            if colon and head in _HEADS and path.strip():
                yield head, path.strip()


def patched_paths(arguments: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the files of a patch, and the former paths of moved files by their new ones."""
    paths: list[str] = []
    renamed: dict[str, str] = {}
    for head, path in patched_files(arguments):
        if head == _MOVES and paths:
            renamed[path] = paths[-1]
        paths.append(path)
    return paths, renamed


def expected_content(before: bytes, call: FileCall) -> bytes | None:
    """Return the content of a file after a call; None if the arguments don't define it."""
    arguments = call.arguments
    if isinstance(content := arguments.get("content"), str):
        return content.encode(errors="surrogatepass")
    changes = arguments.get("edits") if "edits" in arguments else [arguments]
    if not isinstance(changes, list):
        return None
    text = before
    for change in changes:
        replaced = _replaced(text, change)
        if replaced is None:
            return None
        text = replaced
    return text


def stated_content(before: bytes, changes: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    """Return a content with texts replaced; None if a text does not occur exactly once."""
    text = before
    for old, new in changes:
        if not old and not text:
            text = new
        elif not old or text.count(old) != 1:
            return None
        else:
            text = text.replace(old, new)
    return text


def _replaced(text: bytes, change: Any) -> bytes | None:
    if not isinstance(change, dict):
        return None
    old, new = _first(change, _OLD), _first(change, _NEW)
    if old is None or new is None:
        return None
    if not old:
        return new if not text else None
    if old not in text:
        return None
    return text.replace(old, new) if any(change.get(name) for name in _ALL) else text.replace(old, new, 1)


def _first(change: dict[str, Any], names: Sequence[str]) -> bytes | None:
    found = next((value for name in names if isinstance(value := change.get(name), str)), None)
    return None if found is None else found.encode(errors="surrogatepass")
