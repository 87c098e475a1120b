"""Tabs of a run: timeline, dependencies, checks, spending, plan, states, files and forks; work items and the outcome."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from decklog import Run, Status
from decklog.core.display import counted, dollars
from decklog.core.errors import Invalid
from decklog.web.pages.charts import draw_line
from decklog.web.pages.entries import EntryRow
from decklog.web.pages.graph import build_nodes, draw_graph, item_of
from decklog.web.pages.timeline import TaskLabel, build_gantt
from decklog.web.rendering import segment
from decklog.web.site import SiteRequest

# A run now, or as of an entry


_ENDED = {"completed": Status.DONE, "failed": Status.FAILED, "cancelled": Status.CANCELLED}


STATES = ("pending", "running", "waiting", "paused", "blocked", "done", "abandoned")


@dataclass(frozen=True)
class RunMoment:
    """What the head of a run's page shows. `at` is the entry that it is as of; None means now."""

    id: str
    goal: str
    word: str
    seq: int
    newest: int
    at: int | None
    moment: datetime
    started_at: datetime
    ended_at: datetime | None
    repo: str | None
    branch: str | None
    parent: str | None
    parent_seq: int | None
    tasks: dict[str, int]
    workers: list[str]
    waiting: int
    cost: int
    calls: int
    unpriced: int
    summary: str | None = None
    working_on: list[dict[str, Any]] = field(default_factory=list)
    stalled_since: datetime | None = None

    @property
    def planned(self) -> int:
        return sum(count for state, count in self.tasks.items() if state != "abandoned")

    @property
    def stalled_tasks(self) -> set[str]:
        """The tasks whose lease has ended, which are shown as stalled."""
        return {task["task_id"] for task in self.working_on if task["lease_ended"]}

    def as_dict(self) -> dict[str, Any]:
        times = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in vars(self).items()}
        return times | {"planned": self.planned}


def build_moment(run_view: Any) -> RunMoment:
    """Build the head of a run's page from its run view."""
    return _now(run_view.overview) if run_view.is_now else _past(run_view)


def _now(shown: Any) -> RunMoment:
    return RunMoment(
        id=shown.id,
        goal=shown.goal,
        word=shown.status.value,
        seq=shown.entries,
        newest=shown.entries,
        at=None,
        moment=shown.last_at,
        started_at=shown.started_at,
        ended_at=shown.ended_at,
        repo=shown.repo,
        branch=shown.branch,
        parent=shown.parent_run_id,
        parent_seq=shown.parent_seq,
        tasks={state: shown.tasks[state] for state in STATES},
        workers=shown.agents,
        waiting=shown.waiting,
        cost=shown.cost_microdollars,
        calls=shown.calls,
        unpriced=shown.unpriced_calls,
        summary=shown.summary,
        working_on=shown.working_on,
        stalled_since=shown.stalled_since,
    )


def _past(run_view: Any) -> RunMoment:
    run, totals = Run.from_image(run_view.run), run_view.totals
    under_way = [one for one in run_view.lanes["attempts"] if one["outcome"] is None]
    return RunMoment(
        id=run_view.run_id,
        goal=run.goal,
        word=_word(run.status.value, run_view.waiting),
        seq=run_view.seq,
        newest=run_view.last,
        at=run_view.seq,
        moment=run_view.moment,
        started_at=run.started_at,
        ended_at=run.ended_at,
        repo=run.repo,
        branch=run.branch,
        parent=run.parent_run_id,
        parent_seq=run.parent_seq,
        tasks={state: totals[state] for state in STATES},
        workers=list(dict.fromkeys(one["worker"] for one in under_way)),
        waiting=run_view.waiting,
        cost=totals["cost_microdollars"],
        calls=totals["calls"],
        unpriced=totals["unpriced_calls"],
        summary=run.summary,
    )


def _word(state: str, waiting: int) -> str:
    """Return a run's status as of an entry. It had just been written, so the run was neither stalled nor idle."""
    if state in _ENDED:
        return _ENDED[state].value
    return (Status.NEEDS_ATTENTION if waiting else Status.PAUSED if state == "paused" else Status.RUNNING).value


