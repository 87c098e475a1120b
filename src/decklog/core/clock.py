"""Time, in one format: UTC with microseconds."""

from datetime import UTC, datetime, timedelta


class Clock:
    """The system's clock. Hand another one to `Decklog` to decide what time it is."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def told(self) -> str:
        """Return the time as columns hold it."""
        return to_text(self.now())

    def steady(self) -> datetime:
        """Return the time by which leases are measured: as `now`, where nobody sets the clock."""
        return self.now()


class ManualClock(Clock):
    """A clock that moves only when `advance` is called."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._jumped = timedelta()

    def now(self) -> datetime:
        return self._now

    def steady(self) -> datetime:
        return self._now - self._jumped

    def jump(self, **timedelta_parts: float) -> datetime:
        """Set the clock ahead or back, as a person or a time server does: no time passes."""
        jump = timedelta(**timedelta_parts)
        self._jumped += jump
        self._now += jump
        return self._now

    def advance(self, **timedelta_parts: float) -> datetime:
        self._now += timedelta(**timedelta_parts)
        return self._now


class _Minutes(dict[tuple[int, ...], str]):
    """Texts of minutes. Most times are of this one or of one just now, and looking it up takes a third of writing it."""

    def __missing__(self, minute: tuple[int, ...]) -> str:
        if len(self) >= _MINUTES_KEPT:
            self.clear()
        text = self[minute] = "%04d-%02d-%02dT%02d:%02d:" % minute  # noqa: UP031 - half of what an f-string takes
        return text


_MINUTES_KEPT = 1000
_minutes = _Minutes()
_SECONDS = [f"{second:02}." for second in range(60)]
_SECOND, _MINUTE = 1_000_000, 60_000_000
# By how many minutes have passed since 1970.
_recent_minutes: dict[int, str] = {}


def to_text(moment: datetime) -> str:
    """Write a time as `2026-11-15T08:30:00.000000Z`, which sorts as text."""
    if moment.tzinfo is not UTC:
        if moment.tzinfo is None:
            raise ValueError("a time needs a time zone; use datetime.now(UTC)")
        moment = moment.astimezone(UTC)
    start = _minutes[moment.year, moment.month, moment.day, moment.hour, moment.minute]
    return f"{start}{_SECONDS[moment.second]}{moment.microsecond:06d}Z"


def told_since_1970(nanoseconds: int) -> str:
    """Write a time so, given as the system counts it: in a third of what it takes to make a `datetime` of it first."""
    minute, rest = divmod((nanoseconds + 500) // 1000, _MINUTE)
    start = _recent_minutes.get(minute)
    if start is None:
        start = to_text(datetime.fromtimestamp(minute * 60, UTC))[: -len("00.000000Z")]
        _recent_minutes.clear()
        _recent_minutes[minute] = start
    return f"{start}{_SECONDS[rest // _SECOND]}{rest % _SECOND:06d}Z"


def from_text(text: str) -> datetime:
    """Read a time from ISO-8601 text; text without a zone is UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
