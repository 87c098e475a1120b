"""Where recovery keeps what it has found so far, and how it reads tables around damage."""

from hashlib import sha256
from itertools import groupby
from operator import itemgetter

import apsw

from decklog.transfer.recover.pages import Pages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_HEX = frozenset("0123456789abcdef")
_MOST_TRIES = 400


class Findings:
    """A scratch database: entries by stream and number, blobs, and rows of other tables."""

    def __init__(self, path: str, columns: tuple[str, ...]) -> None:
        self._db = apsw.Connection(path)
        self._db.execute("pragma journal_mode = off")
        self._db.execute("pragma synchronous = off")
        self._columns = columns
        self._db.execute(f"create table entries (version, {', '.join(columns[1:])}, primary key (stream, seq, version))")
        self._db.execute("create table blobs (digest text primary key, bytes blob)")
        self._db.execute("create table records (stream, place, record_id, image, primary key (stream, place, record_id))")

    def take_pages(self, pages: Pages, progress: "Callable[[int, int], None]") -> None:
        """Keep everything that looks like an entry or is a blob."""
        width = len(self._columns)

        def fits(types: list[int]) -> bool:
            return (len(types) == width and types[0] == 0) or (len(types) == 3 and types[0] == 141)

        self._db.execute("begin")
        for rowid, values in pages.rows(fits, progress):
            if len(values) == width:
                self._take_entry(rowid, values)
            elif isinstance(values[2], bytes) and sha256(values[2]).hexdigest() == values[0]:
                self._db.execute("insert or ignore into blobs values (?, ?)", (values[0], values[2]))
        self._db.execute("commit")

    def _take_entry(self, rowid: int, values: "list[Any]") -> None:
        stream, seq, at, link = values[1:5]
        if type(stream) is not str or type(at) is not str or type(link) is not str or type(seq) is not int:
            return
        if seq >= 1 and seq == rowid % 2**32 and len(link) == 64 and _HEX.issuperset(link):
            marks = ", ".join("?" * len(values))
            self._db.execute(f"insert or ignore into entries values ({marks})", (hash(tuple(values)), *values[1:]))

    def take_record(self, stream: str, place: int, record_id: str, image: str) -> None:
        self._db.execute("insert or replace into records values (?, ?, ?, ?)", (stream, place, record_id, image))

    def streams(self) -> list[str]:
        """Name the streams of which anything was found."""
        return [row[0] for row in self._db.execute("select stream from entries union select stream from records order by 1")]

    def entries(self, stream: str) -> "Iterator[tuple[int, list[dict[str, Any]]]]":
        """Give a stream's numbers in order, each with the versions of its entry that were found."""
        names = self._columns[1:]
        rows = self._db.execute(f"select {', '.join(names)} from entries where stream = ? order by seq", (stream,))
        for seq, versions in groupby(rows, key=itemgetter(1)):
            yield seq, [dict(zip(names, row, strict=True)) for row in versions]

    def records(self, stream: str) -> "Iterator[tuple[int, str, str]]":
        """Give the rows that were found in a stream's tables: the table's place, the id and the image."""
        yield from self._db.execute("select place, record_id, image from records where stream = ? order by place, 2", (stream,))

    def blobs(self) -> "Iterator[tuple[str, bytes]]":
        yield from self._db.execute("select digest, bytes from blobs order by digest")

    def close(self) -> None:
        self._db.close()


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
