"""When something comes again: rules such as `every day 06:00`, or the five fields of cron, by the clocks of a place."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

from decklog.core.errors import Invalid
from decklog.core.lazy_regex import prepared

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SHORT_DAYS = tuple(day[:3] for day in _DAYS)
# Each field of cron: what it is called, its lowest and highest number, and the names that stand for numbers from the lowest on.
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _SHORT_DAYS),
)
_AT_TIME = prepared(r"every (.+?) (?:at )?(\d{1,2}):(\d\d)")
_SO_OFTEN = prepared(r"every (?:(\d+) )?(minute|hour)s?")
_PART = prepared(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")
_EXAMPLES = "`every day 06:00`, `every monday 09:00`, `every 15 minutes`, or cron's five fields such as `30 6 * * 1-5`"
# The 29th of February may be eight years away.
_FARTHEST = timedelta(days=9 * 366)
# No clock is set ahead or back by more: what is further apart by the clock comes in that order.
_SHIFT = timedelta(hours=3)


class Recurrence:
    """The moments that a rule names.

    A time that the clocks skip comes as much later as they are set ahead, and one that they show twice comes the first time:
    each once. What comes every hour, or oftener, goes on through both.
    """

    def __init__(self, rule: str, zone: str) -> None:
        fields = _cron(rule).split()
        if len(fields) != len(_FIELDS):
            raise _unreadable(rule)
        minutes, hours, self._month_days, self._months, week_days = (
            _numbers(rule, text, *field) for text, field in zip(fields, _FIELDS, strict=True)
        )
        self._times = [(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)]
        self._week_days = {day % 7 for day in week_days}
        # As cron has it: when both are given, either is enough.
        self._either = not fields[2].startswith("*") and not fields[4].startswith("*")
        self._goes_on = fields[1].startswith("*")
        self._zone = zone_of(zone)

    def after(self, moment: datetime) -> datetime | None:
        """Return the first moment after another; None when there is none for years."""
        start = self._shown(moment) - _SHIFT
        found: list[tuple[datetime, datetime]] = []
        for shown in self._forward(start):
            if found and shown > found[0][1] + _SHIFT:
                break
            found += [(at, shown) for at in self._moments(shown) if at > moment]
        return min(found)[0] if found else None

    def between(self, start: datetime, end: datetime, most: int) -> list[datetime]:
        """List the moments from one to another, both included, oldest first; of many only the newest."""
        found: set[datetime] = set()
        enough: datetime | None = None
        for shown in self._back(self._shown(end) + _SHIFT, self._shown(start) - _SHIFT):
            if enough is not None and shown < enough - _SHIFT:
                break
            found.update(at for at in self._moments(shown) if start <= at <= end)
            enough = shown if enough is None and len(found) >= most else enough
        return sorted(found)[-most:]

    def _shown(self, moment: datetime) -> datetime:
        """Return what the clocks show at a moment."""
        return moment.astimezone(self._zone).replace(tzinfo=None)

    def _moments(self, shown: datetime) -> Iterator[datetime]:
        """Yield the moments at which the clocks show a time, or would."""
        first, second = (shown.replace(tzinfo=self._zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        yield first
        if self._goes_on and second > first:
            yield second

    def _forward(self, start: datetime) -> Iterator[datetime]:
        day, last = start.date(), (start + _FARTHEST).date()
        while day <= last:
            yield from (shown for shown in self._of_day(day, self._times) if shown >= start)
            day += timedelta(days=1)

    def _back(self, end: datetime, start: datetime) -> Iterator[datetime]:
        day = end.date()
        while day >= start.date():
            yield from (shown for shown in self._of_day(day, reversed(self._times)) if start <= shown <= end)
            day -= timedelta(days=1)

    def _of_day(self, day: date, times: Iterable[tuple[int, int]]) -> Iterator[datetime]:
        if self._is_meant(day):
            yield from (datetime(day.year, day.month, day.day, hour, minute) for hour, minute in times)

    def _is_meant(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        by_month, by_week = day.day in self._month_days, day.isoweekday() % 7 in self._week_days
        return by_month or by_week if self._either else by_month and by_week


@lru_cache(maxsize=64)
def recurrence(rule: str, zone: str) -> Recurrence:
    """Read a rule, and refuse one that never comes."""
    found = Recurrence(rule, zone)
    if found.after(datetime(2000, 1, 1, tzinfo=UTC)) is None:
        raise Invalid(f"{rule!r} never comes: no month has such a day", field="when")
    return found


def zone_of(name: str) -> tzinfo:
    """Find a time zone by its name."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(f"{name!r} is not a time zone known here; write one such as Europe/Berlin, or UTC", field="zone") from None


def _unreadable(rule: str) -> Invalid:
    return Invalid(f"{rule!r} is not a rule; write {_EXAMPLES}", field="when")


def _cron(rule: str) -> str:
    """Write a rule in words as cron's five fields."""
    words = " ".join(rule.lower().split())
    if (often := _SO_OFTEN.fullmatch(words)) is not None:
        return _so_often(rule, int(often[1] or 1), often[2])
    if (timed := _AT_TIME.fullmatch(words)) is not None:
        return f"{int(timed[3])} {int(timed[2])} * * {_week(rule, timed[1])}"
    return words


def _so_often(rule: str, count: int, unit: str) -> str:
    whole = 60 if unit == "minute" else 24
    if not count or whole % count:
        raise Invalid(
            f"{rule!r} does not divide {whole} {unit}s evenly; write one that does, or cron's five fields", field="when"
        )
    return f"*/{count} * * * *" if unit == "minute" else f"0 */{count} * * *"


def _week(rule: str, days: str) -> str:
    """Write days of the week as cron does."""
    if days in ("day", "weekday"):
        return "*" if days == "day" else "1-5"
    names = [name for name in re.split(r"[ ,]+|\band\b", days) if name]
    known = {**dict(zip(_DAYS, range(7), strict=True)), **dict(zip(_SHORT_DAYS, range(7), strict=True))}
    if not names or any(name not in known for name in names):
        raise _unreadable(rule)
    return ",".join(str(known[name]) for name in names)


def _numbers(rule: str, text: str, called: str, low: int, high: int, names: tuple[str, ...]) -> set[int]:
    """Read one field of cron: numbers and names, with lists, ranges and steps."""
    found: set[int] = set()
    known = {name: low + place for place, name in enumerate(names)}
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or (match[1] == "*" and match[2]):
            raise _unreadable(rule)
        first = low if match[1] == "*" else _number(rule, match[1], known)
        last = high if match[1] == "*" or (match[3] and not match[2]) else _number(rule, match[2] or match[1], known)
        step = int(match[3] or 1)
        if not (low <= first <= last <= high and step):
            raise Invalid(f"{part!r} in {rule!r} is no {called}: {low} to {high}", field="when")
        found.update(range(first, last + 1, step))
    return found


def _number(rule: str, word: str, known: dict[str, int]) -> int:
    if word.isdecimal() and len(word) <= 3:
        return int(word)
    if word not in known:
        raise _unreadable(rule)
    return known[word]
