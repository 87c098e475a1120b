"""The time of a PostgreSQL log is the server's: workers on many machines agree on when a lease ends."""

import time
from datetime import UTC, datetime, timedelta

from decklog.core.clock import Clock


class ServerClock(Clock):
    """Tells the server's time, kept between two looks by this machine's steady clock, which no one sets."""

    def __init__(self) -> None:
        self._looked: tuple[datetime, float] | None = None
        self._last = datetime.min.replace(tzinfo=UTC)

    def set(self, server: datetime, at: float) -> None:
        """Take over what the server said at a moment of the steady clock."""
        self._looked = server.astimezone(UTC), at

    def now(self) -> datetime:
        if self._looked is None:
            return super().now()
        server, at = self._looked
        # A look may find that this machine ran ahead a little; time stands still then, and never goes back.
        self._last = max(self._last, server + timedelta(seconds=time.monotonic() - at))
        return self._last
