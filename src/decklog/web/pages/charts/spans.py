"""Spans of days: parsing them from an address, neighbouring spans, and their division into parts."""

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from decklog.core.errors import Invalid

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


def span_of(since: str | None, until: str | None, days: int, today: date) -> DaySpan:
    """Parse a span from an address: a number of days until today, or the days from one to another."""
    last = _read(until, "until") if until else today
    first = _read(since, "since") if since else last - (days - 1) * _DAY
    if not 1 <= (last - first).days + 1 <= LONGEST:
        raise Invalid(f"from {first} to {last} is no span of 1 to {LONGEST} days", field="since")
    return DaySpan(first, last)


def finder(parts: "Sequence[tuple[str, DaySpan]]") -> "Callable[[str], int]":
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
