"""Agents that speak the Agent Client Protocol: how one is prompted, and what the sandbox of that must let it read."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decklog.conductor.agents.description import Description

# By its name alone: it is a program of its own, within the sandbox, and no part of this one.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from decklog.proxy.driving import main; main()"
_SOURCE = str(Path(__file__).resolve().parents[3])
READABLE = tuple(dict.fromkeys((_SOURCE, sys.prefix, sys.base_prefix)))


def driven(agent: "Description", argv: list[str], prompt: Path, answers: Path) -> list[str]:
    """Give the command that prompts an agent with a file, and finds in a folder what a person answers."""
    order = {
        "command": argv,
        "prompt_file": str(prompt),
        "answers": str(answers),
        "permissions": agent.permissions,
        "model": agent.model,
    }
    return [sys.executable, "-I", "-c", _BOOT, _SOURCE, json.dumps(order)]
