"""Programs of Decklog that run within an agent's sandbox: a client that prompts it, and a hook that judges its calls."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decklog.conductor.agents.description import Description

# By their names alone: they are programs of their own, within the sandbox, and no part of this one.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from decklog.{} import main; main()"
_DRIVER, _HOOK = _BOOT.format("hooks.proxy.driving"), _BOOT.format("hooks.headless")
_SOURCE = str(Path(__file__).resolve().parents[3])
READABLE = tuple(dict.fromkeys((_SOURCE, sys.prefix, sys.base_prefix)))


def driven(agent: "Description", argv: list[str], prompt: Path, answers: Path, *, is_sandboxed: bool) -> list[str]:
    """Return the command that prompts an agent with a file, and finds in a folder what a person answers."""
    order = {
        "command": argv,
        "prompt_file": str(prompt),
        "answers": str(answers),
        "permissions": agent.permissions,
        "model": agent.model,
        "is_sandboxed": is_sandboxed,
    }
    return [sys.executable, "-I", "-c", _DRIVER, _SOURCE, json.dumps(order)]


def policy_hook(agent: "Description") -> str:
    """Return the command of the hook that judges an agent's calls, as it is written within a JSON string."""
    return json.dumps(shlex.join([sys.executable, "-I", "-c", _HOOK, _SOURCE, agent.permissions]))[1:-1]
