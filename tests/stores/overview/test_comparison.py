"""Two moments side by side: the same figures and differences as the verbs that each tell one of them."""

import random

import pytest

from decklog import Decklog, ManualClock, NotFound
from decklog.stores.runs import snapshot
from tests.pictures import sample_log


@pytest.fixture
def week(log: Decklog, clock: ManualClock) -> Decklog:
    sample_log.write(log, clock)
    return log


@pytest.mark.slow
def test_both_sides_are_what_each_moment_tells_by_itself(week: Decklog) -> None:
    last = week.journal.find("commas", limit=1)[0].seq
    chance = random.Random(14)
    for _ in range(12):
        one, other = chance.randint(1, last), chance.randint(1, last)
        both = week.overview.compare(f"commas:{one}", f"commas:{other}")
        assert [side.totals for side in both.sides] == [week.runs.totals("commas", at=str(seq)) for seq in (one, other)]
        assert both.differences == week.runs.diff(f"commas:{one}", f"commas:{other}")


def test_a_side_without_an_entry_is_the_run_as_it_stands(week: Decklog) -> None:
    both = week.overview.compare("fast-tests", "commas:30")
    assert both.sides[0].overview is not None
    assert both.sides[0].overview.status == "done"
    assert both.sides[1].overview is None
    assert both.sides[1].seq == 30
    assert both.differences == week.runs.diff("fast-tests", "commas:30")


def test_runs_that_are_long_are_shown_without_their_differences(week: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    before = week.overview.compare("commas:20", "commas")
    monkeypatch.setattr(snapshot, "MOST_ENTRIES", 10)
    after = week.overview.compare("commas:20", "commas")
    assert after.differences is None
    assert [side.totals for side in after.sides] == [side.totals for side in before.sides]


@pytest.mark.slow
def test_what_is_no_run_is_not_compared(week: Decklog) -> None:
    for moments in (("commas", "nothing"), ("@desk", "commas"), ("commas:9999", "commas")):
        with pytest.raises(NotFound):
            week.overview.compare(*moments)
