"""Test of an installed hook's guard with a dangerous command, called as the coding agent would."""

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping

from decklog.agents.setup import files
from decklog.agents.setup.parts import Hooks, WholeFile
from decklog.agents.setup.supported import Setting, SupportedProgram
from decklog.core.errors import DecklogError

COMMAND = "rm -rf ~"
_BLOCKED = 2
_SECONDS = 30.0
# Events before a tool call, by program.
_EVENTS = ("PreToolUse", "BeforeTool")
_PLUGIN_CALL = re.compile(r"^const CALL = (\[.*\])$", re.MULTILINE)


def tried(program: SupportedProgram, setting: Setting) -> dict[str, str | None]:
    """Test every installed hook of a program in a scope; return the problem by file, None if the hook blocked it."""
    return {path: _problem(event, words, setting.environment) for path, event, words in _installed(program, setting)}


def _installed(program: SupportedProgram, setting: Setting) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each file with a hook before tool calls, its event, and the command of the hook."""
    try:
        texts = [(part, files.read(files.real(part.path))) for part in program.parts(setting)]
        for part, text in texts:
            if text and isinstance(part, Hooks):
                present = part.present(text)
                groups = [(event, group) for event in _EVENTS for group in present.get(event, ())]
                yield from ((part.path, event, _words(handler)) for event, group in groups for handler in group["hooks"])
            elif text and isinstance(part, WholeFile) and (found := _PLUGIN_CALL.search(text)):
                yield part.path, _EVENTS[0], [*json.loads(found[1]), "hook", program.name]
    except DecklogError:
        # `registered` reports a file that can't be read.
        return


def _words(handler: dict[str, object]) -> list[str]:
    command, arguments = str(handler["command"]), handler.get("args")
    return [command, *map(str, arguments)] if isinstance(arguments, list) else shlex.split(command)


def _problem(event: str, words: list[str], environment: Mapping[str, str]) -> str | None:
    """Send the command to a hook in a temporary folder with a temporary log; return None if it is blocked."""
    with tempfile.TemporaryDirectory(prefix="decklog-guard-", ignore_cleanup_errors=True) as folder:
        log = os.path.join(folder, "trial.db")
        open(log, "xb").close()
        told = {"hook_event_name": event, "session_id": "decklog-guard-trial", "cwd": folder}
        call = {"tool_name": "Bash", "tool_use_id": "trial", "tool_input": {"command": COMMAND}}
        variables = {**environment, "DECKLOG_DB": log, "CLAUDE_PROJECT_DIR": folder}
        payload = json.dumps({**told, **call}).encode()
        try:
            done = subprocess.run(
                words, input=payload, capture_output=True, cwd=folder, env=variables, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == _BLOCKED and "could not judge" not in said:
        return None
    return f"exit {done.returncode}" + (f": {said[:300]}" if said else "")
