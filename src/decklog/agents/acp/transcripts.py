"""Where programs keep the files of a session that an editor opened: they tell what was spent, and what sub-agents did."""

import glob
import os
from typing import TYPE_CHECKING

from decklog.agents.claude.payloads import transcripts_below

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The folder of each program that keeps such files, by its variable and below the home.
_HOMES = {"claude": ("CLAUDE_CONFIG_DIR", ".claude"), "codex": ("CODEX_HOME", ".codex")}


def home_of(program: str, environment: "Mapping[str, str]") -> str | None:
    """Name the folder in which a program keeps what its sessions did; None of one whose files are not read."""
    if program not in _HOMES:
        return None
    variable, name = _HOMES[program]
    return environment.get(variable) or os.path.join(environment.get("HOME") or os.path.expanduser("~"), name)


def transcripts_of_session(program: str, session: str, facts: "Mapping[str, Any]") -> list[tuple[str, str | None]]:
    """Name the files of a session that are there, each with the sub-agent that it belongs to."""
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
    """Spell a folder as Claude Code names the one of its sessions."""
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in path)
