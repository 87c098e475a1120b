"""Checks of installed hooks, with a probe event that must arrive in the log."""

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping
from typing import Any

from decklog.agents.setup import files
from decklog.agents.setup.guard_trial import BY_HAND, ask_server, call_hook, listed
from decklog.agents.setup.installing import SetupState, state_of
from decklog.agents.setup.supported import Setting, SetupScope, SupportedProgram, has_plugin
from decklog.agents.spool import DROPPED, Spool
from decklog.core.errors import DecklogError
from decklog.core.extras import install_hint
from decklog.log import Decklog

_SECONDS = 10.0
_SESSION = "decklog-doctor"
# A probe belongs to no task, even if its caller has one.
_TASK_VARIABLES = ("DECKLOG_RUN", "DECKLOG_RUN_ID", "DECKLOG_TASK", "DECKLOG_TASK_ID", "DECKLOG_FENCE")


class SetupFindings:
    """Findings, each with a fix."""

    def __init__(self) -> None:
        self.all: list[dict[str, str]] = []

    def add(self, about: str, what: str, mend: str) -> None:
        self.all.append({"about": about, "what": what, "mend": mend})


def version_of(executable: str) -> str | None:
    """Return the version of a program; None if it does not answer in time."""
    try:
        done = subprocess.run(
            [executable, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[0][:80] if done.returncode == 0 and lines else None


def find_setup_states(program: SupportedProgram, settings: dict[SetupScope, Setting], findings: SetupFindings) -> dict[str, str]:
    """Return the setup state of a program for each scope."""
    return {scope.value: _find_setup_state(program, settings[scope], findings) for scope in program.scopes}


def _find_setup_state(program: SupportedProgram, setting: Setting, findings: SetupFindings) -> str:
    try:
        found = [(part, state_of(part)) for part in program.parts(setting)]
        is_plugin = program.name == "claude" and has_plugin(setting)
    except DecklogError as problem:
        findings.add(program.name, problem.message, problem.hint or "Fix the file by hand.")
        return "can't be read"
    for part, state in found:
        if state is SetupState.DIFFERS:
            again = f"decklog setup {program.name} --{setting.scope.value}"
            findings.add(program.name, f"{part.path} has Decklog entries of another version", again)
        for warning in part.warnings(files.read(files.real(part.path)) or "{}") if state is not SetupState.MISSING else ():
            findings.add(program.name, warning, "Remove its comments.")
    states = {state for _, state in found}
    state = states.pop() if len(states) == 1 else SetupState.DIFFERS
    return "plugin" if is_plugin and state is SetupState.MISSING else state.value


def codex_trust(executable: str, project: str, environment: Mapping[str, str], findings: SetupFindings) -> str:
    """Return how many of our hooks Codex trusts."""
    try:
        hooks = listed(executable, project, environment)
    except DecklogError as problem:
        findings.add("codex", problem.message, problem.hint or BY_HAND)
        return "unknown"
    trusted = sum(hook.is_trusted for hook in hooks)
    if trusted < len(hooks):
        what = f"Codex trusts {trusted} of {len(hooks)} Decklog hooks; it skips the others without a warning"
        findings.add("codex", what, f"{BY_HAND} Or: decklog setup codex --trust")
    return f"{trusted} of {len(hooks)}" + (", by a plugin" if any(hook.is_of_plugin for hook in hooks) else "")


def probe(program: str, setting: Setting, log: Decklog, spool: Spool, findings: SetupFindings) -> bool:
    """Send an event as a program would, and check that it arrives in the log."""
    probe_text = f"probe {uuid.uuid4().hex}"
    # SessionStart runs the intake before it answers, so the earlier event must be in the log then.
    for event, fields in (("Notification", {"message": probe_text}), ("SessionStart", {"source": "startup"})):
        problem = _send(program, setting, event, fields)
        if problem is not None:
            findings.add(program, f"`decklog hook {program}` failed: {problem}", "Run `decklog doctor` for the log itself.")
            return False
    arrived = _has_arrived(log, f"{program}-{_SESSION}", probe_text, spool)
    _send(program, setting, "SessionEnd", {"reason": "other"})
    if not arrived:
        findings.add(program, f"an event of {program} did not arrive in the log", "Run `decklog doctor` for the log itself.")
    return arrived


def _send(program: str, setting: Setting, event: str, fields: dict[str, str]) -> str | None:
    payload = {"session_id": _SESSION, "hook_event_name": event, "cwd": setting.project, **fields}
    environment = {name: value for name, value in setting.environment.items() if name not in _TASK_VARIABLES}
    try:
        done = call_hook([*setting.call, "hook", program], payload, setting.project, environment)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    return None if done.returncode == 0 else (done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}")


def _has_arrived(log: Decklog, run_id: str, probe_text: str, spool: Spool) -> bool:
    """Return whether an entry exists; wait a while for another process that runs the intake."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            if any(entry.body == probe_text for entry in log.journal.find(run_id, limit=20)):
                return True
        except DecklogError:
            # The first event creates the run.
            pass
        if time.monotonic() > end or spool.is_empty:
            return False
        time.sleep(0.05)


def count_waiting(spool: Spool, findings: SetupFindings) -> dict[str, int]:
    """Return the number of waiting events and of dropped events."""
    counts = {name: len(spool.read(name)[0]) for name in spool.list_waiting()}
    dropped = counts.pop(DROPPED, 0)
    if dropped:
        findings.add(
            "spool", f"{dropped} events did not fit into {spool.folder}", "Transcripts fill it in: decklog import claude"
        )
    if (error := spool.load_error()) is not None:
        findings.add(
            "spool", f"the last intake of events failed: {error}", "Fix the cause; the next event starts the intake again."
        )
    return {"waiting": sum(counts.values()), "dropped": dropped}


def probe_server(setting: Setting, findings: SetupFindings) -> str:
    """Start the MCP server as a program would, and return how many tools it offers."""
    parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "decklog-doctor", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    try:
        result = ask_server([*setting.call, "mcp"], messages, setting.project, setting.environment, 3 * _SECONDS)
        return f"{len(result['tools'])} tools"
    except (OSError, ValueError, KeyError, TypeError) as problem:
        what = f"`decklog mcp` does not answer: {str(problem)[:200]}"
        findings.add("mcp", what, f"{install_hint('mcp')}, or run it by hand.")
        return "no answer"


def find_program(program: SupportedProgram, environment: Mapping[str, str]) -> str | None:
    """Return the path of an installed program, or None."""
    return shutil.which(program.executable, path=environment.get("PATH", os.defpath)) if program.executable else None
