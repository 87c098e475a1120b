"""Cost of the sessions behind edits."""

from typing import NamedTuple

from decklog.log import Decklog

_PAGE = 200


class WorkCost(NamedTuple):
    """A sum in microdollars, and the number of calls without a known price."""

    microdollars: int = 0
    unpriced_calls: int = 0

    def plus(self, other: "WorkCost") -> "WorkCost":
        """Return the sum of both costs."""
        return WorkCost(self.microdollars + other.microdollars, self.unpriced_calls + other.unpriced_calls)


NO_COST = WorkCost()


def cost_of_work(log: Decklog, run_id: str, task_id: str | None) -> WorkCost:
    """Return the cost of a task; without a task, that of the run and its sub-agents."""
    below = [] if task_id is not None else [run.id for run in log.runs.find(parent_run_id=run_id, limit=_PAGE)]
    total = NO_COST
    for name in (run_id, *below):
        spent = log.ledger.summary(name, task_id=task_id)["total"]
        total = total.plus(WorkCost(spent["cost_microdollars"], spent["unpriced_calls"]))
    return total
