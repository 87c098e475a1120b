"""Spending: each day by model, the largest items of a span, reservations, and the status of budgets."""

from dataclasses import dataclass
from datetime import UTC, date, timedelta
from itertools import repeat
from operator import itemgetter
from typing import Any

from decklog.core.clock import to_text
from decklog.db.base import Database
from decklog.db.where import placed
from decklog.stores.overview import spending
from decklog.stores.overview.budgets import BudgetOverview
from decklog.stores.overview.run_facts import RunOverview, look

# At least this number of days is loaded, because the current week and month are summed up from them.
_LEAST_DAYS = 31
# The most expensive runs, for the cost per finished task.
_MOST_RUNS = 50
# Reserved amounts of unfinished calls. An expired reservation counts nothing.
_HELD = """
select cast(coalesce(sum(microdollars - used_microdollars), 0) as bigint), count(*)
  from reservations
 where state = 'open' and expires_at > :now
"""


@dataclass(frozen=True, kw_only=True)
class SpendingView:
    """The spending of each day from `since` to `until`, in UTC. `by` has the largest items of the span, `others` the rest.

    `days` splits each day by model, `chart` by the chosen column. `today`, `week` and `month` are the current ones, for any span.
    `charged_runs` counts the runs with charges in the span; `runs` has the 50 most expensive of them as they are now.
    """

    since: str
    until: str
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

    def as_dict(self) -> dict[str, Any]:
        lists = {name: [one.as_dict() for one in getattr(self, name)] for name in ("budgets", "runs")}
        return {**vars(self), **lists, "per_run": self.per_run, "per_task": self.per_task}


def spent(db: Database, base: Any, span: tuple[date, date], column: str, most: int) -> SpendingView:
    """Load the days of a span. `base` is what every overview starts with."""
    now = base.moment.now.astimezone(UTC).date()
    since, until, today = (day.isoformat() for day in (*span, now))
    lately = (now - timedelta(days=_LEAST_DAYS - 1)).isoformat()
    # A span in the distant past is loaded separately, because there may be many days between it and today.
    is_apart = until < lately
    every = spending.by(db, ("day", "model"), lately if is_apart else min(since, lately), max(until, today), base.charged)
    shown = spending.by(db, ("day", "model"), since, until, base.charged) if is_apart else _between(every, since, until)
    chart = shown if column == "model" else spending.by(db, ("day", column), since, until, base.charged)
    dearest = _dearest(chart, column, most)
    by_run = _dearest(chart, column) if column == "run_id" else spending.by(db, ("run_id",), since, until, base.charged)
    by_run = sorted((row for row in by_run if row["run_id"]), key=spending.dearest_first)
    whole, listed = _summed(shown), _summed(dearest)
    held = db.one(_HELD, {"now": to_text(base.moment.now)}) or (0, 0)
    begins = {"today": today, "week": (now - timedelta(days=now.weekday())).isoformat(), "month": f"{today[:8]}01"}
    return SpendingView(
        since=since,
        until=until,
        days=shown,
        chart=chart,
        key=column,
        by=dearest,
        whole=whole,
        others={name: count - listed[name] for name, count in whole.items()},
        **{name: _summed(_between(every, day, today)) for name, day in begins.items()},
        held=held[0],
        reservations=held[1],
        budgets=base.budgets,
        decisions=len(base.items),
        charged_runs=len(by_run),
        spent_by_runs=sum(row["cost_microdollars"] for row in by_run),
        runs=_runs(db, base, [row["run_id"] for row in by_run[:_MOST_RUNS]]),
    )


def _runs(db: Database, base: Any, ids: list[str]) -> list[RunOverview]:
    """Load runs as they are now, in the order of the ids."""
    marks, bound = placed(ids)
    found = {run.id: run for run in look(db, f"select * from runs where id in ({marks})", bound, base.moment, base.by_run)}
    return [found[run_id] for run_id in ids if run_id in found]


_FIGURES = itemgetter(*spending.FIGURES)


def _between(rows: list[dict[str, Any]], since: str, until: str) -> list[dict[str, Any]]:
    return [row for row in rows if since <= row["day"] <= until]


def _summed(rows: list[dict[str, Any]]) -> dict[str, int]:
    sums = map(sum, zip(*map(_FIGURES, rows), strict=True)) if rows else repeat(0)
    return dict(zip(spending.FIGURES, sums, strict=False))


def _dearest(rows: list[dict[str, Any]], column: str, most: int | None = None) -> list[dict[str, Any]]:
    """Sum up the days of each model, agent or run, the most expensive first."""
    of_key: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_key.setdefault(row[column], []).append(row)
    added = [{column: key, **_summed(of_key[key])} for key in sorted(of_key)]
    return sorted(added, key=spending.dearest_first)[:most]
