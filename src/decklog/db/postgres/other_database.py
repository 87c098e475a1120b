"""Somebody else's PostgreSQL database, read at one moment and never written to."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from decklog.db.postgres.errors import translate

_BATCH = 200
_BEGIN = "begin transaction isolation level repeatable read read only"


class OtherDatabase:
    """One connection in one read-only transaction; each statement may take so long."""

    def __init__(self, url: str, *, seconds: float) -> None:
        try:
            self._connection = psycopg.connect(url, autocommit=True)
            self._connection.execute(_BEGIN)
            self._connection.execute(f"set local statement_timeout = {int(seconds * 1000)}".encode())
        except psycopg.Error as problem:
            raise translate(problem) from problem

    def each(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield rows one by one; the server keeps the others."""
        try:
            with self._connection.cursor(name="decklog") as cursor:
                cursor.itersize = _BATCH
                cursor.execute(sql.encode(), parameters)
                yield from cursor
        except psycopg.Error as problem:
            raise translate(problem) from problem

    def close(self) -> None:
        self._connection.close()
