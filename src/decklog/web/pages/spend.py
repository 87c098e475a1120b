"""Spend: cost by day, and whether the budgets are sufficient."""

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from decklog import SpendKey
from decklog.core.display import DOLLAR, dollars, revealed
from decklog.core.errors import Invalid
from decklog.web.pages.charts import Chart, build_chart
from decklog.web.site import PageView, SiteRequest, command

LONGEST = 400


_DAY = timedelta(days=1)


# Up to the first number of days a part is a day, up to the second a week, beyond it a month.
CHART_PARTS, TABLE_PARTS = (31, 100), (31, 100)


@dataclass(frozen=True)
class DaySpan:
    """A span of days, including the first and the last."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def said(self) -> str:
        return f"{self.first}" if self.days == 1 else f"{self.first} to {self.last}"

    @property
    def query(self) -> str:
        return f"since={self.first}&until={self.last}"

    def before(self) -> "DaySpan | None":
        """Return the span of the same length that ends just before this one."""
        try:
            return DaySpan(self.first - self.days * _DAY, self.first - _DAY)
        except OverflowError:
            return None

    def behind(self, today: date) -> "DaySpan | None":
        """Return the span of the same length just after this one, up to today."""
        return DaySpan(self.last + _DAY, min(self.last + self.days * _DAY, today)) if self.last < today else None

    def around(self, today: date) -> "DaySpan | None":
        """Return the next wider span around this one: its week, month or year."""
        monday = self.first - self.first.weekday() * _DAY
        month = DaySpan(self.first.replace(day=1), _end_of_month(self.first))
        year = DaySpan(date(self.first.year, 1, 1), date(self.first.year, 12, 31))
        for whole in (DaySpan(monday, monday + 6 * _DAY), month, year):
            wider = DaySpan(whole.first, min(whole.last, max(today, self.last)))
            if wider.days > self.days and wider.first <= self.first and self.last <= wider.last:
                return wider
        return None

    def parts(self, most: tuple[int, int]) -> "list[tuple[str, DaySpan]]":
        """Split the span into days, weeks or months with their labels, so that the number stays small."""
        days, weeks = most
        if self.days <= days:
            return [(_day_of(one, self.first), DaySpan(one, one)) for one in self.each()]
        begins = [one for one in self.each() if (one.weekday() == 0 if self.days <= weeks else one.day == 1) or one == self.first]
        ends = [*(one - _DAY for one in begins[1:]), self.last]
        name = _day_and_month if self.days <= weeks else _month_of
        return [(name(first), DaySpan(first, last)) for first, last in zip(begins, ends, strict=True)]

    def each(self) -> list[date]:
        return [self.first + number * _DAY for number in range(self.days)]


def parse_span(since: str | None, until: str | None, days: int, today: date) -> DaySpan:
    """Parse a span from an address: a number of days until today, or the days from one to another."""
    last = _read(until, "until") if until else today
    first = _read(since, "since") if since else last - (days - 1) * _DAY
    if not 1 <= (last - first).days + 1 <= LONGEST:
        raise Invalid(f"from {first} to {last} is no span of 1 to {LONGEST} days", field="since")
    return DaySpan(first, last)


def finder(parts: "Sequence[tuple[str, DaySpan]]") -> Callable[[str], int]:
    """Return a function that finds the part of a day."""
    begins = [span.first.isoformat() for _, span in parts]
    return lambda day: bisect_right(begins, day) - 1


def _read(text: str, field: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{field} is {text!r}: write a day as 2026-11-15", field=field) from None


def _end_of_month(day: date) -> date:
    return day.replace(day=monthrange(day.year, day.month)[1])


def _day_and_month(day: date) -> str:
    return f"{day.day} {day:%b}"


def _day_of(day: date, first: date) -> str:
    """Return the label of a day: its number, with the month on the first day and at each start of a month."""
    return _day_and_month(day) if day == first or day.day == 1 else str(day.day)


def _month_of(day: date) -> str:
    return f"{day:%b}" if day.month > 1 else f"{day:%b %Y}"


# The page


# Each span with its label and its keyboard shortcut.
SPANS = {1: ("today", "d"), 7: ("7 days", "w"), 30: ("30 days", "m"), 90: ("90 days", "q"), 365: ("a year", None)}
KEYS = ("model", "agent", "run")
ROWS = 20
# A cut week or month has a label if it has at least this number of days.
_NAMED = 4
# Hours of a month that a projection of its cost needs.
_LEAST_HOURS = 2
# Columns of the table of days.
_SHOWN = ("cost_microdollars", "calls", "unpriced_calls")
# Maximum length of a line of a tooltip, and of a goal in a legend.
_TIP, _GOAL = 40, 60


def read(request: SiteRequest) -> PageView:
    """Load what was spent in a span of days, by model, agent or run."""
    now = request.log.clock.now().astimezone(UTC)
    since, until, by = request.word("since"), request.word("until"), request.word("by") or "model"
    days = request.number("days") or (0 if since or until else 30)
    if (days and days not in SPANS) or by not in KEYS:
        raise Invalid(f"days is one of {', '.join(map(str, SPANS))}, and by one of {', '.join(KEYS)}", field="days")
    span = parse_span(since, until, days or 1, now.date())
    first, last = _midnight(span.first), _midnight(span.last)
    money = request.log.overview.money(since=first, until=last, by=SpendKey(by), limit=ROWS)
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
        "budget_names": request.log.overview.names(run_ids=budget_runs) if budget_runs else {},
        "runs": {run.id: run for run in money.runs},
        "day_budget": _day_budget(money),
        "shares": shares([*(row["cost_microdollars"] for row in money.by), money.others["cost_microdollars"]]),
        **_around(span, now.date()),
    }
    shell_line = command("overview", "money", "--since", span.first, "--until", span.last, "--by", by)
    return PageView("spend.html", "Spend", shell_line, money, shown, None, "spend", money.decisions)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _around(span: DaySpan, today: date) -> dict[str, Any]:
    """Return the neighbouring spans: the same number of days before and after, and the next wider one."""
    places = {"earlier": span.before(), "later": span.behind(today), "wider": span.around(today)}
    return {"span": span, "places": {label: place for label, place in places.items() if place is not None}}


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


def _drawn(since: str, until: str, spent: tuple[tuple[str, str, int], ...], ceiling: int | None) -> Chart:
    first, last = date.fromisoformat(since), date.fromisoformat(until)
    days = [(first + timedelta(days=place)).isoformat() for place in range((last - first).days + 1)]
    values: dict[str, dict[str, int]] = {}
    for kind, day, cost in spent:
        days_of = values.setdefault(revealed(kind), {})
        days_of[day] = days_of.get(day, 0) + cost
    return build_chart(days, values, dollars, ceiling=ceiling)


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
    return dollars(projected) if projected < 10 * DOLLAR else f"${round(projected / DOLLAR):,}"
