"""Where the money goes: each day by model, the dearest of a span, what is reserved, and the status of the budgets."""

from dataclasses import dataclass
from datetime import UTC, date, timedelta
from itertools import repeat
from operator import itemgetter
from typing import Any

from decklog.core.clock import to_text
from decklog.db.base import Database
from decklog.stores.overview import spending
from decklog.stores.overview.budgets import BudgetStanding

# This many days are read at least: the present week and month are added up from them.
_LEAST_DAYS = 31
# What is reserved for calls under way. One whose time is over holds nothing any more.
_HELD = """
select cast(coalesce(sum(microdollars - used_microdollars), 0) as bigint), count(*)
  from reservations
 where state = 'open' and expires_at > :now
"""


@dataclass(frozen=True, kw_only=True)
class MoneyPicture:
    """What was spent on each day from `since` to `until`, both in UTC; `by` has the dearest of the span, and `others` the rest.

    `today`, `week` and `month` are the present ones, regardless of the span is.
    """

    since: str
    until: str
    days: "list[dict[str, Any]]"
    key: str
    by: "list[dict[str, Any]]"
    whole: dict[str, int]
    others: dict[str, int]
    today: dict[str, int]
    week: dict[str, int]
    month: dict[str, int]
    held: int
    reservations: int
    budgets: "list[BudgetStanding]"
    decisions: int

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "budgets": [one.as_dict() for one in self.budgets]}


def spent(db: Database, base: Any, span: tuple[date, date], column: str, most: int) -> MoneyPicture:
    """Read the days from one to another; `base` is what every overview begins with."""
    now = base.moment.now.astimezone(UTC).date()
    since, until, today = (day.isoformat() for day in (*span, now))
    lately = (now - timedelta(days=_LEAST_DAYS - 1)).isoformat()
    # What lies far back is read separately: up to today it could be any number of days.
    is_apart = until < lately
    every = spending.by(db, ("day", "model"), lately if is_apart else min(since, lately), max(until, today), base.charged)
    shown = spending.by(db, ("day", "model"), since, until, base.charged) if is_apart else _between(every, since, until)
    if column == "model":
        dearest = _dearest(shown, most)
    else:
        dearest = spending.by(db, (column,), since, until, base.charged, dearest=most)
    whole, listed = _summed(shown), _summed(dearest)
    held = db.one(_HELD, {"now": to_text(base.moment.now)}) or (0, 0)
    begins = {"today": today, "week": (now - timedelta(days=now.weekday())).isoformat(), "month": f"{today[:8]}01"}
    return MoneyPicture(
        since=since,
        until=until,
        days=shown,
        key=column,
        by=dearest,
        whole=whole,
        others={name: count - listed[name] for name, count in whole.items()},
        **{name: _summed(_between(every, day, today)) for name, day in begins.items()},
        held=held[0],
        reservations=held[1],
        budgets=base.budgets,
        decisions=len(base.items),
    )


_FIGURES = itemgetter(*spending.FIGURES)


def _between(rows: list[dict[str, Any]], since: str, until: str) -> list[dict[str, Any]]:
    return [row for row in rows if since <= row["day"] <= until]


def _summed(rows: list[dict[str, Any]]) -> dict[str, int]:
    sums = map(sum, zip(*map(_FIGURES, rows), strict=True)) if rows else repeat(0)
    return dict(zip(spending.FIGURES, sums, strict=False))


def _dearest(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Add the days of each model up: they have been read already."""
    of_model: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of_model.setdefault(row["model"], []).append(row)
    added = [{"model": model, **_summed(of_model[model])} for model in sorted(of_model)]
    return sorted(added, key=spending.dearest_first)[:most]
