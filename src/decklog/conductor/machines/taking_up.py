"""What another host kept of an attempt before it died: its refs are at the remote, and the log knows how its agent ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decklog.conductor.agents.session import SessionOutcome

if TYPE_CHECKING:
    from decklog.conductor.site import RunContext
    from decklog.stores.tasks.task import Task

# An attempt that ended so has told nothing of what came of it.
_UNTOLD = ("expired", "released")


@dataclass(frozen=True)
class Untold:
    """An attempt that ended and was kept, and was handed on by nobody: by its fence, how it ended, and what is kept of it."""

    fence: int
    outcome: SessionOutcome
    kept: Mapping[str, Any]


def untold(site: "RunContext", task: "Task") -> Untold | None:
    """Find what the last attempt at a task left if it was kept but not handed on; none is null.

    One that met bad weather has nothing to hand on.
    """
    if task.attempts < 2:
        return None
    effects = site.log.effects.find(site.run_id, tool="conductor.keep", task_id=task.id, limit=1)
    if not effects or effects[0].state != "done" or "outcome" not in effects[0].facts:
        return None
    # Listed without long results.
    keep = site.log.effects.get(effects[0].id)
    fence = int(keep.step.rpartition(":")[2])
    if keep.step != f"keep:{task.id}:{fence}":
        return None  # a fork's copy of what was another run's
    later = [one for one in site.log.tasks.attempts(task.id) if fence <= one.fence < task.fence]
    if not later or any(one.outcome not in _UNTOLD for one in later):
        return None
    told, kept = keep.facts["outcome"], keep.result
    assert isinstance(told, dict)
    assert isinstance(kept, dict)
    outcome = SessionOutcome.from_dict(told)
    return None if outcome.is_weather else Untold(fence, outcome, kept)
