"""Holding a full-text index of SQLite against what it was made of.

SQLite's index keeps no texts, only where each word stands, and its own check adds up figures in which two wrong words can cancel
each other out. So a second index is made of the texts, both are merged into one piece, and the pieces are compared byte by byte:
what they hold decides how they are written down. Another copy is emptied row by row, since a row that could not be taken out
again would outlive its text. Where the index differs, every word of both is listed to find out whose it is.
"""

from itertools import zip_longest
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, Damaged, Invalid
from decklog.db.search import index_pages, index_structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from decklog.db.base import Database

_MOST = 20
# What SQLite says when it merges pages that hold anything: that they can't be read, or that something is there twice.
_DAMAGE = (Damaged, Conflict, Invalid)
# How the number of a page is made: of its segment, whether and how high it stands in a tree, and its place.
_PAGE_BITS, _SEGMENT_BITS = 37, 16
# A row of our own, with a word: an index that is in one piece already is not merged, and is written in another way.
_LAST_ROW = 2**63 - 1
_PARTS = {"data": "id, block", "idx": "segid, term, pgno", "docsize": "id, sz, origin", "config": "k, v"}
# All that is in an index to which nothing was ever written: no averages, and a list without segments.
_UNUSED = [(1, b""), (index_structure.ID, index_structure.WITHOUT_SEGMENTS)]
_TEMPORARY = ("checked_copy", "checked_emptied", "checked_fresh", "checked_there", "checked_told_words", "checked_emptied_words")


