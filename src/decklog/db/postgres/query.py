"""Connections of their own that only read: for questions in SQL from outside, and for the databases of other programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import psycopg

from decklog.core.errors import Denied, TimedOut
from decklog.db.postgres import errors

if TYPE_CHECKING:
    from decklog.db.postgres.connections import PostgresConnections


@contextmanager
def answered(
    connections: "PostgresConnections",
    sql: str,
    parameters: Sequence[Any],
    *,
    views: Mapping[str, str],
    schema: str,
    seconds: float,
) -> Iterator[tuple[list[str], Iterable[tuple[Any, ...]]]]:
    """Run one statement that only reads, and give its columns and rows; `views` and `schema` go before our own tables."""
    try:
        # In one transaction, which is rolled back: nothing is left in a session that others share.
        with closing(psycopg.connect(connections.url)) as connection, connection.cursor() as cursor:
            for name, select in views.items():
                cursor.execute(f"create temporary view {name} as {select}".encode())
            cursor.execute("set transaction read only")
            cursor.execute(f"set local statement_timeout = {int(seconds * 1000)}".encode())
            cursor.execute(f"set local search_path = {schema}, public".encode())
            # Streaming sends one statement alone, and holds one row at a time. It also holds the connection until it is closed.
            stream: Any = cursor.stream(sql.encode(), tuple(parameters) or None)
            with closing(stream) as rows:
                first = next(rows, None)
                names = [column.name for column in cursor.description or ()]
                yield names, () if first is None else chain([first], rows)
    except psycopg.errors.QueryCanceled:
        raise TimedOut(
            f"the query took more than {seconds} seconds and was stopped", hint="Ask for less, or add a limit."
        ) from None
    except psycopg.errors.ReadOnlySqlTransaction as problem:
        raise Denied(f"a query only reads: {problem}", hint="Use the commands to write.") from None
    except psycopg.Error as problem:
        raise errors.translate(problem) from problem


_BATCH = 200
_BEGIN = "begin transaction isolation level repeatable read read only"


class OtherDatabase:
    """A database of another program, read at one moment, with a time limit for each statement."""

    def __init__(self, url: str, *, seconds: float) -> None:
        try:
            self._connection = psycopg.connect(url, autocommit=True)
            self._connection.execute(_BEGIN)
            self._connection.execute(f"set local statement_timeout = {int(seconds * 1000)}".encode())
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def each(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield rows one by one; the server keeps the others."""
        try:
            with self._connection.cursor(name="decklog") as cursor:
                cursor.itersize = _BATCH
                cursor.execute(sql.encode(), parameters)
                yield from cursor
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem

    def close(self) -> None:
        self._connection.close()
