"""A plan as a person writes it: a goal, and work items with their dependencies."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decklog.agents.texts import storable
from decklog.core.errors import Invalid
from decklog.stores.tasks.task import in_order

MOST_ITEMS = 500
MOST_PRIORITY = 100
LONGEST_GOAL = 10_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_KEYS = ("name", "title", "objective", "paths", "needs", "acceptance", "priority", "agent", "model", "race")


@dataclass(frozen=True, kw_only=True)
class WorkItem:
    """One work item: what to do, where, and after which others."""

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
    # The task of the log that it was made of, which is finished when this lands.
    source: str = ""

    def as_given(self) -> dict[str, Any]:
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
    """Parse a plan, TOML or JSON. Raise Invalid for one that could not be worked on."""
    try:
        text = content.decode()
        table = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"the plan is not {'JSON' if is_json else 'TOML'}: {problem}", hint="Fix it.") from problem
    if not isinstance(table, dict) or set(table) - {"goal", "items"}:
        raise Invalid("a plan has a goal and items, and nothing else", hint='goal = "…" and [[items]]', field="plan")
    # JSON may have lone surrogates, which no log can store.
    items = storable(table.get("items"))
    if not isinstance(items, list) or not 0 < len(items) <= MOST_ITEMS:
        raise Invalid(f"a plan has 1 to {MOST_ITEMS} items", hint="Write each as [[items]].", field="items")
    plan = WorkPlan(checked_goal(table.get("goal")), tuple(_item(number, one) for number, one in enumerate(items, 1)))
    _check_needs(plan)
    return plan


def read_back(kept: object) -> WorkPlan:
    """Parse a stored plan."""
    return parse(json.dumps(kept).encode(), is_json=True)


def checked_goal(goal: object) -> str:
    """Return a goal. Raise Invalid for an empty one, and for control characters."""
    if not isinstance(goal, str) or not goal.strip():
        raise Invalid("a plan needs a goal", hint='goal = "Teach the parser trailing commas"', field="goal")
    if len(goal) > LONGEST_GOAL or any(_is_control(letter) for letter in goal):
        raise Invalid(f"a goal is text of at most {LONGEST_GOAL} characters without control characters", field="goal")
    return goal


def _is_control(letter: str) -> bool:
    return (ord(letter) < 32 and letter not in "\n\t") or 0xD800 <= ord(letter) <= 0xDFFF


def _item(number: int, table: Any) -> WorkItem:
    if not isinstance(table, dict):
        raise Invalid(f"item {number} is no table", field="items")
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise Invalid(f"item {number} has no {unknown[0]!r}", hint=f"There are {', '.join(_KEYS)}.", field=unknown[0])
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Invalid(f"item {number} needs a name of small letters, digits, - and _; got {name!r}", field="name")
    for key in ("paths", "needs", "acceptance", "race"):
        if not isinstance(table.get(key, []), list) or not all(isinstance(one, str) for one in table.get(key, [])):
            raise Invalid(f"{key} of item {name} is a list of texts", field=key)
    for key in ("title", "objective", "agent", "model"):
        if not isinstance(table.get(key, ""), str):
            raise Invalid(f"{key} of item {name} is a text", field=key)
    if type(table.get("priority", 50)) is not int or not 0 <= table.get("priority", 50) <= MOST_PRIORITY:
        raise Invalid(f"priority of item {name} is a whole number from 0 to {MOST_PRIORITY}", field="priority")
    if table.get("race") and (table.get("agent") or table.get("model") or len(set(table["race"])) < 2):
        raise Invalid(f"race of item {name} names two agents or more, and excludes agent and model", field="race")
    for path in table.get("paths", []):
        if path.startswith("/..") or ".." in path.split("/"):
            raise Invalid(f"item {name} names a path outside of the repository: {path}", field="paths")
    given: Mapping[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return WorkItem(**{"title": name, **given})


def _check_needs(plan: WorkPlan) -> None:
    names = [item.name for item in plan.items]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Invalid(f"two items are called {twice[0]}", hint="Give each its own name.", field="name")
    for item in plan.items:
        for needed in item.needs:
            if needed not in names:
                raise Invalid(f"item {item.name} needs {needed}, which is no item of the plan", field="needs")
    in_order([{"task_id": item.name, "depends_on": list(item.needs)} for item in plan.items])
