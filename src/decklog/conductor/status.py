"""The status of a run of the conductor, read from the log alone."""

from dataclasses import dataclass, replace
from typing import Any

from decklog.conductor import overlaps
from decklog.conductor.stages import CHECK, LAND, PLAN, WORK, all_tasks, item_name, newest_landing
from decklog.core.display import dollars
from decklog.log import Decklog
from decklog.stores.tasks.task import Task

_DOING = {PLAN: "plan", WORK: "work", CHECK: "check", LAND: "landing"}
_LONGEST_BECAUSE = 60
# In the order of the counts.
STATES = (
    *("landed", "landing", "queued", "check", "work", "plan", "ready", "waits"),
    *("needs attention", "paused", "blocked", "given up"),
)


@dataclass(frozen=True)
class ItemStatus:
    """The status of one work item."""

    name: str
    state: str
    detail: str
    round: int
    attempts: int
    # Other work items that it does not merge with, and the paths.
    meets: tuple[str, ...] = ()
    # The findings of the round before.
    because: str = ""

    def described(self) -> str:
        """Describe the state in a few words."""
        more = f"round {self.round}, " if self.round > 1 else ""
        words = self.detail or f"{more}{self.attempts} attempt{'s' if self.attempts != 1 else ''}"
        words += f"; last found: {self.because}" if self.because else ""
        return f"{words}; meets {'; '.join(self.meets)}" if self.meets else words

    def line(self) -> str:
        """Return the status in one line."""
        return f"{self.name:<16} {self.state:<15} {' '.join(self.described().split())}"


@dataclass(frozen=True)
class ConductorStatus:
    """The status of a run: its work items, its cost and its outcome."""

    run_id: str
    goal: str
    status: str
    items: tuple[ItemStatus, ...]
    spent_microdollars: int
    # Attempts of agents that reported no price.
    unpriced_calls: int = 0

    @property
    def outcome(self) -> str:
        """The outcome: `landed`, `needs attention`, `blocked`, or `open` while something can go on."""
        states = {item.state for item in self.items}
        if states <= {"landed"}:
            return "landed"
        if states & {"work", "check", "landing", "queued", "plan", "ready"}:
            return "open"
        return "needs attention" if states & {"needs attention", "paused"} else "blocked"

    def counts(self) -> str:
        """Count the work items by state."""
        found = [(state, sum(item.state == state for item in self.items)) for state in STATES]
        return f"{len(self.items)} item{'s' if len(self.items) != 1 else ''}: " + ", ".join(
            f"{count} {state}" for state, count in found if count
        )

    def spent(self) -> str:
        """Return the known cost."""
        count = self.unpriced_calls
        unknown = f" and {count} call{'s' if count != 1 else ''} of unknown price" if count else ""
        return f"spent {dollars(self.spent_microdollars)}{unknown}"

    def as_dict(self) -> dict[str, object]:
        items = [dict(vars(item)) for item in self.items]
        return {**vars(self), "items": items, "outcome": self.outcome}


def run_status(log: Decklog, run_id: str) -> ConductorStatus:
    """Return the status of a run."""
    run = log.runs.get(run_id)
    tasks_by_item: dict[str, list[Task]] = {}
    planning: list[ItemStatus] = []
    for task in all_tasks(log, run_id):
        if any(tag.startswith("item:") for tag in task.tags):
            tasks_by_item.setdefault(item_name(task), []).append(task)
        elif task.role == PLAN and task.state != "done":
            planning.append(_planning(task))
    total = log.ledger.summary(run_id)["total"]
    items = _with_overlaps(log, run_id, [_item(name, tasks) for name, tasks in tasks_by_item.items()])
    spent, unknown = int(total["cost_microdollars"]), int(total["unpriced_calls"])
    return ConductorStatus(run.id, run.goal, run.status.value, (*planning, *items), spent, unknown)


def _with_overlaps(log: Decklog, run_id: str, items: list[ItemStatus]) -> list[ItemStatus]:
    """Add to each open work item its overlaps with other open ones."""
    is_open = {one.name for one in items if one.state not in ("landed", "given up")}
    found = overlaps.find(log, run_id) if len(is_open) > 1 else []
    if not found:
        return items
    meets = {name: tuple(overlaps.describe_open(found, name, is_open)) for name in is_open}
    return [replace(one, meets=meets[one.name]) if one.name in is_open else one for one in items]


def _planning(task: Task) -> ItemStatus:
    """Return the status of planning, as of a work item."""
    state = {"running": "work", "pending": "ready", "waiting": "needs attention"}.get(task.state.value, "blocked")
    detail = ": ".join(part for part in (task.blocker or "", task.reason or "") if part)
    return ItemStatus("plan", state, "" if state == "work" else detail, 1, task.attempts)


def _item(name: str, tasks: list[Task]) -> ItemStatus:
    state, detail = _state(tasks)
    rounds = sum(task.role == WORK for task in tasks)
    attempts = sum(task.attempts for task in tasks if task.role == WORK)
    because = _because([task for task in tasks if task.role == WORK and task.state != "done"])
    return ItemStatus(name, state, detail, rounds, attempts, because=because)


def _because(open_work: list[Task]) -> str:
    """Summarize the findings that began the current round; empty if there are none."""
    findings: Any = [one for task in open_work for one in task.inputs.get("findings") or ()]  # type: ignore[attr-defined]
    if not findings:
        return ""
    first, *others = findings
    named = [str(one) for one in first.get("tests") or first.get("paths") or ()]
    more = len(named) + len(others) - 1 if named else len(others)
    words = named[0] if named else first.get("text") or "red"
    return f"{first.get('check') or first['kind']}: {words}"[:_LONGEST_BECAUSE] + (f" and {more} more" if more > 0 else "")


def _state(tasks: list[Task]) -> tuple[str, str]:
    land = newest_landing([task for task in tasks if task.role == LAND])
    if land.state == "done":
        return "landed", str(land.summary or "").removeprefix("landed as ")
    by_state = {task.state.value: task for task in tasks}
    if (task := by_state.get("running")) is not None:
        return _DOING[str(task.role)], ""
    if land.state == "pending" and (parts := land.inputs.get("parts")) and land.open_dependencies:
        return "waits", f"for its replacements: {', '.join(str(part) for part in parts)}"  # type: ignore[attr-defined]
    if any(task.role == PLAN and task.state == "pending" for task in tasks):
        return "ready", "to be replanned"
    for state, word in (("waiting", "needs attention"), ("blocked", "blocked"), ("paused", "paused")):
        if (task := by_state.get(state)) is not None:
            return word, ": ".join(part for part in (task.blocker if state == "blocked" else "", task.reason) if part)
    if land.open_dependencies == 0:
        return "queued", ""
    ready = [task for task in tasks if task.state == "pending" and task.role != LAND and task.open_dependencies == 0]
    if not ready and (task := by_state.get("abandoned")) is not None:
        return "given up", str(task.reason or "")
    if not ready:
        return "waits", "for another item"
    return "ready", str(ready[0].reason or ("to be checked" if ready[0].role == CHECK else ""))
