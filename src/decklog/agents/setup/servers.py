"""Entries of Decklog's MCP server in program settings: a JSON member, or a TOML table after a mark."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Any

from decklog.agents.setup.json_text import Insertion, removed
from decklog.agents.setup.parts import NOTHING, FilePart, JsonPart, TomlPart, WholeFile
from decklog.core.errors import Conflict, NotFound

NAME = "decklog"


def called(entry: Any) -> bool:
    """Return whether an entry starts `decklog mcp`, in any program's format."""
    if not isinstance(entry, dict):
        return False
    command, more = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(more if isinstance(more, list) else [])]
    names = [os.path.basename(word) for word in words if isinstance(word, str)]
    return ("decklog", "mcp") in pairwise(names)


@dataclass(frozen=True)
class JsonServer(JsonPart):
    """An entry below an object of servers, such as `mcpServers`."""

    path: str
    entry: dict[str, Any]
    below: str = "mcpServers"

    @property
    def owner(self) -> str:
        return "mcp"

    @property
    def wanted(self) -> Any:
        return self.entry

    def present(self, text: str) -> Any:
        found = self._servers(text).get(NAME)
        return found if called(found) else None

    def insertions(self, text: str | None) -> list[Insertion]:
        if NAME in self._servers(text or ""):
            raise _name_is_taken(self.path)
        return self._added(text, {self.below: {NAME: self.entry}})

    def without(self, text: str) -> str | None:
        if not self.present(text):
            return text
        return removed(text, (self.below, NAME) if len(self._servers(text)) > 1 else (self.below,))

    def _servers(self, text: str) -> dict[str, Any]:
        return self._object(text, self.below)


def _name_is_taken(path: str) -> Conflict:
    return Conflict(f"{path} has a server called {NAME} that is not ours", hint=f"Rename it. {NOTHING}", path=path)


_MARK = "# decklog: the MCP server, with `decklog setup codex --mcp`"
_TABLE = re.compile(
    r"(?:\r?\n)?^" + re.escape(_MARK) + rf"\r?\n\[mcp_servers\.{NAME}\]\r?\n((?:[A-Za-z_][^\r\n]*(?:\r?\n|\Z))*)", re.M
)


@dataclass(frozen=True)
class TomlServer(TomlPart):
    """A table in Codex's settings; all other text stays unchanged."""

    path: str
    entry: dict[str, Any]

    @property
    def owner(self) -> str:
        return "mcp"

    @property
    def wanted(self) -> Any:
        return self.entry

    def present(self, text: str) -> Any:
        self._servers(text)
        found = _TABLE.search(text)
        return tomllib.loads(found[1].replace("\r\n", "\n")) if found else None

    def insertions(self, text: str | None) -> list[Insertion]:
        base = text or ""
        if NAME in self._servers(base):
            raise _name_is_taken(self.path)
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.entry.items()]
        return self._added(base, "\n".join(["", _MARK, f"[mcp_servers.{NAME}]", *lines, ""]))

    def without(self, text: str) -> str | None:
        return _TABLE.sub("", text)

    def _servers(self, text: str) -> dict[str, Any]:
        found = self._value(text).get("mcp_servers", {})
        return found if isinstance(found, dict) else {}


_SERVERS = "agent_servers"


@dataclass(frozen=True)
class EditorAgent:
    """An agent with support for the protocol, and its command."""

    name: str
    title: str
    command: tuple[str, ...]
    # Command that installs the agent.
    source: str


AGENTS = {
    agent.name: agent
    for agent in (
        EditorAgent("claude", "Claude Code", ("claude-agent-acp",), "npm install -g @agentclientprotocol/claude-agent-acp"),
        EditorAgent("codex", "Codex", ("codex-acp",), "npm install -g @agentclientprotocol/codex-acp"),
        EditorAgent("gemini", "Gemini CLI", ("gemini", "--acp"), "npm install -g @google/gemini-cli"),
        EditorAgent("opencode", "opencode", ("opencode", "acp"), "npm install -g opencode-ai"),
    )
}


@dataclass(frozen=True)
class EditorEntry:
    """Title and command of an editor entry. Paths are absolute, because editors start with a minimal PATH."""

    title: str
    words: tuple[str, ...]


def entries(
    names: tuple[str, ...], call: tuple[str, ...], environment: Mapping[str, str], *, is_enforced: bool = False
) -> list[EditorEntry]:
    """Return an entry for each named agent, or for each agent on the PATH if none is named."""
    path = environment.get("PATH", os.defpath)
    found = {agent.name: shutil.which(agent.command[0], path=path) for agent in AGENTS.values()}
    for name in names:
        if found[name] is None:
            wanted = AGENTS[name]
            raise NotFound(f"{wanted.command[0]} is not on the path", hint=f"Install it first: {wanted.source}", agent=name)
    options = ("--enforce",) if is_enforced else ()
    own = [*call, "acp", *options, "--"]
    return [
        EditorEntry(f"{agent.title}, on record", (*own, os.path.abspath(where), *agent.command[1:]))
        for agent in AGENTS.values()
        if (where := found[agent.name]) is not None and agent.name in (names or AGENTS)
    ]


def is_ours(entry: Any) -> bool:
    """Return whether an editor's entry starts `decklog acp`."""
    if not isinstance(entry, dict) or not isinstance(command := entry.get("command"), str):
        return False
    given = entry.get("args")
    words = [command, *map(str, given)] if isinstance(given, list) else [command]
    return any(word == "acp" and os.path.basename(before) == "decklog" for before, word in pairwise(words))


@dataclass(frozen=True)
class Servers(JsonPart):
    """Entries below `agent_servers`, as in the settings of Zed and JetBrains."""

    path: str
    agents: tuple[EditorEntry, ...]
    # Zed requires a type for agents that are not built in.
    kind: str | None = None

    @property
    def wanted(self) -> Any:
        kind = {"type": self.kind} if self.kind else {}
        return {
            entry.title: {**kind, "command": entry.words[0], "args": list(entry.words[1:]), "env": {}} for entry in self.agents
        }

    def present(self, text: str) -> Any:
        return {name: entry for name, entry in self._servers(text).items() if is_ours(entry)}

    def insertions(self, text: str | None) -> list[Insertion]:
        return self._added(text, {_SERVERS: self.wanted})

    def without(self, text: str) -> str | None:
        while ours := self.present(text):
            is_all = len(ours) == len(self._servers(text))
            text = removed(text, (_SERVERS,) if is_all else (_SERVERS, next(iter(ours))))
        return text

    def _servers(self, text: str) -> dict[str, Any]:
        return self._object(text, _SERVERS)


def neovim_module(path: str, agents: tuple[EditorEntry, ...]) -> FilePart:
    """Return a Lua module for Neovim. The user must load it, because Neovim's settings are a program."""
    names = {f"{agent.title}, on record": agent.name for agent in AGENTS.values()}
    commands = {names[entry.title]: entry.words for entry in agents}
    rows = [f"  {name} = {{ {', '.join(map(_lua, words))} }}," for name, words in commands.items()]
    text = resources.files(__package__).joinpath("neovim_agents.lua").read_text(encoding="utf-8")
    return WholeFile(path, text.replace("@COMMANDS@", "\n".join(["{", *rows, "}"])))


def _lua(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
