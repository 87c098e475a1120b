"""Follow a work item: steps of its agents, its change so far, its cost, and its end."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from decklog.agents.session_views import STARTED, title_of_call
from decklog.conductor.context import RunContext
from decklog.conductor.git.changes import parse_lines
from decklog.conductor.items.item import Item, build_patch, find_item, find_item_change
from decklog.conductor.status import ItemStatus, run_status
from decklog.core.display import dollars
from decklog.core.errors import DecklogError
from decklog.journal.entry import Entry, EntryKind
from decklog.log import Decklog

# How often the change of a workspace is read. It costs a call of git.
CHECK_SECONDS = 2.0
_LONGEST_TEXT = 400
# Entries that are steps of an agent or a person: all but changes of records.
_STEPS = tuple(kind for kind in EntryKind if kind is not EntryKind.CHANGE)
_MARKS = {"ok": "✓", "failed": "✗", "denied": "⊘ denied", "interrupted": "✗ interrupted"}
_OVER = ("landed", "given up", "needs attention", "paused", "blocked")


@dataclass(frozen=True)
class WatchedStep:
    """One event of an item. Its `kind` is `step`, `state`, `diff` or `cost`."""

    kind: str
    text: str
    at: datetime | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """Return the event as one line of text."""
        clock = f"{self.at:%H:%M:%S}" if self.at is not None else " " * 8
        return f"{clock}  {self.kind:<6} {' '.join(self.text.split())}"


class ItemWatch:
    """Follows one work item by the journal of its run."""

    def __init__(self, context: RunContext, item: Item) -> None:
        self._context = context
        self._item = item
        self._last_seq = 0
        self._shown: dict[str, str] = {}
        # The folder of each task's agent.
        self._folders: dict[str, str] = {}
        self._checked_at = -CHECK_SECONDS

    def read_new(self) -> list[WatchedStep]:
        """Return the events since the last call; the first call returns all."""
        log, run_id = self._context.log, self._context.run_id
        entries = list(log.journal.tail(run_id, after=self._last_seq, follow=False))
        self._last_seq = entries[-1].seq if entries else self._last_seq
        self._item = find_item(log, run_id, self._item.name)
        tasks = {task.id for task in self._item.tasks}
        seen = [self._build_step(entry) for entry in entries if entry.task_id in tasks and entry.kind is not EntryKind.CHANGE]
        if entries or time.monotonic() > self._checked_at + CHECK_SECONDS:
            self._checked_at = time.monotonic()
            seen += self._read_changes(tasks)
        return seen

    @property
    def status(self) -> ItemStatus:
        status = run_status(self._context.log, self._context.run_id)
        return next(item for item in status.items if item.name == self._item.name)

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to the item unless a person acts."""
        return self.status.state in _OVER

    def follow(self) -> Iterator[WatchedStep]:
        """Yield the events of the item until its end, as they happen."""
        while True:
            is_over = self.is_over
            yield from self.read_new()
            if is_over:
                return
            self._context.log.db.wait_for_change(CHECK_SECONDS)
            time.sleep(0.1)

    def _build_step(self, entry: Entry) -> WatchedStep:
        if entry.subtype == STARTED and isinstance(entry.payload, dict) and entry.payload.get("folder"):
            self._folders[str(entry.task_id)] = str(entry.payload["folder"])
        text = _describe_step(entry, self._folders.get(str(entry.task_id)))
        return WatchedStep("step", text[:_LONGEST_TEXT], entry.at, {"subtype": entry.subtype, "seq": entry.seq})

    def _read_changes(self, tasks: set[str]) -> Iterator[WatchedStep]:
        now, status = self._context.log.clock.now(), self.status
        found = {
            "state": f"{status.state} {status.described()}".strip(),
            "diff": self._list_files(),
            "cost": dollars(item_cost(self._context.log, self._context.run_id, tasks)),
        }
        for kind, text in found.items():
            if text and self._shown.get(kind) != text:
                self._shown[kind] = text
                yield WatchedStep(kind, text, now)

    def _list_files(self) -> str:
        try:
            return ", ".join(f"{path} +{added} -{removed}" for path, added, removed in changed_files(self._context, self._item))
        except (DecklogError, OSError):
            return ""  # the workspace is being written to, or is gone; the next read may work


def changed_files(context: RunContext, item: Item) -> list[tuple[str, int, int]]:
    """List the files that an item changes so far, with the numbers of added and removed lines."""
    if find_item_change(context, item) is None:
        return []
    counts: dict[str, list[int]] = {}
    for line in parse_lines(build_patch(context, item)):
        if line.sign in "+-":
            counts.setdefault(line.path, [0, 0])[line.sign == "-"] += 1
    return [(path, added, removed) for path, (added, removed) in counts.items()]


def item_cost(log: Decklog, run_id: str, tasks: set[str]) -> int:
    """Return the cost of an item's tasks so far, in microdollars."""
    rows = log.ledger.summary(run_id, by="task")["rows"]
    return sum(row["cost_microdollars"] for row in rows if row["key"] in tasks)


def list_recent_steps(log: Decklog, item: Item, limit: int) -> list[Entry]:
    """List the newest steps of all tasks of an item, oldest first."""
    find = partial(log.journal.find, item.run_id, limit=limit)
    found: list[Entry] = [entry for task in item.tasks for kind in _STEPS for entry in find(task_id=task.id, kind=kind)]
    return sorted(found, key=lambda entry: entry.seq)[-limit:]


def _describe_step(entry: Entry, folder: str | None) -> str:
    """Describe an agent's step in one line: a tool call, its result, or a text."""
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
