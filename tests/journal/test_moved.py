"""Streams that moved since a cursor."""

import pytest

from decklog import Decklog, Invalid


@pytest.mark.parametrize("going_on", [True, False])
def test_streams_that_moved_are_named_with_their_new_entries(log: Decklog, going_on: bool) -> None:
    log.runs.start("one", run_id="one")
    log.runs.start("two", run_id="two")
    cursor = log.journal.now()
    assert log.journal.since(cursor, going_on=going_on) == {"moved": [], "cursor": cursor}
    log.journal.append("two", "first")
    log.journal.append("two", "second")
    log.runs.start("three", run_id="three")
    log.ledger.charge("m", cost_microdollars=1)
    found = log.journal.since(cursor, going_on=going_on)
    assert {one["stream"]: (one["first"], one["last"]) for one in found["moved"]} == {
        "two": (2, 3),
        "three": (1, 1),
        "@ledger": (1, 1),
    }
    assert log.journal.since(found["cursor"], going_on=going_on)["moved"] == []


def test_entry_of_an_ended_run_is_found_among_all_streams(log: Decklog, run_id: str) -> None:
    log.runs.finish(run_id)
    cursor = log.journal.now()
    log.journal.append(run_id, "one more thing")
    found = log.journal.since(cursor, going_on=True)
    assert found["moved"] == []
    assert [one["stream"] for one in log.journal.since(found["cursor"])["moved"]] == [run_id]


@pytest.mark.parametrize("text", ["", "17", "[1]", '["a", {}]', '[1, {"run": "x"}]', "[" * 100_000])
def test_invalid_cursor_is_refused(log: Decklog, text: str) -> None:
    with pytest.raises(Invalid, match="not a cursor"):
        log.journal.since(text)


def test_a_cursor_of_what_goes_on_leaves_out_runs_that_are_over(log: Decklog, run_id: str) -> None:
    over = log.runs.start("over", run_id="over").id
    log.runs.finish(over)
    cursor = log.journal.now(going_on=True)
    assert over not in cursor
    assert log.journal.since(cursor, going_on=True)["moved"] == []
    entry = log.journal.append(run_id, "hello")
    (moved,) = log.journal.since(cursor, going_on=True)["moved"]
    assert (moved["stream"], moved["last"]) == (run_id, entry.seq)
