"""Spans of days: parsing them from an address, neighbouring spans, and their division into parts."""

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from math import log
from typing import Any

from decklog.core.clock import from_text
from decklog.core.errors import Invalid
from decklog.core.figures import span

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


STEPS = 120
WIDTH, HEIGHT = 600, 40
_LOWEST = 3
_WIDEST = 6
# A pause is labelled from this length on and this many times the median; at most this number of pauses.
_SILENCE_SECONDS, _UNUSUAL, _MOST_SILENCES = 10 * 60, 8, 12
_SHAPES = {"failure": "✕", "question": "▲", "checkpoint": "◆", "pivot": "↷"}
_LISTED = 6
# The strip is divided into this number of zones, each with a tooltip.
_ZONES = 24


@dataclass(frozen=True)
class Strip:
    """Bars are one path of vertical lines, and the marks of each kind one of rectangles. Only the newest marks have labels."""

    bars: str
    width: float
    marks: dict[str, str]
    listed: list[dict[str, Any]]
    silences: list[tuple[float, str]]
    left_out: int
    zones: list[tuple[float, float, str]]


def strip_of(activity: dict[str, Any]) -> Strip:
    """Draw a run's activity over its entry numbers, at the same positions as the slider."""
    steps = tuple([(one["seq"], one["at"]) for one in activity["steps"]])
    marks = tuple([(one["what"], one["seq"]) for one in activity["marks"]])
    # The activity of a long run is sampled up to its last mark. Later entries would be narrower than a line.
    last = steps[-1][0] if steps else activity["last"]
    return _drawn(activity["first"], last, steps, marks, activity["left_out"])


# Cached, because every tab and every reload of a run draws the same strip.
@lru_cache(maxsize=64)
def _drawn(first: int, last: int, given: tuple[tuple[int, str], ...], told: tuple[tuple[str, int], ...], left_out: int) -> Strip:
    steps = [(seq, from_text(at).timestamp()) for seq, at in given]
    pauses = [(seq, at - before, seq - earlier) for (earlier, before), (seq, at) in pairwise(steps)]
    rates = [count / (max(0.0, seconds) + 1) for _, seconds, count in pauses]
    width = WIDTH / max(1, len(steps))
    tops = (HEIGHT - height for height in (_LOWEST, *_heights(rates)))
    # Lines need a third of the bytes of rectangles.
    bars = "".join([f"M{int((place + 0.5) * width)} {HEIGHT}V{top}" for place, top in enumerate(tops)])
    scale = WIDTH / max(1, last - first + 1)
    silences = [(_x(seq - first, scale), span(timedelta(seconds=seconds))) for seconds, seq in _silences(pauses)]
    marks: dict[str, str] = {}
    for what, seq in told:
        marks[what] = marks.get(what, "") + f"M{_x(seq - first, scale)} 0h2.5v{HEIGHT}h-2.5z"
    listed = [{"what": what, "seq": seq, "shape": _SHAPES[what]} for what, seq in told[-_LISTED:]]
    return Strip(bars, round(min(width * 0.7, _WIDEST), 1), marks, listed, silences, left_out, _zones(given, width))


def _zones(steps: tuple[tuple[int, str], ...], width: float) -> list[tuple[float, float, str]]:
    """Divide the strip for tooltips: position, width, and the entries and times in it."""
    size = max(1, -(-len(steps) // _ZONES))
    found = []
    for start in range(0, len(steps), size):
        part = steps[start : start + size]
        (first, began), (last, ended) = part[0], part[-1]
        said = f"entries {first:,} to {last:,}, {began[:10]} {began[11:16]} to {ended[11:16]} UTC"
        found.append((round(start * width, 1), round(len(part) * width, 1), said))
    return found


def _silences(pauses: list[tuple[int, float, int]]) -> list[tuple[float, int]]:
    """Find the longest pauses. In long runs steps contain many entries, so a pause must exceed the median by a factor."""
    usual = sorted(seconds for _, seconds, _ in pauses)[len(pauses) // 2] if pauses else 0.0
    least = max(_SILENCE_SECONDS, _UNUSUAL * usual)
    return sorted(((seconds, seq) for seq, seconds, _ in pauses if seconds >= least), reverse=True)[:_MOST_SILENCES]


def _x(distance: int, scale: float) -> float:
    return round(min(distance * scale, WIDTH - 2.5), 2)


def _heights(rates: list[float]) -> list[int]:
    """Return the height of each bar, scaled by logarithm between the slowest and the fastest rate."""
    logs = [log(rate) for rate in rates]
    slowest, fastest = min(logs, default=0.0), max(logs, default=0.0)
    scale = (HEIGHT - _LOWEST) / (fastest - slowest) if fastest > slowest else 0.0
    least = _LOWEST if scale else (HEIGHT + _LOWEST) // 2
    return [least + round((one - slowest) * scale) for one in logs]
