"""Follow a work item: steps of its agents, its change so far, its cost, and its end."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from decklog.agents.session_views import STARTED, title_of_call
from decklog.conductor.context import RunContext
from decklog.conductor.git.changes import lines_of
from decklog.conductor.items.item import Item, change_of, find_item, patch_of
from decklog.conductor.status import ItemStatus, run_status
from decklog.core.display import dollars
from decklog.core.errors import DecklogError
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog

# How often a workspace is looked into. It costs a call of git.
LOOK_SECONDS = 2.0
_LONGEST_TEXT = 400
# What is a step of an agent, or of a person who writes to it; a change of a record is none.
_STEPS = tuple(kind for kind in EntryKind if kind is not EntryKind.CHANGE)
_MARKS = {"ok": "✓", "failed": "✗", "denied": "⊘ denied", "interrupted": "✗ interrupted"}
_OVER = ("landed", "given up", "needs attention", "paused", "blocked")


@dataclass(frozen=True)
class WatchedStep:
    """One event to show: a `step`, the `state` of the item, its `diff` by files, its `cost`."""

    kind: str
    text: str
    at: datetime | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """Return it in one line."""
        clock = f"{self.at:%H:%M:%S}" if self.at is not None else " " * 8
        return f"{clock}  {self.kind:<6} {' '.join(self.text.split())}"


class ItemWatch:
    """Follows one work item by the journal of its run."""

    def __init__(self, context: RunContext, item: Item) -> None:
        self._context = context
        self._item = item
        self._after = 0
        self._shown: dict[str, str] = {}
        # The folder of each task's agent.
        self._folders: dict[str, str] = {}
        self._looked = -LOOK_SECONDS

    def look(self) -> list[WatchedStep]:
        """Return what is new since the last look: all there is, the first time."""
        log, run_id = self._context.log, self._context.run_id
        entries = list(log.journal.tail(run_id, after=self._after, follow=False))
        self._after = entries[-1].seq if entries else self._after
        self._item = find_item(log, run_id, self._item.name)
        tasks = {task.id for task in self._item.tasks}
        seen = [self._step(entry) for entry in entries if entry.task_id in tasks and entry.kind is not EntryKind.CHANGE]
        if entries or time.monotonic() > self._looked + LOOK_SECONDS:
            self._looked = time.monotonic()
            seen += self._changed(tasks)
        return seen

    @property
    def state(self) -> ItemStatus:
        status = run_status(self._context.log, self._context.run_id)
        return next(item for item in status.items if item.name == self._item.name)

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to the item unless a person acts."""
        return self.state.state in _OVER

    def follow(self) -> Iterator[WatchedStep]:
        """Yield what happens to the item until its end, waiting for it."""
        while True:
            is_over = self.is_over
            yield from self.look()
            if is_over:
                return
            self._context.log.db.wait_for_change(LOOK_SECONDS)
            time.sleep(0.1)

    def _step(self, entry: Entry) -> WatchedStep:
        if entry.subtype == STARTED and isinstance(entry.payload, dict) and entry.payload.get("folder"):
            self._folders[str(entry.task_id)] = str(entry.payload["folder"])
        text = _told(entry, self._folders.get(str(entry.task_id)))
        return WatchedStep("step", text[:_LONGEST_TEXT], entry.at, {"subtype": entry.subtype, "seq": entry.seq})

    def _changed(self, tasks: set[str]) -> Iterator[WatchedStep]:
        now, state = self._context.log.clock.now(), self.state
        found = {
            "state": f"{state.state} {state.described()}".strip(),
            "diff": self._files(),
            "cost": dollars(cost_of(self._context.log, self._context.run_id, tasks)),
        }
        for kind, text in found.items():
            if text and self._shown.get(kind) != text:
                self._shown[kind] = text
                yield WatchedStep(kind, text, now)

    def _files(self) -> str:
        try:
            return ", ".join(f"{path} +{added} -{removed}" for path, added, removed in files_of(self._context, self._item))
        except (DecklogError, OSError):
            return ""  # the workspace is being written to, or is gone; the next look may work


def files_of(context: RunContext, item: Item) -> list[tuple[str, int, int]]:
    """List the files that an item changes so far, with how many lines it adds and removes."""
    if change_of(context, item) is None:
        return []
    counts: dict[str, list[int]] = {}
    for line in lines_of(patch_of(context, item)):
        if line.sign in "+-":
            counts.setdefault(line.path, [0, 0])[line.sign == "-"] += 1
    return [(path, added, removed) for path, (added, removed) in counts.items()]


def cost_of(log: Decklog, run_id: str, tasks: set[str]) -> int:
    """Return what the tasks of an item cost so far, in microdollars."""
    rows = log.ledger.summary(run_id, by="task")["rows"]
    return sum(row["cost_microdollars"] for row in rows if row["key"] in tasks)


def recent_steps(log: Decklog, item: Item, limit: int) -> list[Entry]:
    """List the newest steps of an item, oldest first: entries of all its tasks, without changes of records."""
    find = partial(log.journal.find, item.run_id, limit=limit)
    found: list[Entry] = [entry for task in item.tasks for kind in _STEPS for entry in find(task_id=task.id, kind=kind)]
    return sorted(found, key=lambda entry: entry.seq)[-limit:]


def _told(entry: Entry, folder: str | None) -> str:
    """Describe a step of an agent in one line: a call as it is made, and later how it ended."""
    who, body, facts = entry.agent or "agent", entry.body or "", entry.payload if isinstance(entry.payload, dict) else {}
    match str(entry.subtype):
        case "agent.start":
            return f"{who} starts" + (f" with {facts['model']}" if facts.get("model") else "")
        case "agent.tool":
            return f"{who}: {title_of_call(entry, folder)}"
        case "agent.result":
            outcome, milliseconds = str(facts.get("outcome", "ok")), facts.get("duration_ms")
            length = f" {milliseconds / 1000:.1f} s" if isinstance(milliseconds, (int, float)) else ""
            return f"{who}: {_MARKS.get(outcome, outcome)}{length}" + ("" if body == outcome else f" {body}")
        case "agent.text":
            return f"{who}: {body}"
        case "agent.thought":
            return f"{who} thinks: {body}"
        case "agent.delivered":
            return f"{who} got: {body}"
        case "agent.end":
            return f"{who} ends"
        case "conductor.comment" | "conductor.message" | "conductor.by-hand":
            return body
    kind = str(entry.subtype or entry.kind.value).removeprefix("agent.").removeprefix("conductor.")
    return f"{who}: {kind} {body}" if entry.agent else f"{kind} {body}"
