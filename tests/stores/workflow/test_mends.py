"""Mends: what is proven of a fix, moved by one at a time."""

import pytest

from decklog import Conflict, Decklog, Invalid, MendState, MendWait
from decklog.log import store_class
from decklog.records.operations import operations_of


def test_a_mend_is_moved_by_one_of_two_who_saw_the_same(log: Decklog, run_id: str) -> None:
    mend = log.mends.begin(run_id, "fb_1", repo="r", base="b")
    assert log.mends.begin(run_id, "fb_1", repo="r", base="c").already
    moved = log.mends.move(mend, MendState.TRIAGED, fix_class="tool", confidence=80)
    with pytest.raises(Conflict):
        log.mends.move(mend, MendState.TRIAGED, fix_class="doc")
    assert (moved.state, moved.fix_class, moved.moves) == ("triaged", "tool", 1)
    held = log.mends.move(moved, waits_for=MendWait.PERSON, reason="look")
    assert [one.id for one in log.mends.find(waits_for=MendWait.PERSON, open_only=True)] == [mend.id]
    assert log.mends.move(held, MendState.LOCATED).waits_for is None
    assert log.journal.verify().ok


def test_what_is_over_stays_so_and_what_comes_back_is_another(log: Decklog, run_id: str) -> None:
    mend = log.mends.begin(run_id, "fb_1", repo="r", base="b")
    ended = log.mends.move(mend, MendState.DROPPED, reason="not ours")
    with pytest.raises(Conflict, match="dropped"):
        log.mends.move(ended, MendState.FILED)
    again = log.mends.begin(run_id, "fb_1", repo="r", base="b")
    assert again.id != mend.id
    assert [one.id for one in log.mends.find(feedback_id="fb_1")] == [again.id, mend.id]
    assert [one.id for one in log.mends.find(open_only=True)] == [again.id]
    with pytest.raises(Invalid):
        log.mends.move(again, nothing="x")


def test_no_surface_offers_to_say_what_is_proven() -> None:
    assert [one.name for one in operations_of(store_class("mends")) if one.writes] == []