STAGES = {"work": "work", "check": "check", "land": "landing"}


@dataclass(frozen=True)
class WorkItemRow:
    """One work item: the newest task of each stage, by role. `place` is its position in the merge queue."""

    name: str
    stages: dict[str, Any]
    rounds: int
    place: int | None
    # Why it is red: its blocker, or the finding of its newest check.
    trouble: str | None = None

    @property
    def is_landed(self) -> bool:
        return self.landing is not None and self.landing.state.value == "done"

    @property
    def landing(self) -> Any:
        return self.stages.get("land")


def items_of(tasks: list[Any], verdicts: Iterable[Any] = ()) -> list[WorkItemRow]:
    """Return the work items among a run's tasks: those in trouble first, then as planned, landed ones last."""
    found: dict[str, list[Any]] = {}
    for task in tasks:
        # Check the role first: it avoids parsing the tags of tasks that are no stage of a work item.
        tags = (task.tags or ()) if task.role in STAGES else ()
        name = next((tag.removeprefix("item:") for tag in tags if tag.startswith("item:")), None)
        if name is not None:
            found.setdefault(name, []).append(task)
    queue = _queue([task for of_item in found.values() for task in of_item])
    # Verdicts are newest first; only the newest of a task counts.
    newest: dict[str, Any] = {}
    for verdict in verdicts:
        newest.setdefault(verdict.task_id or "", verdict)
    items = [_item(name, of_item, queue, newest) for name, of_item in found.items()]
    return sorted(items, key=lambda item: (item.trouble is None, item.is_landed))


def _queue(tasks: list[Any]) -> list[str]:
    """Return the tasks that can land next, in the order of the merge queue."""
    ready = [one for one in tasks if one.role == "land" and one.state.value == "pending" and not one.open_dependencies]
    return [one.id for one in sorted(ready, key=lambda one: (-one.priority, one.created_at, one.id))]


def _item(name: str, tasks: list[Any], queue: list[str], verdicts: Mapping[str, Any]) -> WorkItemRow:
    stages = {task.role: task for task in sorted(tasks, key=lambda task: task.created_at)}
    landing = stages.get("land")
    place = queue.index(landing.id) + 1 if landing is not None and landing.id in queue else None
    return WorkItemRow(name, stages, sum(task.role == "work" for task in tasks), place, _trouble(stages.values(), verdicts))


def _trouble(stages: Iterable[Any], verdicts: Mapping[str, Any]) -> str | None:
    for task in stages:
        verdict = verdicts.get(task.id)
        if task.state.value == "blocked":
            return task.blocker or task.reason or "blocked"
        if verdict is not None and verdict.outcome.value in ("fail", "error") and task.state.value not in ("done", "abandoned"):
            return finding_of(verdict)
    return None


def finding_of(verdict: Any) -> str:
    """Return the first finding of a failed check."""
    first = verdict.findings[0] if verdict.findings else None
    text = first.get("text") if isinstance(first, dict) else first
    return f"{verdict.name}: {text}" if isinstance(text, str) else f"{verdict.name} failed"


Part = tuple[dict[str, Any], dict[str, Any]]
MOST_BARS, MOST_ITEMS, MOST_FIRST, POINTS, FORKS, MILESTONES = 200, 200, 50, 100, 50, 8
# Tasks as of an entry are read from their own entries, so fewer are loaded: twice the number shown.
MOST_FIRST_THEN = 24
_LONGEST_FILE = 200_000
MOST_NODES, ZOOMS = 300, (50, 75, 100, 150, 200)


def lanes(request: SiteRequest, head: RunMoment, run_view: Any) -> Part:
    moment = request.log.clock.now() if head.at is None else head.moment
    window = _time(request, "from"), _time(request, "to")
    gantt = build_gantt(run_view.lanes, moment, _labels(request, head, run_view.lanes), window)
    return {"lanes": run_view.lanes}, {"gantt": gantt, "is_zoomed": any(window)}


def _time(request: SiteRequest, name: str) -> datetime | None:
    """Parse a time of the address, such as 2026-11-18T14:00:00Z."""
    text = request.word(name)
    try:
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(f"{name} is {text!r}: write a time as 2026-11-18T14:00:00Z", field=name) from None


