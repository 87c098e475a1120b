"""What the sessions behind edits cost."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from decklog.log import Decklog

_PAGE = 200


class WorkCost(NamedTuple):
    """A sum of money, and how many calls in it have no known price."""

    microdollars: int = 0
    unpriced_calls: int = 0

    def plus(self, other: "WorkCost") -> "WorkCost":
        """Add another sum."""
        return WorkCost(self.microdollars + other.microdollars, self.unpriced_calls + other.unpriced_calls)


NO_COST = WorkCost()


def cost_of_work(log: "Decklog", run_id: str, task_id: str | None) -> WorkCost:
    """Return what a task of a run cost; without a task, what the run and its sub-agents cost."""
    below = [] if task_id is not None else [run.id for run in log.runs.find(parent_run_id=run_id, limit=_PAGE)]
    total = NO_COST
    for name in (run_id, *below):
        spent = log.ledger.summary(name, task_id=task_id)["total"]
        total = total.plus(WorkCost(spent["cost_microdollars"], spent["unpriced_calls"]))
    return total
