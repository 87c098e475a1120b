"""Rows that come one by one."""

import pytest

from decklog import Decklog
from decklog.errors import DecklogError

MANY = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 4001) select i from n order by i"


def test_rows_of_any_number_come_each_once_and_in_order(log: Decklog) -> None:
    for limit in (0, 1, 1999, 2000, 2001, 4000, 4001):
        rows = log.db.read(lambda limit=limit: list(log.db.each(f"{MANY} limit :limit", {"limit": limit})))
        assert rows == [(number + 1,) for number in range(limit)]


def test_rows_that_nobody_wants_any_more_leave_the_read_as_it_was(log: Decklog) -> None:
    def read() -> object:
        first = log.db.each(MANY, {})
        assert next(first) == (1,)
        first.close()  # type: ignore[attr-defined]
        log.db.rows("savepoint here", {})
        second = log.db.each(MANY, {})
        assert next(second) == (1,)
        log.db.rows("rollback to here", {})
        second.close()  # type: ignore[attr-defined]
        return log.db.one("select 7", {})

    assert log.db.read(read) == (7,)


def test_what_is_asked_ahead_is_answered_with_the_next_statement_or_by_itself(log: Decklog) -> None:
    def read() -> object:
        first, second = (log.db.rows_ahead("select cast(:n as integer)", {"n": number}) for number in (1, 2))
        assert log.db.one("select 3", {}) == (3,)
        last = log.db.rows_ahead("select 4 where 1 = 0", {})
        return first(), second(), first(), last()

    assert log.db.read(read) == ([(1,)], [(2,)], [(1,)], [])


def test_what_is_asked_ahead_and_fails_is_told_when_it_is_answered(log: Decklog) -> None:
    def read() -> object:
        return log.db.rows_ahead("select x from nowhere", {})()

    with pytest.raises(DecklogError):
        log.db.read(read)
    assert log.db.read(lambda: log.db.one("select 7", {})) == (7,)
