"""Rules of recurring tasks: cron's five fields, or a few forms in words, in a time zone."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache

from decklog.core.errors import Invalid

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SHORT_DAYS = tuple(day[:3] for day in _DAYS)
# Each cron field: its name, its lowest and highest number, and names for the numbers from the lowest on.
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _SHORT_DAYS),
)
_AT_TIME = re.compile(r"every (.+?) (?:at )?(\d{1,2}):(\d\d)")
_SO_OFTEN = re.compile(r"every (?:(\d+) )?(minute|hour)s?")
_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")
_EXAMPLES = "`every day 06:00`, `every monday 09:00`, `every 15 minutes`, or cron's five fields such as `30 6 * * 1-5`"
# The next 29 February may be eight years away.
_FARTHEST_DAYS = 9 * 366
# No time change is larger, so times that differ by more on the clock are in that order.
_SHIFT = timedelta(hours=3)


class Recurrence:
    """The occurrences of a rule.

    A time that a clock change skips occurs later by the length of the change. A time that occurs twice counts the first time.
    Rules that occur every hour or more often continue through both.
    """

    def __init__(self, rule: str, zone: str) -> None:
        fields = _to_cron(rule).split()
        if len(fields) != len(_FIELDS):
            raise _invalid_rule(rule)
        minutes, hours, self._month_days, self._months, week_days = (
            _parse_cron_field(rule, text, *field) for text, field in zip(fields, _FIELDS, strict=True)
        )
        self._times = [time(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)]
        self._week_days = {day % 7 for day in week_days}
        # As in cron: if both the day of the month and of the week are given, either matches.
        self._either = not fields[2].startswith("*") and not fields[4].startswith("*")
        self._goes_on = fields[1].startswith("*")
        self._zone = load_zone(zone)

    def after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence after a moment; None if there is none for years."""
        found: list[tuple[datetime, datetime]] = []
        for local in self._local_times(self._local(moment) - _SHIFT, 1):
            if found and local > found[0][1] + _SHIFT:
                break
            found += [(at, local) for at in self._moments(local) if at > moment]
        return min(found)[0] if found else None

    def between(self, start: datetime, end: datetime, most: int) -> list[datetime]:
        """List the occurrences between two moments, both included, oldest first. Above `most` only the newest are returned."""
        found: set[datetime] = set()
        last = self._local(start) - _SHIFT
        for local in self._local_times(self._local(end) + _SHIFT, -1):
            if local < last:
                break
            found.update(at for at in self._moments(local) if start <= at <= end)
            if len(found) >= most:
                last = max(last, local - _SHIFT)
        return sorted(found)[-most:]

    def _local(self, moment: datetime) -> datetime:
        """Return the local time at a moment."""
        return moment.astimezone(self._zone).replace(tzinfo=None)

    def _moments(self, local: datetime) -> Iterator[datetime]:
        """Yield the moments that have a local time, or would have it without a clock change."""
        first, second = (local.replace(tzinfo=self._zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        yield first
        if self._goes_on and second > first:
            yield second

    def _local_times(self, start: datetime, direction: int) -> Iterator[datetime]:
        """Yield the local times of the rule from a start on, forwards (1) or backwards (-1), for nine years."""
        for offset in range(_FARTHEST_DAYS + 1):
            day = start.date() + timedelta(days=direction * offset)
            if self._matches(day):
                found = (datetime.combine(day, at) for at in self._times[::direction])
                yield from (local for local in found if (local >= start if direction > 0 else local <= start))

    def _matches(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        by_month, by_week = day.day in self._month_days, day.isoweekday() % 7 in self._week_days
        return by_month or by_week if self._either else by_month and by_week


@lru_cache(maxsize=64)
def parse_recurrence(rule: str, zone: str) -> Recurrence:
    """Parse a rule. Raise Invalid if it never occurs."""
    found = Recurrence(rule, zone)
    if found.after(datetime(2000, 1, 1, tzinfo=UTC)) is None:
        raise Invalid(f"{rule!r} never occurs: no month has such a day", field="when")
    return found


def load_zone(name: str) -> tzinfo:
    """Return the time zone with a name."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(f"unknown time zone {name!r}; write one such as Europe/Berlin, or UTC", field="zone") from None


def _invalid_rule(rule: str) -> Invalid:
    return Invalid(f"{rule!r} is not a valid rule; write {_EXAMPLES}", field="when")


def _to_cron(rule: str) -> str:
    """Convert a rule in words to the five fields of cron."""
    words = " ".join(rule.lower().split())
    if (often := _SO_OFTEN.fullmatch(words)) is not None:
        return _interval_to_cron(rule, int(often[1] or 1), often[2])
    if (timed := _AT_TIME.fullmatch(words)) is not None:
        return f"{int(timed[3])} {int(timed[2])} * * {_weekdays_to_cron(rule, timed[1])}"
    return words


def _interval_to_cron(rule: str, count: int, unit: str) -> str:
    whole = 60 if unit == "minute" else 24
    if not count or whole % count:
        raise Invalid(
            f"{rule!r} does not divide {whole} {unit}s evenly; write one that does, or cron's five fields", field="when"
        )
    return f"*/{count} * * * *" if unit == "minute" else f"0 */{count} * * *"


def _weekdays_to_cron(rule: str, days: str) -> str:
    """Convert days of the week to cron."""
    if days in ("day", "weekday"):
        return "*" if days == "day" else "1-5"
    names = [name for name in re.split(r"[ ,]+|\band\b", days) if name]
    known = {**dict(zip(_DAYS, range(7), strict=True)), **dict(zip(_SHORT_DAYS, range(7), strict=True))}
    if not names or any(name not in known for name in names):
        raise _invalid_rule(rule)
    return ",".join(str(known[name]) for name in names)


def _parse_cron_field(rule: str, text: str, field: str, low: int, high: int, names: tuple[str, ...]) -> set[int]:
    """Parse one field of cron: numbers and names, with lists, ranges and steps."""
    found: set[int] = set()
    known = {name: low + place for place, name in enumerate(names)}
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or (match[1] == "*" and match[2]):
            raise _invalid_rule(rule)
        first = low if match[1] == "*" else _parse_cron_number(rule, match[1], known)
        last = high if match[1] == "*" or (match[3] and not match[2]) else _parse_cron_number(rule, match[2] or match[1], known)
        step = int(match[3] or 1)
        if not (low <= first <= last <= high and step):
            raise Invalid(f"{part!r} in {rule!r} is not a valid {field}: {low} to {high}", field="when")
        found.update(range(first, last + 1, step))
    return found


def _parse_cron_number(rule: str, word: str, known: dict[str, int]) -> int:
    if word.isdecimal() and len(word) <= 3:
        return int(word)
    if word not in known:
        raise _invalid_rule(rule)
    return known[word]
