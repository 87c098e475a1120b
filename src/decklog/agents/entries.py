"""Conversion of session events into journal entries, from the event alone."""

import hashlib
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from typing import Any

from decklog.agents.events import Called, CallOutcome, Compacted, Noted, Prompted, Returned, Said, SessionEvent, Thought
from decklog.agents.spool import Spool
from decklog.agents.texts import as_name, storable, storable_value
from decklog.core.errors import Conflict, Invalid, ReadOnly, Unavailable
from decklog.core.processes import Identity
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.records.record import every_page
from decklog.stores.runs.run import Run, RunStatus

# Longer texts are cut; their digest is recorded.
MOST_CHARACTERS = 200_000
# Cached values: each enum lookup costs time, and sessions have many events.
_TOOL, _SAID, _THOUGHT = EntryKind.TOOL.value, EntryKind.INTERACTION.value, EntryKind.REASONING.value
_EVENT = EntryKind.EVENT.value
# Argument names that describe a call best, in order of preference.
_DESCRIPTIVE = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt")


@lru_cache(maxsize=256)
def run_of_session(program: str, session_id: str) -> str:
    """Return the run id of a session."""
    return f"{as_name(program)}-{as_name(session_id)}"


def run_of(program: str, event: SessionEvent) -> str:
    """Return the run id of an event; each sub-agent has a separate run."""
    return run_of_agent(program, event.session_id, event.agent_id)


@lru_cache(maxsize=256)
def run_of_agent(program: str, session_id: str, agent_id: str | None) -> str:
    """Return the run id of a session's agent: the session's run, or a sub-agent's separate run."""
    own = run_of_session(program, session_id)
    return own if agent_id is None else f"{own}-{as_name(agent_id)}"


def entry_of(program: str, run_id: str, event: SessionEvent) -> dict[str, Any] | None:
    """Return the entry arguments of an event; None for an event that needs a lookup in the log."""
    told: tuple[str, str, str | None, str | None, dict[str, Any]]
    match event:
        case Called():
            # The key omits the tool, because sources name it differently.
            told = (_TOOL, "call", *describe_call(event.call_id, event.tool, event.arguments))
        case Returned():
            output, cut = cut_of(event.output)
            facts = {"call": event.call_id, "tool": event.tool, "outcome": event.outcome._value_, **event.facts, **cut}
            told = (_TOOL, "result", output or event.outcome._value_, f"result:{event.call_id}", facts)
        case Said():
            told = (_SAID, "said", event.text, event.message_id and f"said:{event.message_id}", {})
        case Thought():
            told = (_THOUGHT, "thought", event.text, f"thought:{event.message_id}", {})
        case Compacted():
            name = "compacted" if event.is_over else "compacting"
            told = (_EVENT, name, event.summary or event.trigger, key_of(name, event, event.summary), {})
        case Noted():
            key = event.note_id or key_of(event.name, event, event.text)
            told = (_EVENT, event.name, event.text, key, event.facts)
        case _:
            return None
    return given(program, run_id, event, *told)


def prompt_of(program: str, run_id: str, event: Prompted) -> dict[str, Any]:
    """Return the entry arguments of a prompt, to be written unless another source recorded it."""
    key = f"prompt:{event.prompt_id}" if event.prompt_id else key_of("prompt", event, event.text)
    return given(program, run_id, event, _SAID, "prompt", event.text, key, {}, event.by)


