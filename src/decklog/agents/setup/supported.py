"""Table of the programs that can be set up: their files, events, guard limits and next steps."""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from typing import Any

from decklog.agents.setup import files
from decklog.agents.setup.parts import (
    EditorEntry,
    FilePart,
    Hooks,
    JsonServer,
    Servers,
    TextBlock,
    TomlServer,
    WholeFile,
    entries,
    neovim_module,
    parse_file,
)
from decklog.core.errors import Invalid

TITLE = "The record of this work: Decklog"
COMMANDS = """\
This repository keeps its tasks, decisions and costs in a Decklog log. The commands find your run, task and claim by themselves.

- `decklog next`: get a task, or see the one you have. Exit 7: nothing now, `--wait 60` waits for one.
- `decklog done "WHAT" --evidence "COMMAND OR FILE"`: end it as done; say what shows it.
- `decklog fail "WHY"`: end this try. `decklog block "WHY"`: when only a change outside can help.
- `decklog note "TEXT"`: what you found or decided, while you work; `-` reads it from stdin.
- `decklog ask "QUESTION"`: ask a person. Exit 0 granted, 6 denied, 7 no answer yet: ask the same again to hear it.
- `decklog plan "TITLE" "TITLE"`: add tasks; alone it shows the plan's status.
- `decklog recall WORDS`: lessons that fit, before you begin. `decklog remember "LESSON"`: one that you verified.
- `decklog spend MODEL --in N --out N`: tokens of a call that nobody else records for you.

Approving, raising budgets and changing the policy are the manager's: there is no command of yours for it. When a call is held,
reach the goal another way, or ask."""

# Files that programs read instead of AGENTS.md, if they exist.
_OTHERS = ("CLAUDE.md", "GEMINI.md")


def agents_md(project: str) -> list[FilePart]:
    """Return the parts for AGENTS.md and for existing files that a program reads instead."""
    main = os.path.join(project, "AGENTS.md")
    others = [os.path.join(project, name) for name in _OTHERS]
    return [TextBlock(path, block()) for path in (main, *(path for path in others if _is_read_instead(path, main)))]


def block() -> str:
    return f"## {TITLE}\n\n{COMMANDS}"


def cursor_rule(project: str) -> list[FilePart]:
    """Return the rule that Cursor reads at every request."""
    head = "---\ndescription: How to work with the Decklog log of this repository\nalwaysApply: true\n---\n"
    mark = "<!-- Written by `decklog setup cursor`; --remove takes it out. -->"
    path = os.path.join(project, ".cursor", "rules", "decklog.mdc")
    return [WholeFile(path, f"{head}{mark}\n# {TITLE}\n\n{COMMANDS}\n", "Written by `decklog setup cursor`")]


def _is_read_instead(path: str, main: str) -> bool:
    """Return whether a program reads this file instead of the main one: a different file that does not import it."""
    if files.real(path) == files.real(main):
        return False
    text = files.read(files.real(path))
    return text is not None and "@AGENTS.md" not in text


def opencode_plugin(path: str, call: tuple[str, ...]) -> WholeFile:
    """Return the plugin's file, with the command that calls Decklog."""
    text = resources.files(__package__).joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    return WholeFile(path, text.replace("@CALL@", json.dumps(call)), "Written by `decklog setup opencode`")


MARKET = "decklog"
NAME = "decklog"
_ABOUT = "Puts sessions on record in a Decklog log, and holds what its policy denies."


