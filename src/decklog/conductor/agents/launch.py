"""Commands that start agents, and the programs of Decklog within their sandboxes: a client that prompts, a hook that judges."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from decklog.conductor.agents.description import Description
from decklog.conductor.commands import Command, expanded
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind

# Named by text: they are programs of their own within the sandbox.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from decklog.{} import main; main()"
_DRIVER, _FEEDER, _HOOK = (_BOOT.format(name) for name in ("hooks.proxy.driving", "hooks.proxy.feeding", "hooks.judging"))
_SOURCE = str(Path(__file__).resolve().parents[3])
READABLE = tuple(dict.fromkeys((_SOURCE, sys.prefix, sys.base_prefix)))


def agent_command(
    agent: Description, argv: list[str], *, kind: SandboxKind, readable: tuple[str, ...] = (), **given: Any
) -> Command:
    """Build the command that starts an agent's program with what its description allows it."""
    return Command(
        argv=argv,
        sandbox=Sandbox(
            kind=kind,
            network=agent.network,
            readable=expanded((*readable, *agent.reads)),
            writable=expanded(agent.writable),
        ),
        pass_env=agent.pass_env,
        keeps_home=agent.keeps_home,
        home=agent.home_files,
        **{"env": agent.env, **given},
    )


def driven(agent: Description, argv: list[str], prompt: Path, answers: Path, *, is_sandboxed: bool) -> list[str]:
    """Build the command of the client that prompts an agent with a file, and finds answers and messages in a folder."""
    order = {
        "command": argv,
        "prompt_file": str(prompt),
        "answers": str(answers),
        "permissions": agent.permissions,
        "model": agent.model,
        "is_sandboxed": is_sandboxed,
    }
    return [sys.executable, "-I", "-c", _DRIVER if agent.stream == "acp" else _FEEDER, _SOURCE, json.dumps(order)]


def policy_hook(agent: Description) -> str:
    """Return the command of the hook that judges an agent's calls, escaped for a JSON string."""
    return json.dumps(shlex.join([sys.executable, "-I", "-c", _HOOK, _SOURCE, agent.permissions]))[1:-1]
