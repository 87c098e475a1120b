"""A scratch database for the rows that recovery finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

from decklog.db.packing import decompress_bytes
from decklog.db.sqlite.scratch import Scratch
from decklog.journal.rows import COLUMNS, STREAM_SIZE
from decklog.transfer.recover.pages import UNREADABLE, Cell, DatabasePage, Pages, types_at, values_of

_TIME, _HASH = 67, 141
_STREAM, _SEQ, _AT, _LINK = map(COLUMNS.index, ("stream", "seq", "at", "hash"))
_TABLE, _RECORD = COLUMNS.index("record_table"), COLUMNS.index("record_id")
# A row of the table of streams counts more than one entry.
_STREAM_VOTES = 2
_SCHEMA = """
    create table found (
      id integer primary key, is_old, rowid_, stream, seq, record_table, record_id, payload, mark, unique (rowid_, mark)
    );
    create table votes (number, stream, votes, primary key (number, stream));
    create table names (number integer primary key, stream);
    create table places (stream, seq, is_doubtful, is_old, id, primary key (stream, seq, is_doubtful, is_old, id)) without rowid;
    create table blobs (digest text primary key, bytes blob);
    create table records (stream, place, record_id, image, primary key (stream, place, record_id))
"""


class RecoveredRows:
    """A scratch database: entries by stream and number, blobs, and rows of other tables."""

    def __init__(self, path: str) -> None:
        self._db = Scratch(path)
        self._db.execute(_SCHEMA)

    def take_pages(self, pages: Pages, progress: Callable[[int, int], None]) -> None:
        """Store all rows that look like entries or are blobs."""
        self._db.execute("begin")
        unclear = [page.index for page in pages.all(progress) if not self._take_page(pages, page)]
        for index in unclear:
            for cell in pages.stray_entries(pages.at(index)):
                self._take_entry(cell, is_old=True)
        self._settle()
        self._db.execute("create index found_by_record on found (record_table, record_id)")
        self._db.execute("commit")

    def _take_page(self, pages: Pages, page: DatabasePage) -> bool:
        """Store the listed rows of a page; return whether the list is complete."""
        cells, is_sound = pages.cells(page)
        others, has_entries = [], False
        for cell in cells:
            try:
                types, _ = types_at(cell.payload, 0)
            except UNREADABLE:
                others.append(cell)
                continue
            if len(types) == len(COLUMNS) and types[0] == 0 and self._take_entry(cell, is_old=not page.is_newest):
                has_entries = True
            elif len(types) == 3 and types[0] == _HASH:
                self._take_blob(pages, cell)
            elif len(types) == 4 and types[0] == 0 and types[2] == _TIME:
                self._take_stream(cell)
            else:
                others.append(cell)
        if has_entries:
            # A page has rows of one table, so the unreadable rows here were entries.
            for cell in others:
                self._keep(cell, not page.is_newest, [None] * len(COLUMNS))
        return is_sound and not (has_entries and others)

    def _take_entry(self, cell: Cell, *, is_old: bool) -> bool:
        try:
            values = values_of(cell.payload, errors="replace")
        except UNREADABLE:
            return False
        if len(values) != len(COLUMNS) or not _is_entry_like(values):
            return False
        if cell.rowid is not None and cell.rowid % STREAM_SIZE == values[_SEQ]:
            self._vote(cell.rowid // STREAM_SIZE, values[_STREAM], 1)
        self._keep(cell, is_old, values)
        return True

    def _keep(self, cell: Cell, is_old: bool, values: list[Any]) -> None:
        row = (values[_STREAM], values[_SEQ], values[_TABLE], values[_RECORD])
        self._db.execute(
            "insert into found (is_old, rowid_, stream, seq, record_table, record_id, payload, mark)"
            " values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do update set is_old = min(is_old, excluded.is_old)",
            (is_old, -1 if cell.rowid is None else cell.rowid, *row, cell.payload, hash(cell.payload)),
        )

    def _take_blob(self, pages: Pages, cell: Cell) -> None:
        try:
            digest, size, stored = values_of(cell.payload)
        except UNREADABLE:
            return
        if isinstance(stored, bytes) and sha256(content := decompress_bytes(stored, size)).hexdigest() == digest:
            pages.claim(cell)
            self._db.execute("insert or ignore into blobs values (?, ?)", (digest, content))

    def _take_stream(self, cell: Cell) -> None:
        try:
            _, name, _, _ = values_of(cell.payload)
        except UNREADABLE:
            return
        if type(name) is str and cell.rowid is not None and 0 < cell.rowid < STREAM_SIZE:
            self._vote(cell.rowid, name, _STREAM_VOTES)

    def _vote(self, number: int, stream: str, votes: int) -> None:
        sql = "insert into votes values (?, ?, ?) on conflict do update set votes = votes + excluded.votes"
        self._db.execute(sql, (number, stream, votes))

    # Places

    def _settle(self) -> None:
        """Set the stream and number of each entry. Stream numbers reveal a damaged name among many."""
        self._db.execute("insert or ignore into names select number, stream from votes order by number, votes desc, stream")
        pairs: list[Any] = self._db.execute("select number, stream from names").fetchall()
        known: dict[Any, Any] = dict(pairs)
        names = set(known.values())
        found: list[Any] = self._db.execute("select id, rowid_, stream, seq, is_old from found").fetchall()
        for id, rowid, stream, seq, is_old in found:
            by_number = known.get(rowid // STREAM_SIZE)
            places = {(by_number, rowid % STREAM_SIZE)} if by_number is not None and rowid % STREAM_SIZE else set()
            # A name that wins no vote is damaged, unless there is nothing better.
            if stream in names or (stream is not None and by_number is None):
                places.add((stream, seq))
            is_doubtful = len(places) > 1 or stream is None
            for place in places:
                self._db.execute("insert into places values (?, ?, ?, ?, ?)", (*place, is_doubtful, is_old, id))

    def take_record(self, stream: str, place: int, record_id: str, image: str) -> None:
        self._db.execute("insert or replace into records values (?, ?, ?, ?)", (stream, place, record_id, image))

    def streams(self) -> list[str]:
        """List the streams with any findings; reserved ones come last, because their records refer to runs."""
        found = self._db.execute("select stream from places where not is_doubtful union select stream from records")
        return sorted((str(row[0]) for row in found), key=lambda name: (name.startswith("@"), name))

    def entries(self, stream: str) -> "Iterator[tuple[int, list[Version]]]":
        """Yield the sequence numbers of a stream in order, each with its entry's versions, the likeliest first."""
        sql = """
            select places.seq, payload, is_doubtful
              from places
              join found using (id)
             where places.stream = ?
             order by places.seq, is_doubtful, places.is_old, id
        """
        rows: Iterator[Any] = self._db.execute(sql, (stream,))
        for seq, versions in groupby(rows, key=itemgetter(0)):
            yield seq, [Version(stream, seq, payload, bool(is_doubtful)) for _, payload, is_doubtful in versions]

    def at(self, stream: str, seq: int) -> "list[Version]":
        """Return the versions of one entry."""
        sql = "select payload, is_doubtful from places join found using (id) where places.stream = ? and places.seq = ?"
        rows: list[Any] = self._db.execute(sql, (stream, seq)).fetchall()
        return [Version(stream, seq, payload, bool(is_doubtful)) for payload, is_doubtful in rows]

    def of_record(self, stream: str, table: str, record_id: str) -> "list[Version]":
        """Return the entries of a stream about one record, oldest first."""
        sql = """
            select places.seq, payload
              from found
              join places using (id)
             where record_table = ?
               and record_id = ?
               and places.stream = ?
               and not is_doubtful
             order by places.seq, places.is_old
        """
        rows: list[Any] = self._db.execute(sql, (table, record_id, stream)).fetchall()
        return [Version(stream, seq, payload, False) for seq, payload in rows]

    def records(self, stream: str) -> Iterator[tuple[int, str, str]]:
        """Yield the rows found in a stream's tables: the table's index, the id and the image."""
        yield from self._db.execute("select place, record_id, image from records where stream = ? order by place, 2", (stream,))

    def blobs(self) -> Iterator[tuple[str, bytes]]:
        yield from self._db.execute("select digest, bytes from blobs order by digest")

    def close(self) -> None:
        self._db.close()


