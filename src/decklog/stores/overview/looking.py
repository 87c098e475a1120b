"""How every overview is read: at one moment, from marks that are moved first where they are far behind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from decklog.core.errors import Busy, Denied, ReadOnly
from decklog.stores.base import Store
from decklog.stores.overview import spending, task_counts, waiting
from decklog.stores.overview.budgets import BudgetStanding
from decklog.stores.overview.run_facts import OverviewMoment, OverviewOutdated, RunOverview, check_marks, look
from decklog.stores.overview.spending import Charged
from decklog.stores.overview.waiting import WaitingItem

T = TypeVar("T")


@dataclass(frozen=True)
class Base:
    """What every overview begins with."""

    moment: OverviewMoment
    budgets: "list[BudgetStanding]"
    items: "list[WaitingItem]"
    charged: "list[Charged]"

    @property
    def by_run(self) -> dict[str, int]:
        """Count what holds each run up."""
        return waiting.by_run(self.items)

    @property
    def tasks(self) -> set[str | None]:
        """Name the tasks that something holds up."""
        return {item.task_id for item in self.items if item.holds_up}


class Looking(Store):
    """Reads what overviews are made of."""

    def _looked(self, job: Callable[[bool], T]) -> T:
        """Read at one moment; where marks are far behind, move them first, if this log may be written."""
        # Inside of a read, which sees one moment, marks that are moved now would not be seen.
        can_move = not (self._db.read_only or self._db.is_reading)
        # Once for task counts and once for spending. Beyond that others write faster than this reads; their entries are counted.
        for _ in range(2):
            try:
                return self._db.read(lambda: job(can_move), same_plans=True)  # noqa: B023 - it is called before the next round
            except OverviewOutdated as behind:
                can_move = self._moved(behind)
        return self._db.read(lambda: job(False), same_plans=True)

    def _moved(self, behind: OverviewOutdated) -> bool:
        """Move marks; say whether that was permitted."""
        try:
            for run_id in behind.run_ids:
                task_counts.catch_up(self._db, run_id)
            if behind.of_spending:
                spending.catch_up(self._db)
        except (Denied, ReadOnly, Busy):
            return False
        return True

    def _base(self, can_move_marks: bool) -> Base:
        moment = OverviewMoment(now=self._now(), steady_now=self._steady_now(), can_move_marks=can_move_marks)
        base = Base(moment, *waiting.read(self._db, moment.now))
        # Whoever looks reads which streams were charged to since their marks: if only some moved these, all would read more.
        check_marks(base.charged, can_move_marks)
        return base

    def _look(self, base: Base, sql: str, bound: Mapping[str, Any]) -> list[RunOverview]:
        return look(self._db, sql, bound, base.moment, base.by_run)
