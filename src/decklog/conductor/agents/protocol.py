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
_DRIVER, _FEEDER, _HOOK = (_BOOT.format(name) for name in ("hooks.proxy.driving", "hooks.proxy.feeding", "hooks.headless"))
_SOURCE = str(Path(__file__).resolve().parents[3])
READABLE = tuple(dict.fromkeys((_SOURCE, sys.prefix, sys.base_prefix)))


def driven(agent: "Description", argv: list[str], prompt: Path, answers: Path, *, is_sandboxed: bool) -> list[str]:
    """Build the command that prompts an agent with a file, and finds in a folder what people answer and write."""
    order = {
        "command": argv,
        "prompt_file": str(prompt),
        "answers": str(answers),
        "permissions": agent.permissions,
        "model": agent.model,
        "is_sandboxed": is_sandboxed,
    }
    return [sys.executable, "-I", "-c", _DRIVER if agent.stream == "acp" else _FEEDER, _SOURCE, json.dumps(order)]


def policy_hook(agent: "Description") -> str:
    """Return the command of the hook that judges an agent's calls, as it is written within a JSON string."""
    return json.dumps(shlex.join([sys.executable, "-I", "-c", _HOOK, _SOURCE, agent.permissions]))[1:-1]