@dataclass(frozen=True)
class Version:
    """One version of an entry at a position, as bytes. A doubtful one counts only if its hash fits."""

    stream: str
    seq: int
    payload: bytes
    is_doubtful: bool

    def values(self, payload: bytes | None = None, *, errors: str = "strict") -> dict[str, Any] | None:
        """Decode the entry at this position; None if it has impossible values.

        `errors` is as in `bytes.decode`: `replace` decodes as much as possible.
        """
        try:
            return self.placed(values_of(self.payload if payload is None else payload, errors=errors))
        except UNREADABLE:
            return None

    def placed(self, values: list[Any]) -> dict[str, Any]:
        """Return the values of a row by column, as an entry at this position."""
        if len(values) != len(COLUMNS):
            raise ValueError("this is no entry")
        named = dict(zip(COLUMNS[1:], values[1:], strict=True))
        return {**named, "hash": in_digits(named["hash"]), "stream": self.stream, "seq": self.seq}


def in_digits(link: Any) -> Any:
    """Return a hash in hexadecimal, as entries contain it; rows of older logs have this form already."""
    return link.hex() if type(link) is bytes else link


def _is_entry_like(values: list[Any]) -> bool:
    stream, seq, at, link = (values[place] for place in (_STREAM, _SEQ, _AT, _LINK))
    if type(stream) is not str or type(at) is not str or type(seq) is not int:
        return False
    return 1 <= seq < STREAM_SIZE and type(link) in (bytes, str) and len(in_digits(link)) == 64
