"""Compares a full-text index of SQLite with the texts it was made of."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, Damaged, Invalid

if TYPE_CHECKING:
    from decklog.db.base import Database


_SEVEN, _MORE = 0x7F, 0x80


def wrong_signs(pages: Iterable[tuple[int, int, bytes]], signs: dict[tuple[int, int], bytes]) -> Iterator[tuple[int, int]]:
    """Name the pages, given in order as segment, number and bytes, whose sign is not the one that SQLite gives them.

    A search begins on the last page whose sign is not behind the word. A sign is the beginning of the page's first word, as long
    as it has to be to stand behind the last word before it, or all of it where a merge went on with the segment.
    """
    before: tuple[int, bytes] | None = None
    for segment, number, block in pages:
        words = words_of(block)
        first = next(words, None)
        if first is None:
            continue
        sign = signs.get((segment, number))
        if sign is not None and not _is_sign(sign, first, before[1] if before and before[0] == segment else None):
            yield segment, number
        last = first
        for word in words:
            last = word
        before = segment, last


def _is_sign(sign: bytes, first: bytes, before: bytes | None) -> bool:
    if before is None:
        # The first page of a segment has none. Where a merge has taken that page away, and words of this one, it must only not be
        # behind the words that are left.
        return sign <= first
    if sign == first:
        return True
    shared = next((at for at, (one, other) in enumerate(zip(before, first)) if one != other), min(len(before), len(first)))  # noqa: B905
    return sign == first[: shared + 1]


def words_of(block: bytes) -> Iterator[bytes]:
    """Yield the words that begin on a page, in their order."""
    place, at = 0, int.from_bytes(block[2:4], "big")
    word = b""
    while at < len(block):
        further, at = _number(block, at)
        place += further
        if word:
            shared, start = _number(block, place)
            length, start = _number(block, start)
            word = word[:shared] + block[start : start + length]
        else:
            length, start = _number(block, place)
            word = block[start : start + length]
        yield word


def _number(block: bytes, at: int) -> tuple[int, int]:
    """Read a number; return it and the place of the next byte."""
    value = block[at]
    at += 1
    if value < _MORE:
        return value, at
    value &= _SEVEN
    while True:
        byte = block[at]
        at += 1
        value = value << 7 | byte & _SEVEN
        if byte < _MORE:
            return value, at


# Where the list is among the pages of an index.
STRUCTURE_ID = 10
# Four bytes count changes of the settings; then comes the mark of an index whose rows can be deleted without their texts.
_COOKIE, _MARK = 4, bytes.fromhex("ff000001")
# The list of an index to which nothing was ever written, behind the count of changes: no level, no segment, nothing written.
WITHOUT_SEGMENTS = _MARK + bytes(3)
_OF_SEGMENT = 8


class Segment:
    """One piece of an index: where it begins and ends, from which origins its rows are, and how many there are."""

    def __init__(self, numbers: list[int]) -> None:
        self.id, self.first_page, _, self.first_origin, self.last_origin, _, self.dropped, self.rows = numbers


class Structure:
    """Levels of segments, each with the number of those that are being merged."""

    def __init__(self, block: bytes) -> None:
        numbers = _numbers(block[_COOKIE + len(_MARK) :])
        levels, _, _ = next(numbers), next(numbers), next(numbers)
        self.merging = 0
        self.segments: list[Segment] = []
        for _ in range(levels):
            self.merging += next(numbers)
            self.segments += [Segment([next(numbers) for _ in range(_OF_SEGMENT)]) for _ in range(next(numbers))]
        self.is_read_whole = next(numbers, None) is None


def uncounted(id: int, block: bytes) -> bytes:
    """Return a page as it is, and the list without its count of changes."""
    return block[_COOKIE:] if id == STRUCTURE_ID else block


def read_structure(block: bytes) -> Structure | None:
    """Read the list; None where it is not as SQLite writes it."""
    if block[_COOKIE : _COOKIE + len(_MARK)] != _MARK:
        return None
    try:
        structure = Structure(block)
    except (StopIteration, ValueError):
        return None
    return structure if structure.is_read_whole else None


def has_right_counts(structure: Structure, rows_by_origin: Mapping[int, int]) -> bool:
    """Return whether each segment has as many rows as there are of its origins."""
    if structure.merging:
        return True  # until a merge is done, rows are counted where they were and where they will be
    in_order = sorted(structure.segments, key=lambda segment: segment.first_origin)
    if any(one.last_origin >= other.first_origin for one, other in pairwise(in_order)):
        return False
    if any(not 1 <= one.first_origin <= one.last_origin for one in in_order):
        return False
    kept = {
        one: sum(n for origin, n in rows_by_origin.items() if one.first_origin <= origin <= one.last_origin) for one in in_order
    }
    return sum(kept.values()) == sum(rows_by_origin.values()) and all(one.rows == kept[one] + one.dropped for one in in_order)


def _numbers(block: bytes) -> Iterator[int]:
    """Read numbers of seven bits a byte, each as short as it can be."""
    value = length = 0
    for byte in block:
        value, length = value << 7 | byte & _SEVEN, length + 1
        if length > 1 and value < 1 << 7 * (length - 1) and not byte & _MORE:
            raise ValueError("a number is longer than it need be")
        if not byte & _MORE:
            yield value
            value = length = 0
    if length:
        raise ValueError("the last number is cut off")


_MOST = 20
# Errors of SQLite when it merges damaged pages.
_DAMAGE = (Damaged, Conflict, Invalid)
# How the number of a page is made: of its segment, its level in a tree, and its place.
_PAGE_BITS, _SEGMENT_BITS = 37, 16
# A row of our own, with a word: an index that is in one piece already is not merged, and is written in another way.
_LAST_ROW = 2**63 - 1
_PARTS = {"data": "id, block", "idx": "segid, term, pgno", "docsize": "id, sz, origin", "config": "k, v"}
# All that is in an index to which nothing was ever written: no averages, and a list without segments.
_UNUSED = [(1, b""), (STRUCTURE_ID, WITHOUT_SEGMENTS)]
_TEMPORARY = ("checked_copy", "checked_emptied", "checked_fresh", "checked_there", "checked_told_words", "checked_emptied_words")


class IndexCheck:
    """Compares one FTS5 index with a temporary table or view that has the expected texts by row id."""

    def __init__(self, db: "Database", index: str, columns: Sequence[str], told: str, *, options: str = "") -> None:
        self._db = db
        self._index = index
        self._columns = ", ".join(columns)
        self._first_column = columns[0]
        self._told = told
        self._options = options

    def flaws(self) -> Iterator[tuple[int | None, str | None]]:
        """Yield the rows with wrong words, each with the column. The row is None if it can't be determined."""
        if not self._is_rightly_unused():
            yield from self._compared()

    def _compared(self) -> Iterator[tuple[int | None, str | None]]:
        try:
            if not self._is_whole():
                yield from self._differing() or [(None, None)]
            elif not self._is_listed_right() or self._leftovers():
                yield None, None
        except _DAMAGE:
            yield None, None
        finally:
            self._clear()

    def _is_rightly_unused(self) -> bool:
        """Return whether there are no texts and the index is as SQLite creates it: most logs have no lessons."""
        parts = (f"temp.{self._told}", f"main.{self._index}_idx", f"main.{self._index}_docsize")
        try:
            filled = self._db.one("select " + " or ".join(f"exists (select 1 from {part})" for part in parts), {})
            pages = self._db.each(f"select id, block from main.{self._index}_data order by id limit {len(_UNUSED) + 1}", {})
            return filled == (0,) and [(id, uncounted(id, block)) for id, block in pages] == _UNUSED
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
        pages = f"select {page}, block from temp.{{}}_data where id <> {STRUCTURE_ID} order by 1, 2"
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

    def _pages(self) -> Iterator[tuple[int, int, bytes]]:
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
            # Bytes 3 and 4 have the offset at which the words end and the list of their positions begins.
            if int.from_bytes(block[2:4], "big") < len(block):
                yield id >> _PAGE_BITS, id & 0x7FFFFFFF, block

    def _is_listed_right(self) -> bool:
        """Return whether the list of segments counts all rows and lists every page that a search may start on.

        SQLite's own check misses the last one of a segment, and the word by which a page is found where it is too small.
        """
        row = self._db.one(f"select block from main.{self._index}_data where id = {STRUCTURE_ID}", {})
        structure = read_structure(row[0]) if row else None
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
        if len(by_origin) < len(rows) or not has_right_counts(structure, by_origin):
            return False
        there = {(segment, page) for segment, page, _ in self._pages()}
        return signs.keys() == there and not any(wrong_signs(self._pages(), signs))

    def _leftovers(self) -> int:
        """Count the words that are left when every row was taken out."""
        self._copy("checked_emptied")
        self._run("delete from temp.checked_emptied")
        self._list("checked_emptied_words", "temp", "checked_emptied")
        row = self._db.one("select count(*) from temp.checked_emptied_words", {})
        return int(row[0]) if row else 0

    def _differing(self) -> list[tuple[int | None, str | None]]:
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
