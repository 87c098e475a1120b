"""Capture of edits around the tool calls that hooks report. A failed capture never fails the call."""

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

from decklog.hooks.judging import find_call_files, is_read_only_command
from decklog.provenance.tool_calls import FileCall, is_command, patched_paths

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.provenance.git import GitRepository

_LONGEST_SETTINGS = 1024 * 1024
_BEFORE = frozenset(["PreToolUse", "BeforeTool"])
_AFTER = frozenset(["PostToolUse", "PostToolUseFailure", "AfterTool"])
_TURN_BEGINS = frozenset(["UserPromptSubmit", "BeforeAgent"])
_TURN_ENDS = frozenset(["Stop", "StopFailure", "AfterAgent", "Interrupt"])


def settings_with(root: str, words: bytes) -> bytes | None:
    """Return decklog.toml of a repository if it contains these words. Every tool call runs this check, so it must be cheap."""
    try:
        with open(os.path.join(root, "decklog.toml"), "rb") as file:
            content = file.read(_LONGEST_SETTINGS)
    except OSError:
        return None
    return content if words in content else None


def is_switched_off(root: str) -> bool:
    """Return whether decklog.toml of a repository switches capture off."""
    content = settings_with(root, b"provenance")
    if content is None:
        return False
    from decklog.provenance.settings import read_settings

    return not read_settings(content).capture


def capture(payload: dict[str, Any], root: str, session: str, process: Callable[[], str | None]) -> dict[str, Any] | None:
    """Capture the changes of an event, and return the data to record with it, or None.

    A failed capture returns the reason as `failed`.
    """
    event = payload.get("hook_event_name")
    try:
        if event in _TURN_BEGINS | _TURN_ENDS:
            return _capture_turn(payload, root, session, process)
        kind = kind_of(payload) if event in _BEFORE | _AFTER else None
        return None if kind is None else _capture_call(payload, kind, root, session, process)
    except Exception as problem:  # noqa: BLE001
        return {"failed": f"{type(problem).__name__}: {problem}"[:500]}


def _find_repository(folder: str, root: str) -> "GitRepository | None":
    from decklog.provenance.git import GitRepository

    repo = GitRepository.find(folder)
    return None if repo is None or is_switched_off(root) else repo


def _capture_turn(payload: dict[str, Any], root: str, session: str, process: Callable[[], str | None]) -> dict[str, Any] | None:
    from decklog.provenance.capture import Capture

    repo = _find_repository(str(payload.get("cwd") or root), root)
    if repo is None:
        return None
    capture = Capture(repo, session, process=process())
    turn = payload.get("prompt_id") or payload.get("turn_id")
    is_end = payload["hook_event_name"] in _TURN_ENDS
    if is_end:
        capture.end_turn()
    return capture.snapshot("end" if is_end else "start", str(turn) if turn else None)


def _capture_call(
    payload: dict[str, Any], kind: str, root: str, session: str, process: Callable[[], str | None]
) -> dict[str, Any] | None:
    from decklog.provenance.capture import Capture

    folder, arguments = str(payload.get("cwd") or root), payload["tool_input"]
    paths, renamed = _paths(payload["tool_name"], arguments, folder) if kind == "tool" else ([], {})
    repo = _find_repository(os.path.dirname(paths[0]) if paths else folder, root)
    if repo is None:
        return None
    target = file_call(repo, paths, renamed, arguments) if kind == "tool" else None
    if target is not None and not target.paths:
        return None
    capture = Capture(repo, session, process=process())
    if payload["hook_event_name"] in _BEFORE:
        capture.begin(_call_id(payload), target)
        return None
    found = capture.end(_call_id(payload), target)
    return None if found is None else {**found, "kind": kind}


def kind_of(payload: dict[str, Any]) -> str | None:
    """Return how a call changes files: `tool` if it names them, `shell` if a command may change any, else None."""
    tool, arguments = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        return None
    if is_command(tool, arguments):
        command = arguments.get("command") or arguments.get("cmd")
        return None if isinstance(command, str) and is_read_only_command(command) else "shell"
    return "tool" if tool == "apply_patch" or find_call_files(tool, arguments)[1] else None


def _paths(tool: str, arguments: dict[str, Any], folder: str) -> tuple[list[str], dict[str, str]]:
    """Return the files that a call writes, and the old paths of moved files, as absolute paths."""
    paths, renamed = patched_paths(arguments) if tool == "apply_patch" else (find_call_files(tool, arguments)[1], {})
    moved = {os.path.join(folder, new): os.path.join(folder, old) for new, old in renamed.items()}
    return [os.path.join(folder, path) for path in paths], moved


def file_call(repo: "GitRepository", paths: list[str], renamed: dict[str, str], arguments: dict[str, Any]) -> FileCall:
    """Return a call with the repository's files only, as paths relative to it."""
    inside = list(dict.fromkeys(name for path in paths if (name := repo.relative(path)) is not None))
    moved = ((repo.relative(new), repo.relative(old)) for new, old in renamed.items())
    return FileCall(inside, arguments, {new: old for new, old in moved if new is not None and old is not None})


def _call_id(payload: dict[str, Any]) -> str:
    """Return the id of a call; build one for programs that have none."""
    named = payload.get("tool_use_id")
    if isinstance(named, str) and named:
        return named
    return f"{crc32(json.dumps([payload.get('tool_name'), payload.get('tool_input')], sort_keys=True).encode()):08x}"


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
    from pathlib import Path

    from decklog.core.folders import state_home
    from decklog.review.critique import find_critic

    critic = find_critic(log, Path(root), Path(state_home()), run_id=run_id, task_id=task_id)
    return None if critic is None else critic.critique_call


def errors_of_call(log: "Decklog", payload: Mapping[str, Any], root: str, *, session: str, named: Mapping[str, str]) -> list[str]:
    """Review a completed tool call and return its certain errors, which are recorded in the agent's run."""
    if payload.get("tool_name") not in _CHANGES:
        return []
    run_id = named.get("run") or log.runs.start(f"Critique of {session}", key=f"critique:{session}").id
    critic = critic_for(log, root, run_id=run_id, task_id=named.get("task"))
    if critic is None:
        return []
    outcome = payload.get("tool_response", payload.get("tool_output"))
    return critic(str(payload["tool_name"]), dict(payload.get("tool_input") or {}), outcome)
