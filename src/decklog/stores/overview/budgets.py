"""The status of all budgets."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from decklog.core.clock import from_text
from decklog.core.figures import dollars
from decklog.db.base import Database
from decklog.stores.overview.view import View

# Global budgets first. Budgets of finished runs are left out.
MOST = 200
_PERIOD = "case b.period when 'day' then :day when 'week' then :week when 'month' then :month else '' end"
_BUDGETS = f"""
select b.id, b.scope, b.scope_id, b.period, b.unit, b.action, b.ceiling, b.warn_percent,
       coalesce(max(d.as_of), b.set_at) as last_at, coalesce(r.id, g.run_id) as run_id,
       cast(coalesce(sum(case b.unit when 'tokens' then d.tokens else d.microdollars end), 0) as bigint) as spent,
       cast(coalesce(sum(case when d.day = :day then d.microdollars else 0 end), 0) as bigint) as today,
       cast(coalesce(sum(d.unpriced_calls), 0) as bigint) as unpriced_calls,
       cast(coalesce(sum(case when d.day = :day then d.unpriced_calls else 0 end), 0) as bigint) as unpriced_today
  from (
    select b.*
      from budgets b
      left join runs r on b.scope = 'run' and r.id = b.scope_id
     where b.scope <> 'run' or r.status in ('planning', 'active', 'paused')
     order by case b.scope when 'all' then 0 else 1 end, b.set_at desc, b.id
     limit {MOST}
  ) b
  left join budget_days d on d.budget_id = b.id and d.day >= {_PERIOD}
  left join runs r on b.scope = 'run' and r.id = b.scope_id
  left join tasks g on b.scope = 'task' and g.id = b.scope_id
 group by b.id, b.scope, b.scope_id, b.period, b.unit, b.ceiling, b.action, b.warn_percent, b.set_at, r.id, g.run_id
 order by case b.scope when 'all' then 0 else 1 end, b.set_at desc, b.id
"""


@dataclass(frozen=True, kw_only=True)
class BudgetOverview(View):
    """A budget in its current period. `today` is its spending of this UTC day, in microdollars."""

    shown = ("percent", "state")

    id: str
    scope: str
    scope_id: str | None
    period: str
    unit: str
    ceiling: int
    action: str
    warn_percent: int
    spent: int
    today: int
    unpriced_calls: int
    unpriced_today: int
    last_at: datetime
    run_id: str | None

    @property
    def percent(self) -> int:
        return self.spent * 100 // self.ceiling if self.ceiling else 100

    @property
    def state(self) -> str:
        """The status: ok, warn, or stop if nothing more may be spent."""
        if self.stops:
            return "stop"
        return "warn" if self.percent >= self.warn_percent else "ok"

    @property
    def stops(self) -> bool:
        return self.action == "stop" and self.spent >= self.ceiling

    @property
    def whose(self) -> str:
        return "everything" if self.scope == "all" else f"{self.scope} {self.scope_id}"

    @property
    def said(self) -> str:
        """The spending in words: `$11.40 of $50.00 a day`."""
        period = "in all" if self.period == "forever" else f"a {self.period}"
        if self.unit == "tokens":
            return f"{self.spent:,} of {self.ceiling:,} tokens {period}"
        return f"{dollars(self.spent)} of {dollars(self.ceiling)} {period}"


def global_budget(budgets: Sequence[BudgetOverview]) -> BudgetOverview | None:
    """Return the first budget of money for everything."""
    return next((one for one in budgets if one.scope == "all" and one.unit == "microdollars"), None)


def budget_overviews(db: Database, now: datetime) -> list[BudgetOverview]:
    """Load the status of the budgets in their current periods, global ones first."""
    today = now.astimezone(UTC).date()
    starts = {"day": today, "week": today - timedelta(days=today.weekday()), "month": today.replace(day=1)}
    names, rows = db.rows(_BUDGETS, {name: day.isoformat() for name, day in starts.items()})
    found: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
    return [BudgetOverview(**{**one, "last_at": from_text(one["last_at"])}) for one in found]
