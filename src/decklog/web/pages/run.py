"""Run: what happened here, who did it, and what it looked like at any moment."""

from typing import Any

from decklog.errors import NotFound
from decklog.web.pages import run_moment
from decklog.web.pages.rows import folded, row_of
from decklog.web.pages.run_moment import RunMoment
from decklog.web.pages.strip import STEPS, strip_of
from decklog.web.site import Asked, View

TABS = {"overview": "Overview", "journal": "Journal", "tasks": "Tasks", "reasoning": "Reasoning", "tools": "Tools"}
_KINDS = {"reasoning": "reasoning", "tools": "tool"}
# What a person looks at first, among tasks.
_ORDER = ("running", "blocked", "waiting", "paused", "pending", "done", "abandoned")
# What the first look shows of a journal, and what a page of it has.
TAIL, PAGE = 40, 200
MOST_NEW = 1000


def read(asked: Asked) -> View:
    """Read one tab of a run, now or as of an entry."""
    run_id, tab = asked.path["run_id"], asked.path["tab"]
    pulse = asked.log.runs.pulse(run_id, buckets=STEPS)
    head = run_moment.look(asked.log, run_id, asked.number("at"), pulse["last"])
    data, shown = _TAB[tab](asked, head)
    as_of = f"?at={head.at}" if head.at is not None else ""
    shown |= {"run": head, "tab": tab, "tabs": TABS, "as_of": as_of, "strip": strip_of(pulse), "last_at": head.moment}
    at = f" --at {head.at}" if head.at is not None else ""
    command = f"decklog runs {'snapshot' if at else 'show'} {run_id}{at}"
    title = f"{head.goal}{'' if tab == 'overview' else ' · ' + TABS[tab]}{f' · as of {head.at}' if at else ''}"
    return View("run.html", title, command, {"run": head, **data}, shown, next=shown.get("next"), place="runs")


def rows(asked: Asked) -> View:
    """Read the entries after the last one that a page has, as rows to put beneath it."""
    run_id, after = asked.path["run_id"], asked.number("after") or 0
    last = asked.log.journal.find(run_id, limit=1)
    if not last:
        raise NotFound(f"there is no run {run_id!r}", table="runs", id=run_id)
    newest = last[0].seq
    is_far = newest - after > MOST_NEW
    start = newest - PAGE if is_far else after
    found = run_moment.entries(asked.log, run_id, after=start, until=newest)
    shown = {"parts_of_rows": folded(found), "left_out": newest - PAGE - after if is_far else 0, "run_id": run_id}
    return View("rows.html", "Entries", f"decklog journal tail {run_id}", found, shown, decisions=0)


def _overview(asked: Asked, head: RunMoment) -> tuple[dict[str, Any], dict[str, Any]]:
    tasks, _ = run_moment.tasks(asked.log, head.id, head.at, None)
    found = run_moment.entries(asked.log, head.id, after=max(0, head.seq - TAIL), until=head.seq)
    tasks = sorted(tasks, key=lambda task: _ORDER.index(task.state.value))
    data = {"tasks": tasks, "entries": found}
    return data, {"tasks": tasks[:12], "more_tasks": max(0, sum(head.tasks.values()) - 12), "parts_of_rows": folded(found)}


def _journal(asked: Asked, head: RunMoment) -> tuple[dict[str, Any], dict[str, Any]]:
    before = asked.number("before")
    last = min(head.seq, before - 1) if before else head.seq
    first = max(0, last - PAGE)
    found = run_moment.entries(asked.log, head.id, after=first, until=last)
    shown = {"parts_of_rows": folded(found), "older": first + 1 if first else None, "is_last": last == head.newest, "last": last}
    return {"entries": found}, shown


def _tasks(asked: Asked, head: RunMoment) -> tuple[dict[str, Any], dict[str, Any]]:
    found, cursor = run_moment.tasks(asked.log, head.id, head.at, asked.word("after"))
    return {"tasks": found}, {"tasks": found, "next": cursor}


def _of_kind(asked: Asked, head: RunMoment) -> tuple[dict[str, Any], dict[str, Any]]:
    kind = _KINDS[asked.path["tab"]]
    found = run_moment.entries_of_kind(asked.log, head.id, kind, until=head, limit=PAGE)
    return {"entries": found}, {"rows": [row_of(entry) for entry in found], "kind": kind}


_TAB = {"overview": _overview, "journal": _journal, "tasks": _tasks, "reasoning": _of_kind, "tools": _of_kind}
