"""Work items whose open changes do not merge with each other: found by trial merges, recorded, and reported to both."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from decklog.conductor.context import RunContext
from decklog.conductor.git.changes import changes
from decklog.conductor.stages import CHECK, LAND, WORK, all_tasks, item_name
from decklog.core.errors import Conflict, DecklogError, Unavailable
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.stores.tasks.task import Task

SUBTYPE = "conductor.overlap"
# How often workspaces are looked into; what attempts left is looked at right after.
LOOK_SECONDS = 30.0
_SHOWN = 10
_PAGE = 200
_OPEN = ("pending", "running", "waiting")


@dataclass(frozen=True)
class Overlap:
    """Two work items that do not merge as they are, and the paths."""

    items: tuple[str, str]
    paths: tuple[str, ...]

    def other(self, item: str) -> str | None:
        """Return the other one of the two; None if the item is neither."""
        if item not in self.items:
            return None
        return self.items[1] if item == self.items[0] else self.items[0]

    def described_to(self, item: str) -> str:
        """Describe the overlap to one of the two."""
        return f"{self.other(item)} in {', '.join(self.paths)}"


def known(log: Decklog, run_id: str) -> list[Overlap]:
    """List the recorded overlaps of a run, newest first, each pair once."""
    found: dict[tuple[str, str], Overlap] = {}
    for entry in log.journal.find(run_id, subtype=SUBTYPE, limit=_PAGE):
        payload: Any = entry.payload
        items = (str(payload["items"][0]), str(payload["items"][1]))
        found.setdefault(items, Overlap(items, tuple(payload["paths"])))
    return list(found.values())


def met_by(overlaps: Sequence[Overlap], item: str, is_open: set[str]) -> list[str]:
    """Describe the overlaps of a work item with others that are still open."""
    return [one.described_to(item) for one in overlaps if one.other(item) in is_open]


# The search


@dataclass(frozen=True)
class _Live:
    """The change of one work item so far."""

    item: str
    task_id: str
    base: str
    tip: str


class OverlapProbe:
    """Looks for overlaps between the work items of one run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._repository = context.repository
        self._paths: dict[tuple[str, str], frozenset[str]] = {}
        self._merged: set[tuple[str, str]] = set()
        self._looked_into_workspaces = time.monotonic()

    def look_again(self, *, is_changed: bool) -> None:
        """Look after a change, and every half minute also into the workspaces of running agents."""
        with_workspaces = time.monotonic() - self._looked_into_workspaces > LOOK_SECONDS
        if with_workspaces:
            self._looked_into_workspaces = time.monotonic()
        if with_workspaces or is_changed:
            self.look(with_workspaces=with_workspaces)

    def look(self, *, with_workspaces: bool = True) -> None:
        """Merge every two open changes that have a path in common, without touching a file; report what does not merge."""
        found = list(self._open(with_workspaces=with_workspaces))
        self._fetch(found)
        live = sorted((one for one in found if self._is_here(one)), key=lambda one: one.item)
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

    # What is open

    def _open(self, *, with_workspaces: bool) -> Iterator[_Live]:
        for task in all_tasks(self._context.log, self._context.run_id):
            if task.state.value not in _OPEN or task.role not in (WORK, CHECK, LAND):
                continue
            found = self._in_workspace(task) if task.role == WORK and task.state == "running" and with_workspaces else _left(task)
            if found is not None and found.tip != found.base:
                yield found

    def _fetch(self, found: Sequence[_Live]) -> None:
        """Fetch the changes of other hosts, if the remote is in reach."""
        tips = self._context.tips
        if not tips.is_shared or tips.is_away():
            return
        try:
            tips.fetch_missing(
                commit for one in found if (one.base, one.tip) not in self._paths for commit in (one.base, one.tip)
            )
        except (Conflict, Unavailable):
            return  # the next look may work

    def _in_workspace(self, task: Task) -> _Live | None:
        """Return what an agent that still works has changed so far."""
        attempt = self._context.attempt(task.id, task.fence)
        facts = attempt.facts()
        if facts is None or not attempt.place.is_made:
            return None
        try:
            return _Live(item_name(task), task.id, facts["base"], attempt.snapshot(facts))
        except (DecklogError, OSError):
            return None  # it is being written to, or is gone already; the next look may work

    def _is_here(self, live: _Live) -> bool:
        """Return whether a change can be looked at, and remember what it changes."""
        key = (live.base, live.tip)
        if key not in self._paths:
            try:
                self._paths[key] = frozenset(one.path for one in changes(self._repository, *key))
            except DecklogError:
                return False
        return True

    def _changed(self, live: _Live) -> frozenset[str]:
        return self._paths[live.base, live.tip]

    # Reports

    def _report(self, found: Sequence[tuple[Overlap, _Live, _Live]]) -> None:
        """Record new overlaps, and report them in one message to each work item."""
        log, run_id = self._context.log, self._context.run_id
        reports: dict[_Live, list[str]] = {}
        with log.transaction():
            for overlap, one, other in found:
                body = f"{' and '.join(overlap.items)} do not merge as they are: {', '.join(overlap.paths)}"
                payload = {"items": list(overlap.items), "paths": list(overlap.paths), "commits": [one.tip, other.tip]}
                key = hashlib.sha256(to_json([overlap.items, overlap.paths]).encode()).hexdigest()
                entry = log.journal.append(run_id, body, kind="event", subtype=SUBTYPE, payload=payload, key=key)
                if not entry.already:
                    reports.setdefault(one, []).append(overlap.described_to(one.item))
                    reports.setdefault(other, []).append(overlap.described_to(other.item))
            for live, words in reports.items():
                text = f"{live.item} meets others that are not landed yet: {'; '.join(words)}. Later ones are worked on again."
                key = f"{run_id}:{live.item}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
                log.inbox.post("conductor", text, run_id=run_id, task_id=live.task_id, key=f"overlap:{key}")


def _left(task: Task) -> _Live | None:
    """Return the change of the last attempt, unless it is to be done again on top of others."""
    if task.role == LAND and task.open_dependencies:
        return None
    inputs = task.inputs
    tip = inputs.get("tip") or inputs.get("start")
    return _Live(item_name(task), task.id, str(inputs["base"]), str(tip)) if tip and inputs.get("base") else None
