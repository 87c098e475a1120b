"""Locations of the files that programs keep for editor sessions: the source of charges and sub-agent events."""

import glob
import os
from typing import TYPE_CHECKING

from decklog.agents.claude.payloads import transcripts_below

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Programs that keep such files: the environment variable of their folder, and its default in the home.
_HOMES = {"claude": ("CLAUDE_CONFIG_DIR", ".claude"), "codex": ("CODEX_HOME", ".codex")}


def home_of(program: str, environment: "Mapping[str, str]") -> str | None:
    """Return the folder of a program's session files; None if Decklog does not read them."""
    if program not in _HOMES:
        return None
    variable, name = _HOMES[program]
    return environment.get(variable) or os.path.join(environment.get("HOME") or os.path.expanduser("~"), name)


def transcripts_of_session(program: str, session: str, facts: "Mapping[str, Any]") -> list[tuple[str, str | None]]:
    """Return the existing files of a session, each with the id of its sub-agent."""
    home, folder = facts.get("home"), facts.get("cwd")
    if not isinstance(home, str) or not session or os.sep in session:
        return []
    if program == "codex":
        pattern = os.path.join(glob.escape(home), "sessions", "*", "*", "*", f"rollout-*-{glob.escape(session)}.jsonl")
        return [(path, None) for path in sorted(glob.glob(pattern))]
    path = os.path.join(home, "projects", _as_folder(str(folder)), f"{session}.jsonl")
    if not os.path.isfile(path):
        return []
    return [(path, None), *transcripts_below(path)]


def _as_folder(path: str) -> str:
    """Return a path in the form that Claude Code uses to name the folder of its sessions."""
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in path)
