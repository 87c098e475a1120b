"""Run: what happened, who did it, and the run's state at any entry."""

from dataclasses import dataclass
from typing import Any

from decklog.core.errors import NotFound
from decklog.web.pages import run_parts
from decklog.web.pages.charts import STEPS, strip_of
from decklog.web.pages.entries import EntryRow, ShownCall, call_of, entries_between, folded, paired, row_of
from decklog.web.pages.run_parts import RunMoment, items_of, moment_of, outcome_of
from decklog.web.site import PageView, SiteRequest, command

_FIRST = {"overview": "Overview", "journal": "Journal", "tasks": "Tasks", "reasoning": "Reasoning", "tools": "Tools"}
TABS = {**_FIRST, **{name: title for name, (title, _) in run_parts.TABS.items()}}
# The tabs, and the pages that share one.
BAR = {
    "overview": "Overview",
    "journal": "Journal",
    "tasks": "Tasks",
    "lanes": "Timeline",
    "checks": "Checks",
    "spend": "Spend",
    "plan": "Plan",
    "artifacts": "Files",
    "forks": "Forks",
}
PARTS: dict[str, dict[str, str]] = {
    "tasks": {"tasks": "tasks", "graph": "dependencies"},
    "journal": {"journal": "all", "reasoning": "reasoning", "tools": "tool calls"},
    "artifacts": {"artifacts": "files", "states": "state documents"},
}
_KINDS = {"reasoning": "reasoning", "tools": "tool"}
# Task states that are listed first, and how many of these tasks are shown.
_URGENT, _MOST_URGENT = ("running", "blocked", "waiting", "paused"), 30
_ORDER = ("running", "blocked", "waiting", "paused", "pending", "done", "abandoned")
# Entries on the overview, and on a page of the journal.
TAIL, PAGE = 40, 50
TASKS, CARDS, LANES, _FIRST_TASKS = 50, 30, 40, 12
COLUMNS = {"to_do": "To do", "doing": "Doing", "blocked_or_paused": "Blocked or paused", "over": "Done"}
# Open pages append new entries to these tabs.
_FOLLOWED = ("overview", "journal")
# Above the first number of new entries only the newest are sent, because a page keeps only that number of rows.
MOST_NEW, NEWEST = 300, 200
# Usually there are fewer new entries than this, so they are loaded with the first query.
_FEW_NEW = 5


def read(asked: SiteRequest) -> PageView:
    """Load one tab of a run, now or as of an entry."""
    run_id, tab, at = asked.path["run_id"], asked.path["tab"], asked.number("at")
    sizes = _sizes(asked, tab, at)
    places: dict[str, Any] = {"before": asked.number("before"), "kind": _KINDS.get(tab), "after": asked.word("after")}
    # Other tabs need only the workers at the shown moment, for the head.
    since = asked.number("since") if tab == "lanes" else at
    moments: dict[str, Any] = {"at": None if at is None else str(at), "since": None if since is None else str(since)}
    picture = asked.log.overview.run_view(run_id, **moments, **sizes, **places)
    head = moment_of(picture)
    data, shown = _TAB[tab](asked, head, picture)
    shown |= {"run": head, "tab": tab, "strip": strip_of(picture.activity), "last_at": head.moment}
    counts = asked.log.overview.contents(run_id)
    # The shown status may be an open question, which differs from the recorded status.
    shown["recorded"] = counts["status"]
    shown |= {
        "is_conducted": bool(counts["is_conducted"]),
        "tabs": _tabs(tab, head, picture, counts),
        "tab_parts": PARTS.get(_group(tab), {}),
    }
    shown["parent_names"] = asked.log.overview.names(run_ids=[head.parent]) if head.parent else {}
    shown["as_of"] = "" if head.at is None else f"?at={head.at}"
    said = command(*_COMMANDS[tab], run_id) if at is None else command("runs", "snapshot", run_id, "--at", at)
    title = f"{head.goal}{'' if tab == 'overview' else ' · ' + TABS[tab]}{'' if at is None else f' · as of {at}'}"
    data = {"run": head, **data}
    return PageView("run.html", title, said, data, shown, shown.get("next"), "runs", decisions=picture.decisions)


@dataclass(frozen=True)
class TabLink:
    """A tab link: `count` is None if unknown, as for an earlier entry."""

    name: str
    title: str
    count: int | None
    is_current: bool


def _group(tab: str) -> str:
    """Return the tab that a page of a run belongs to."""
    return next((group for group, parts in PARTS.items() if tab in parts), tab)


def _tabs(tab: str, head: RunMoment, picture: Any, counts: dict[str, Any]) -> list[TabLink]:
    """Build the tab bar, with the number of items in each tab."""
    known = {"journal": head.seq, "tasks": sum(head.tasks.values()), "lanes": picture.totals["attempts"], "spend": head.calls}
    if head.at is None:
        known |= {"checks": counts["checks"] + counts["reviews"], "plan": counts["criteria"] + counts["phases"]}
        known |= {"artifacts": counts["artifacts"] + counts["states"], "forks": counts["forks"]}
    return [TabLink(name, title, known.get(name), name == _group(tab)) for name, title in BAR.items()]


