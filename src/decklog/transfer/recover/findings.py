"""Where recovery keeps what it has found so far."""

from hashlib import sha256
from itertools import groupby
from operator import itemgetter

from decklog.db.sqlite.scratch import Scratch
from decklog.transfer.recover.pages import Pages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_HEX = frozenset("0123456789abcdef")


class Findings:
    """A scratch database: entries by stream and number, blobs, and rows of other tables."""

    def __init__(self, path: str, columns: tuple[str, ...]) -> None:
        self._db = Scratch(path)
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
