"""A work item of a run with its tasks: found by its name, with its change so far."""

from dataclasses import dataclass
from typing import Any

from decklog.conductor.stages import LAND, WORK, newest_landing
from decklog.core.errors import Invalid, NotFound
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
    tasks: tuple[Task, ...]

    @property
    def landing(self) -> Task:
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
    def open_tasks(self) -> list[Task]:
        """The tasks that are neither done nor given up."""
        return [task for task in self.tasks if task.state.value not in ("done", "abandoned")]

    @property
    def work(self) -> Task | None:
        """The task in which it is worked on now, or will be next; None between rounds."""
        return next((task for task in reversed(self.open_tasks) if task.role == WORK), None)


def split_name(text: str) -> tuple[str | None, str]:
    """Split ITEM or RUN.ITEM into the run, None if it is not named, and the item."""
    run_id, _, name = text.rpartition(".")
    if not name:
        raise Invalid(f"{text!r} names no work item", hint="Write ITEM, or RUN.ITEM.", field="item")
    return run_id or None, name


def find_item(log: Decklog, run_id: str, name: str) -> Item:
    """Find a work item of a run. Raise NotFound with the existing names."""
    tasks = tuple(log.tasks.find(run_id, tag=f"item:{name}", limit=_MOST_TASKS))
    if not any(task.role == LAND for task in tasks):
        landings = log.tasks.find(run_id, role=LAND, limit=_MOST_TASKS)
        names = sorted({tag.removeprefix("item:") for task in landings for tag in task.tags if tag.startswith("item:")})
        raise NotFound(
            f"run {run_id} has no work item {name!r}", hint=f"It has {', '.join(names) or 'none yet'}.", run_id=run_id, item=name
        )
    return Item(run_id, name, tasks)
