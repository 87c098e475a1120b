"""Spend: cost by day, and whether the budgets are sufficient."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from decklog import SpendKey
from decklog.core.characters import revealed
from decklog.core.errors import Invalid
from decklog.core.figures import dollars
from decklog.web.pages.charts.columns import Chart, chart_of
from decklog.web.pages.charts.spans import CHART_PARTS, TABLE_PARTS, DaySpan, finder, span_of
from decklog.web.site import PageView, SiteRequest, command

# Each span with its label and its keyboard shortcut.
SPANS = {1: ("today", "d"), 7: ("7 days", "w"), 30: ("30 days", "m"), 90: ("90 days", "q"), 365: ("a year", None)}
KEYS = ("model", "agent", "run")
ROWS = 20
# A cut week or month has a label if it has at least this number of days.
_NAMED = 4
# Hours of a month that a projection of its cost needs.
_LEAST_HOURS = 2
_MICRO = 1_000_000
# Columns of the table of days.
_SHOWN = ("cost_microdollars", "calls", "unpriced_calls")
# Maximum length of a line of a tooltip, and of a goal in a legend.
_TIP, _GOAL = 40, 60


def read(asked: SiteRequest) -> PageView:
    """Load what was spent in a span of days, by model, agent or run."""
    now = asked.log.clock.now().astimezone(UTC)
    since, until, by = asked.word("since"), asked.word("until"), asked.word("by") or "model"
    days = asked.number("days") or (0 if since or until else 30)
    if (days and days not in SPANS) or by not in KEYS:
        raise Invalid(f"days is one of {', '.join(map(str, SPANS))}, and by one of {', '.join(KEYS)}", field="days")
    span = span_of(since, until, days or 1, now.date())
    first, last = _midnight(span.first), _midnight(span.last)
    money = asked.log.overview.money(since=first, until=last, by=SpendKey(by), limit=ROWS)
    chart = _chart(money)
    budget_runs = list({one.run_id for one in money.budgets[:50] if one.run_id})
    shown = {
        "money": money,
        "days": days,
        "spans": SPANS,
        "by": by,
        "keys": KEYS,
        "chart": chart,
        "parts_of_chart": _zones(span, money, chart),
        "parts_of_table": _rows(span, money),
        "pace": _pace(money, now),
        "names": _names(money),
        "budget_names": asked.log.overview.names(run_ids=budget_runs) if budget_runs else {},
        "runs": {run.id: run for run in money.runs},
        "day_budget": _day_budget(money),
        "shares": shares([*(row["cost_microdollars"] for row in money.by), money.others["cost_microdollars"]]),
        **_around(span, now.date()),
    }
    said = command("overview", "money", "--since", span.first, "--until", span.last, "--by", by)
    return PageView("spend.html", "Spend", said, money, shown, None, "spend", money.decisions)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _around(span: DaySpan, today: date) -> dict[str, Any]:
    """Return the neighbouring spans: the same number of days before and after, and the next wider one."""
    places = {"earlier": span.before(), "later": span.behind(today), "wider": span.around(today)}
    return {"span": span, "places": {said: place for said, place in places.items() if place is not None}}


class Zone(NamedTuple):
    """A clickable part of the chart that leads to its days. Start and width are percentages of the chart's width."""

    span: DaySpan
    name: str
    start: str
    middle: str
    width: str
    cost: int
    # The tooltip for hover and focus.
    tip: list[str]
    is_right: bool


def _zones(span: DaySpan, money: Any, chart: Chart) -> list[Zone]:
    parts, step = span.parts(CHART_PARTS), 100 / span.days
    costs, part_of = [0] * len(parts), finder(parts)
    columns = {column.place: column for column in chart.places}
    for row in money.days:
        costs[part_of(row["day"])] += row["cost_microdollars"]
    zones = []
    for number, (name, part) in enumerate(parts):
        start, width = (part.first - span.first).days * step, part.days * step
        # A cut part at either end is too narrow for its label next to the following one.
        name = "" if part.days < _NAMED and len(parts) < span.days else name
        middle = start + (step * 0.4 if part.days == 1 else width / 2)
        tip = [f"{part.said}: {dollars(costs[number])}"]
        if part.days == 1 and (column := columns.get(part.first.isoformat())):
            tip += [line[:_TIP] for line in column.parts]
        where = (f"{start:.3f}", f"{middle:.3f}", f"{width:.3f}")
        zones.append(Zone(part, name, *where, costs[number], tip, middle > 55))
    return zones


def _rows(span: DaySpan, money: Any) -> list[dict[str, Any]]:
    """Sum up the parts of the table that are not empty, newest first."""
    parts = span.parts(TABLE_PARTS)
    sums: list[dict[str, Any]] = [{"span": part, **dict.fromkeys(_SHOWN, 0)} for _, part in parts]
    part_of = finder(parts)
    for row in money.days:
        whole = sums[part_of(row["day"])]
        for name in _SHOWN:
            whole[name] += row[name]
    return [row for row in reversed(sums) if row["calls"]]


def shares(parts: Sequence[int]) -> list[int]:
    """Return percentages that add up to 100. The rounding remainder goes to the parts that lose most by it."""
    whole = sum(parts)
    if whole <= 0:
        return [0] * len(parts)
    cut = [part * 100 // whole for part in parts]
    by_loss = sorted(range(len(parts)), key=lambda place: -(parts[place] * 100 % whole))
    for place in by_loss[: 100 - sum(cut)]:
        cut[place] += 1
    return cut


def _chart(money: Any) -> Chart:
    budget, names = _day_budget(money), _names(money)
    spent = tuple([(names.get(row[money.key], row[money.key]), row["day"], row["cost_microdollars"]) for row in money.chart])
    return _drawn(money.since, money.until, spent, budget.ceiling if budget else None)


def _names(money: Any) -> dict[str, str]:
    """Return the names of runs (their goals), and of what has no agent or run."""
    names = {run.id: run.goal[:_GOAL] for run in money.runs} if money.key == "run_id" else {}
    return {"": "none", **names}


# Cached, because an open page reloads often, mostly with the same chart.
@lru_cache(maxsize=16)
def _drawn(since: str, until: str, spent: tuple[tuple[str, str, int], ...], ceiling: int | None) -> Chart:
    first, last = date.fromisoformat(since), date.fromisoformat(until)
    days = [(first + timedelta(days=place)).isoformat() for place in range((last - first).days + 1)]
    values: dict[str, dict[str, int]] = {}
    for kind, day, cost in spent:
        days_of = values.setdefault(revealed(kind), {})
        days_of[day] = days_of.get(day, 0) + cost
    return chart_of(days, values, dollars, ceiling=ceiling)


def _day_budget(money: Any) -> Any:
    fits = (one for one in money.budgets if (one.scope, one.unit, one.period) == ("all", "microdollars", "day"))
    return next(fits, None)


def _pace(money: Any, now: Any) -> str | None:
    """Return the projected cost of the month by linear extrapolation."""
    moment = now.astimezone(UTC)
    start = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    passed, spent = (moment - start).total_seconds() / 3600, money.month["cost_microdollars"]
    following = (start + timedelta(days=32)).replace(day=1)
    hours = (following - start).total_seconds() / 3600
    if not spent or passed < _LEAST_HOURS:
        return None
    projected = round(spent * hours / passed)
    # A projection has no cents, unless it is a small one.
    return dollars(projected) if projected < 10 * _MICRO else f"${round(projected / _MICRO):,}"
