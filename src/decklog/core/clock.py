"""Time, in one format: UTC with microseconds."""

from datetime import UTC, datetime, timedelta


class Clock:
    """The system's clock. Hand another one to `Decklog` to decide what time it is."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def now_text(self) -> str:
        """Return the time as columns hold it."""
        return to_text(self.now())

    def steady(self) -> datetime:
        """Return the time of a clock that nobody sets, for leases."""
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


def to_text(moment: datetime) -> str:
    """Write a time as `2026-11-15T08:30:00.000000Z`, which sorts as text."""
    if moment.tzinfo is not UTC:
        if moment.tzinfo is None:
            raise ValueError("a time needs a time zone; use datetime.now(UTC)")
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def from_text(text: str) -> datetime:
    """Read a time from ISO-8601 text; text without a zone is UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
