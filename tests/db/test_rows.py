"""Rows that come one by one."""

import pytest

from decklog import Decklog
from decklog.core.errors import DecklogError

MANY = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 4001) select i from n order by i"


def test_rows_of_any_number_come_each_once_and_in_order(log: Decklog) -> None:
    for limit in (0, 1, 1999, 2000, 2001, 4000, 4001):
        rows = log.db.read(lambda limit=limit: list(log.db.each(f"{MANY} limit :limit", {"limit": limit})))
        assert rows == [(number + 1,) for number in range(limit)]


def test_closed_cursors_leave_the_read_intact(log: Decklog) -> None:
    def read() -> object:
        first = log.db.each(MANY, {})
        assert next(first) == (1,)
        first.close()
        log.db.rows("savepoint here", {})
        second = log.db.each(MANY, {})
        assert next(second) == (1,)
        log.db.rows("rollback to here", {})
        second.close()
        return log.db.one("select 7", {})

    assert log.db.read(read) == (7,)


def test_cursors_can_be_read_interleaved(log: Decklog) -> None:
    def read() -> object:
        rows = []
        for (one,), (other,) in zip(log.db.each(MANY, {}), log.db.each(f"{MANY} limit :most", {"most": 3000}), strict=False):
            rows.append((one, other, *(log.db.one("select cast(:n as integer)", {"n": one}) or ())))
        return rows

    assert log.db.read(read) == [(number, number, number) for number in range(1, 3001)]


def test_failed_cursor_raises_and_the_next_read_works(log: Decklog) -> None:
    def read() -> object:
        return list(log.db.each("select x from nowhere where x = :word", {"word": "a"}))

    with pytest.raises(DecklogError):
        log.db.read(read)
    assert log.db.read(lambda: [*log.db.each("select 7", {}), *log.db.each("select 8", {})]) == [(7,), (8,)]


def test_pipelined_query_is_answered_later(log: Decklog) -> None:
    def read() -> object:
        first, second = (log.db.queue_rows("select cast(:n as integer)", {"n": number}) for number in (1, 2))
        assert log.db.one("select 3", {}) == (3,)
        last = log.db.queue_rows("select 4 where 1 = 0", {})
        return first(), second(), first(), last()

    assert log.db.read(read) == ([(1,)], [(2,)], [(1,)], [])


def test_failed_pipelined_query_raises_when_read(log: Decklog) -> None:
    def read() -> object:
        return log.db.queue_rows("select x from nowhere", {})()

    with pytest.raises(DecklogError):
        log.db.read(read)
    assert log.db.read(lambda: log.db.one("select 7", {})) == (7,)
