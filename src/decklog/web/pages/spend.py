"""Spend: where the money goes, day by day, and whether the budgets will hold."""

from datetime import UTC, date, timedelta
from functools import lru_cache
from typing import Any

from decklog import SpendKey
from decklog.characters import revealed
from decklog.errors import Invalid
from decklog.figures import dollars
from decklog.web.pages.charts.columns import Chart, chart_of
from decklog.web.site import Asked, View, command

# Each with its words, and the key that leads to it.
SPANS = {1: ("today", "d"), 7: ("7 days", "w"), 30: ("30 days", "m"), 90: ("90 days", "q"), 365: ("a year", None)}
KEYS = ("model", "agent", "run")
ROWS = 20
# Of a long span, this many days are listed; the chart has all of them.
_LISTED = 31
# Below this much of a month a straight line through it says nothing.
_LEAST_HOURS = 2


def read(asked: Asked) -> View:
    """Read what was spent in a span of days, by what it is told apart."""
    days, by = asked.number("days") or 30, asked.word("by") or "model"
    if days not in SPANS or by not in KEYS:
        raise Invalid(f"days is one of {', '.join(map(str, SPANS))}, and by one of {', '.join(KEYS)}", field="days")
    money = asked.log.overview.money(days=days, by=SpendKey(by), limit=ROWS)
    shown = {
        "money": money,
        "span": days,
        "spans": SPANS,
        "by": by,
        "keys": KEYS,
        "chart": _chart(money),
        "listed": _by_day(money)[:_LISTED],
        "pace": _pace(money, asked.log.clock.now()),
        "day_budget": _day_budget(money),
        "share": _share,
    }
    said = command("overview", "money", "--days", days, "--by", by)
    return View("spend.html", "Spend", said, money, shown, None, "spend", money.decisions)


def _share(part: int, whole: int) -> int:
    return round(part * 100 / whole) if whole else 0


def _by_day(money: Any) -> list[dict[str, Any]]:
    """Add the models of each day up, the newest first."""
    found: dict[str, dict[str, Any]] = {}
    for row in money.days:
        day = found.setdefault(row["day"], {"day": row["day"], **dict.fromkeys(money.whole, 0)})
        for name in money.whole:
            day[name] += row[name]
    return sorted(found.values(), key=lambda row: str(row["day"]), reverse=True)


def _chart(money: Any) -> Chart:
    budget = _day_budget(money)
    spent = tuple([(row["model"], row["day"], row["cost_microdollars"]) for row in money.days])
    return _drawn(money.since, money.until, spent, budget.ceiling if budget else None)


# A page that is open is read again and again, mostly with the same chart.
@lru_cache(maxsize=16)
def _drawn(since: str, until: str, spent: tuple[tuple[str, str, int], ...], ceiling: int | None) -> Chart:
    first, last = date.fromisoformat(since), date.fromisoformat(until)
    days = [(first + timedelta(days=place)).isoformat() for place in range((last - first).days + 1)]
    values: dict[str, dict[str, int]] = {}
    for model, day, cost in spent:
        days_of = values.setdefault(revealed(model), {})
        days_of[day] = days_of.get(day, 0) + cost
    return chart_of(days, values, dollars, ceiling=ceiling)


def _day_budget(money: Any) -> Any:
    fits = (one for one in money.budgets if (one.scope, one.unit, one.period) == ("all", "microdollars", "day"))
    return next(fits, None)


def _pace(money: Any, now: Any) -> str | None:
    """Say where the month ends on a straight line through what there is of it."""
    moment = now.astimezone(UTC)
    start = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    passed, spent = (moment - start).total_seconds() / 3600, money.month["cost_microdollars"]
    following = (start + timedelta(days=32)).replace(day=1)
    hours = (following - start).total_seconds() / 3600
    return dollars(round(spent * hours / passed)) if spent and passed >= _LEAST_HOURS else None
