"""Plans of work items: written in a file, proposed by an agent, or built from the tasks of a log."""

import json
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decklog.agents.texts import storable
from decklog.conductor.tables import build
from decklog.core.errors import Conflict, Invalid
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.tasks.task import Task, sort_by_dependencies

MOST_ITEMS = 500
MOST_PRIORITY = 100
LONGEST_GOAL = 10_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
# Control characters but for line breaks and tabs, and lone surrogates.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]")
_KEYS = ("name", "title", "objective", "paths", "needs", "acceptance", "priority", "agent", "model", "race")


@dataclass(frozen=True, kw_only=True)
class WorkItem:
    """One work item: its objective, allowed paths, and the items that must land first."""

    name: str
    title: str
    objective: str = ""
    paths: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    priority: int = 50
    # The first agent, instead of the first of [roles] worker, and its model.
    agent: str = ""
    model: str = ""
    # Agents that work on it at the same time; the first whose change passes the checks lands it.
    race: tuple[str, ...] = ()
    # The task that it was built from, which is finished when it lands.
    source: str = ""

    def as_table(self) -> dict[str, Any]:
        """Return a work item as it is written in a plan."""
        given = {key: list(value) if isinstance(value := getattr(self, key), tuple) else value for key in _KEYS}
        return {key: value for key, value in given.items() if value or key not in ("agent", "model", "race")}

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that it names."""
        return (*((self.agent,) if self.agent else ()), *self.race)


@dataclass(frozen=True)
class WorkPlan:
    """The goal and the work items of a run."""

    goal: str
    items: tuple[WorkItem, ...]


def parse(content: bytes, *, is_json: bool) -> WorkPlan:
    """Parse a plan, TOML or JSON. Raise Invalid for one that can't be executed."""
    try:
        text = content.decode()
        table = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"the plan is not {'JSON' if is_json else 'TOML'}: {problem}", hint="Fix it.") from problem
    if not isinstance(table, dict) or set(table) - {"goal", "items"}:
        raise Invalid("a plan must have only a goal and items", hint='goal = "…" and [[items]]', field="plan")
    # JSON may have lone surrogates, which no log can store.
    items = storable(table.get("items"))
    if not isinstance(items, list) or not 0 < len(items) <= MOST_ITEMS:
        raise Invalid(f"a plan has 1 to {MOST_ITEMS} items", hint="Write each as [[items]].", field="items")
    plan = WorkPlan(check_goal(table.get("goal")), tuple(_item(number, one) for number, one in enumerate(items, 1)))
    _check_needs(plan)
    return plan


def parse_stored(kept: object) -> WorkPlan:
    """Parse a stored plan."""
    return parse(json.dumps(kept).encode(), is_json=True)


def check_goal(goal: object) -> str:
    """Return a goal. Raise Invalid for an empty one, and for control characters."""
    if not isinstance(goal, str) or not goal.strip():
        raise Invalid("a plan needs a goal", hint='goal = "Teach the parser trailing commas"', field="goal")
    if len(goal) > LONGEST_GOAL or _CONTROL.search(goal):
        raise Invalid(f"a goal is text of at most {LONGEST_GOAL} characters without control characters", field="goal")
    return goal


def _item(number: int, table: Any) -> WorkItem:
    if not isinstance(table, dict):
        raise Invalid(f"item {number} is not a table", field="items")
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Invalid(f"item {number} needs a name of small letters, digits, - and _; got {name!r}", field="name")
    item = build(WorkItem, f"item {name}", {"title": name, **table}, source="")
    if not 0 <= item.priority <= MOST_PRIORITY:
        raise Invalid(f"priority of item {name} must be a whole number from 0 to {MOST_PRIORITY}", field="priority")
    if item.race and (item.agent or item.model or len(set(item.race)) < 2):
        raise Invalid(f"race of item {name} must name two agents or more, without agent and model", field="race")
    for path in item.paths:
        if path.startswith("/..") or ".." in path.split("/"):
            raise Invalid(f"item {name} names a path outside of the repository: {path}", field="paths")
    return item


def _check_needs(plan: WorkPlan) -> None:
    names = [item.name for item in plan.items]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Invalid(f"two items are called {twice[0]}", hint="Give each its own name.", field="name")
    for item in plan.items:
        for needed in item.needs:
            if needed not in names:
                raise Invalid(f"item {item.name} needs {needed}, which is not in the plan", field="needs")
    sort_by_dependencies([{"task_id": item.name, "depends_on": list(item.needs)} for item in plan.items])


# Proposals of agents


FILE = "decklog-plan.json"
MOST_PROPOSED = 40
LARGEST = 1024 * 1024
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]+")
_BLOCK = re.compile(r"\{.*\}", re.DOTALL)
_WILD = re.compile(r"[*?\[]")


def read_proposal(content: bytes | None, last_text: str, goal: str, taken: Collection[str] = ()) -> WorkPlan:
    """Parse a proposal: the file, or JSON in the agent's last text. The goal stays the person's.

    `taken` are the names of existing work items.
    """
    if content is not None and len(content) > LARGEST:
        raise Invalid(f"{FILE} is larger than {LARGEST} bytes", field="plan")
    found = _BLOCK.search(last_text) if content is None else None
    if content is None and found is None:
        raise Invalid(f"there is no plan: no file {FILE}, and no JSON in the last text", hint=f"Write {FILE}.", field="plan")
    text = found[0] if found is not None else (content or b"").decode(errors="replace")
    try:
        table: Any = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"the plan is not JSON: {problem}", field="plan") from problem
    if not isinstance(table, dict):
        raise Invalid("the plan is not a JSON object", hint='{"items": […]}', field="plan")
    proposed = parse(json.dumps({**table, "goal": goal}).encode(), is_json=True)
    if len(proposed.items) > MOST_PROPOSED:
        raise Invalid(f"the plan has {len(proposed.items)} items; at most {MOST_PROPOSED} can be proposed", field="items")
    if twice := sorted(item.name for item in proposed.items if item.name in taken):
        raise Invalid(f"there is an item {twice[0]} already", hint="Give each its own name.", field="name")
    return in_turn(proposed)


