"""Times as texts: equal in every encoding, and never going back."""

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from decklog import Clock
from decklog.core.clock import from_text, to_text
from decklog.db.sqlite.clock import BootClock

START = datetime(1970, 1, 1, tzinfo=UTC)


def test_a_time_is_written_with_microseconds_and_read_back() -> None:
    dice = random.Random(3)
    for microseconds in (0, 1, 59_999_999, 60_000_000, *(dice.randrange(5 * 10**15) for _ in range(2_000))):
        moment = START + timedelta(microseconds=microseconds)
        assert to_text(moment) == f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
        assert from_text(to_text(moment)) == moment


def test_a_clock_tells_its_own_time_and_does_not_go_back(tmp_path: Path) -> None:
    class Noon(Clock):
        def now(self) -> datetime:
            return datetime(2026, 3, 1, 12, tzinfo=UTC)

    assert Noon().now_text() == "2026-03-01T12:00:00.000000Z"
    clock = BootClock(str(tmp_path / "lock"))
    readings = [(to_text(clock.now()), clock.now_text()) for _ in range(200)]
    times = [time for pair in readings for time in pair]
    assert all(from_text(later) - from_text(earlier) >= timedelta(microseconds=-1) for earlier, later in pairwise(times))
