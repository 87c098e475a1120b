"""Steps of a recorded session for people: prompts, answers, and each call with its result and file change."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import unified_diff
from typing import Any

from decklog.agents.views.listing import STARTED, SessionSummary
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog
from decklog.records.record import every_page

_PAGE = 500
_CALLS = ("call", "agent.tool")
_RESULTS = ("result", "agent.result")
_SPOKEN = {
    "prompt": "prompt",
    "said": "said",
    "agent.text": "said",
    "thought": "thought",
    "agent.thought": "thought",
    "agent.error": "error",
    "compacted": "note",
}
# Argument names for the text before and after a change, and for the content of a new file.
_BEFORE, _AFTER = ("old_string", "oldString", "old_text"), ("new_string", "newString", "new_text")
_WHOLE = ("content", "file_text")
_PATCHES = ("patch", "patchText", "input", "command")
_PATCH_MARK = "*** Begin Patch"
_SHELLS = ("/bin/bash ", "/bin/sh ", "/bin/zsh ", "/usr/bin/bash ", "/usr/bin/zsh ", "bash ", "sh ", "zsh ")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: `kind` is prompt, said, thought, call, error or note. A call without a result has no `outcome`."""

    at: datetime
    kind: str
    text: str
    who: str | None = None
    agent_id: str | None = None
    tool: str | None = None
    outcome: str | None = None
    seconds: float | None = None
    output: str = ""
    diff: tuple[str, ...] = ()

    @property
    def is_failed(self) -> bool:
        return self.outcome not in (None, "ok")

    def as_dict(self) -> dict[str, Any]:
        """Return the step as JSON values, without empty fields."""
        values = {**vars(self), "at": self.at.isoformat(), "diff": list(self.diff)}
        return {name: value for name, value in values.items() if value not in (None, "", [])}


def steps_of(log: Decklog, session: SessionSummary) -> list[Step]:
    """Return the steps of a session and of its sub-agents, ordered by time."""
    entries = sorted(_entries(log, session), key=lambda entry: (entry.at, entry.stream, entry.seq))
    results = {(entry.stream, _call(entry)): entry for entry in entries if entry.subtype in _RESULTS and _call(entry)}
    steps = (_step(entry, results, session) for entry in entries)
    return [step for step in steps if step is not None]


def _entries(log: Decklog, session: SessionSummary) -> Iterator[Entry]:
    if session.task_id is not None:
        yield from _of_started(log, session)
        return
    below = log.runs.find(parent_run_id=session.run_id, limit=_PAGE)
    for run_id in (session.run_id, *(run.id for run in below)):
        yield from _pages(log, run_id)


def _of_started(log: Decklog, session: SessionSummary) -> Iterator[Entry]:
    """Yield the entries of a session that a run started, up to the next session of the same work item."""
    for entry in _pages(log, session.run_id, task_id=session.task_id, agent=session.program):
        if entry.seq > session.first_seq and entry.subtype == STARTED:
            return
        if entry.seq >= session.first_seq:
            yield entry


def _pages(log: Decklog, run_id: str, **wanted: Any) -> Iterator[Entry]:
    entries = every_page(log.journal.find, run_id, oldest_first=True, **wanted)
    return (entry for entry in entries if entry.kind is not EntryKind.CHANGE)


def _step(entry: Entry, results: dict[tuple[str, Any], Entry], session: SessionSummary) -> Step | None:
    body, subtype = entry.body or "", entry.subtype or ""
    agent_id = entry.agent_id if entry.agent_id not in (None, session.session) else None
    if subtype in _CALLS:
        return _call_step(entry, results.get((entry.stream, _call(entry))), agent_id, session.folder)
    if subtype in _RESULTS and not _call(entry):
        return Step(at=entry.at, kind="note", text=body, agent_id=agent_id)
    if subtype == "turn" and _facts(entry).get("error"):
        return Step(at=entry.at, kind="error", text=body, agent_id=agent_id)
    if subtype in _SPOKEN and body.strip():
        who = entry.agent if subtype == "prompt" else session.program
        return Step(at=entry.at, kind=_SPOKEN[subtype], text=body, who=who, agent_id=agent_id)
    return None