def _sizes(asked: SiteRequest, tab: str, at: int | None) -> dict[str, Any]:
    """Return how much of each part of the run view a tab needs."""
    asked_for = _SIZES[tab] if tab != "tasks" or _is_table(asked) else {"board": CARDS}
    if asked.is_part and tab in _FOLLOWED:
        asked_for = {}
    past = {"lanes": LANES, **run_parts.PAST_SIZES.get(tab, {})}
    of_moment = run_parts.NOW_SIZES.get(tab, {}) if at is None else past
    return {"entries": 0, "tasks": 0, "buckets": STEPS, "lanes": 0, **of_moment, **asked_for}


def rows(asked: SiteRequest) -> PageView:
    """Load the entries after the last one that a page has, as rows to append."""
    run_id, after = asked.path["run_id"], asked.number("after") or 0
    last = asked.log.journal.find(run_id, limit=_FEW_NEW)
    if not last:
        raise NotFound(f"there is no run {run_id!r}", table="runs", id=run_id)
    newest = last[0].seq
    is_far = newest - after > MOST_NEW
    start = newest - NEWEST if is_far else after
    if last[-1].seq <= start + 1:
        found = [entry for entry in reversed(last) if entry.seq > start]
    else:
        found = entries_between(asked.log, run_id, after=start, until=newest)
    left_out = newest - NEWEST - after if is_far else 0
    shown = {"entries": folded(found), "left_out": left_out, "after": after, "run_id": run_id}
    return PageView("rows.html", "Entries", command("journal", "tail", run_id), found, shown, decisions=0)


def _overview(_: SiteRequest, head: RunMoment, picture: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    tasks = sorted(picture.first_tasks if head.at is None else picture.tasks, key=lambda task: _ORDER.index(task.state.value))
    items = items_of(picture.of_roles if head.at is None else picture.tasks, picture.records["verdicts"])
    data = {"tasks": tasks, "entries": picture.entries[::-1], "milestones": picture.milestones}
    # Unfinished tasks that run, wait or are blocked are shown even above the limit.
    urgent = sum(task.state.value in _URGENT for task in tasks)
    shown = tasks[: max(_FIRST_TASKS, min(urgent, _MOST_URGENT))]
    milestones = [(what, row_of(entry)) for what, entry in picture.milestones]
    return data, {
        "tasks": shown,
        "more_tasks": max(0, sum(head.tasks.values()) - len(shown)),
        "entries": folded(data["entries"], picture.texts),
        "items": items,
        "milestones": milestones,
        "outcome": outcome_of(head, tasks, [row for what, row in milestones if what == "failure"], picture.records["verdicts"]),
        "asks": picture.asks,
    }


def _journal(_: SiteRequest, head: RunMoment, picture: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    found = picture.entries[::-1]
    first, last = (found[0].seq, found[-1].seq) if found else (1, 0)
    shown = {"entries": folded(found, picture.texts), "older": first if first > 1 else None}
    return {"entries": found}, {**shown, "is_last": last == head.newest, "last": last}


def _is_table(asked: SiteRequest) -> bool:
    """Return whether tasks are shown as a table; the board shows the current state only."""
    return asked.word("as") == "table" or asked.word("after") is not None or asked.number("at") is not None


def _tasks(asked: SiteRequest, _: RunMoment, picture: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    shown = {"found_tasks": picture.tasks, "next": picture.next_tasks, "board": picture.board, "is_table": _is_table(asked)}
    return {"tasks": picture.tasks, "board": picture.board}, {**shown, "columns": COLUMNS}


def _of_kind(asked: SiteRequest, _: RunMoment, picture: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    found = picture.entries
    older = found[-1].seq if len(found) == PAGE else None
    shown: dict[str, Any] = {"kind": _KINDS[asked.path["tab"]], "older": older, "calls": None}
    if asked.path["tab"] == "tools":
        shown["calls"] = _calls(found, picture.texts)
    rows = [row_of(entry, picture.texts) for entry in found]
    return {"entries": found}, {**shown, "entries": [(False, rows)] if rows else []}


def _calls(entries: list[Any], texts: dict[str, Any]) -> list[tuple[EntryRow, ShownCall | None]]:
    """Return the rows of the tool call table, each with its call; other entries show their text."""
    calls = {entry.seq: call for entry, call in paired(entries)}
    results = {entry.seq for entry in entries if (call := call_of(entry)) and call.is_result and entry.seq not in calls}
    return [(row_of(entry, texts), calls.get(entry.seq)) for entry in entries if entry.seq not in results]


_SIZES: dict[str, dict[str, Any]] = {
    **run_parts.SIZES,
    "overview": {"entries": TAIL},
    "journal": {"entries": PAGE},
    "tasks": {"tasks": TASKS},
    "reasoning": {"entries": PAGE},
    "tools": {"entries": PAGE},
}
# The equivalent terminal command, without the run id.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "overview": ("runs", "show"),
    "journal": ("journal", "find"),
    "tasks": ("overview", "board"),
    "reasoning": ("journal", "find", "--kind", "reasoning"),
    "tools": ("journal", "find", "--kind", "tool"),
    "lanes": ("runs", "lanes"),
    "graph": ("tasks", "ready"),
    "checks": ("verdicts", "find"),
    "spend": ("ledger", "find"),
    "plan": ("plans", "show"),
    "states": ("states", "find"),
    "artifacts": ("artifacts", "find"),
    "forks": ("runs", "find", "--parent-run"),
}
_TAB = {name: read_it for name, (_, read_it) in run_parts.TABS.items()} | {
    "overview": _overview,
    "journal": _journal,
    "tasks": _tasks,
    "reasoning": _of_kind,
    "tools": _of_kind,
}
