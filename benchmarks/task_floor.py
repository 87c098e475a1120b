"""What can't be done with less: two transactions for a task, each one conditional update."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

TAKE = """
update t set state = 'running', worker = ?
 where id = (select id from t where state = 'pending' order by id limit 1)
returning id
"""
END = "update t set state = 'done' where id = ? and state = 'running' returning id"
BUSY_MILLISECONDS = 30_000


class Floor:
    """A table of tasks and the bare statements; several processes may open one file."""

    def __init__(self, path: "str | Path", worker: str = "w") -> None:
        self._worker = worker
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(BUSY_MILLISECONDS)
        self._connection.execute("pragma journal_mode = wal")
        self._connection.execute("pragma synchronous = full")
        self._connection.execute("create table if not exists t (id integer primary key, state text, worker text, body text)")
        self._connection.execute("create index if not exists ready on t (id) where state = 'pending'")

    def fill(self, count: int) -> None:
        self._connection.execute("begin")
        self._connection.executemany("insert into t (state, body) values ('pending', ?)", [("x" * 200,)] * count)
        self._connection.execute("commit")

    def claim(self) -> int | None:
        return self._update(TAKE, self._worker)

    def finish(self, number: int) -> None:
        if self._update(END, number) is None:
            raise RuntimeError(f"task {number} was not running")

    def _update(self, sql: str, value: "str | int") -> int | None:
        self._connection.execute("begin immediate")
        rows: list[Any] = self._connection.execute(sql, (value,)).fetchall()
        self._connection.execute("commit")
        return int(rows[0][0]) if rows else None

    def drain(self) -> Iterator[int]:
        """Claim and finish, task by task."""
        while (number := self.claim()) is not None:
            self.finish(number)
            yield number

    def close(self) -> None:
        self._connection.close()