def _labels(request: SiteRequest, head: RunMoment, found: Mapping[str, Any]) -> dict[str, TaskLabel]:
    """Load the work item and the agent of each task with an attempt, and whether its lease has ended."""
    tasks = request.log.overview.labels(list({str(one["task_id"]) for one in found["attempts"]}))
    lost = head.stalled_tasks
    return {str(task["id"]): TaskLabel(item_of(task), _agent_of(task["work_result"]), task["id"] in lost) for task in tasks}


def _agent_of(result: str | None) -> str | None:
    found = json.loads(result) if result else None
    return str(found["agent"]) if isinstance(found, dict) and isinstance(found.get("agent"), str) else None


def graph(request: SiteRequest, head: RunMoment, _: Any) -> Part:
    tasks, links = request.log.overview.graph(head.id, most=MOST_NODES)
    nodes = build_nodes(tasks, links, head.id)
    drawn = draw_graph(nodes)
    zoom = request.number("zoom")
    shown = {"graph": drawn, "zoom": zoom if zoom in ZOOMS else 100, "zooms": ZOOMS, "is_cut": len(tasks) == MOST_NODES}
    return {"nodes": [node.as_dict() for node in nodes]}, shown


def checks(request: SiteRequest, head: RunMoment, run_view: Any) -> Part:
    found, reviews = run_view.records["verdicts"], run_view.records["reviews"]
    tasks = run_view.of_roles if head.at is None else run_view.tasks
    review_parts = {"verdicts": found, "reviews": reviews}
    names = _task_names(request, [*found, *reviews])
    return review_parts, {
        **review_parts,
        "names": names,
        "items": items_of(tasks, found),
        "older": run_view.older["verdicts"] or run_view.older["reviews"],
    }


def _task_names(request: SiteRequest, records: Iterable[Any]) -> dict[str, str]:
    ids = list({record.task_id for record in records if record.task_id})
    return request.log.overview.names(task_ids=ids) if ids else {}


def spend(_: SiteRequest, head: RunMoment, run_view: Any) -> Part:
    spent, charges = run_view.spent, run_view.records["charges"]
    budget = next((one for one in spent.budgets if one.unit == "microdollars" and one.scope == "run"), None)
    ceiling = budget.ceiling if budget else None
    shown = {
        "by": spent.by,
        "charges": charges,
        "budget": budget,
        "older": run_view.older["charges"],
    }
    return {"spent": spent, "charges": charges}, {**shown, "line": draw_line(spent.line, head.seq, head.cost, dollars, ceiling)}


def plan(_: SiteRequest, __: RunMoment, run_view: Any) -> Part:
    records = run_view.records
    by_number = {name: sorted(records[name], key=lambda one: one.number) for name in ("phases", "criteria")}
    made = records["plans"][0] if records["plans"] else None
    return {"plan": made, **by_number}, {"plan": made, **by_number}


def states(request: SiteRequest, head: RunMoment, run_view: Any) -> Part:
    versions, name, version = run_view.records["state_versions"], request.word("name"), request.number("version")
    opened = None
    if name and version:
        group = request.word("group") or "global"
        opened = {"name": name, "group": group, "version": version, "changes": _changes(request, head.id, name, group, version)}
    shown = {"versions": versions, "checkpoints": run_view.records["checkpoints"], "opened": opened}
    return {"versions": versions, "opened": opened}, {**shown, "older": run_view.older["state_versions"], "address": _address}


def _changes(request: SiteRequest, run_id: str, name: str, group: str, version: int) -> list[dict[str, Any]]:
    """List the changes of a version; for the first version, the whole document."""
    store: Any = request.log.states
    if version > 1:
        return list(store.diff(run_id, name, version - 1, version, group_id=group))
    return [{"path": "", "change": "added", "before": None, "after": store.get(run_id, name, group_id=group, version=1).document}]


def _address(run_id: str, one: Any, at: int | None) -> str:
    query = {"name": one.name, "group": one.group_id, "version": one.version} | ({} if at is None else {"at": at})
    return f"/runs/{run_id}/states?{urlencode(query)}"


