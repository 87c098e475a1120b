"""The whole log in one sentence, with the facts behind it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from decklog.core.figures import counted, dollars
from decklog.stores.overview.budgets import BudgetOverview, global_budget
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.status import Status
from decklog.stores.overview.view import View
from decklog.stores.overview.waiting import WaitingItem


@dataclass(frozen=True, kw_only=True)
class Summary(View):
    """The summary of a log. `waiting` and `runs` are the first of those that `decisions` and `counts` count.

    With `is_cut` there are more unfinished runs than checked; only the newest are counted.
    """

    at: datetime
    sentence: str
    decisions: int
    waiting: list[WaitingItem]
    counts: dict[str, int]
    agents: int
    runs: list[RunOverview]
    spent_today: int
    unpriced_today: int
    budgets: list[BudgetOverview]
    is_new: bool
    is_cut: bool = False


def sentence(
    decisions: int,
    counts: Mapping[str, int],
    at_work: tuple[int, int],
    today: int,
    budgets: Sequence[BudgetOverview],
    *,
    is_new: bool,
    is_cut: bool,
) -> str:
    """Build one to three sentences: what waits, how many agents work on how many runs, and the cost."""
    if is_new:
        return "Nothing has happened in this log yet."
    waits = f"{counted(decisions, 'decision')} {'waits' if decisions == 1 else 'wait'}" if decisions else "Nothing waits"
    parts = [f"{waits} for you.", _work(counts, *at_work)]
    if is_cut:
        parts.append(f"Only the {sum(counts.values()):,} newest runs under way are counted.")
    if cost := _cost(today, budgets):
        parts.append(cost)
    return " ".join(parts)


def by_status(runs: Iterable[RunOverview]) -> dict[str, int]:
    """Count runs by status."""
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.status.value] = counts.get(run.status.value, 0) + 1
    return counts


def _work(counts: Mapping[str, int], agents: int, runs: int) -> str:
    """Count the distinct agents with a live lease and the runs that they work on."""
    stalled = counts.get(Status.STALLED, 0)
    idle = counts.get(Status.RUNNING, 0) + counts.get(Status.NEEDS_ATTENTION, 0) - runs
    parts = []
    if agents:
        parts.append(f"{counted(agents, 'agent')} {'works' if agents == 1 else 'work'} on {counted(runs, 'run')}")
    if idle:
        parts.append(f"{f'{idle:,} more' if agents else counted(idle, 'run')} {'is' if idle == 1 else 'are'} under way")
    if stalled:
        parts.append(f"{f'{stalled:,}' if parts else counted(stalled, 'run')} {'has' if stalled == 1 else 'have'} stalled")
    return f"{'; '.join(parts)}." if parts else "Nothing is running."


def _cost(today: int, budgets: Sequence[BudgetOverview]) -> str:
    budget = global_budget(budgets)
    if budget is None:
        return f"{dollars(today)} spent today." if today else ""
    if budget.period == "day":
        return f"{dollars(today)} spent today of {dollars(budget.ceiling)}."
    span = "in all" if budget.period == "forever" else f"this {budget.period}"
    return f"{dollars(today)} spent today, {dollars(budget.spent)} of {dollars(budget.ceiling)} {span}."
