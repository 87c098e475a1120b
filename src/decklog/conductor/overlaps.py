"""Find work items whose open changes conflict, by trial merges, and report each overlap to both items."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from decklog.conductor.context import RunContext
from decklog.conductor.git.changes import list_changes
from decklog.conductor.stages import CHECK, LAND, WORK, all_tasks, item_name
from decklog.core.errors import Conflict, DecklogError, Unavailable
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.tasks.task import Task

SUBTYPE = "conductor.overlap"
# How often the workspaces of running agents are searched. Saved changes are searched at once.
WORKSPACE_SECONDS = 30.0
_SHOWN = 10
_PAGE = 200
_OPEN_STATES = ("pending", "running", "waiting")


@dataclass(frozen=True)
class Overlap:
    """Two work items whose changes conflict, and the paths with conflicts."""

    items: tuple[str, str]
    paths: tuple[str, ...]

    def other(self, item: str) -> str | None:
        """Return the other one of the two; None if the item is neither."""
        if item not in self.items:
            return None
        return self.items[1] if item == self.items[0] else self.items[0]

    def describe_to(self, item: str) -> str:
        """Describe the overlap to one of the two."""
        return f"{self.other(item)} in {', '.join(self.paths)}"


def find(log: Decklog, run_id: str) -> list[Overlap]:
    """List the recorded overlaps of a run, newest first, each pair once."""
    found: dict[tuple[str, str], Overlap] = {}
    for entry in log.journal.find(run_id, subtype=SUBTYPE, limit=_PAGE):
        payload: Any = entry.payload
        items = (str(payload["items"][0]), str(payload["items"][1]))
        found.setdefault(items, Overlap(items, tuple(payload["paths"])))
    return list(found.values())


def describe_open(overlaps: Sequence[Overlap], item: str, is_open: set[str]) -> list[str]:
    """Describe the overlaps of a work item with others that are still open."""
    return [one.describe_to(item) for one in overlaps if one.other(item) in is_open]


# The search


@dataclass(frozen=True)
class _OpenChange:
    """The change of one work item so far."""

    item: str
    task_id: str
    base: str
    tip: str


class OverlapProbe:
    """Searches for overlaps between the work items of one run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._repository = context.repository
        self._paths: dict[tuple[str, str], frozenset[str]] = {}
        self._merged: set[tuple[str, str]] = set()
        self._workspaces_searched_at = time.monotonic()

    def search_if_due(self, *, is_changed: bool) -> None:
        """Search after a change of stage, and every half minute also the workspaces of running agents."""
        with_workspaces = time.monotonic() - self._workspaces_searched_at > WORKSPACE_SECONDS
        if with_workspaces:
            self._workspaces_searched_at = time.monotonic()
        if with_workspaces or is_changed:
            self.search(with_workspaces=with_workspaces)

    def search(self, *, with_workspaces: bool = True) -> None:
        """Merge every two open changes that have a path in common, without touching files. Report conflicts."""
        found = list(self._open_changes(with_workspaces=with_workspaces))
        self._fetch(found)
        live = sorted((one for one in found if self._has_paths(one)), key=lambda one: one.item)
        overlaps = []
        for one, other in combinations(live, 2):
            if (one.tip, other.tip) in self._merged or not self._changed(one) & self._changed(other):
                continue
            self._merged.add((one.tip, other.tip))
            conflicts = self._repository.merge(one.tip, other.tip).conflicts
            if conflicts:
                overlaps.append((Overlap((one.item, other.item), conflicts[:_SHOWN]), one, other))
        if overlaps:
            self._report(overlaps)

    # Open changes

    def _open_changes(self, *, with_workspaces: bool) -> Iterator[_OpenChange]:
        for task in all_tasks(self._context.log, self._context.run_id):
            if task.state.value not in _OPEN_STATES or task.role not in (WORK, CHECK, LAND):
                continue
            is_working = task.role == WORK and task.state == "running"
            found = self._workspace_change(task) if is_working and with_workspaces else _last_change(task)
            if found is not None and found.tip != found.base:
                yield found

    def _fetch(self, found: Sequence[_OpenChange]) -> None:
        """Fetch the changes of other hosts, if the remote is reachable."""
        refs = self._context.refs
        if not refs.is_shared or refs.is_unreachable():
            return
        try:
            refs.fetch_missing(
                commit for one in found if (one.base, one.tip) not in self._paths for commit in (one.base, one.tip)
            )
        except (Conflict, Unavailable):
            return  # the next search may work

    def _workspace_change(self, task: Task) -> _OpenChange | None:
        """Return the change so far of an agent that is still working."""
        attempt = self._context.attempt(task.id, task.fence)
        facts = attempt.facts()
        if facts is None or not attempt.place.is_made:
            return None
        try:
            return _OpenChange(item_name(task), task.id, facts["base"], attempt.snapshot(facts))
        except (DecklogError, OSError):
            return None  # the workspace is being written to or is gone; the next search may work

    def _has_paths(self, live: _OpenChange) -> bool:
        """Read the paths of a change. Return False if its commits are not in this clone."""
        key = (live.base, live.tip)
        if key not in self._paths:
            try:
                self._paths[key] = frozenset(one.path for one in list_changes(self._repository, *key))
            except DecklogError:
                return False
        return True

    def _changed(self, live: _OpenChange) -> frozenset[str]:
        return self._paths[live.base, live.tip]

    # Reports

    def _report(self, found: Sequence[tuple[Overlap, _OpenChange, _OpenChange]]) -> None:
        """Record new overlaps, and report them in one message to each work item."""
        log, run_id = self._context.log, self._context.run_id
        reports: dict[_OpenChange, list[str]] = {}
        with log.transaction():
            for overlap, one, other in found:
                body = f"{' and '.join(overlap.items)} do not merge as they are: {', '.join(overlap.paths)}"
                payload = {"items": list(overlap.items), "paths": list(overlap.paths), "commits": [one.tip, other.tip]}
                key = hashlib.sha256(to_json([overlap.items, overlap.paths]).encode()).hexdigest()
                entry = log.journal.append(run_id, body, kind="event", subtype=SUBTYPE, payload=payload, key=key)
                if not entry.already:
                    reports.setdefault(one, []).append(overlap.describe_to(one.item))
                    reports.setdefault(other, []).append(overlap.describe_to(other.item))
            for live, words in reports.items():
                text = f"{live.item} conflicts with open work items: {'; '.join(words)}. The item that lands later is reworked."
                key = f"{run_id}:{live.item}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
                log.inbox.post("conductor", text, run_id=run_id, task_id=live.task_id, key=f"overlap:{key}")


def _last_change(task: Task) -> _OpenChange | None:
    """Return the saved change of the last attempt; None if it will be reworked."""
    if task.role == LAND and task.open_dependencies:
        return None
    inputs = task.inputs
    tip = inputs.get("tip") or inputs.get("start")
    return _OpenChange(item_name(task), task.id, str(inputs["base"]), str(tip)) if tip and inputs.get("base") else None