class IndexCheck:
    """Compares one FTS5 index with `told`, a temporary table or view that has the texts it should hold by their row ids."""

    def __init__(self, db: "Database", index: str, columns: "Sequence[str]", told: str, *, options: str = "") -> None:
        self._db = db
        self._index = index
        self._columns = ", ".join(columns)
        self._first_column = columns[0]
        self._told = told
        self._options = options

    def flaws(self) -> "Iterator[tuple[int | None, str | None]]":
        """Yield the rows whose words are not those they should be, each with the column; no row where it can't be said which."""
        if not self._is_rightly_unused():
            yield from self._compared()

    def _compared(self) -> "Iterator[tuple[int | None, str | None]]":
        try:
            if not self._is_whole():
                yield from self._differing() or [(None, None)]
            elif not self._is_listed_right() or self._leftovers():
                yield None, None
        except _DAMAGE:
            yield None, None
        finally:
            self._clear()

    def has_told_words(self) -> bool:
        """Return whether the index has just the words that it should have, and finds them."""
        try:
            return self._is_whole() and self._is_listed_right()
        except _DAMAGE:
            return False
        finally:
            self._clear()

    def gives_rows_back(self) -> bool:
        """Return whether every row can be taken out again; with `has_told_words` that is all that `flaws` looks for."""
        try:
            return not self._leftovers()
        except _DAMAGE:
            return False
        finally:
            self._clear()

    def _is_rightly_unused(self) -> bool:
        """Return whether there is nothing to find, and the index is as SQLite makes one: most logs have no lessons."""
        parts = (f"temp.{self._told}", f"main.{self._index}_idx", f"main.{self._index}_docsize")
        try:
            filled = self._db.one("select " + " or ".join(f"exists (select 1 from {part})" for part in parts), {})
            pages = self._db.each(f"select id, block from main.{self._index}_data order by id limit {len(_UNUSED) + 1}", {})
            return filled == (0,) and [(id, index_structure.uncounted(id, block)) for id, block in pages] == _UNUSED
        except _DAMAGE:
            return False

    def _is_whole(self) -> bool:
        self._make("checked_fresh")
        self._fill("checked_fresh", "config")
        self._run(f"insert into temp.checked_fresh (rowid, {self._columns}) select no, {self._columns} from temp.{self._told}")
        try:
            self._copy("checked_copy")
            for name in ("checked_fresh", "checked_copy"):
                self._run(f"insert into temp.{name} (rowid, {self._first_column}) values ({_LAST_ROW}, 'last')")
                self._run(f"insert into temp.{name} ({name}) values ('optimize')")
        except _DAMAGE:
            return False
        page = f"id >> {_PAGE_BITS} > 0, id & {(1 << _PAGE_BITS) - 1}"
        pages = f"select {page}, block from temp.{{}}_data where id <> {index_structure.ID} order by 1, 2"
        one, other = (self._db.each(pages.format(name), {}) for name in ("checked_fresh", "checked_copy"))
        return all(row == its for row, its in zip_longest(one, other)) and self._has_same_lengths()

    def _has_same_lengths(self) -> bool:
        """Compare how many words each row has. There are as many as rows, so SQLite does it, which has both by their ids."""
        fresh, copy = "temp.checked_fresh_docsize", "temp.checked_copy_docsize"
        _, [counts] = self._db.rows(
            f"""
            select (select count(*) from {fresh}),
                   (select count(*) from {copy}),
                   (select count(*) from {fresh} f cross join {copy} c on c.id = f.id and c.sz = f.sz)
            """,
            {},
        )
        return len(set(counts)) == 1

    def _pages(self) -> "Iterator[tuple[int, int, bytes]]":
        """Yield the pages with words, in order: segment, number, bytes."""
        rows = self._db.each(
            f"""
            select id, block
              from main.{self._index}_data
             where id >= {1 << _PAGE_BITS}
               and id < {1 << (_PAGE_BITS + _SEGMENT_BITS)}
               and (id >> 31) & 63 = 0
             order by id
            """,
            {},
        )
        for id, block in rows:
            # Where the words end and the list of their places begins stands in the third and fourth byte.
            if int.from_bytes(block[2:4], "big") < len(block):
                yield id >> _PAGE_BITS, id & 0x7FFFFFFF, block

    def _is_listed_right(self) -> bool:
        """Return whether the list of segments counts all rows and lists every page that a search may start on.

        SQLite's own check misses the last one of a segment, and the word by which a page is found where it is too small.
        """
        row = self._db.one(f"select block from main.{self._index}_data where id = {index_structure.ID}", {})
        structure = index_structure.read(row[0]) if row else None
        if structure is None:
            return False
        rows: dict[int | None, int] = dict(
            self._db.each(f"select origin, count(*) from main.{self._index}_docsize group by origin", {})
        )
        # A merge takes pages from the beginning of a segment, and leaves them listed until it is done.
        first = {segment.id: segment.first_page for segment in structure.segments}
        listed = self._db.each(f"select segid, pgno / 2, term from main.{self._index}_idx", {})
        signs = {(segment, page): term for segment, page, term in listed if page >= first.get(segment, 0)}
        by_origin = {origin: count for origin, count in rows.items() if origin is not None}
        if len(by_origin) < len(rows) or not index_structure.counts(structure, by_origin):
            return False
        there = {(segment, page) for segment, page, _ in self._pages()}
        return signs.keys() == there and not any(index_pages.wrong_signs(self._pages(), signs))

    def _leftovers(self) -> int:
        """Count the words that are left when every row was taken out."""
        self._copy("checked_emptied")
        self._run("delete from temp.checked_emptied")
        self._list("checked_emptied_words", "temp", "checked_emptied")
        row = self._db.one("select count(*) from temp.checked_emptied_words", {})
        return int(row[0]) if row else 0

    def _differing(self) -> "list[tuple[int | None, str | None]]":
        self._list("checked_told_words", "temp", "checked_fresh")
        self._list("checked_there", "main", self._index)
        lacking, foreign = "temp.checked_told_words", "temp.checked_there"
        words = f"select doc, col, term, offset from {{}} where doc <> {_LAST_ROW} except select doc, col, term, offset from {{}}"
        lengths = f"select id, sz from {{}} where id <> {_LAST_ROW} except select id, sz from {{}}"
        docsize, fresh = f"main.{self._index}_docsize", "temp.checked_fresh_docsize"
        _, rows = self._db.rows(
            f"""
            select doc, col from ({words.format(lacking, foreign)})
            union
            select doc, col from ({words.format(foreign, lacking)})
            union
            select id, null from ({lengths.format(docsize, fresh)})
            union
            select id, null from ({lengths.format(fresh, docsize)})
            limit {_MOST}
            """,
            {},
        )
        return [(row, column) for row, column in rows]

    def _make(self, name: str) -> None:
        kind = f"{self._columns}, content = '', contentless_delete = 1{self._options}"
        self._run(f"create virtual table temp.{name} using fts5({kind})")

    def _copy(self, name: str) -> None:
        self._make(name)
        self._fill(name, *_PARTS)

    def _fill(self, name: str, *parts: str) -> None:
        for part in parts:
            columns = _PARTS[part]
            self._run(f"delete from temp.{name}_{part}")
            self._run(f"insert into temp.{name}_{part} ({columns}) select {columns} from main.{self._index}_{part}")

    def _list(self, name: str, place: str, index: str) -> None:
        self._run(f"create virtual table temp.{name} using fts5vocab({place}, {index}, instance)")

    def _run(self, sql: str) -> None:
        self._db.rows(sql, {})

    def _clear(self) -> None:
        for name in reversed(_TEMPORARY):
            self._run(f"drop table if exists temp.{name}")