def artifacts(request: SiteRequest, _: RunMoment, run_view: Any) -> Part:
    found, wanted = run_view.records["artifacts"], request.word("artifact")
    opened: Mapping[str, Any] | None = request.log.artifacts.content(wanted) if wanted else None
    if opened is not None and opened["encoding"] == "utf-8":
        text = str(opened["content"])
        opened = {**opened, "content": text[:_LONGEST_FILE], "rest": max(0, len(text) - _LONGEST_FILE)}
    shown = {"artifacts": found, "opened": opened}
    return shown, {**shown, "names": _task_names(request, found), "older": run_view.older["artifacts"]}


def forks(request: SiteRequest, head: RunMoment, _: Any) -> Part:
    found = request.log.runs.find(parent_run_id=head.id, limit=FORKS)
    # Their status is known only for the present.
    words = request.log.overview.words(run_ids=[one.id for one in found])["runs"] if found and head.at is None else {}
    return {"forks": found}, {"forks": found, "words": words, "is_cut": found.next is not None}


@dataclass(frozen=True)
class OutcomeLine:
    """An outcome: `shade` is fail, need, hold or done; `cause` may be empty; `link` leads to the cause."""

    shade: str
    title: str
    cause: str = ""
    link: str | None = None


def outcome_of(
    head: RunMoment, tasks: Sequence[Any], failures: Sequence[EntryRow], verdicts: Sequence[Any]
) -> OutcomeLine | None:
    """Return the line above a run's overview; None for a run that simply continues."""
    match head.word:
        case "failed":
            return OutcomeLine("fail", "Failed", *_cause(head, tasks, failures, verdicts))
        case "cancelled":
            return OutcomeLine("hold", "Cancelled", head.summary or "")
        case "done":
            return OutcomeLine("done", "Done", head.summary or "")
        case "needs attention":
            said = f"{counted(head.waiting, 'decision')} {'waits' if head.waiting == 1 else 'wait'}."
            return OutcomeLine("need", "Needs attention", said, "/inbox" if head.at is None else None)
        case "stalled":
            return OutcomeLine("fail", "Stalled", _silence(head))
        case "blocked" | "waiting" | "paused":
            return OutcomeLine("fail" if head.word == "blocked" else "hold", head.word.capitalize(), *_stop(head, tasks))
    return None


def _stop(head: RunMoment, tasks: Sequence[Any]) -> tuple[str, str | None]:
    """Return why a run can't continue: the first of its tasks with the run's status."""
    task = next((task for task in tasks if task.state.value == head.word), None)
    if task is None:
        return "", None
    return f"{task.title}: {task.blocker or task.reason or 'no reason given'}", f"/tasks/{segment(task.id)}"


def _cause(
    head: RunMoment, tasks: Sequence[Any], failures: Sequence[EntryRow], verdicts: Sequence[Any]
) -> tuple[str, str | None]:
    """Return why a run failed or can't continue: its summary, a task's blocker, or its newest failed check or attempt."""
    blocked = [task for task in tasks if task.state.value in ("blocked", "paused")]
    if head.ended_at is not None and head.summary:
        return head.summary, f"/tasks/{segment(blocked[0].id)}" if blocked else None
    if blocked:
        why = blocked[0].blocker or blocked[0].reason or blocked[0].state.value
        return f"{blocked[0].title}: {why}", f"/tasks/{segment(blocked[0].id)}"
    if verdicts and verdicts[0].outcome.value in ("fail", "error"):
        return finding_of(verdicts[0]), f"/runs/{segment(head.id)}/checks"
    if failures:
        return f"{failures[0].what} {failures[0].text}".strip(), f"/runs/{segment(head.id)}/entries/{failures[0].seq}"
    return "No cause is recorded.", f"/runs/{segment(head.id)}/journal"


def _silence(head: RunMoment) -> str:
    lost = next((task for task in head.working_on if task["lease_ended"]), None)
    return f"The lease of {lost['worker']} on “{lost['title']}” ended." if lost else "Nothing was written for longer than usual."
