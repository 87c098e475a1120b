"""A work item of a run with its tasks: found by its name, with its change so far."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decklog.conductor.git.repository import Repository
from decklog.conductor.git.workspaces import Workspace, snapshot
from decklog.conductor.stages import LAND, WORK, newest_landing
from decklog.core.errors import Invalid, NotFound

if TYPE_CHECKING:
    from decklog.conductor.context import RunContext
    from decklog.log import Decklog
    from decklog.stores.tasks.task import Task

_MOST_TASKS = 200
# The key of a work task's inputs that names who works on it by hand.
BY_HAND = "by_hand"


@dataclass(frozen=True)
class Item:
    """A work item: the tasks of all its rounds, in the order in which they were added."""

    run_id: str
    name: str
    tasks: "tuple[Task, ...]"

    @property
    def landing(self) -> "Task":
        """The task that lands it, the newest if it landed before."""
        return newest_landing([task for task in self.tasks if task.role == LAND])

    @property
    def is_landed(self) -> bool:
        return self.landing.state == "done"

    @property
    def landed_commit(self) -> str:
        """The last commit with a change of it that has landed; a round in which only a question was answered has none."""
        results: list[Any] = [task.result for task in self.tasks if task.role == LAND and task.state == "done"]
        return str(next((one for one in reversed(results) if one.get("files")), results[-1])["commit"])

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to it: it has landed, or was given up."""
        return self.landing.state.value in ("done", "abandoned")

    @property
    def open_tasks(self) -> "list[Task]":
        """The tasks that are neither done nor given up."""
        return [task for task in self.tasks if task.state.value not in ("done", "abandoned")]

    @property
    def work(self) -> "Task | None":
        """The task in which it is worked on now, or will be next; None between rounds."""
        return next((task for task in reversed(self.open_tasks) if task.role == WORK), None)


@dataclass(frozen=True)
class ItemChange:
    """The change of an item between two commits. `is_live` if an agent or a person may be changing it now."""

    base: str
    tip: str
    is_live: bool = False


def split_name(text: str) -> tuple[str | None, str]:
    """Split ITEM or RUN.ITEM into the run, None if it is not named, and the item."""
    run_id, _, name = text.rpartition(".")
    if not name:
        raise Invalid(f"{text!r} names no work item", hint="Write ITEM, or RUN.ITEM.", field="item")
    return run_id or None, name


def find_item(log: "Decklog", run_id: str, name: str) -> Item:
    """Find a work item of a run. Raise NotFound with the existing names."""
    tasks = tuple(log.tasks.find(run_id, tag=f"item:{name}", limit=_MOST_TASKS))
    if not any(task.role == LAND for task in tasks):
        landings = log.tasks.find(run_id, role=LAND, limit=_MOST_TASKS)
        names = sorted({tag.removeprefix("item:") for task in landings for tag in task.tags if tag.startswith("item:")})
        raise NotFound(
            f"run {run_id} has no work item {name!r}", hint=f"It has {', '.join(names) or 'none yet'}.", run_id=run_id, item=name
        )
    return Item(run_id, name, tasks)


def workspace_of(context: "RunContext", item: Item) -> tuple[Workspace, dict[str, Any]] | None:
    """Find the workspace on this host in which an item is worked on, with the facts of its attempt; None if there is none."""
    work = item.work
    if work is None:
        return None
    held: Any = work.inputs.get(BY_HAND)
    attempt = context.attempt(work.id, int(held["fence"]) if held else work.fence)
    facts = attempt.facts()
    return (attempt.place, facts) if facts is not None and attempt.place.is_made else None


def change_of(context: "RunContext", item: Item) -> ItemChange | None:
    """Find what an item changes so far; None before its first change."""
    if item.is_landed:
        commit = item.landed_commit
        return ItemChange(context.repository.parents(commit)[0], commit)
    if (found := workspace_of(context, item)) is not None:
        place, facts = found
        tip = snapshot(context.repository, place, facts["start"], context.person, facts["at"])
        return ItemChange(str(facts["base"]), tip, is_live=True)
    for task in reversed(item.tasks):
        tip = str(task.inputs.get("tip") or task.inputs.get("start") or "")
        if tip and task.inputs.get("base"):
            context.tips.fetch_missing([tip, task.inputs["base"]])
            return ItemChange(str(task.inputs["base"]), tip)
    return None


def patch_of(context: "RunContext", item: Item) -> str:
    """Write the change of an item so far as a patch; empty if there is none."""
    change = change_of(context, item)
    return "" if change is None else write_patch(context, change)


def write_patch(context: "RunContext", change: ItemChange) -> str:
    """Write what differs between two commits as a patch."""
    words = ("diff-tree", "-r", "-p", "--find-renames", "--no-color", change.base, change.tip)
    return context.repository.on_objects(*words).out.decode(errors="replace")


_LONGEST_LINE = 200


def located(repository: Repository, commit: str, path: str, line: int) -> str:
    """Return the line that a comment is about. Raise NotFound for a file or a line that the change does not have."""
    content = repository.read(commit, path) if commit else None
    if content is None:
        raise NotFound(f"the change has no file {path!r}", hint="See: decklog run diff ITEM --stat", path=path)
    lines = content.decode(errors="replace").split("\n")
    if not 1 <= line <= len(lines):
        raise Invalid(f"{path} has {len(lines)} lines", hint="See: decklog run diff ITEM", field="line")
    return lines[line - 1].strip()[:_LONGEST_LINE]
