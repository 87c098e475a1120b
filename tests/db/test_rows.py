"""Rows that come one by one."""

from decklog import Decklog

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
