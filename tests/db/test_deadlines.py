"""Reads that are given little time: one that takes longer is stopped, and nothing else is."""

import pytest

from decklog import Decklog
from decklog.core.errors import TimedOut

_ENDLESS = "with recursive n (n) as (select 1 union all select n + 1 from n) select count(*) from n"


def test_a_read_that_takes_longer_than_it_is_given_is_stopped_and_the_next_is_not(log: Decklog) -> None:
    log.runs.start("goal", run_id="commas")
    with log.db.within(0.02), pytest.raises(TimedOut, match="longer than it was given"):
        log.db.read(lambda: log.db.rows(_ENDLESS, {}))
    with log.db.within(60):
        assert log.runs.get("commas").goal == "goal"
    count = "with recursive n (n) as (select 1 union all select n + 1 from n where n < 20000) select count(*) from n"
    assert log.db.read(lambda: log.db.one(count, {})) == (20000,)


def test_what_is_written_meanwhile_takes_as_long_as_it_takes(log: Decklog) -> None:
    with log.db.within(-1):
        log.runs.start("goal", run_id="commas")
    assert log.runs.get("commas").goal == "goal"
