"""List of recorded sessions of all coding agents, newest first: from hooks, imports and editors, and those started by runs."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

from decklog.agents.costs import cost_of_work
from decklog.agents.sessions import charge_of_session, is_session
from decklog.core.errors import Invalid, NotFound
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog
from decklog.records.record import every_page
from decklog.stores.runs.run import Run

_PAGE = 200
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
    recorded, started = _recorded(log), _started(log)
    first, second = next(recorded, None), next(started, None)
    while first is not None or second is not None:
        if second is None or (first is not None and first.started_at >= second.started_at):
            assert first is not None
            found, first = first, next(recorded, None)
        else:
            found, second = second, next(started, None)
        is_there = folder is None or (found.folder is not None and os.path.realpath(found.folder) == folder)
        if program in (None, found.program) and is_there:
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
    runs = every_page(log.runs.find)
    return (_of_run(run) for run in runs if is_session(run.metadata) and run.parent_run_id is None)


def _of_run(run: Run) -> SessionSummary:
    facts = run.metadata
    model = facts.get("model")
    return SessionSummary(
        session=str(facts["session"]),
        program=str(facts["program"]),
        run_id=run.id,
        goal=run.goal,
        status=run.status.value,
        started_at=run.started_at,
        ended_at=run.ended_at,
        folder=run.worktree,
        branch=run.branch,
        model=model if isinstance(model, str) else None,
    )


def _started(log: Decklog) -> Iterator[SessionSummary]:
    """Yield the sessions that runs started, by their first entries."""
    seen: set[tuple[str, str]] = set()
    for entry in every_page(log.journal.find, kind=EntryKind.EVENT, subtype=STARTED):
        facts = entry.payload if isinstance(entry.payload, dict) else {}
        session = facts.get("session")
        if isinstance(session, str) and (entry.stream, session) not in seen:
            seen.add((entry.stream, session))
            yield _of_entry(log, entry, session, facts)


def _of_entry(log: Decklog, entry: Entry, session: str, facts: dict[str, Any]) -> SessionSummary:
    task = log.tasks.get(str(entry.task_id))
    attempt = next((one for one in log.tasks.attempts(task.id) if one.started_at <= entry.at <= (one.ended_at or entry.at)), None)
    ended_at = None if attempt is None else attempt.ended_at
    outcome = None if attempt is None else attempt.outcome
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