def _call_step(entry: Entry, result: Entry | None, agent_id: str | None, folder: str | None) -> Step:
    facts, ended = _facts(entry), {} if result is None else _facts(result)
    given = facts.get("arguments")
    arguments: dict[str, Any] = given if isinstance(given, dict) else {}
    body, tool = entry.body or "", str(facts.get("tool") or "tool")
    patch = _patch_in(body, arguments)
    outcome = str(ended["outcome"]) if "outcome" in ended else None
    output = "" if result is None or (result.body or "") == outcome else (result.body or "")
    return Step(
        at=entry.at,
        kind="call",
        text=title_of_call(entry, folder),
        tool=tool,
        outcome=outcome,
        seconds=_seconds(entry, result, ended),
        output=output,
        diff=tuple(patch.splitlines()) if patch else tuple(_diff(arguments)),
        agent_id=agent_id,
    )


def title_of_call(entry: Entry, folder: str | None) -> str:
    """Return what a call does in one line, with file paths relative to the session's folder."""
    facts, body = _facts(entry), entry.body or ""
    given = facts.get("arguments")
    arguments: dict[str, Any] = given if isinstance(given, dict) else {}
    return _within(_title(str(facts.get("tool") or "tool"), body, arguments, _patch_in(body, arguments)), folder)


def _title(tool: str, body: str, arguments: dict[str, Any], patch: str | None) -> str:
    if patch is not None:
        paths = [line.partition(": ")[2] for line in patch.splitlines() if line.startswith("*** ") and ": " in line]
        return f"{tool} {', '.join(dict.fromkeys(paths))}".strip()
    if changes := arguments.get("changes"):
        paths = [str(one.get("path")) for one in changes if isinstance(one, dict)] if isinstance(changes, list) else []
        return f"{tool} {', '.join(paths)}".strip()
    if tool == "Bash":
        return _unwrapped(body)
    return body if body.split(" ", 1)[0] == tool else f"{tool} {body}"


def _within(text: str, folder: str | None) -> str:
    """Return a text with file paths relative to the session's folder."""
    return text.replace(f"{folder}{os.sep}", "") if folder and folder != os.sep else text


def _unwrapped(command: str) -> str:
    """Return a command without its shell wrapper, such as `bash -lc`."""
    if not command.startswith(_SHELLS):
        return command
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else command


def _patch_in(body: str, arguments: dict[str, Any]) -> str | None:
    """Return the patch of a call, from its command or from an argument."""
    texts = [body, *(value for name in _PATCHES if isinstance(value := arguments.get(name), str))]
    return next((text[text.index(_PATCH_MARK) :] for text in texts if _PATCH_MARK in text), None)


def _diff(arguments: dict[str, Any]) -> Iterator[str]:
    """Yield the change of a call as diff lines."""
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        before, after = _first(edit, _BEFORE), _first(edit, _AFTER)
        if after is None and edit is arguments:
            after, before = _first(arguments, _WHOLE), ""
        if after is not None:
            lines = unified_diff((before or "").splitlines(), after.splitlines(), lineterm="", n=1)
            yield from (line for line in lines if not line.startswith(("---", "+++", "@@")))


def _first(values: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := values.get(name), str)), None)


def _seconds(entry: Entry, result: Entry | None, ended: dict[str, Any]) -> float | None:
    milliseconds = ended.get("duration_ms")
    if isinstance(milliseconds, (int, float)):
        return milliseconds / 1000
    return None if result is None else max(0.0, (result.at - entry.at).total_seconds())


def _call(entry: Entry) -> Any:
    return _facts(entry).get("call")


def _facts(entry: Entry) -> dict[str, Any]:
    return entry.payload if isinstance(entry.payload, dict) else {}
