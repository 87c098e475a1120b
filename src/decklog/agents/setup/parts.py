"""Our part of another program's file, with its installation and removal: JSON hooks, a marked block, or a whole file."""

import json
import os
import re
import shlex
import shutil
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Any

from decklog.agents.setup.json_text import Insertion, NotJson, parse, plan_insertions, remove_element, with_insertions
from decklog.core.errors import Conflict, Invalid, NotFound

NOTHING = "Nothing was changed."


class FilePart(ABC):
    """Our part of one file. Texts are unchanged file contents; None means that there is no file."""

    path: str
    # The desired content, in a form that can be compared with `present`.
    wanted: Any
    # Key that distinguishes several parts of one file.
    owner: str = ""

    @abstractmethod
    def present(self, text: str) -> Any:
        """Return our current content; an empty value if there is none."""

    @abstractmethod
    def insertions(self, text: str | None) -> list[Insertion]:
        """Return the insertions for a text without our content."""

    @abstractmethod
    def without(self, text: str) -> str | None:
        """Return the text without our content; None if no file should remain."""

    def warnings(self, _text: str) -> list[str]:
        """Return reasons why the program can't read the file."""
        return []

    def completed(self, text: str | None) -> str:
        """Return a text without our content, completed with it."""
        return with_insertions(text or "", self.insertions(text))


def words_of(entry: Any) -> list[str]:
    """Return the words of the command in a program's settings; none if there is no command."""
    command, arguments = (entry.get("command"), entry.get("args")) if isinstance(entry, dict) else (None, None)
    first = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    return [str(word) for word in (*first, *(arguments if isinstance(arguments, list) and first else ()))]


def calls_decklog(words: list[str], verb: str) -> bool:
    """Return whether a command calls `decklog` with a verb."""
    return any(word == verb and os.path.basename(before) == "decklog" for before, word in pairwise(words))


def program_called(handler: Any) -> str | None:
    """Return the program in a handler's `decklog hook` call; None for another command."""
    words = words_of(handler)
    if len(words) == 1:
        try:
            words = shlex.split(words[0])
        except ValueError:
            return None
    after = next((place + 1 for place in range(1, len(words)) if calls_decklog(words[place - 1 : place + 1], "hook")), None)
    return words[after] if after is not None and after < len(words) else None


class JsonPart(FilePart):
    """Our part of a JSON file."""

    def _value(self, text: str) -> Any:
        return {} if is_blank(text) else parse_file(self.path, text).value

    def _object(self, text: str, name: str) -> dict[str, Any]:
        """Return an object of the file by its name; empty if there is none."""
        value = self._value(text)
        found = value.get(name) if isinstance(value, dict) else None
        return found if isinstance(found, dict) else {}

    def _added(self, text: str | None, addition: dict[str, Any]) -> list[Insertion]:
        if text is None or is_blank(text):
            return [(len(text or ""), json.dumps(addition, indent=2, ensure_ascii=False) + "\n")]
        self._value(text)
        try:
            return plan_insertions(text, addition)
        except Conflict as problem:
            raise Conflict(f"{self.path}: {problem.message}", hint=NOTHING, path=self.path) from None


