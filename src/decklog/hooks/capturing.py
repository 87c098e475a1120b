"""Capture of edits around the tool calls that hooks are called for. It never fails a tool call."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from decklog.hooks.judging import files_of, only_reads
from decklog.provenance.tool_calls import FileCall, is_command, patched_paths

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.provenance.git import GitRepository

_LONGEST_SETTINGS = 1024 * 1024
_BEFORE = frozenset(["PreToolUse", "BeforeTool"])
_AFTER = frozenset(["PostToolUse", "PostToolUseFailure", "AfterTool"])
_TURN_BEGINS = frozenset(["UserPromptSubmit", "BeforeAgent"])
_TURN_ENDS = frozenset(["Stop", "StopFailure", "AfterAgent", "Interrupt"])
_CAPTURED = _BEFORE | _AFTER | _TURN_BEGINS | _TURN_ENDS


def is_captured(told: dict[str, Any]) -> bool:
    """Return whether an event begins or ends something that may change files."""
    event = told.get("hook_event_name")
    if event not in _CAPTURED:
        return False
    return event not in _BEFORE | _AFTER or _kind(told) is not None


def capture(told: dict[str, Any], root: str, session: str, process: Callable[[], str | None]) -> dict[str, Any] | None:
    """Capture the changes of an event, and return what to record with it; None for nothing.

    A failed capture returns the reason as `failed`.
    """
    try:
        return _captured(told, root, session, process)
    except Exception as problem:  # noqa: BLE001
        return {"failed": f"{type(problem).__name__}: {problem}"[:500]}


def is_switched_off(root: str) -> bool:
    """Return whether decklog.toml of a repository switches capture off."""
    try:
        with open(os.path.join(root, "decklog.toml"), "rb") as file:
            content = file.read(_LONGEST_SETTINGS)
    except OSError:
        return False
    if b"provenance" not in content:
        return False
    from decklog.provenance.settings import read_settings

    return not read_settings(content).capture


def _captured(told: dict[str, Any], root: str, session: str, process: Callable[[], str | None]) -> dict[str, Any] | None:
    from decklog.provenance.capture import Capture
    from decklog.provenance.git import GitRepository

    folder = str(told.get("cwd") or root)
    kind = _kind(told)
    paths, renamed = _paths(told, folder) if kind == "tool" else ([], {})
    repo = GitRepository.find(os.path.dirname(paths[0]) if paths else folder)
    if repo is None or is_switched_off(root):
        return None
    capture = Capture(repo, session, process=process())
    event = told["hook_event_name"]
    if event in _TURN_BEGINS:
        return capture.snapshot("start", _turn(told))
    if event in _TURN_ENDS:
        capture.end_turn()
        return capture.snapshot("end", _turn(told))
    target = file_call(repo, paths, renamed, told["tool_input"]) if kind == "tool" else None
    if target is not None and not target.paths:
        return None
    if event in _BEFORE:
        capture.begin(_call(told), target)
        return None
    found = capture.end(_call(told), target)
    return None if found is None else {**found, "kind": kind}


def _kind(told: dict[str, Any]) -> str | None:
    """Return how a call changes files: `tool` if it names them, `shell` if a command may change any, else None."""
    tool, arguments = told.get("tool_name"), told.get("tool_input")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        return None
    if is_command(tool, arguments):
        command = arguments.get("command") or arguments.get("cmd")
        return None if isinstance(command, str) and only_reads(command) else "shell"
    return "tool" if tool == "apply_patch" or files_of(tool, arguments)[1] else None


def _paths(told: dict[str, Any], folder: str) -> tuple[list[str], dict[str, str]]:
    """Return the files that a call writes, and the old paths of moved files, as absolute paths."""
    tool, arguments = told["tool_name"], told["tool_input"]
    paths, renamed = patched_paths(arguments) if tool == "apply_patch" else (files_of(tool, arguments)[1], {})
    whole = {path: os.path.join(folder, path) for path in [*paths, *renamed, *renamed.values()]}
    return [whole[path] for path in paths], {whole[new]: whole[old] for new, old in renamed.items()}


def file_call(repo: "GitRepository", paths: list[str], renamed: dict[str, str], arguments: dict[str, Any]) -> FileCall:
    """Return a call with the repository's files only, as paths relative to it."""
    named = {path: repo.relative(path) for path in [*paths, *renamed, *renamed.values()]}
    inside = list(dict.fromkeys(name for path in paths if (name := named[path]) is not None))
    moved = ((named[new], named[old]) for new, old in renamed.items())
    return FileCall(inside, arguments, {new: old for new, old in moved if new is not None and old is not None})


def _call(told: dict[str, Any]) -> str:
    """Return the id of a call; build one for programs that have none."""
    named = told.get("tool_use_id")
    if isinstance(named, str) and named:
        return named
    return f"{crc32(json.dumps([told.get('tool_name'), told.get('tool_input')], sort_keys=True).encode()):08x}"


def _turn(told: dict[str, Any]) -> str | None:
    found = told.get("prompt_id") or told.get("turn_id")
    return str(found) if found else None


# Tools that change something; calls of other tools are not reviewed.
_CHANGES = frozenset(
    (
        *("Write", "Edit", "MultiEdit", "NotebookEdit", "Bash", "apply_patch"),
        *("write_file", "replace", "run_shell_command", "shell", "edit", "write", "bash"),
    )
)


def critic_for(
    log: "Decklog", root: str, *, run_id: str, task_id: str | None = None
) -> Callable[[str, dict[str, Any], Any], list[str]] | None:
    """Return a function that reviews each tool call; None if the folder's repository does not enable critique."""
    from decklog.core.folders import state_home
    from decklog.review.critique import critic_of

    critic = critic_of(log, Path(root), state_home(), run_id=run_id, task_id=task_id)
    return None if critic is None else critic.of_call


def errors_of_call(log: "Decklog", told: Mapping[str, Any], root: str, *, session: str, named: Mapping[str, str]) -> list[str]:
    """Return the certain errors in what an agent's tool has just done, recorded in the agent's run."""
    if told.get("tool_name") not in _CHANGES:
        return []
    run_id = named.get("run") or log.runs.start(f"Critique of {session}", key=f"critique:{session}").id
    critic = critic_for(log, root, run_id=run_id, task_id=named.get("task"))
    if critic is None:
        return []
    outcome = told.get("tool_response", told.get("tool_output"))
    return critic(str(told["tool_name"]), dict(told.get("tool_input") or {}), outcome)
