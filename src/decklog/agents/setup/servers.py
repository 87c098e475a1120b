"""Entries of Decklog's MCP server in program settings: a JSON member, or a TOML table after a mark."""

import json
import os
import re
import tomllib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from decklog.agents.setup.json_text import Insertion, added, removed
from decklog.agents.setup.parts import FilePart, is_blank, parse_file
from decklog.core.errors import Conflict, Invalid

if TYPE_CHECKING:
    from typing import Any

NAME = "decklog"
_NOTHING = "Nothing was changed there."


def called(entry: "Any") -> bool:
    """Return whether an entry starts `decklog mcp`, in any program's format."""
    if not isinstance(entry, dict):
        return False
    command, more = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(more if isinstance(more, list) else [])]
    names = [os.path.basename(word) for word in words if isinstance(word, str)]
    return ("decklog", "mcp") in pairwise(names)


@dataclass(frozen=True)
class JsonServer(FilePart):
    """An entry below an object of servers, such as `mcpServers`."""

    path: str
    entry: "dict[str, Any]"
    below: str = "mcpServers"

    @property
    def owner(self) -> str:
        return "mcp"

    @property
    def wanted(self) -> "Any":
        return self.entry

    def present(self, text: str) -> "Any":
        found = self._servers(text).get(NAME)
        return found if called(found) else None

    def insertions(self, text: str | None) -> list[Insertion]:
        addition = {self.below: {NAME: self.entry}}
        if text is None or is_blank(text):
            return [(len(text or ""), json.dumps(addition, indent=2) + "\n")]
        if NAME in self._servers(text):
            raise Conflict(
                f"{self.path} has a server called {NAME} that is not ours", hint=f"Rename it. {_NOTHING}", path=self.path
            )
        try:
            return added(text, addition)
        except Conflict as problem:
            raise Conflict(f"{self.path}: {problem.message}", hint=_NOTHING, path=self.path) from None

    def without(self, text: str) -> str | None:
        if not self.present(text):
            return text
        return removed(text, (self.below, NAME) if len(self._servers(text)) > 1 else (self.below,))

    def _servers(self, text: str) -> "dict[str, Any]":
        value = {} if is_blank(text) else parse_file(self.path, text).value
        found = value.get(self.below) if isinstance(value, dict) else None
        return found if isinstance(found, dict) else {}


_MARK = "# decklog: the MCP server, with `decklog setup codex --mcp`"
_TABLE = re.compile(
    r"(?:\r?\n)?^" + re.escape(_MARK) + rf"\r?\n\[mcp_servers\.{NAME}\]\r?\n((?:[A-Za-z_][^\r\n]*(?:\r?\n|\Z))*)", re.M
)


@dataclass(frozen=True)
class TomlServer(FilePart):
    """A table in Codex's settings; all other text stays unchanged."""

    path: str
    entry: "dict[str, Any]"

    @property
    def owner(self) -> str:
        return "mcp"

    @property
    def wanted(self) -> "Any":
        return self.entry

    def present(self, text: str) -> "Any":
        self._servers(text)
        found = _TABLE.search(text)
        return tomllib.loads(found[1].replace("\r\n", "\n")) if found else None

    def insertions(self, text: str | None) -> list[Insertion]:
        base = text or ""
        if NAME in self._servers(base):
            raise Conflict(
                f"{self.path} has a server called {NAME} that is not ours", hint=f"Rename it. {_NOTHING}", path=self.path
            )
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.entry.items()]
        table = "\n".join(["", _MARK, f"[mcp_servers.{NAME}]", *lines, ""])
        table = ("\n" if base and not base.endswith("\n") else "") + table
        return [(len(base), table.replace("\n", "\r\n") if "\r\n" in base else table)]

    def without(self, text: str) -> str | None:
        return _TABLE.sub("", text)

    def _servers(self, text: str) -> "dict[str, Any]":
        try:
            found = tomllib.loads(text.removeprefix("\ufeff")).get("mcp_servers", {})
        except tomllib.TOMLDecodeError as problem:
            hint = f"Mend it by hand and try again. {_NOTHING}"
            raise Invalid(f"{self.path} is no TOML: {problem}", hint=hint, path=self.path) from None
        return found if isinstance(found, dict) else {}