def given(
    program: str,
    run_id: str,
    event: SessionEvent,
    kind: str,
    subtype: str,
    body: str | None,
    key: str | None,
    facts: dict[str, Any],
    agent: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of an entry with storable texts of limited length."""
    text, cut = cut_of(storable(body)) if body else (body, None)
    payload = {name: value for name, value in facts.items() if value is not None and name != "way"}
    if cut:
        payload |= cut
    if event.way is not None:
        payload["way"] = event.way
    return {
        "stream": run_id,
        "body": text,
        "kind": kind,
        "subtype": subtype,
        "agent": agent or program,
        "agent_id": storable(event.agent_id or event.session_id),
        "payload": storable_value(payload) if payload else None,
        "key": storable(key) if key else key,
        "at": event.at,
    }


def describe_call(call_id: str, tool: str, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return a call as one line (its command, or its tool with the best argument), its key and its other facts."""
    told = _best_argument(arguments)
    line = told if tool == "Bash" and told else f"{tool} {told}".strip()
    rest = {name: cut_of(value)[0] if isinstance(value, str) else value for name, value in arguments.items() if value != told}
    return line, f"call:{call_id}", {"call": call_id, "tool": tool, "arguments": rest or None}


def _best_argument(arguments: dict[str, Any]) -> str:
    for name in _DESCRIPTIVE:
        if name in arguments and isinstance(value := arguments[name], str) and value.strip():
            return value
    return ""


def cut_of(text: str) -> tuple[str, dict[str, Any]]:
    if len(text) <= MOST_CHARACTERS:
        return text, {}
    whole = text.encode(errors="replace")
    return text[:MOST_CHARACTERS], {"cut": {"bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest()}}


def key_of(name: str, event: SessionEvent, text: str | None) -> str | None:
    """Return a key for an event without an id, made of its time and a digest of its text."""
    if event.at is None:
        return None
    words = hashlib.sha256((text or "").encode(errors="replace")).hexdigest()[:16]
    return f"{name}:{event.at.isoformat()}:{words}"


# Limits of a query or a hook: the newest active runs, without those written to recently, whose end may be pending.
_NEWEST = 50
_QUIET_SECONDS = 60.0
_WHY = "the process ended before this did"
# For each start subtype: the end subtype, the payload field with their shared id, and the entry kind.
_ENDS = {"call": ("result", "call", EntryKind.TOOL), "step": ("step.ended", "step", EntryKind.EVENT)}


def own_identity() -> str:
    """Return a text that distinguishes this process from others with the same number."""
    return Identity.own().as_text()


def close_killed_sessions(log: Decklog, spool: Spool | None = None) -> None:
    """End the newest runs whose program was killed. Do nothing if the log can't be written.

    The spool may still contain the end that a program reported. Only an empty spool rules that out.
    """
    is_all_told = spool is not None and spool.is_empty
    with suppress(ReadOnly, Unavailable):
        close_interrupted(log, most=_NEWEST, quiet_seconds=0.0 if is_all_told else _QUIET_SECONDS)


def close_interrupted(log: Decklog, *, most: int | None = None, quiet_seconds: float = 0.0) -> list[Run]:
    """Close the runs of ended processes on this machine, with their open calls and steps; return the runs.

    Runs on other machines, or of processes that can't be checked, stay unchanged. `most` limits the check to the newest
    active runs. `quiet_seconds` skips runs with recent entries, whose end may be pending.
    """
    left = [
        run
        for run in islice(every_page(log.runs.find, status=RunStatus.ACTIVE), most)
        if _is_left(run) and _is_quiet(log, run, quiet_seconds)
    ]
    return [closed for run in left if (closed := _close(log, run)) is not None]


def _is_left(run: Run) -> bool:
    process = run.metadata.get("process")
    if not isinstance(process, str):
        return False
    try:
        return Identity.from_text(process).is_alive() is False
    except (ValueError, TypeError):
        return False  # metadata of the same name from another source


def _is_quiet(log: Decklog, run: Run, seconds: float) -> bool:
    newest = log.journal.find(run.id, limit=1)
    return not newest or log.clock.now() - newest[0].at >= timedelta(seconds=seconds)


def _close(log: Decklog, run: Run) -> Run | None:
    try:
        close_open(log, run.id)
        return log.runs.finish(run.id, status=RunStatus.FAILED, summary=f"interrupted: {_WHY}")
    except (Conflict, Invalid):
        return None  # another process has just closed it


def close_open(log: Decklog, run_id: str) -> None:
    """Close every open call and step of a run as interrupted, innermost first."""
    told: set[str] = set()
    for entry in every_page(log.journal.find, run_id):
        payload: Any = entry.payload if isinstance(entry.payload, dict) else {}
        for begun, (ended, name, kind) in _ENDS.items():
            part = payload.get(name)
            if entry.subtype == ended:
                told.add(f"{ended}:{part}")
            elif entry.subtype == begun and part and f"{ended}:{part}" not in told:
                facts = {name: part, "outcome": CallOutcome.INTERRUPTED.value, "within": payload.get("within")}
                facts |= {"tool": payload.get("tool")} if name == "call" else {"name": entry.body}
                key = f"{ended.replace('.', '-')}:{part}"
                known = {name: value for name, value in facts.items() if value is not None}
                log.journal.append(run_id, _WHY, kind=kind, subtype=ended, key=key, payload=known, agent=entry.agent)
