"""Scratch tables in a temporary SQLite file, for data that is too large for memory."""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from decklog.db.sqlite import errors


class Scratch:
    """A database for one task. Without a path, SQLite keeps it in a temporary file and removes it."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._connection = apsw.Connection(path)
        # Nothing here outlives its task, so nothing needs to survive a crash.
        self._connection.execute("pragma journal_mode = off")
        self._connection.execute("pragma synchronous = off")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> apsw.Cursor:
        """Run one statement; give its rows one by one."""
        try:
            return self._connection.execute(sql, tuple(parameters))
        except apsw.Error as problem:
            raise errors.translate(problem, self._path) from problem

    def add_all(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Insert rows by a statement that may pass over some; give those that it did."""
        passed_over: list[tuple[Any, ...]] = []
        try:
            self._connection.executemany(sql, self._watched(rows, passed_over))
        except apsw.Error as problem:
            raise errors.translate(problem, self._path) from problem
        return passed_over

    def _watched(self, rows: Sequence[tuple[Any, ...]], passed_over: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield rows one by one, and collect those that were not inserted. The next row is requested after the insert."""
        changes = self._connection.total_changes
        before = changes()
        for row in rows:
            yield row
            if (now := changes()) == before:
                passed_over.append(row)
            before = now

    def first(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Run one statement and return its first row."""
        rows = self.execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    def close(self) -> None:
        self._connection.close(True)
