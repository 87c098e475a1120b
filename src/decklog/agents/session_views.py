"""Views of recorded sessions for people and agents: the list of all sessions, the steps of one, and a summary of the last one.

Sessions come from hooks, imports and editors, and from runs that started an agent.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import unified_diff
from heapq import merge
from itertools import count
from operator import attrgetter
from typing import Any

from decklog.agents.sessions import charge_of_session, cost_of_work, is_session
from decklog.agents.texts import dict_of, list_of, text_or_none
from decklog.core.display import dollars, one_line, shorten
from decklog.core.errors import Invalid, NotFound
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog
from decklog.records.record import find_all

_HITS = 200
# Minimum length of a shortened id; longer if ids would be ambiguous.
_FEWEST = 8
STARTED = "agent.start"
# Command of each program to resume a session.
_RESUME = {
    "claude": "claude --resume {session}",
    "codex": "codex resume {session}",
    "gemini": "gemini --resume {session}",
    "opencode": "opencode --session {session}",
}


@dataclass(frozen=True, kw_only=True)
class SessionSummary:
    """Summary of one session. `task_id` is the work item of a session that a run started."""

    session: str
    program: str
    run_id: str
    goal: str
    status: str
    started_at: datetime
    ended_at: datetime | None = None
    folder: str | None = None
    branch: str | None = None
    model: str | None = None
    task_id: str | None = None
    microdollars: int = 0
    unpriced_calls: int = 0
    # The first entry of a session, in a run that it shares with others.
    first_seq: int = 0

    @property
    def resume(self) -> str | None:
        """The command that resumes the session; None if its program kept no files of it."""
        form = _RESUME.get(self.program)
        return None if form is None or self.task_id is not None else form.format(session=self.session)

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        times = {name: None if (at := getattr(self, name)) is None else at.isoformat() for name in ("started_at", "ended_at")}
        return {**{name: value for name, value in vars(self).items() if name != "first_seq"}, **times, "resume": self.resume}


def sessions(log: Decklog, *, program: str | None = None, folder: str | None = None) -> Iterator[SessionSummary]:
    """Yield all sessions, newest first. With `folder`, a path without symbolic links, only those that worked in it."""
    both = merge(_recorded(log), _started(log), key=attrgetter("started_at"), reverse=True)
    for found in both if program is None else (one for one in both if one.program == program):
        if folder is None or (found.folder is not None and os.path.realpath(found.folder) == folder):
            yield found


def short_ids(found: Sequence[SessionSummary]) -> list[str]:
    """Return for each session the shortest unique prefix of its id."""
    ids = {one.session for one in found}
    size = next((size for size in range(_FEWEST, 200) if len({name[:size] for name in ids}) == len(ids)), None)
    return [one.session[:size] for one in found]


def find_session(log: Decklog, name: str) -> SessionSummary:
    """Return the session with this run id, session id, or unique prefix of either."""
    found: dict[str, SessionSummary] = {}
    for one in sessions(log):
        if name in (one.session, one.run_id):
            return one
        if one.session.startswith(name) or one.run_id.startswith(name):
            found.setdefault(one.session, one)
    if not found:
        raise NotFound(f"there is no session {name}", hint="List them: decklog sessions", session=name)
    if len(found) > 1:
        raise Invalid(f"several sessions begin with {name}: {', '.join(list(found)[:5])}", field="session")
    return next(iter(found.values()))


def hits_by_session(log: Decklog, words: str) -> dict[str, list[Entry]]:
    """Return the entries that match the words, by session."""
    every = [*sessions(log)]
    runs = {one.run_id: one.session for one in every if one.task_id is None}
    started = [one for one in every if one.task_id is not None]
    found: dict[str, list[Entry]] = {}
    for entry in log.journal.search(words, limit=_HITS):
        session = runs.get(entry.stream) or runs.get(entry.stream.rpartition("-")[0]) or _session_of(started, entry)
        if session is not None and entry.kind is not EntryKind.CHANGE:
            found.setdefault(session, []).append(entry)
    return found


def priced(log: Decklog, one: SessionSummary) -> SessionSummary:
    """Return a session with its cost, including sub-agents."""
    if one.task_id is None:
        cost, unpriced = cost_of_work(log, one.run_id, None)
    else:
        charges = [*_charges_of_session(log, one.session)]
        cost, unpriced = sum(known or 0 for known in charges), charges.count(None)
    return SessionSummary(**{**vars(one), "microdollars": cost, "unpriced_calls": unpriced})


def _charges_of_session(log: Decklog, session: str) -> Iterator[int | None]:
    for number in count(1):
        found = log.ledger.find(answer_id=charge_of_session(session, number), limit=1)
        if not found:
            return
        yield found[0].cost_microdollars


def _recorded(log: Decklog) -> Iterator[SessionSummary]:
    for run in find_all(log.runs.find):
        if is_session(run.metadata) and run.parent_run_id is None:
            yield SessionSummary(
                session=str(run.metadata["session"]),
                program=str(run.metadata["program"]),
                run_id=run.id,
                goal=run.goal,
                status=run.status.value,
                started_at=run.started_at,
                ended_at=run.ended_at,
                folder=run.worktree,
                branch=run.branch,
                model=text_or_none(run.metadata.get("model")),
            )


def _started(log: Decklog) -> Iterator[SessionSummary]:
    """Yield the sessions that runs started, by their first entries."""
    seen: set[tuple[str, str]] = set()
    for entry in find_all(log.journal.find, kind=EntryKind.EVENT, subtype=STARTED):
        facts = dict_of(entry.payload)
        session = facts.get("session")
        if isinstance(session, str) and (entry.stream, session) not in seen:
            seen.add((entry.stream, session))
            yield _of_entry(log, entry, session, facts)


def _of_entry(log: Decklog, entry: Entry, session: str, facts: dict[str, Any]) -> SessionSummary:
    task = log.tasks.get(str(entry.task_id))
    attempt = next((one for one in log.tasks.attempts(task.id) if one.started_at <= entry.at <= (one.ended_at or entry.at)), None)
    ended_at, outcome = (None, None) if attempt is None else (attempt.ended_at, attempt.outcome)
    return SessionSummary(
        session=session,
        program=str(entry.agent),
        run_id=entry.stream,
        goal=task.title,
        status="active" if outcome is None else str(outcome.value),
        started_at=entry.at,
        ended_at=ended_at,
        folder=facts.get("folder"),
        model=facts.get("model"),
        task_id=task.id,
        first_seq=entry.seq,
    )


def _session_of(started: list[SessionSummary], entry: Entry) -> str | None:
    """Return the session of an entry: the last one of its work item that began before it."""
    same = (one for one in started if (one.run_id, one.task_id) == (entry.stream, entry.task_id) and one.first_seq <= entry.seq)
    return max(((one.first_seq, one.session) for one in same), default=(0, None))[1]


# Steps

_PAGE = 500
CALLS = ("call", "agent.tool")
RESULTS = ("result", "agent.result")
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
    results = {(entry.stream, call_id(entry)): entry for entry in entries if entry.subtype in RESULTS and call_id(entry)}
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
    entries = find_all(log.journal.find, run_id, oldest_first=True, **wanted)
    return (entry for entry in entries if entry.kind is not EntryKind.CHANGE)


def _step(entry: Entry, results: dict[tuple[str, Any], Entry], session: SessionSummary) -> Step | None:
    body, subtype = entry.body or "", entry.subtype or ""
    agent_id = entry.agent_id if entry.agent_id not in (None, session.session) else None
    if subtype in CALLS:
        return _call_step(entry, results.get((entry.stream, call_id(entry))), agent_id, session.folder)
    if subtype in RESULTS and not call_id(entry):
        return Step(at=entry.at, kind="note", text=body, agent_id=agent_id)
    if subtype == "turn" and dict_of(entry.payload).get("error"):
        return Step(at=entry.at, kind="error", text=body, agent_id=agent_id)
    if subtype in _SPOKEN and body.strip():
        who = entry.agent if subtype == "prompt" else session.program
        return Step(at=entry.at, kind=_SPOKEN[subtype], text=body, who=who, agent_id=agent_id)
    return None


def _call_step(entry: Entry, result: Entry | None, agent_id: str | None, folder: str | None) -> Step:
    facts, ended = dict_of(entry.payload), {} if result is None else dict_of(result.payload)
    arguments, tool = dict_of(facts.get("arguments")), str(facts.get("tool") or "tool")
    patch = _patch_in(entry.body or "", arguments)
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
    facts, body = dict_of(entry.payload), entry.body or ""
    arguments = dict_of(facts.get("arguments"))
    title = _title(str(facts.get("tool") or "tool"), body, arguments, _patch_in(body, arguments))
    return title.replace(f"{folder}{os.sep}", "") if folder and folder != os.sep else title


def _title(tool: str, body: str, arguments: dict[str, Any], patch: str | None) -> str:
    if patch is not None:
        paths = [line.partition(": ")[2] for line in patch.splitlines() if line.startswith("*** ") and ": " in line]
        return f"{tool} {', '.join(dict.fromkeys(paths))}".strip()
    if changes := arguments.get("changes"):
        paths = [str(one.get("path")) for one in list_of(changes)]
        return f"{tool} {', '.join(paths)}".strip()
    if tool == "Bash":
        return _unwrapped(body)
    return body if body.split(" ", 1)[0] == tool else f"{tool} {body}"


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


def call_id(entry: Entry) -> Any:
    """Return the id of the tool call of an entry."""
    return dict_of(entry.payload).get("call")


# Last session

# Size limit of the summary.
_MOST_BYTES = 1500
_SESSIONS, _FILES, _FAILING, _LESSONS = 50, 8, 3, 3
_LONGEST = 240
_CHANGES = frozenset(["Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch", "write_file", "replace"])


def last_session(log: Decklog, folder: str | None = None) -> SessionSummary | None:
    """Return the newest ended session, preferably one of the folder."""
    newest = None
    for number, one in enumerate(sessions(log)):
        if number == _SESSIONS:
            break
        if one.ended_at is None or one.task_id is not None:
            continue
        if folder is None or one.folder == folder:
            return one
        newest = newest or one
    return newest


def describe_session(log: Decklog, found: SessionSummary) -> Iterator[str]:
    """Yield lines about a session, within the size limit."""
    room = _MOST_BYTES
    for text in _lines(log, found):
        line = shorten(one_line(text), _LONGEST)
        room -= len(line.encode()) + 1
        if room < 0:
            return
        yield line


def _lines(log: Decklog, found: SessionSummary) -> Iterator[str]:
    one = priced(log, found)
    steps = steps_of(log, one)
    ended = f"{one.ended_at or one.started_at:%Y-%m-%d %H:%M} UTC"
    yield f"Last session here ({one.program}, {one.status} {ended}, {dollars(one.microdollars)}): {one.goal}"
    if said := next((step.text for step in reversed(steps) if step.kind == "said" and step.agent_id is None), None):
        yield f"- said at its end: {said}"
    if files := _changed(steps):
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        yield f"- changed: {', '.join(files[:_FILES])}{more}"
    for step in _failing(steps):
        lines = step.output.strip().splitlines()
        yield f"- left failing: {step.text}" + (f" ({lines[-1].strip()})" if lines else "")
    for lesson in log.memory.find(since=one.started_at, until=one.ended_at, limit=_LESSONS):
        yield f"- learned: {lesson.body}"
    yield f"- all of it: decklog sessions show {one.session}"


def _changed(steps: Sequence[Step]) -> list[str]:
    done = (step for step in steps if step.kind == "call" and step.tool in _CHANGES and step.outcome == "ok")
    paths = (path.strip() for step in done for path in step.text.partition(" ")[2].split(","))
    return list(dict.fromkeys(path for path in paths if path))


def _failing(steps: Sequence[Step]) -> list[Step]:
    """Return the commands whose last call failed, the latest first."""
    last = {step.text: step for step in steps if step.kind == "call" and step.tool == "Bash" and step.outcome is not None}
    failed = [step for step in last.values() if step.outcome == "failed"]
    return sorted(failed, key=lambda step: step.at, reverse=True)[:_FAILING]
