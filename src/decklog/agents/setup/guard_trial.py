"""Test of an installed hook's guard with a dangerous command, called as the coding agent would."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer
from typing import Any

from decklog.agents.setup import files
from decklog.agents.setup.json_text import Insertion
from decklog.agents.setup.parts import Hooks, TomlPart, WholeFile, program_called
from decklog.agents.setup.supported import Setting, SupportedProgram
from decklog.core.errors import Conflict, DecklogError, Unavailable

COMMAND = "rm -rf ~"
_BLOCKED = 2
_SECONDS = 30.0
# Events before a tool call, by program.
_EVENTS = ("PreToolUse", "BeforeTool")
_PLUGIN_CALL = re.compile(r"^const CALL = (\[.*\])$", re.MULTILINE)


def try_hooks(program: SupportedProgram, setting: Setting) -> dict[str, str | None]:
    """Test every installed hook of a program in a scope; return the problem by file, None if the hook blocked it."""
    return {path: _find_problem(event, words, setting.environment) for path, event, words in _installed(program, setting)}


def _installed(program: SupportedProgram, setting: Setting) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each file with a hook before tool calls, its event, and the command of the hook."""
    try:
        texts = [(part, files.read(files.real(part.path))) for part in program.parts(setting)]
        for part, text in texts:
            if text and isinstance(part, Hooks):
                present = part.present(text)
                groups = [(event, group) for event in _EVENTS for group in present.get(event, ())]
                yield from ((part.path, event, _command_words(handler)) for event, group in groups for handler in group["hooks"])
            elif text and isinstance(part, WholeFile) and (found := _PLUGIN_CALL.search(text)):
                yield part.path, _EVENTS[0], [*json.loads(found[1]), "hook", program.name]
    except DecklogError:
        # `registered` reports a file that can't be read.
        return


def _command_words(handler: dict[str, object]) -> list[str]:
    command, arguments = str(handler["command"]), handler.get("args")
    return [command, *map(str, arguments)] if isinstance(arguments, list) else shlex.split(command)


def _find_problem(event: str, words: list[str], environment: Mapping[str, str]) -> str | None:
    """Send the command to a hook in a temporary folder with a temporary log; return None if it is blocked."""
    with tempfile.TemporaryDirectory(prefix="decklog-guard-", ignore_cleanup_errors=True) as folder:
        log = os.path.join(folder, "trial.db")
        open(log, "xb").close()
        event_fields = {"hook_event_name": event, "session_id": "decklog-guard-trial", "cwd": folder}
        call = {"tool_name": "Bash", "tool_use_id": "trial", "tool_input": {"command": COMMAND}}
        variables = {**environment, "DECKLOG_DB": log, "CLAUDE_PROJECT_DIR": folder}
        try:
            done = call_hook(words, {**event_fields, **call}, folder, variables)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return str(problem)
    answer = done.stderr.decode(errors="replace").strip()
    if done.returncode == _BLOCKED and "could not judge" not in answer:
        return None
    return f"exit {done.returncode}" + (f": {answer[:300]}" if answer else "")


