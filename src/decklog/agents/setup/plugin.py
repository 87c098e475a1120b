"""Plugin folder in Claude Code's format, which Codex accepts too: hooks, a skill with instructions, and tools."""

import json
import os
import shlex
from typing import TYPE_CHECKING

from decklog.agents.setup.notes import COMMANDS, TITLE
from decklog.agents.setup.parts import FilePart, WholeFile

if TYPE_CHECKING:
    from typing import Any

MARKET = "decklog"
NAME = "decklog"
_ABOUT = "Puts sessions on record in a Decklog log, and holds what its policy denies."


def plugin(
    folder: str, call: tuple[str, ...], events: "dict[str, int]", version: str, *, has_server: bool = False
) -> list[FilePart]:
    """Return the files of a marketplace with one plugin; `events` maps events to timeouts in seconds."""
    texts = {
        ".claude-plugin/marketplace.json": _json(_market(version)),
        f"plugins/{NAME}/.claude-plugin/plugin.json": _json(_manifest(version)),
        f"plugins/{NAME}/hooks/hooks.json": _json(_hooks(call, events)),
        f"plugins/{NAME}/skills/log/SKILL.md": _skill(),
    }
    if has_server:
        server = {"command": call[0], "args": [*call[1:], "mcp"]}
        texts[f"plugins/{NAME}/.mcp.json"] = _json({"mcpServers": {NAME: server}})
    return [WholeFile(os.path.join(folder, *path.split("/")), text) for path, text in texts.items()]


def _market(version: str) -> "dict[str, Any]":
    entry = {"name": NAME, "source": f"./plugins/{NAME}", "description": _ABOUT, "version": version}
    return {"name": MARKET, "owner": {"name": "decklog"}, "plugins": [entry]}


def _manifest(version: str) -> "dict[str, Any]":
    return {"name": NAME, "version": version, "description": _ABOUT, "author": {"name": "decklog"}}


def _hooks(call: tuple[str, ...], events: "dict[str, int]") -> "dict[str, Any]":
    # Codex sets PLUGIN_ROOT for a plugin's hooks, which identifies the calling program.
    command = f'program=claude; [ -z "$PLUGIN_ROOT" ] || program=codex; exec {shlex.join(call)} hook "$program"'
    return {
        "hooks": {
            event: [{"hooks": [{"type": "command", "command": command, "timeout": seconds}]}] for event, seconds in events.items()
        }
    }


def _skill() -> str:
    about = "Use the Decklog log of a repository: get tasks, end them, ask, note, recall lessons."
    return f"---\nname: log\ndescription: {about}\n---\n\n# {TITLE}\n\n{COMMANDS}\n"


def _json(value: "Any") -> str:
    return json.dumps(value, indent=2) + "\n"