def in_turn(proposed: WorkPlan) -> WorkPlan:
    """Add dependencies between work items that may change the same paths and have no order yet."""
    done: list[WorkItem] = []
    for item in proposed.items:
        before = [
            other.name for other in done if _meet(item.paths, other.paths) and not _leads(item.name, other.name, proposed, done)
        ]
        done.append(replace(item, needs=tuple(dict.fromkeys((*item.needs, *before)))))
    return WorkPlan(proposed.goal, tuple(done))


def _leads(one: str, other: str, proposed: WorkPlan, done: Sequence[WorkItem]) -> bool:
    """Return whether one of two work items waits for the other, directly or through others."""
    needs: Mapping[str, tuple[str, ...]] = {
        **{item.name: item.needs for item in proposed.items},
        **{item.name: item.needs for item in done},
    }
    return other in _all_needs(one, needs) or one in _all_needs(other, needs)


def _all_needs(name: str, needs: Mapping[str, tuple[str, ...]]) -> set[str]:
    found: set[str] = set()
    left = list(needs.get(name, ()))
    while left:
        if (one := left.pop()) not in found:
            found.add(one)
            left += needs.get(one, ())
    return found


def _meet(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether two lists of patterns may match the same path, judged by the parts before their first wildcards."""
    if not some or not others:
        return False
    heads = [[_WILD.split(path.lstrip("/"), 1)[0] for path in paths] for paths in (some, others)]
    return any(one.startswith(other) or other.startswith(one) for one in heads[0] for other in heads[1])


def as_json(proposed: WorkPlan) -> dict[str, Any]:
    """Return a plan as it is stored and shown."""
    return {"goal": proposed.goal, "items": [item.as_table() for item in proposed.items]}


# From tasks


def plan_from_tasks(log: Decklog, run_id: str, is_wanted: Callable[[Task], bool] = lambda _: True) -> WorkPlan:
    """Build a plan from the wanted open tasks of a run and the open tasks that they depend on.

    A task with subtasks is not a work item: it is done with its last subtask, and its dependents wait for all subtasks.
    """
    run = log.runs.get(run_id)
    still_open = [task for task in find_all(log.tasks.find, run_id) if task.state.value in ("pending", "blocked")]
    links = _Links(log, run_id, {task.id for task in still_open})
    chosen = links.closure([task.id for task in still_open if is_wanted(task)])
    tasks = [task for task in still_open if task.id not in links.parts and task.id in chosen]
    if not tasks:
        raise Conflict(f"run {run_id} has no open task", hint=f"See: decklog tasks find {run_id}")
    if len(tasks) > MOST_ITEMS:
        raise Conflict(f"run {run_id} has {len(tasks)} tasks to be done; a plan has at most {MOST_ITEMS}")
    names = _item_names([task.id for task in tasks])
    items = tuple(
        WorkItem(
            name=names[task.id],
            title=task.title,
            objective=task.objective,
            paths=tuple(task.allowed_paths),
            needs=tuple(names[needed] for needed in links.needs(task.id)),
            acceptance=tuple(task.acceptance),
            priority=task.priority,
            source=task.id,
        )
        for task in tasks
    )
    return WorkPlan(run.goal[:LONGEST_GOAL], items)


class _Links:
    """The dependencies and subtasks of the open tasks of a run."""

    def __init__(self, log: Decklog, run_id: str, still_open: set[str]) -> None:
        self._waits: dict[str, list[str]] = {}
        self._wholes: dict[str, list[str]] = {}
        self.parts: dict[str, list[str]] = {}
        for link in log.runs.snapshot(run_id).records.get("dependencies", []):
            one: Any = link
            if one.task_id not in still_open or one.depends_on not in still_open:
                continue
            if one.kind == "blocks":
                self._waits.setdefault(one.task_id, []).append(one.depends_on)
            elif one.kind == "parent":
                self.parts.setdefault(one.depends_on, []).append(one.task_id)
                self._wholes.setdefault(one.task_id, []).append(one.depends_on)

    def needs(self, task_id: str) -> list[str]:
        """List the tasks without subtasks that a task depends on, directly or through a parent."""
        own, left = [], [task_id]
        while left:
            one = left.pop()
            own += [leaf for needed in self._waits.get(one, ()) for leaf in self._leaves(needed)]
            left += self._wholes.get(one, ())
        return list(dict.fromkeys(own))

    def closure(self, task_ids: list[str]) -> set[str]:
        """Return the subtasks of some tasks, and all tasks that they depend on."""
        found: set[str] = set()
        left = [leaf for task_id in task_ids for leaf in self._leaves(task_id)]
        while left:
            if (one := left.pop()) not in found:
                found.add(one)
                left += self.needs(one)
        return found

    def _leaves(self, task_id: str) -> list[str]:
        if task_id not in self.parts:
            return [task_id]
        return [leaf for part in self.parts[task_id] for leaf in self._leaves(part)]


def _item_names(task_ids: list[str]) -> dict[str, str]:
    """Return a unique work item name for each task."""
    found: dict[str, str] = {}
    for task_id in task_ids:
        plain = _NOT_IN_NAMES.sub("-", task_id.lower()).strip("-_")[:50] or "item"
        name, number = plain, 2
        while name in found.values():
            name, number = f"{plain}-{number}", number + 1
        found[task_id] = name
    return found
