"""Runs behind edits: their cost and model, and runs of sessions that only other tools have recorded."""

from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from decklog.agents.entries import run_of_session
from decklog.core.errors import NotFound
from decklog.log import Decklog
from decklog.stores.runs.run import ENDED

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


def model_of_run(log: Decklog, run_id: str | None) -> str | None:
    """Return the model of a session's run; None if it is unknown."""
    try:
        found = None if run_id is None else log.runs.get(run_id).metadata.get("model")
    except NotFound:
        return None
    return found if isinstance(found, str) else None


def ensure_run(
    log: Decklog, session: str, goal: str, *, source: str, model: str | None, at: datetime | None, prompt: str | None = None
) -> str:
    """Return the run of a session; create the run, which has ended, if it does not exist."""
    program, _, conversation = session.partition(":")
    run_id = run_of_session(program, conversation)
    with suppress(NotFound):
        return log.runs.get(run_id).id
    metadata: dict[str, object] = {"program": program, "session": conversation, "source": source}
    if model:
        metadata["model"] = model
    run = log.runs.start(goal, run_id=run_id, metadata=metadata, started_at=at)
    if prompt and prompt.strip():
        log.journal.append(run_id, prompt, kind="interaction", subtype="prompt", agent="person", key=f"{source}:prompt", at=at)
    return run_id if run.status in ENDED else log.runs.finish(run_id, ended_at=at).id
