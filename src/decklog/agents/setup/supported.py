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
    TextBlock,
    TomlServer,
    WholeFile,
    agent_servers,
    entries,
    json_server,
    neovim_module,
    parse_file,
)
from decklog.core.errors import Invalid

TITLE = "Decklog: tasks, decisions and costs"
COMMANDS = """\
This repository keeps its tasks, decisions and costs in a Decklog log. The commands find your run, task and claim by themselves.

- `decklog next`: get a task, or show the one you have. Exit 7: no task now; `--wait 60` waits for one.
- `decklog done "WHAT" --evidence "COMMAND OR FILE"`: end the task as done, with evidence.
- `decklog fail "WHY"`: end this attempt. `decklog block "WHY"`: when something outside must change first.
- `decklog note "TEXT"`: record what you found or decided while you work; `-` reads it from stdin.
- `decklog ask "QUESTION"`: ask a person. Exit 0 granted, 6 denied, 7 no answer yet: ask the same again to get the answer.
- `decklog plan "TITLE" "TITLE"`: add tasks; without titles it shows the plan and its status.
- `decklog recall WORDS`: find lessons before you begin. `decklog remember "LESSON"`: keep a lesson that you verified.
- `decklog spend MODEL --in N --out N`: record the tokens of a model call that nothing else records.

Approving, raising budgets and changing the policy are up to the owner: no command here does it. When a call is blocked, reach
the goal another way, or ask."""

# Files that programs read instead of AGENTS.md, if they exist.
_OTHERS = ("CLAUDE.md", "GEMINI.md")


def agents_md(project: str) -> list[FilePart]:
    """Return the parts for AGENTS.md and for existing files that a program reads instead."""
    main = os.path.join(project, "AGENTS.md")
    paths = [main]
    for path in (os.path.join(project, name) for name in _OTHERS):
        text = files.read(files.real(path))
        # A file that imports AGENTS.md, or is a link to it, needs no block.
        if files.real(path) != files.real(main) and text is not None and "@AGENTS.md" not in text:
            paths.append(path)
    return [TextBlock(path, f"{TextBlock.BEGIN}\n## {TITLE}\n\n{COMMANDS}\n{TextBlock.END}") for path in paths]


def opencode_plugin(path: str, call: tuple[str, ...]) -> WholeFile:
    """Return the plugin's file, with the command that calls Decklog."""
    text = resources.files(__package__).joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    return WholeFile(path, text.replace("@CALL@", json.dumps(call)), "Written by `decklog setup opencode`")


MARKET = "decklog"
NAME = "decklog"
_ABOUT = "Records sessions in a Decklog log, and blocks calls that its policy denies."


