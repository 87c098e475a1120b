"""The tabs of a run for its records: timeline, checks, money, plan, states, files and forks."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from decklog.core.errors import Invalid
from decklog.core.figures import dollars
from decklog.web.pages.charts.graph import draw_graph, item_of, nodes_of
from decklog.web.pages.charts.lanes import TaskLabel, gantt_of
from decklog.web.pages.charts.line import line_of
from decklog.web.pages.items import STAGES, items_of
from decklog.web.pages.run_moment import RunMoment
from decklog.web.rendering import NOTHING, age, name_of, text_of
from decklog.web.site import SiteRequest

Part = tuple[dict[str, Any], dict[str, Any]]
MOST_BARS, MOST_ITEMS, MOST_FIRST, POINTS, FORKS, MILESTONES = 200, 200, 50, 100, 50, 8
# Tasks as of an entry are read from their own entries, so fewer are loaded: twice the number shown.
MOST_FIRST_THEN = 24
# The parts of the run view that each tab needs.
SIZES: dict[str, dict[str, Any]] = {
    "lanes": {"lanes": MOST_BARS},
    "checks": {"records": ["verdicts", "reviews"], "roles": list(STAGES)},
    # Without the workers at that moment: the line and the calls are more useful for money.
    "spend": {"spent": POINTS, "records": ["charges"], "lanes": 0},
    "plan": {"records": ["plans", "phases", "criteria"]},
    "states": {"records": ["state_versions", "checkpoints"]},
    "artifacts": {"records": ["artifacts"]},
    "forks": {},
    "graph": {},
}
# Parts needed only as of an entry. The current state of tasks is read from their table at a third of the cost.
PAST_SIZES: dict[str, dict[str, Any]] = {
    "checks": {"tasks": MOST_ITEMS},
    "overview": {"tasks": MOST_FIRST_THEN, "milestones": MILESTONES, "records": ["verdicts"]},
}
_OVERVIEW = {"first_tasks": MOST_FIRST, "roles": list(STAGES), "milestones": MILESTONES, "records": ["verdicts"]}
NOW_SIZES: dict[str, dict[str, Any]] = {"overview": _OVERVIEW}
_LONGEST_FILE = 200_000
MOST_NODES, ZOOMS = 300, (50, 75, 100, 150, 200)


def lanes(asked: SiteRequest, head: RunMoment, picture: Any) -> Part:
    moment = asked.log.clock.now() if head.at is None else head.moment
    window = _time(asked, "from"), _time(asked, "to")
    gantt = gantt_of(picture.lanes, moment, _labels(asked, head), window)
    return {"lanes": picture.lanes}, {"gantt": gantt, "is_zoomed": any(window)}


def _time(asked: SiteRequest, name: str) -> datetime | None:
    """Parse a time of the address, such as 2026-11-18T14:00:00Z."""
    text = asked.word(name)
    try:
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(f"{name} is {text!r}: write a time as 2026-11-18T14:00:00Z", field=name) from None


def _labels(asked: SiteRequest, head: RunMoment) -> dict[str, TaskLabel]:
    """Load the work item and the agent of each task, and whether its lease has ended."""
    tasks, _ = asked.log.overview.graph(head.id, most=MOST_NODES)
    lost = head.stalled_tasks
    return {str(task["id"]): TaskLabel(item_of(task), _agent_of(task["work_result"]), task["id"] in lost) for task in tasks}


def _agent_of(result: str | None) -> str | None:
    found = json.loads(result) if result else None
    return str(found["agent"]) if isinstance(found, dict) and isinstance(found.get("agent"), str) else None


def graph(asked: SiteRequest, head: RunMoment, _: Any) -> Part:
    tasks, links = asked.log.overview.graph(head.id, most=MOST_NODES)
    nodes = nodes_of(tasks, links, head.id)
    drawn = draw_graph(nodes)
    zoom = asked.number("zoom")
    shown = {"graph": drawn, "zoom": zoom if zoom in ZOOMS else 100, "zooms": ZOOMS, "is_cut": len(tasks) == MOST_NODES}
    return {"nodes": [node.as_dict() for node in nodes]}, shown


def checks(asked: SiteRequest, head: RunMoment, picture: Any) -> Part:
    found, reviews = picture.records["verdicts"], picture.records["reviews"]
    tasks = picture.of_roles if head.at is None else picture.tasks
    told = {"verdicts": found, "reviews": reviews}
    names = _task_names(asked, [*found, *reviews])
    return told, {
        **told,
        "names": names,
        "items": items_of(tasks, found),
        "older": picture.older["verdicts"] or picture.older["reviews"],
    }


def _task_names(asked: SiteRequest, records: Iterable[Any]) -> dict[str, str]:
    ids = list({record.task_id for record in records if record.task_id})
    return asked.log.overview.names(task_ids=ids) if ids else {}


def spend(asked: SiteRequest, head: RunMoment, picture: Any) -> Part:
    spent, charges = picture.spent, picture.records["charges"]
    budget = next((one for one in spent.budgets if one.unit == "microdollars" and one.scope == "run"), None)
    ceiling = budget.ceiling if budget else None
    shown = {
        "by": spent.by,
        "charges": _charges(charges, asked.log.clock.now()),
        "budget": budget,
        "older": picture.older["charges"],
    }
    return {"spent": spent, "charges": charges}, {**shown, "line": line_of(spent.line, head.seq, head.cost, dollars, ceiling)}


def _charges(charges: Iterable[Any], now: datetime) -> Markup:
    """Render the rows of the table of calls without a template, as for runs."""
    return Markup("".join([_charge(one, now) for one in charges]))


def _charge(one: Any, now: datetime) -> str:
    cost, read = one.cost_microdollars, one.input_tokens + one.cache_read_tokens + one.cache_create_tokens
    return (
        f'<tr id="charge-{name_of(one.id)}" data-row><td>{text_of(one.model)}</td>'
        f"<td>{text_of(one.agent) if one.agent else NOTHING}</td>"
        f'<td class="n">{"unknown" if cost is None else dollars(cost)}</td><td class="n wide">{read:,}</td>'
        f'<td class="n wide">{one.output_tokens:,}</td><td class="n">{age(one.occurred_at, now)}</td></tr>'
    )


def plan(_: SiteRequest, __: RunMoment, picture: Any) -> Part:
    records = picture.records
    by_number = {name: sorted(records[name], key=lambda one: one.number) for name in ("phases", "criteria")}
    made = records["plans"][0] if records["plans"] else None
    return {"plan": made, **by_number}, {"plan": made, **by_number}


def states(asked: SiteRequest, head: RunMoment, picture: Any) -> Part:
    versions, name, version = picture.records["state_versions"], asked.word("name"), asked.number("version")
    opened = None
    if name and version:
        group = asked.word("group") or "global"
        opened = {"name": name, "group": group, "version": version, "changes": _changes(asked, head.id, name, group, version)}
    shown = {"versions": versions, "checkpoints": picture.records["checkpoints"], "opened": opened}
    return {"versions": versions, "opened": opened}, {**shown, "older": picture.older["state_versions"], "address": _address}


def _changes(asked: SiteRequest, run_id: str, name: str, group: str, version: int) -> list[dict[str, Any]]:
    """List the changes of a version; for the first version, the whole document."""
    store: Any = asked.log.states
    if version > 1:
        return list(store.diff(run_id, name, version - 1, version, group_id=group))
    return [{"path": "", "change": "added", "before": None, "after": store.get(run_id, name, group_id=group, version=1).document}]


def _address(run_id: str, one: Any, at: int | None) -> str:
    asked = {"name": one.name, "group": one.group_id, "version": one.version} | ({} if at is None else {"at": at})
    return f"/runs/{run_id}/states?{urlencode(asked)}"


def artifacts(asked: SiteRequest, _: RunMoment, picture: Any) -> Part:
    found, wanted = picture.records["artifacts"], asked.word("artifact")
    opened: Mapping[str, Any] | None = asked.log.artifacts.content(wanted) if wanted else None
    if opened is not None and opened["encoding"] == "utf-8":
        text = str(opened["content"])
        opened = {**opened, "content": text[:_LONGEST_FILE], "rest": max(0, len(text) - _LONGEST_FILE)}
    shown = {"artifacts": found, "opened": opened}
    return shown, {**shown, "names": _task_names(asked, found), "older": picture.older["artifacts"]}


def forks(asked: SiteRequest, head: RunMoment, _: Any) -> Part:
    found = asked.log.runs.find(parent_run_id=head.id, limit=FORKS)
    # Their status is known only for the present.
    words = asked.log.overview.words(run_ids=[one.id for one in found])["runs"] if found and head.at is None else {}
    return {"forks": found}, {"forks": found, "words": words, "is_cut": found.next is not None}


TABS = {
    "lanes": ("Timeline", lanes),
    "graph": ("Dependencies", graph),
    "checks": ("Checks", checks),
    "spend": ("Spend", spend),
    "plan": ("Plan", plan),
    "states": ("States", states),
    "artifacts": ("Files", artifacts),
    "forks": ("Forks", forks),
}