class TomlPart(FilePart):
    """Our tables in a TOML file, each after a mark; all other text stays unchanged."""

    def _value(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError as problem:
            hint = f"Mend it by hand and try again. {NOTHING}"
            raise Invalid(f"{self.path} is no TOML: {problem}", hint=hint, path=self.path) from None

    def _added(self, text: str, tables: str) -> list[Insertion]:
        gap = "\n" if text and not text.endswith("\n") else ""
        plan_insertions = gap + tables
        return [(len(text), plan_insertions.replace("\n", "\r\n") if "\r\n" in text else plan_insertions)] if tables else []


@dataclass(frozen=True)
class Hooks(JsonPart):
    """Hook groups below `hooks`, one list per event, as in Claude Code, Codex and Gemini CLI."""

    path: str
    program: str
    # The groups of each event.
    wanted: dict[str, list[dict[str, Any]]]
    takes_comments: bool = False

    def present(self, text: str) -> Any:
        found: dict[str, list[Any]] = {}
        for event, groups in self._events(text).items():
            ours = [(group, [one for one in self._handlers(group) if self._is_ours(one)]) for group in groups]
            if own_groups := [{**group, "hooks": handlers} for group, handlers in ours if handlers]:
                found[event] = own_groups
        return found

    def insertions(self, text: str | None) -> list[Insertion]:
        return self._added(text, {"hooks": self.wanted})

    def without(self, text: str) -> str | None:
        while (path := self._first(text)) is not None:
            text = remove_element(text, path)
        return text

    def warnings(self, text: str) -> list[str]:
        if self.takes_comments:
            return []
        try:
            json.loads(text.removeprefix("\ufeff"))
        except ValueError:
            return [f"{self.path} has comments, or commas before a bracket: {self.program} ignores such a file, hooks and all"]
        return []

    # Current content

    def _events(self, text: str) -> dict[str, list[Any]]:
        return {event: groups for event, groups in self._object(text, "hooks").items() if isinstance(groups, list)}

    def _handlers(self, group: Any) -> list[Any]:
        handlers = group.get("hooks") if isinstance(group, dict) else None
        return handlers if isinstance(handlers, list) else []

    def _is_ours(self, handler: Any) -> bool:
        return program_called(handler) == self.program

    def _first(self, text: str) -> tuple[str | int, ...] | None:
        """Return the path of the first element to remove: our handler, or its largest container without other content."""
        for event, groups in self._events(text).items():
            for number, group in enumerate(groups):
                handlers = self._handlers(group)
                ours = [place for place, handler in enumerate(handlers) if self._is_ours(handler)]
                if not ours:
                    continue
                if len(handlers) > 1:
                    return ("hooks", event, number, "hooks", ours[0])
                if len(groups) > 1:
                    return ("hooks", event, number)
                return ("hooks", event) if len(self._object(text, "hooks")) > 1 else ("hooks",)
        return None


def is_blank(text: str) -> bool:
    """Return whether a file has only whitespace."""
    return not text.strip("\ufeff \t\r\n")


def parse_file(path: str, text: str) -> Any:
    """Parse a file as JSON; raise NotJson with the path and the position."""
    try:
        return parse(text)
    except NotJson as problem:
        raise NotJson(
            f"{path} is no JSON: {problem.message}", hint=f"Mend it by hand and try again. {NOTHING}", path=path
        ) from None


@dataclass(frozen=True)
class TextBlock(FilePart):
    """A block between two marks at the end of a Markdown file."""

    path: str
    # The block with its marks.
    wanted: str

    BEGIN = "<!-- decklog: begin. Written by `decklog setup agents-md`; --remove takes it out. -->"
    END = "<!-- decklog: end -->"

    def present(self, text: str) -> Any:
        span = self._span(text)
        return text[slice(*span)].replace("\r\n", "\n") if span else ""

    def insertions(self, text: str | None) -> list[Insertion]:
        if not text:
            return [(0, self.wanted + "\n")]
        line_break = "\r\n" if "\r\n" in text else "\n"
        gap = "\n" if text.endswith("\n") else "\n\n"
        return [(len(text), f"{gap}{self.wanted}\n".replace("\n", line_break))]

    def without(self, text: str) -> str | None:
        span = self._span(text)
        if span is None:
            return text
        before, after = text[: span[0]], text[span[1] :].lstrip("\r\n")
        return (before + after if after else _with_line_break(before)) or None

    def _span(self, text: str) -> tuple[int, int] | None:
        start = text.find("<!-- decklog: begin")
        end = text.find(self.END, start)
        return (start, end + len(self.END)) if 0 <= start < end else None


def _with_line_break(text: str) -> str:
    """Return a text that ends with a single line break, as before a block was appended."""
    stripped = text.rstrip("\r\n")
    return stripped + ("\r\n" if "\r\n" in text else "\n") if stripped else ""


@dataclass(frozen=True)
class WholeFile(FilePart):
    """A file that only Decklog writes, recognised by a mark."""

    path: str
    wanted: str
    mark: str = "decklog"

    def present(self, text: str) -> Any:
        if self.mark not in text:
            raise Conflict(
                f"{self.path} is there already, and was not written by `decklog setup`",
                hint=f"Move it out of the way. {NOTHING}",
                path=self.path,
            )
        return text

    def insertions(self, _text: str | None) -> list[Insertion]:
        return [(0, self.wanted)]

    def without(self, text: str) -> str | None:
        self.present(text)
        return None


# Entries of servers and agents

NAME = "decklog"


@dataclass(frozen=True)
class JsonEntries(JsonPart):
    """Entries below an object that call Decklog with a verb: of MCP servers in programs, or of agents in editors."""

    path: str
    below: str
    wanted: dict[str, Any]
    verb: str
    owner: str = ""

    def present(self, text: str) -> Any:
        known = self._object(text, self.below)
        # Which agents an editor has may change, but a server has one name.
        return {
            name: entry
            for name, entry in known.items()
            if calls_decklog(words_of(entry), self.verb) and (name in self.wanted or self.verb == "acp")
        }

    def insertions(self, text: str | None) -> list[Insertion]:
        _check_free(self.path, self.wanted, self._object(text or "", self.below))
        return self._added(text, {self.below: self.wanted})

    def without(self, text: str) -> str | None:
        while ours := self.present(text):
            is_all = len(ours) == len(self._object(text, self.below))
            text = remove_element(text, (self.below,) if is_all else (self.below, next(iter(ours))))
        return text


def json_server(path: str, entry: dict[str, Any], below: str = "mcpServers") -> JsonEntries:
    """Return the entry of the MCP server."""
    return JsonEntries(path, below, {NAME: entry}, "mcp", owner="mcp")


def _check_free(path: str, names: Iterable[str], known: dict[str, Any]) -> None:
    """Raise Conflict if a name is taken by an entry that is not ours."""
    for name in names:
        if name in known:
            raise Conflict(f"{path} has a server called {name} that is not ours", hint=f"Rename it. {NOTHING}", path=path)


_MARK = "# decklog: the MCP server, with `decklog setup codex --mcp`"
_TABLE = re.compile(
    r"(?:\r?\n)?^" + re.escape(_MARK) + rf"\r?\n\[mcp_servers\.{NAME}\]\r?\n((?:[A-Za-z_][^\r\n]*(?:\r?\n|\Z))*)", re.M
)


@dataclass(frozen=True)
class TomlServer(TomlPart):
    """A table in Codex's settings; all other text stays unchanged."""

    path: str
    wanted: dict[str, Any]
    owner: str = "mcp"

    def present(self, text: str) -> Any:
        self._value(text)
        found = _TABLE.search(text)
        return tomllib.loads(found[1].replace("\r\n", "\n")) if found else None

    def insertions(self, text: str | None) -> list[Insertion]:
        servers = self._value(text or "").get("mcp_servers")
        _check_free(self.path, [NAME], servers if isinstance(servers, dict) else {})
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.wanted.items()]
        return self._added(text or "", "\n".join(["", _MARK, f"[mcp_servers.{NAME}]", *lines, ""]))

    def without(self, text: str) -> str | None:
        return _TABLE.sub("", text)


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
    """Agent and command of an editor entry. Paths are absolute, because editors start with a minimal PATH."""

    agent: EditorAgent
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
        EditorEntry(agent, (*own, os.path.abspath(where), *agent.command[1:]))
        for agent in AGENTS.values()
        if (where := found[agent.name]) is not None and agent.name in (names or AGENTS)
    ]


def agent_servers(path: str, agents: Iterable[EditorEntry], **more: str) -> JsonEntries:
    """Return the entries of agents, as in the settings of Zed and JetBrains."""
    wanted = {
        f"{entry.agent.title} (recorded)": {**more, "command": entry.words[0], "args": list(entry.words[1:]), "env": {}}
        for entry in agents
    }
    return JsonEntries(path, "agent_servers", wanted, "acp")


def neovim_module(path: str, agents: Iterable[EditorEntry]) -> FilePart:
    """Return a Lua module for Neovim. The user must load it, because Neovim's settings are a program."""
    rows = [f"  {entry.agent.name} = {{ {', '.join(map(_lua, entry.words))} }}," for entry in agents]
    text = resources.files(__package__).joinpath("neovim_agents.lua").read_text(encoding="utf-8")
    return WholeFile(path, text.replace("@COMMANDS@", "\n".join(["{", *rows, "}"])))


def _lua(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
