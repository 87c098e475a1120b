"""Spending by day, run, model and agent, the page about it, and the status of budgets.

The table `spend_days` has the sums of each day. Triggers of the charges keep it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.clock import from_text, to_text
from decklog.core.display import dollars
from decklog.db.base import Database, Row
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.view import View

# Global budgets first. Budgets of finished runs are left out.
_MOST_BUDGETS = 200
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
     limit {_MOST_BUDGETS}
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


TABLE = "spend_days"
KEY = ("run_id", "day", "model", "agent")
FIGURES = (
    *("calls", "input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens"),
    *("cost_microdollars", "unpriced_calls"),
)
_CHARGED = """
select coalesce(run_id, ''), substr(occurred_at, 1, 10), model, coalesce(agent, ''), count(*), cast(sum(input_tokens) as bigint),
       cast(sum(cache_read_tokens) as bigint), cast(sum(cache_create_tokens) as bigint), cast(sum(output_tokens) as bigint),
       cast(coalesce(sum(cost_microdollars), 0) as bigint), count(*) - count(cost_microdollars)
  from charges
 group by 1, 2, 3, 4
"""
# The most expensive runs, for the cost per finished task.
_MOST_RUNS = 50
# Reserved amounts of unfinished calls. An expired reservation counts nothing.
_HELD = """
select cast(coalesce(sum(microdollars - used_microdollars), 0) as bigint), count(*)
  from reservations
 where state = 'open' and expires_at > :now
"""


class SpendKey(StrEnum):
    """What the days of spending are split by."""

    NONE = "none"
    MODEL = "model"
    AGENT = "agent"
    RUN = "run"

    @property
    def column(self) -> str | None:
        return {"none": None, "run": "run_id"}.get(self.value, self.value)


SpendKeyLike = SpendKey | Literal["none", "model", "agent", "run"]


def by(db: Database, names: Sequence[str], since: str, until: str) -> list[Any]:
    """Sum up the days of a span by some columns of the key, in the order of the key. The columns are keys of the result."""
    return _sums(db, names, "day >= :since and day <= :until", {"since": since, "until": until})


def of_run(db: Database, run_id: str) -> list[dict[str, Any]]:
    """Return a run's spending by model and agent, the most expensive first."""
    rows = _sums(db, ("model", "agent"), "run_id = :run_id", {"run_id": run_id})
    return sorted(rows, key=lambda one: (-one["cost_microdollars"], one["model"], one["agent"]))


def _sums(db: Database, names: Sequence[str], condition: str, bound: dict[str, Any]) -> list[dict[str, Any]]:
    sums = ", ".join(f"cast(sum({name}) as bigint)" for name in FIGURES)
    key = ", ".join(names)
    sql = f"select {key}, {sums} from {TABLE} where {condition} group by {key} order by {key}"
    return [dict(zip((*names, *FIGURES), row, strict=True)) for row in db.rows(sql, bound)[1]]


def _dearest_first(one: dict[str, Any]) -> tuple[int, int]:
    """Return the sort key by cost, then by calls, descending."""
    return -one["cost_microdollars"], -one["calls"]


@dataclass(frozen=True, kw_only=True)
class SpendingView(View):
    """The spending of each day from `since` to `until`, in UTC. `by` has the largest items of the span, `others` the rest.

    `days` splits each day by model, `chart` by the chosen column. `today`, `week` and `month` are the current ones, for any span.
    `charged_runs` counts the runs with charges in the span; `runs` has the 50 most expensive of them as they are now.
    """

    since: str
    until: str
    shown = ("per_run", "per_task")

    days: list[dict[str, Any]]
    chart: list[dict[str, Any]]
    key: str
    by: list[dict[str, Any]]
    whole: dict[str, int]
    others: dict[str, int]
    today: dict[str, int]
    week: dict[str, int]
    month: dict[str, int]
    held: int
    reservations: int
    budgets: list[BudgetOverview]
    decisions: int
    charged_runs: int
    spent_by_runs: int
    runs: list[RunOverview]

    @property
    def per_run(self) -> int | None:
        """The average cost of a run in this span."""
        return round(self.spent_by_runs / self.charged_runs) if self.charged_runs else None

    @property
    def per_task(self) -> int | None:
        """The average cost of a finished task of the most expensive runs."""
        done = sum(run.done for run in self.runs)
        return round(sum(run.cost_microdollars for run in self.runs) / done) if done else None