def plugin(setting: "Setting", folder: str) -> list[FilePart]:
    """Return the files of a marketplace with one plugin."""
    # Codex sets PLUGIN_ROOT for a plugin's hooks, which identifies the calling program.
    command = f'program=claude; [ -z "$PLUGIN_ROOT" ] || program=codex; exec {shlex.join(setting.call)} hook "$program"'
    # Claude Code ignores a file with unknown event names; Codex skips only the unknown ones.
    groups = _hook_groups({**_CLAUDE, "SessionEnd": 3}, type="command", command=command)
    about, version = {"name": NAME, "description": _ABOUT}, {"version": setting.version}
    market = {"name": MARKET, "owner": {"name": NAME}, "plugins": [{**about, "source": f"./plugins/{NAME}", **version}]}
    skill = "Use the Decklog log of a repository: get tasks, end them, ask, note, recall lessons."
    texts = {
        ".claude-plugin/marketplace.json": _json(market),
        f"plugins/{NAME}/.claude-plugin/plugin.json": _json({**about, **version, "author": {"name": NAME}}),
        f"plugins/{NAME}/hooks/hooks.json": _json({"hooks": {event: [group] for event, group in groups.items()}}),
        f"plugins/{NAME}/skills/log/SKILL.md": f"---\nname: log\ndescription: {skill}\n---\n\n# {TITLE}\n\n{COMMANDS}\n",
    }
    if setting.has_server:
        texts[f"plugins/{NAME}/.mcp.json"] = _json({"mcpServers": {NAME: setting.server}})
    return [WholeFile(os.path.join(folder, *path.split("/")), text) for path, text in texts.items()]


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


class SetupScope(StrEnum):
    """Scope of a setup: one user or one project."""

    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True)
class Setting:
    """Parameters of a setup: the command that calls Decklog, the folders and the options."""

    call: tuple[str, ...]
    scope: SetupScope
    home: str
    project: str
    version: str = "0"
    # Whether a failing hook blocks the call; None keeps the present setting.
    is_enforced: bool | None = None
    plugin_folder: str | None = None
    # Whether to add the MCP server; None keeps the present setting.
    has_server: bool | None = None
    # Agents for an editor to start; empty means all on the PATH.
    agents: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def folder(self, name: str, variable: str | None = None) -> str:
        """Return a program's settings folder: in the project, in the folder of its variable, or in the home."""
        if self.scope is SetupScope.PROJECT:
            return os.path.join(self.project, name)
        named = self.environment.get(variable) if variable else None
        return named or os.path.join(self.home, name)

    def with_server(self, parts: list[FilePart], server: FilePart) -> list[FilePart]:
        """Add the MCP server's entry if it is requested, or already present."""
        if self.has_server is None:
            text = files.read(files.real(server.path))
            return [*parts, server] if text and server.present(text) else parts
        return [*parts, server] if self.has_server else parts

    @property
    def server(self) -> dict[str, Any]:
        """The server entry in the format of most programs."""
        return {"command": self.call[0], "args": [*self.call[1:], "mcp"]}


@dataclass(frozen=True)
class SupportedProgram:
    """A program that can be set up."""

    name: str
    title: str
    parts: Callable[[Setting], list[FilePart]]
    # Supported scopes, the default first.
    scopes: tuple[SetupScope, ...]
    # Executable name; None for a program that only reads files.
    executable: str | None = None
    guard: str = ""
    next: tuple[str, ...] = ()

    def scope(self, *, user: bool, project: bool) -> SetupScope:
        """Return the requested scope, or the default; raise Invalid for an unsupported one."""
        asked = SetupScope.USER if user else SetupScope.PROJECT if project else self.scopes[0]
        if asked not in self.scopes:
            raise Invalid(f"{self.title} has no settings of this kind for a {asked.value}", hint=f"Leave out --{asked.value}.")
        return asked


