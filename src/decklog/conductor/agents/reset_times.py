"""When a limit ends, as agents' messages say it: a moment, a span, or seconds since 1970."""

import re
from datetime import UTC, datetime, timedelta

# No quota is known that lasts longer: whatever says so was read wrongly.
LONGEST = timedelta(days=32)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_SECONDS = re.compile(r"(?<!\d)1\d{9}(?!\d)")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b", re.IGNORECASE)
_SPAN_AHEAD = re.compile(r"\b(?:in|after)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[,\s]*(?:and\s+)?)+)", re.IGNORECASE)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def stated(value: object, now: datetime) -> datetime | None:
    """Find the moment at which a limit ends; None when none is stated, or one that has passed or can't be."""
    try:
        found = _moment(value, now)
    except OverflowError:
        # A span of a million years.
        return None
    return found if found is not None and now < found <= now + LONGEST else None


def _moment(value: object, now: datetime) -> datetime | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # A small number is a span, a large one a moment.
        return now + timedelta(seconds=value) if value < 10**9 else datetime.fromtimestamp(min(value, 4e9), UTC)
    text = str(value or "")
    if (known := _MOMENT.search(text)) is not None:
        return _utc(known[0])
    if (known := _SECONDS.search(text)) is not None:
        return datetime.fromtimestamp(int(known[0]), UTC)
    ahead = _SPAN_AHEAD.search(text)
    parts = _SPAN.findall(ahead[1]) if ahead is not None else []
    return now + timedelta(seconds=sum(float(number) * _UNITS[unit[0].lower()] for number, unit in parts)) if parts else None


def _utc(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
