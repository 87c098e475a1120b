"""Looks for pieces whose changes do not merge with each other while both are still open, and tells both."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from decklog.conductor.git import keeping
from decklog.conductor.git.changes import changes
from decklog.conductor.git.places import place_of
from decklog.conductor.overlaps import SUBTYPE, Overlap
from decklog.conductor.stages import CHECK, LAND, WORK, all_tasks, piece_tag
from decklog.core.errors import Conflict, DecklogError, Unavailable
from decklog.records.values import to_json

if TYPE_CHECKING:
    from decklog.conductor.site import RunContext
    from decklog.stores.tasks.task import Task

# What is in places is looked at this often; what attempts left, right after.
LOOK_SECONDS = 30.0
SHORTEST_SECONDS = 1.0
# At most so many merges at a time, a few milliseconds each; what is left comes the next time.
MOST_MERGES = 60
_SHOWN = 10
_OPEN = ("pending", "running", "waiting")


@dataclass(frozen=True)
class _Live:
    """What one piece would change, as far as it has come."""

    piece: str
    task_id: str
    base: str
    tip: str


class OverlapProbe:
    """Looks for pieces of one run that are in each other's way."""

    def __init__(self, site: "RunContext") -> None:
        self._site = site
        self._repository = site.repository
        self._paths: dict[tuple[str, str], frozenset[str]] = {}
        self._merged: set[tuple[str, str]] = set()
        self._looked_at = self._looked_into_places = time.monotonic()
        self._is_due = False

    def look_again(self, *, is_changed: bool) -> None:
        """Look if it is time: soon after something has changed, and now and then into the places of agents that work."""
        now = time.monotonic()
        with_places = now - self._looked_into_places > LOOK_SECONDS
        self._is_due = self._is_due or is_changed
        if with_places or (self._is_due and now - self._looked_at > SHORTEST_SECONDS):
            self._looked_at, self._is_due = now, False
            self._looked_into_places = now if with_places else self._looked_into_places
            self.look(with_places=with_places)

    def look(self, *, with_places: bool = True) -> None:
        """Merge every two open changes that have a path in common, without touching a file; tell what does not merge."""
        found = list(self._open(with_places=with_places))
        self._bring(found)
        live = sorted((one for one in found if self._is_here(one)), key=lambda one: one.piece)
        pairs = [(one, other) for one, other in combinations(live, 2) if self._may_meet(one, other)]
        self._is_due = self._is_due or len(pairs) > MOST_MERGES
        overlaps = []
        for one, other in pairs[:MOST_MERGES]:
            self._merged.add((one.tip, other.tip))
            conflicts = self._repository.merge(one.tip, other.tip).conflicts
            if conflicts:
                overlaps.append((Overlap((one.piece, other.piece), conflicts[:_SHOWN]), one, other))
        if overlaps:
            self._tell(overlaps)

    def _may_meet(self, one: _Live, other: _Live) -> bool:
        """Return whether two changes have a path in common, and were not merged before."""
        return (one.tip, other.tip) not in self._merged and bool(self._changed(one) & self._changed(other))

    # What is open

    def _open(self, *, with_places: bool) -> Iterator[_Live]:
        for task in all_tasks(self._site.log, self._site.run_id):
            if task.state.value not in _OPEN or task.role not in (WORK, CHECK, LAND):
                continue
            found = self._in_place(task) if task.role == WORK and task.state == "running" and with_places else _left(task)
            if found is not None and found.tip != found.base:
                yield found

    def _bring(self, found: Sequence[_Live]) -> None:
        """Get what other hosts have made, if that can be had now."""
        tips = self._site.tips
        if not tips.is_shared or tips.is_away():
            return
        try:
            tips.bring(commit for one in found if (one.base, one.tip) not in self._paths for commit in (one.base, one.tip))
        except (Conflict, Unavailable):
            return  # there is another time

    def _in_place(self, task: "Task") -> _Live | None:
        """Return what an agent that still works has changed so far."""
        site = self._site
        place = place_of(site.repository, site.run_id, task.id, task.fence)
        known = site.log.effects.known(site.run_id, f"place:{task.id}:{task.fence}")
        if known is None or not place.is_made:
            return None
        facts: Any = known.facts
        try:
            tip = keeping.snapshot(site.repository, place, facts["start"], site.person, facts["at"])
        except (DecklogError, OSError):
            return None  # it is being written to, or is gone already: there is another time
        return _Live(_name(task), task.id, facts["base"], tip)

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

    # What is told

    def _tell(self, found: Sequence[tuple[Overlap, _Live, _Live]]) -> None:
        """Put on record what was not known, and tell each piece in one message whom it meets."""
        log, run_id = self._site.log, self._site.run_id
        told: dict[_Live, list[str]] = {}
        with log.transaction():
            for overlap, one, other in found:
                body = f"{' and '.join(overlap.pieces)} do not merge as they are: {', '.join(overlap.paths)}"
                payload = {"pieces": list(overlap.pieces), "paths": list(overlap.paths), "commits": [one.tip, other.tip]}
                key = hashlib.sha256(to_json([overlap.pieces, overlap.paths]).encode()).hexdigest()
                entry = log.journal.append(run_id, body, kind="event", subtype=SUBTYPE, payload=payload, key=key)
                if not entry.already:
                    told.setdefault(one, []).append(overlap.told_to(one.piece))
                    told.setdefault(other, []).append(overlap.told_to(other.piece))
            for live, words in told.items():
                text = (
                    f"{live.piece} meets others that are not landed yet: {'; '.join(words)}. Who lands later is worked on again."
                )
                key = f"{run_id}:{live.piece}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
                log.inbox.post("conductor", text, run_id=run_id, task_id=live.task_id, key=f"overlap:{key}")


def _left(task: "Task") -> _Live | None:
    """Return what the last attempt at a piece left, unless that is to be done again from where the others are."""
    if task.role == LAND and task.open_dependencies:
        return None
    inputs = task.inputs
    tip = inputs.get("tip") or inputs.get("start")
    return _Live(_name(task), task.id, str(inputs["base"]), str(tip)) if tip and inputs.get("base") else None


def _name(task: "Task") -> str:
    return piece_tag(task).removeprefix("piece:")