def plugin(setting: "Setting", folder: str) -> list[FilePart]:
    """Return the files of a marketplace with one plugin."""
    # Codex sets PLUGIN_ROOT for a plugin's hooks, which identifies the calling program.
    command = f'program=claude; [ -z "$PLUGIN_ROOT" ] || program=codex; exec {shlex.join(setting.call)} hook "$program"'
    # Claude Code ignores a file with unknown event names; Codex skips only the unknown ones.
    groups = _hook_groups({**_CLAUDE, "SessionEnd": 3}, type="command", command=command)
    about, version = {"name": NAME, "description": _ABOUT}, {"version": setting.version}
    market = {"name": MARKET, "owner": {"name": NAME}, "plugins": [{**about, "source": f"./plugins/{NAME}", **version}]}
    skill = "Use the Decklog log of a repository: get and end tasks, ask, note, recall lessons."
    texts = {
        ".claude-plugin/marketplace.json": _json(market),
        f"plugins/{NAME}/.claude-plugin/plugin.json": _json({**about, **version, "author": {"name": NAME}}),
        f"plugins/{NAME}/hooks/hooks.json": _json({"hooks": groups}),
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
        scope = SetupScope.USER if user else SetupScope.PROJECT if project else self.scopes[0]
        if scope not in self.scopes:
            raise Invalid(f"{self.title} has no settings of this kind for a {scope.value}", hint=f"Leave out --{scope.value}.")
        return scope


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
        groups["PreToolUse"][0]["hooks"][0]["onFailure"] = "block"
    # Claude Code keeps servers in other files: .mcp.json in a project, .claude.json for a user.
    folder = setting.environment.get("CLAUDE_CONFIG_DIR") or setting.home
    file = (setting.project, ".mcp.json") if setting.scope is SetupScope.PROJECT else (folder, ".claude.json")
    server = json_server(os.path.join(*file), {"type": "stdio", **setting.server})
    return setting.with_server([Hooks(path, "claude", groups)], server)


def _hook_groups(timeouts: Mapping[str, int], **handler: Any) -> dict[str, list[dict[str, Any]]]:
    """Return a group with one handler for each event, with its timeout."""
    return {event: [{"hooks": [{**handler, "timeout": timeout}]}] for event, timeout in timeouts.items()}


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
    return setting.with_server([Hooks(path, "gemini", events, takes_comments=True)], json_server(path, setting.server))


def _entries(setting: Setting) -> list[EditorEntry]:
    return entries(setting.agents, setting.call, setting.environment, is_enforced=bool(setting.is_enforced))


def _settings_home(setting: Setting) -> str:
    return setting.environment.get("XDG_CONFIG_HOME") or os.path.join(setting.home, ".config")


def _zed(setting: Setting) -> list[FilePart]:
    # Zed requires a type for agents that are not built in.
    return [agent_servers(os.path.join(_settings_home(setting), "zed", "settings.json"), _entries(setting), type="custom")]


def _jetbrains(setting: Setting) -> list[FilePart]:
    return [agent_servers(os.path.join(setting.home, ".jetbrains", "acp.json"), _entries(setting))]


def _neovim(setting: Setting) -> list[FilePart]:
    path = os.path.join(_settings_home(setting), "nvim", "lua", "decklog_agents.lua")
    return [neovim_module(path, _entries(setting))]


def _opencode(setting: Setting) -> list[FilePart]:
    own = os.path.join(_settings_home(setting), "opencode")
    folder = os.path.join(setting.project, ".opencode") if setting.scope is SetupScope.PROJECT else own
    entry = {"type": "local", "command": [*setting.call, "mcp"], "enabled": True}
    config_folder = setting.project if setting.scope is SetupScope.PROJECT else folder
    path = next(
        (path for name in _OPENCODE_FILES if os.path.exists(path := os.path.join(config_folder, name))),
        os.path.join(config_folder, _OPENCODE_FILES[0]),
    )
    parts: list[FilePart] = [opencode_plugin(os.path.join(folder, "plugins", "decklog.js"), setting.call)]
    return setting.with_server(parts, json_server(path, entry, "mcp"))


def _cursor(setting: Setting) -> list[FilePart]:
    # Cursor reads this rule at every request.
    head = "---\ndescription: How to work with the Decklog log of this repository\nalwaysApply: true\n---\n"
    mark = "<!-- Written by `decklog setup cursor`; --remove takes it out. -->"
    path = os.path.join(setting.project, ".cursor", "rules", "decklog.mdc")
    rule = WholeFile(path, f"{head}{mark}\n# {TITLE}\n\n{COMMANDS}\n", "Written by `decklog setup cursor`")
    return setting.with_server([rule], json_server(os.path.join(setting.project, ".cursor", "mcp.json"), setting.server))


_PROJECT_FIRST = (SetupScope.PROJECT, SetupScope.USER)
_USER_FIRST = (SetupScope.USER, SetupScope.PROJECT)
_ACP_GUARD = "A denied call does not run if the agent asks for permission. A call that it does not ask for can't be blocked."
_OPEN = "a hook that fails, is missing or takes too long lets the call run"
PROGRAMS = {
    program.name: program
    for program in (
        SupportedProgram(
            name="claude",
            title="Claude Code",
            parts=_claude,
            scopes=_PROJECT_FIRST,
            executable="claude",
            guard=f"A denied call does not run. But {_OPEN}, unless --enforce was given (supported by 2.1.325, not by 2.1.197).",
        ),
        SupportedProgram(
            name="codex",
            title="Codex",
            parts=_codex,
            # All clones share a repository's file, and its hooks run only if Codex trusts the folder.
            scopes=_USER_FIRST,
            executable="codex",
            guard=f"A denied call does not run. But {_OPEN}, and Codex skips hooks that it does not trust: not a safe barrier.",
        ),
        SupportedProgram(
            name="gemini",
            title="Gemini CLI",
            parts=_gemini,
            scopes=_USER_FIRST,
            executable="gemini",
            guard=f"A denied call does not run. But {_OPEN}, and in an editor (ACP) tool hooks do not run: not a safe barrier.",
        ),
        SupportedProgram(
            name="opencode",
            title="opencode",
            parts=_opencode,
            scopes=_USER_FIRST,
            executable="opencode",
            guard="A denied call does not run. But a plugin that fails to load lets every call run: not a safe barrier.",
        ),
        SupportedProgram(
            name="cursor",
            title="Cursor",
            parts=_cursor,
            scopes=(SetupScope.PROJECT,),
            guard="Cursor gets the commands as a rule. Nothing is recorded or blocked automatically.",
        ),
        SupportedProgram(
            name="agents-md",
            title="AGENTS.md",
            parts=lambda setting: agents_md(setting.project),
            scopes=(SetupScope.PROJECT,),
            guard="Agents get the commands as text. Nothing is recorded or blocked automatically.",
        ),
        SupportedProgram(name="zed", title="Zed", parts=_zed, scopes=(SetupScope.USER,), guard=_ACP_GUARD),
        SupportedProgram(name="jetbrains", title="JetBrains", parts=_jetbrains, scopes=(SetupScope.USER,), guard=_ACP_GUARD),
        SupportedProgram(
            name="neovim",
            title="Neovim",
            parts=_neovim,
            scopes=(SetupScope.USER,),
            guard=_ACP_GUARD,
            next=(
                'CodeCompanion: adapters = { acp = require("decklog_agents").codecompanion() }',
                'avante: acp_providers = require("decklog_agents").avante',
            ),
        ),
    )
}