# Left out: WorktreeCreate (no observer), MessageDisplay (a process per message), and events that repeat others.
# SessionStart runs the intake. Without a timeout, Claude Code kills SessionEnd after 1.5 seconds.
_CLAUDE = {
    "SessionStart": 30,
    **dict.fromkeys(["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied"], 20),
    **dict.fromkeys(["SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "Stop", "StopFailure"], 20),
    **dict.fromkeys(["SessionEnd", "Notification"], 20),
}
# Codex limits the last two to three seconds and warns about larger values.
_CODEX = {
    "SessionStart": 30,
    **dict.fromkeys(["UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop"], 20),
    **dict.fromkeys(["PreCompact", "PostCompact", "Stop"], 20),
    **dict.fromkeys(["Interrupt", "SessionEnd"], 3),
}
_GEMINI = {
    "SessionStart": 30,
    **dict.fromkeys(["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"], 20),
}
_MILLISECONDS = 1000
_OPENCODE_FILES = ("opencode.json", "opencode.jsonc")


def _claude(setting: Setting) -> list[FilePart]:
    if setting.plugin_folder is not None:
        return plugin(setting, setting.plugin_folder)
    # The paths are specific to this machine, so they don't belong in the project's shared file.
    name = "settings.json" if setting.scope is SetupScope.USER else "settings.local.json"
    path = os.path.join(setting.folder(".claude", "CLAUDE_CONFIG_DIR"), name)
    is_enforced = _is_enforced(path) if setting.is_enforced is None else setting.is_enforced
    # With `args`, no shell runs: it would cost a process and interpret characters of a path.
    groups = _hook_groups(_CLAUDE, type="command", command=setting.call[0], args=[*setting.call[1:], "hook", "claude"])
    if is_enforced:
        groups["PreToolUse"]["hooks"][0]["onFailure"] = "block"
    # Claude Code keeps servers in other files: .mcp.json in a project, .claude.json for a user.
    folder = setting.environment.get("CLAUDE_CONFIG_DIR") or setting.home
    file = (setting.project, ".mcp.json") if setting.scope is SetupScope.PROJECT else (folder, ".claude.json")
    server = JsonServer(os.path.join(*file), {"type": "stdio", **setting.server})
    return setting.with_server([Hooks(path, "claude", groups)], server)


def _hook_groups(timeouts: Mapping[str, int], **handler: Any) -> dict[str, dict[str, Any]]:
    """Return a group with one handler for each event, with its timeout."""
    return {event: {"hooks": [{**handler, "timeout": timeout}]} for event, timeout in timeouts.items()}


def _is_enforced(path: str) -> bool:
    """Return whether --enforce is already active: a later setup without the option must not revoke it."""
    text = files.read(files.real(path))
    present = Hooks(path, "claude", {}).present(text) if text else {}
    return any(handler.get("onFailure") == "block" for group in present.get("PreToolUse", ()) for handler in group["hooks"])


def has_plugin(setting: Setting) -> bool:
    """Return whether Claude Code's settings enable our plugin."""
    path = os.path.join(setting.folder(".claude", "CLAUDE_CONFIG_DIR"), "settings.json")
    text = files.read(files.real(path))
    value = parse_file(path, text).value if text else None
    enabled = value.get("enabledPlugins") if isinstance(value, dict) else None
    return isinstance(enabled, dict) and enabled.get(f"{NAME}@{MARKET}") is True


def codex_folder(setting: Setting) -> str:
    return setting.folder(".codex", "CODEX_HOME")


def _codex(setting: Setting) -> list[FilePart]:
    events = _hook_groups(_CODEX, type="command", command=shlex.join([*setting.call, "hook", "codex"]))
    hooks = Hooks(os.path.join(codex_folder(setting), "hooks.json"), "codex", events)
    # A start may take longer than Codex's default of ten seconds on a busy machine.
    server = TomlServer(os.path.join(codex_folder(setting), "config.toml"), {**setting.server, "startup_timeout_sec": 60})
    return setting.with_server([hooks], server)


def _gemini(setting: Setting) -> list[FilePart]:
    timeouts = {event: seconds * _MILLISECONDS for event, seconds in _GEMINI.items()}
    command = shlex.join([*setting.call, "hook", "gemini"])
    events = _hook_groups(timeouts, name="decklog", type="command", command=command)
    path = os.path.join(setting.folder(".gemini"), "settings.json")
    return setting.with_server([Hooks(path, "gemini", events, takes_comments=True)], JsonServer(path, setting.server))


def _entries(setting: Setting) -> tuple[EditorEntry, ...]:
    found = entries(setting.agents, setting.call, setting.environment, is_enforced=bool(setting.is_enforced))
    return tuple(found)


def _settings_home(setting: Setting) -> str:
    return setting.environment.get("XDG_CONFIG_HOME") or os.path.join(setting.home, ".config")


def _zed(setting: Setting) -> list[FilePart]:
    return [Servers(os.path.join(_settings_home(setting), "zed", "settings.json"), _entries(setting), "custom")]


def _jetbrains(setting: Setting) -> list[FilePart]:
    return [Servers(os.path.join(setting.home, ".jetbrains", "acp.json"), _entries(setting))]


def _neovim(setting: Setting) -> list[FilePart]:
    path = os.path.join(_settings_home(setting), "nvim", "lua", "decklog_agents.lua")
    return [neovim_module(path, _entries(setting))]


def _opencode(setting: Setting) -> list[FilePart]:
    own = os.path.join(_settings_home(setting), "opencode")
    folder = os.path.join(setting.project, ".opencode") if setting.scope is SetupScope.PROJECT else own
    entry = {"type": "local", "command": [*setting.call, "mcp"], "enabled": True}
    beside = setting.project if setting.scope is SetupScope.PROJECT else folder
    path = next(
        (path for name in _OPENCODE_FILES if os.path.exists(path := os.path.join(beside, name))),
        os.path.join(beside, _OPENCODE_FILES[0]),
    )
    parts: list[FilePart] = [opencode_plugin(os.path.join(folder, "plugins", "decklog.js"), setting.call)]
    return setting.with_server(parts, JsonServer(path, entry, "mcp"))


def _cursor(setting: Setting) -> list[FilePart]:
    server = JsonServer(os.path.join(setting.project, ".cursor", "mcp.json"), setting.server)
    return setting.with_server(cursor_rule(setting.project), server)


_EITHER = (SetupScope.PROJECT, SetupScope.USER)
_USER_FIRST = (SetupScope.USER, SetupScope.PROJECT)
_ASKED = (
    "What an agent asks for and the policy denies does not run; what it does not ask for can't be held, so it is only advice."
)
_OPEN = "a hook that fails, is missing or takes too long lets the call through"
PROGRAMS = {
    program.name: program
    for program in (
        SupportedProgram(
            name="claude",
            title="Claude Code",
            parts=_claude,
            scopes=_EITHER,
            executable="claude",
            guard=f"A denied call does not run, but {_OPEN}, unless --enforce was given (2.1.325 has it, 2.1.197 not).",
        ),
        SupportedProgram(
            name="codex",
            title="Codex",
            parts=_codex,
            # All clones share a repository's file, and its hooks run only if Codex trusts the folder.
            scopes=_USER_FIRST,
            executable="codex",
            guard=f"A denied call does not run, but {_OPEN}, and one that Codex does not trust never runs: it is only advice.",
        ),
        SupportedProgram(
            name="gemini",
            title="Gemini CLI",
            parts=_gemini,
            scopes=_USER_FIRST,
            executable="gemini",
            guard=f"A denied call does not run, but {_OPEN}, and in an editor (ACP) no hook of a tool runs: it is only advice.",
        ),
        SupportedProgram(
            name="opencode",
            title="opencode",
            parts=_opencode,
            scopes=_USER_FIRST,
            executable="opencode",
            guard="A denied call does not run, but a plugin that fails to load lets every call through: it is only advice.",
        ),
        SupportedProgram(
            name="cursor",
            title="Cursor",
            parts=_cursor,
            scopes=(SetupScope.PROJECT,),
            guard="It gets the commands as advice: nothing is recorded or blocked automatically.",
        ),
        SupportedProgram(
            name="agents-md",
            title="AGENTS.md",
            parts=lambda setting: agents_md(setting.project),
            scopes=(SetupScope.PROJECT,),
            guard="Agents get the commands as advice: nothing is recorded or blocked automatically.",
        ),
        SupportedProgram(name="zed", title="Zed", parts=_zed, scopes=(SetupScope.USER,), guard=_ASKED),
        SupportedProgram(name="jetbrains", title="JetBrains", parts=_jetbrains, scopes=(SetupScope.USER,), guard=_ASKED),
        SupportedProgram(
            name="neovim",
            title="Neovim",
            parts=_neovim,
            scopes=(SetupScope.USER,),
            guard=_ASKED,
            next=(
                'CodeCompanion: adapters = { acp = require("decklog_agents").codecompanion() }',
                'avante: acp_providers = require("decklog_agents").avante',
            ),
        ),
    )
}