def call_hook(
    words: list[str], payload: dict[str, Any], folder: str, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[bytes]":
    """Send an event to a hook's command, as a program would."""
    content = json.dumps(payload).encode()
    return subprocess.run(
        words, input=content, capture_output=True, cwd=folder, env=dict(environment), timeout=_SECONDS, check=False
    )


def ask_server(
    words: list[str], messages: list[dict[str, Any]], folder: str, environment: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """Start a JSON-RPC server, send messages and return the result of the last; raise ValueError without one."""
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=dict(environment)
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # Kill a process that does not answer; this also ends the reading.
    limit = Timer(seconds, process.kill)
    limit.start()
    try:
        with suppress(BrokenPipeError):
            process.stdin.write("".join(json.dumps(message) + "\n" for message in messages).encode())
            process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if isinstance(answer, dict) and answer.get("id") == messages[-1]["id"] and "method" not in answer:
                if isinstance(result := answer.get("result"), dict):
                    return result
                raise ValueError(str(answer.get("error"))[:200])
        process.kill()
        raise ValueError(process.stderr.read().decode(errors="replace").strip() if process.stderr else "it gave no answer")
    finally:
        limit.cancel()
        process.kill()
        with suppress(BrokenPipeError, ValueError):
            process.communicate()


BY_HAND = "Start codex, type /hooks, and trust those of Decklog."
_CODEX_TRUST_SECONDS = 20.0
_MARK = "# decklog: trusted with `decklog setup codex --trust`"
_TABLE = re.compile(
    r"(?:\r?\n)?^" + re.escape(_MARK) + r'\r?\n\[hooks\.state\.("(?:[^"\\]|\\.)*")\]\r?\n((?:[A-Za-z_][^\r\n]*(?:\r?\n|\Z))*)',
    re.M,
)


@dataclass(frozen=True)
class ListedHook:
    """A hook in Codex's list."""

    key: str
    hash: str
    path: str
    is_trusted: bool
    is_of_plugin: bool = False


def listed(executable: str, project: str, environment: Mapping[str, str]) -> list[ListedHook]:
    """Return Decklog's hooks that Codex lists for a project."""
    client = {"name": "decklog", "title": "Decklog", "version": "1"}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": client}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [project]}},
    ]
    try:
        answer = ask_server([executable, "app-server"], messages, project, environment, _CODEX_TRUST_SECONDS)
    except (OSError, ValueError) as problem:
        raise Unavailable(f"{executable} app-server did not list its hooks: {problem}", hint=BY_HAND) from None
    return [hook for folder in answer.get("data", ()) for hook in map(_hook, folder.get("hooks", ())) if hook]


def _hook(row: Any) -> ListedHook | None:
    # A plugin's hooks detect the calling program at run time.
    if not isinstance(row, dict) or program_called({"command": row.get("command")}) not in ("codex", "$program"):
        return None
    is_trusted = row.get("trustStatus") in ("trusted", "managed")
    return ListedHook(str(row["key"]), str(row["currentHash"]), str(row.get("sourcePath")), is_trusted, bool(row.get("pluginId")))


@dataclass(frozen=True)
class CodexTrust(TomlPart):
    """Tables in Codex's settings, one for each of Decklog's hooks in a file; all other text stays unchanged."""

    path: str
    # Hashes of the hooks by their keys.
    wanted: dict[str, str]
    # The file of the hooks.
    owner: str = ""

    def present(self, text: str) -> Any:
        self.states(text)
        found = ((json.loads(match[1]), tomllib.loads(match[2])) for match in _TABLE.finditer(text) if self._is_own(match))
        return {key: state.get("trusted_hash") for key, state in found}

    def _is_own(self, table: re.Match[str]) -> bool:
        return str(json.loads(table[1])).startswith(f"{self.owner}:")

    def insertions(self, text: str | None) -> list[Insertion]:
        base = text or ""
        known = self.states(base)
        if stale := [key for key in self.wanted if key in known]:
            raise Conflict(
                f"{self.path} has its own word on {stale[0]}, for a hook that is another one now",
                hint=f"{BY_HAND} Nothing was changed there.",
                path=self.path,
            )
        tables = "".join(
            f"\n{_MARK}\n[hooks.state.{json.dumps(key, ensure_ascii=False)}]\ntrusted_hash = {json.dumps(value)}\n"
            for key, value in self.wanted.items()
        )
        return self._added(base, tables)

    def without(self, text: str) -> str | None:
        return _TABLE.sub(lambda table: "" if self._is_own(table) else table[0], text)

    def states(self, text: str) -> dict[str, Any]:
        """Return the hook states in Codex's settings; raise Invalid for a file that is not TOML."""
        hooks = self._value(text).get("hooks", {})
        state = hooks.get("state", {}) if isinstance(hooks, dict) else {}
        return state if isinstance(state, dict) else {}


def trust_of(path: str, hooks: list[ListedHook], hooks_file: str) -> CodexTrust | None:
    """Return the missing trust entries for our hooks; None if Codex lists no hook of ours."""
    ours = {hook.key: hook.hash for hook in hooks if files.real(hook.path) == files.real(hooks_file)}
    if not ours:
        return None
    text = files.read(files.real(path)) or ""
    empty = CodexTrust(path, {}, next(iter(ours)).rsplit(":", 3)[0])
    others = empty.states(empty.without(text) or "")
    said = {key: state.get("trusted_hash") for key, state in others.items() if isinstance(state, dict)}
    return CodexTrust(path, {key: value for key, value in ours.items() if said.get(key) != value}, empty.owner)