def spent(db: Database, base: Any, span: tuple[date, date], column: str, most: int) -> SpendingView:
    """Load the days of a span. `base` is what every overview starts with."""
    now = base.now.astimezone(UTC).date()
    since, until, today = (day.isoformat() for day in (*span, now))
    begins = {"today": today, "week": (now - timedelta(days=now.weekday())).isoformat(), "month": f"{today[:8]}01"}
    shown, lately = by(db, ("day", "model"), since, until), by(db, ("day",), min(begins.values()), today)
    chart = shown if column == "model" else by(db, ("day", column), since, until)
    dearest = _dearest(chart, column, most)
    by_run = _dearest(chart, column) if column == "run_id" else by(db, ("run_id",), since, until)
    by_run = sorted((row for row in by_run if row["run_id"]), key=_dearest_first)
    whole, listed = _summed(shown), _summed(dearest)
    ids = [row["run_id"] for row in by_run[:_MOST_RUNS]]
    held = db.one(_HELD, {"now": to_text(base.now)}) or (0, 0)
    return SpendingView(
        since=since,
        until=until,
        days=shown,
        chart=chart,
        key=column,
        by=dearest,
        whole=whole,
        others={name: count - listed[name] for name, count in whole.items()},
        **{name: _summed([row for row in lately if row["day"] >= day]) for name, day in begins.items()},
        held=held[0],
        reservations=held[1],
        budgets=base.budgets,
        decisions=len(base.items),
        charged_runs=len(by_run),
        spent_by_runs=sum(row["cost_microdollars"] for row in by_run),
        runs=sorted(base.runs_of(db, ids), key=lambda run: ids.index(run.id)),
    )


def _summed(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {name: sum([row[name] for row in rows]) for name in FIGURES}


def _dearest(rows: list[dict[str, Any]], column: str, most: int | None = None) -> list[dict[str, Any]]:
    """Sum up the days of each model, agent or run, the most expensive first."""
    of_key: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_key.setdefault(row[column], []).append(row)
    added = [{column: key, **_summed(of_key[key])} for key in sorted(of_key)]
    return sorted(added, key=_dearest_first)[:most]


def derive(db: Database) -> None:
    """Rebuild all days."""
    db.count(f"delete from {TABLE}", {})
    db.count(f"insert into {TABLE} ({', '.join((*KEY, *FIGURES))}) {_CHARGED}", {})


def audit(db: Database) -> Iterator[dict[str, Any]]:
    """Yield a problem for each day that is not the sum of its charges."""
    expected = _by_key(db.rows(_CHARGED, {})[1])
    found = _by_key(db.each_as_is(f"select {', '.join((*KEY, *FIGURES))} from {TABLE}", {}))
    for key in sorted(found.keys() | expected.keys(), key=str):
        ours, theirs = found.get(key), expected.get(key)
        if ours != theirs:
            pairs = zip(FIGURES, ours or (), theirs or (), strict=False)
            columns = [name for name, one, other in pairs if one != other] or list(KEY)
            what = f"{TABLE} {' '.join(map(str, key))} is not the sum of its charges"
            yield {"what": what, "table": TABLE, "record_id": str(list(key)), "column": ", ".join(columns)}


def _by_key(rows: Iterable[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {tuple(row[: len(KEY)]): tuple(row[len(KEY) :]) for row in rows}
