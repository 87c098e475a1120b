"""The page of a run with its tabs, now or as of any entry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from decklog.core.errors import NotFound
from decklog.web.pages import run_parts
from decklog.web.pages.charts import STEPS, draw_strip
from decklog.web.pages.entries import EntryRow, ShownCall, build_row, entries_between, fold_entries, pair_calls, parse_call
from decklog.web.pages.run_parts import Part, RunMoment, build_moment, items_of, outcome_of
from decklog.web.site import PageView, SiteRequest, command

_KINDS = {"reasoning": "reasoning", "tools": "tool"}
# Task states that are listed first, and how many of these tasks are shown.
_URGENT, _MOST_URGENT = ("running", "blocked", "waiting", "paused"), 30
_ORDER = ("running", "blocked", "waiting", "paused", "pending", "done", "abandoned")
# Entries on the overview, and on a page of the journal.
TAIL, PAGE = 40, 50
TASKS, CARDS, LANES, _FIRST_TASKS = 50, 30, 40, 12
COLUMNS = {"to_do": "To do", "doing": "Doing", "blocked_or_paused": "Blocked or paused", "over": "Done"}
# Above the first number of new entries only the newest are sent, because a page keeps only that number of rows.
MOST_NEW, NEWEST = 300, 200


def read(request: SiteRequest) -> PageView:
    """Load one tab of a run, now or as of an entry."""
    run_id, tab, at = request.path["run_id"], request.path["tab"], request.number("at")
    sizes = _sizes(request, tab, at)
    places: dict[str, Any] = {"before": request.number("before"), "kind": _KINDS.get(tab), "after": request.word("after")}
    # Other tabs need only the workers at the shown moment, for the head.
    since = request.number("since") if tab == "lanes" else at
    moments: dict[str, Any] = {"at": None if at is None else str(at), "since": None if since is None else str(since)}
    run_view = request.log.overview.run_view(run_id, **moments, **sizes, **places)
    head = build_moment(run_view)
    data, shown = TABS[tab].read(request, head, run_view)
    shown |= {"run": head, "tab": tab, "strip": draw_strip(run_view.activity), "last_at": head.moment}
    counts = request.log.overview.contents(run_id)
    # The shown status may be an open question, which differs from the recorded status.
    shown["recorded"] = counts["status"]
    shown |= {
        "is_conducted": bool(counts["is_conducted"]),
        "tabs": _tabs(tab, head, run_view, counts),
        "tab_parts": {name: one.label for name, one in TABS.items() if one.label and _group(name) == _group(tab)},
    }
    shown["parent_names"] = request.log.overview.names(run_ids=[head.parent]) if head.parent else {}
    shown["as_of"] = "" if head.at is None else f"?at={head.at}"
    shell_line = command(*TABS[tab].command, run_id) if at is None else command("runs", "snapshot", run_id, "--at", at)
    title = f"{head.goal}{'' if tab == 'overview' else ' · ' + TABS[tab].title}{'' if at is None else f' · as of {at}'}"
    data = {"run": head, **data}
    return PageView("run.html", title, shell_line, data, shown, shown.get("next"), "runs", decisions=run_view.decisions)


@dataclass(frozen=True)
class Tab:
    """A tab of a run. Those with a `group` are shown within the tab of that name, which lists them by their labels.

    `sizes` is how much of each part of the run view it needs, with `now` or `past` in addition.
    """

    title: str
    command: tuple[str, ...]
    read: Callable[[SiteRequest, RunMoment, Any], Part]
    sizes: Mapping[str, Any]
    now: Mapping[str, Any] = field(default_factory=dict)
    past: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    label: str = ""


@dataclass(frozen=True)
class TabLink:
    """A tab link: `count` is None if unknown, as for an earlier entry."""

    name: str
    title: str
    count: int | None
    is_current: bool


def _group(tab: str) -> str:
    """Return the name in the tab bar of a tab."""
    return TABS[tab].group or tab


def _tabs(tab: str, head: RunMoment, run_view: Any, counts: dict[str, Any]) -> list[TabLink]:
    """Build the tab bar, with the number of items in each tab."""
    known = {"journal": head.seq, "tasks": sum(head.tasks.values()), "lanes": run_view.totals["attempts"], "spend": head.calls}
    if head.at is None:
        known |= {"checks": counts["checks"] + counts["reviews"], "plan": counts["criteria"] + counts["phases"]}
        known |= {"artifacts": counts["artifacts"] + counts["states"], "forks": counts["forks"]}
    return [TabLink(name, title, known.get(name), name == _group(tab)) for name, title in BAR.items()]


def _sizes(request: SiteRequest, tab: str, at: int | None) -> dict[str, Any]:
    """Return how much of each part of the run view a tab needs."""
    sizes = TABS[tab].sizes if tab != "tasks" or _is_table(request) else {"board": CARDS}
    of_moment = TABS[tab].now if at is None else {"lanes": LANES, **TABS[tab].past}
    return {"entries": 0, "tasks": 0, "buckets": STEPS, "lanes": 0, **of_moment, **sizes}


def rows(request: SiteRequest) -> PageView:
    """Load the entries after the last one that a page has, as rows to append."""
    run_id, after = request.path["run_id"], request.number("after") or 0
    last = request.log.journal.find(run_id, limit=1)
    if not last:
        raise NotFound(f"there is no run {run_id!r}", table="runs", id=run_id)
    newest = last[0].seq
    is_far = newest - after > MOST_NEW
    start = newest - NEWEST if is_far else after
    found = entries_between(request.log, run_id, after=start, until=newest)
    left_out = newest - NEWEST - after if is_far else 0
    shown = {"entries": fold_entries(found), "left_out": left_out, "after": after, "run_id": run_id}
    return PageView("rows.html", "Entries", command("journal", "tail", run_id), found, shown, decisions=0)


def _overview(_: SiteRequest, head: RunMoment, run_view: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    tasks = sorted(run_view.first_tasks if head.at is None else run_view.tasks, key=lambda task: _ORDER.index(task.state.value))
    items = items_of(run_view.of_roles if head.at is None else run_view.tasks, run_view.records["verdicts"])
    data = {"tasks": tasks, "entries": run_view.entries[::-1], "milestones": run_view.milestones}
    # Unfinished tasks that run, wait or are blocked are shown even above the limit.
    urgent = sum(task.state.value in _URGENT for task in tasks)
    shown = tasks[: max(_FIRST_TASKS, min(urgent, _MOST_URGENT))]
    milestones = [(what, build_row(entry)) for what, entry in run_view.milestones]
    return data, {
        "tasks": shown,
        "more_tasks": max(0, sum(head.tasks.values()) - len(shown)),
        "entries": fold_entries(data["entries"], run_view.texts),
        "items": items,
        "milestones": milestones,
        "outcome": outcome_of(head, tasks, [row for what, row in milestones if what == "failure"], run_view.records["verdicts"]),
        "asks": run_view.asks,
    }


def _journal(_: SiteRequest, head: RunMoment, run_view: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    found = run_view.entries[::-1]
    first, last = (found[0].seq, found[-1].seq) if found else (1, 0)
    shown = {"entries": fold_entries(found, run_view.texts), "older": first if first > 1 else None}
    return {"entries": found}, {**shown, "is_last": last == head.newest, "last": last}


def _is_table(request: SiteRequest) -> bool:
    """Return whether tasks are shown as a table; the board shows the current state only."""
    return request.word("as") == "table" or request.word("after") is not None or request.number("at") is not None


def _tasks(request: SiteRequest, _: RunMoment, run_view: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    shown = {"found_tasks": run_view.tasks, "next": run_view.next_tasks, "board": run_view.board, "is_table": _is_table(request)}
    return {"tasks": run_view.tasks, "board": run_view.board}, {**shown, "columns": COLUMNS}


def _of_kind(request: SiteRequest, _: RunMoment, run_view: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    found = run_view.entries
    older = found[-1].seq if len(found) == PAGE else None
    shown: dict[str, Any] = {"kind": _KINDS[request.path["tab"]], "older": older, "calls": None}
    if request.path["tab"] == "tools":
        shown["calls"] = _calls(found, run_view.texts)
    rows = [build_row(entry, run_view.texts) for entry in found]
    return {"entries": found}, {**shown, "entries": [(False, rows)] if rows else []}


def _calls(entries: list[Any], texts: dict[str, Any]) -> list[tuple[EntryRow, ShownCall | None]]:
    """Return the rows of the tool call table, each with its call; other entries show their text."""
    calls = {entry.seq: call for entry, call in pair_calls(entries)}
    results = {entry.seq for entry in entries if (call := parse_call(entry)) and call.is_result and entry.seq not in calls}
    return [(build_row(entry, texts), calls.get(entry.seq)) for entry in entries if entry.seq not in results]


_FIRST_VERDICTS = {"milestones": run_parts.MILESTONES, "records": ["verdicts"]}
_STAGES = list(run_parts.STAGES)
TABS = {
    "overview": Tab(
        "Overview",
        ("runs", "show"),
        _overview,
        {"entries": TAIL},
        now={"first_tasks": run_parts.MOST_FIRST, "roles": _STAGES, **_FIRST_VERDICTS},
        past={"tasks": run_parts.MOST_FIRST_THEN, **_FIRST_VERDICTS},
    ),
    "journal": Tab("Journal", ("journal", "find"), _journal, {"entries": PAGE}, label="all"),
    "reasoning": Tab(
        "Reasoning",
        ("journal", "find", "--kind", "reasoning"),
        _of_kind,
        {"entries": PAGE},
        group="journal",
        label="reasoning",
    ),
    "tools": Tab(
        "Tools", ("journal", "find", "--kind", "tool"), _of_kind, {"entries": PAGE}, group="journal", label="tool calls"
    ),
    "tasks": Tab("Tasks", ("overview", "board"), _tasks, {"tasks": TASKS}, label="tasks"),
    "graph": Tab("Dependencies", ("tasks", "ready"), run_parts.graph, {}, group="tasks", label="dependencies"),
    "lanes": Tab("Timeline", ("runs", "lanes"), run_parts.lanes, {"lanes": run_parts.MOST_BARS}),
    "checks": Tab(
        "Checks",
        ("verdicts", "find"),
        run_parts.checks,
        {"records": ["verdicts", "reviews"], "roles": _STAGES},
        # The current state of tasks is read from their table at a third of the cost.
        past={"tasks": run_parts.MOST_ITEMS},
    ),
    # Without the workers at that moment: the line and the calls are more useful for money.
    "spend": Tab("Spend", ("ledger", "find"), run_parts.spend, {"spent": run_parts.POINTS, "records": ["charges"], "lanes": 0}),
    "plan": Tab("Plan", ("plans", "show"), run_parts.plan, {"records": ["plans", "phases", "criteria"]}),
    "artifacts": Tab("Files", ("artifacts", "find"), run_parts.artifacts, {"records": ["artifacts"]}, label="files"),
    "states": Tab(
        "States",
        ("states", "find"),
        run_parts.states,
        {"records": ["state_versions", "checkpoints"]},
        group="artifacts",
        label="state documents",
    ),
    "forks": Tab("Forks", ("runs", "find", "--parent-run"), run_parts.forks, {}),
}
# The tab bar.
BAR = {name: tab.title for name, tab in TABS.items() if not tab.group}
