"""Reads the tables of a SQLite file around what is damaged in it."""

from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MOST_TRIES = 400


def has_readable_schema(path: str) -> bool:
    """Return whether the way to the tables of a file can be read."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return bool(connection.execute("select count(*) from sqlite_schema").fetchall())
    except apsw.Error:
        return False
    finally:
        connection.close()


def readable_rows(path: str, table: str) -> "Iterator[dict[str, Any]]":
    """Give the rows of a table that can be read: forwards up to damage, backwards up to it, and by halves between."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        pages: Any = connection.execute("pragma page_count").fetchall()
        spans: list[tuple[int, int]] = [(1, max(1000, pages[0][0] * 500))]
        for _ in range(_MOST_TRIES):
            if not spans:
                return
            low, high = spans.pop()
            reading = _Span(connection, table, low, high)
            yield from reading.rows()
            spans += reading.unread()
    except apsw.Error:
        return  # not even the schema can be read: there is nothing to be had this way
    finally:
        connection.close()


class _Span:
    """Some rows of a table by their row ids, read from both ends."""

    def __init__(self, connection: apsw.Connection, table: str, low: int, high: int) -> None:
        self._connection = connection
        self._table = table
        self._low = low
        self._high = high
        self._is_read = False

    def rows(self) -> "Iterator[dict[str, Any]]":
        for rowid, row in self._until_damage("asc"):
            self._low = rowid + 1
            yield row
        if not self._is_read:
            for rowid, row in self._until_damage("desc"):
                self._high = rowid - 1
                yield row

    def _until_damage(self, order: str) -> "Iterator[tuple[int, dict[str, Any]]]":
        sql = f"select rowid, * from {self._table} where rowid between ? and ? order by rowid {order}"
        try:
            cursor = self._connection.execute(sql, (self._low, self._high))
            for row in cursor:
                names = [column[0] for column in cursor.get_description()]
                yield row[0], dict(zip(names[1:], row[1:], strict=True))
        except (apsw.Error, UnicodeDecodeError):
            return
        self._is_read = True

    def unread(self) -> list[tuple[int, int]]:
        """Halve what neither direction reached."""
        if self._is_read or self._high <= self._low:
            return []
        middle = (self._low + self._high) // 2
        return [(self._low, middle), (middle + 1, self._high)]
