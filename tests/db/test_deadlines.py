"""Reads that are given little time: one that takes longer is stopped, and nothing else is."""

import pytest

from decklog import Decklog
from decklog.core.errors import TimedOut

_ENDLESS = "with recursive n (n) as (select 1 union all select n + 1 from n) select count(*) from n"


def test_read_beyond_its_deadline_is_stopped(log: Decklog) -> None:
    log.runs.start("goal", run_id="commas")
    with log.db.within(0.02), pytest.raises(TimedOut, match="exceeded its time limit"):
        log.db.read(lambda: log.db.rows(_ENDLESS, {}))
    with log.db.within(60):
        assert log.runs.get("commas").goal == "goal"
    count = "with recursive n (n) as (select 1 union all select n + 1 from n where n < 20000) select count(*) from n"
    assert log.db.read(lambda: log.db.one(count, {})) == (20000,)


def test_deadline_does_not_apply_to_writes(log: Decklog) -> None:
    with log.db.within(-1):
        log.runs.start("goal", run_id="commas")
    assert log.runs.get("commas").goal == "goal"
