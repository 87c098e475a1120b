"""Compares a full-text index of SQLite with the texts it was made of."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count, zip_longest

from decklog.core.errors import Conflict, Damaged, Invalid
from decklog.db.base import Database, Row

_MOST = 20
_NUMBERS = count()
# The row of an FTS5 index that lists its segments.
_SEGMENTS = 10
# An index in one piece is not merged, so each gets one more row.
_LAST_ROW, _LAST_WORD = 2**63 - 1, "zzlastrow"
_PARTS = {"data": "id, block", "idx": "segid, term, pgno", "docsize": "id, sz, origin", "config": "k, v"}
# Errors of SQLite when it reads damaged pages.
_DAMAGE = (Damaged, Conflict, Invalid)


class IndexCheck:
    """Compares one FTS5 index with a temporary table or view that has the expected texts by row id.

    It makes a second index of the expected texts. A copy of the index must have the same pages as the second one once both are
    merged, and a search for each word must find all its rows.
    """

    def __init__(self, db: Database, index: str, columns: Sequence[str], expected: str, *, options: str = "") -> None:
        self._db = db
        self._index = index
        self._columns = ", ".join(columns)
        self._first_column = columns[0]
        self._expected = expected
        self._options = options
        # A number for each check: a table of an earlier one may be left.
        number = next(_NUMBERS)
        self._tables = [f"{name}_{number}" for name in ("expected", "copied", "expected_terms", "expected_words", "found_words")]
        self._expected_index, self._copied_index, self._expected_terms, self._expected_words, self._found_words = self._tables

    def flaws(self) -> Iterator[tuple[int | None, str | None]]:
        """Yield the rows with wrong words, each with the column. The row is None if it can't be determined."""
        try:
            self._make(self._expected_index, "config")
            texts = f"select no, {self._columns} from temp.{self._expected}"
            self._run(f"insert into temp.{self._expected_index} (rowid, {self._columns}) {texts}")
            if not self._is_equal() or not self._is_found():
                yield from self._differing() or [(None, None)]
        except _DAMAGE:
            yield None, None
        finally:
            for name in reversed(self._tables):
                # SQLite can't drop the copy of an index without a list of segments.
                with suppress(*_DAMAGE):
                    self._run(f"drop table if exists temp.{name}")

    def _is_equal(self) -> bool:
        """Merge a copy of the index and the expected one, and compare their pages and the lengths of their rows."""
        self._make(self._copied_index, *_PARTS)
        for name in (self._expected_index, self._copied_index):
            self._run(f"insert into temp.{name} (rowid, {self._first_column}) values ({_LAST_ROW}, '{_LAST_WORD}')")
            self._run(f"insert into temp.{name} ({name}) values ('optimize')")
        pages = f"select block from temp.{{}}_data where id <> {_SEGMENTS} order by id"
        lengths = "select id, sz from temp.{}_docsize order by id"
        both = (
            [self._db.each(sql.format(name), {}) for name in (self._expected_index, self._copied_index)]
            for sql in (pages, lengths)
        )
        return all(one == other for each in both for one, other in zip_longest(*each))

    def _is_found(self) -> bool:
        """Return whether a search finds each word in all its rows: a page may be listed under a wrong word."""
        self._run(f"create virtual table temp.{self._expected_terms} using fts5vocab(temp, {self._expected_index}, row)")
        search = f"""select count(*) from main.{self._index} where {self._index} match '"' || term || '"'"""
        return not self._rows(
            f"select 1 from temp.{self._expected_terms} where term <> '{_LAST_WORD}' and doc <> ({search}) limit 1"
        )

    def _differing(self) -> list[tuple[int | None, str | None]]:
        self._run(f"create virtual table temp.{self._expected_words} using fts5vocab(temp, {self._expected_index}, instance)")
        self._run(f"create virtual table temp.{self._found_words} using fts5vocab(main, {self._index}, instance)")
        words = "select doc, col, term, offset from temp.{} except select doc, col, term, offset from temp.{}"
        lengths = "select id, sz from {} except select id, sz from {}"
        found, expected = f"main.{self._index}_docsize", f"temp.{self._expected_index}_docsize"
        rows = self._rows(
            f"""
            select * from (
              select doc, col from ({words.format(self._expected_words, self._found_words)})
              union
              select doc, col from ({words.format(self._found_words, self._expected_words)})
              union
              select id, null from ({lengths.format(found, expected)})
              union
              select id, null from ({lengths.format(expected, found)})
            )
            where doc <> {_LAST_ROW}
            limit {_MOST}
            """
        )
        return [(row, column) for row, column in rows]

    def _make(self, name: str, *parts: str) -> None:
        """Create an index with some of the tables of the checked one."""
        options = f"{self._columns}, content = '', contentless_delete = 1{self._options}"
        self._run(f"create virtual table temp.{name} using fts5({options})")
        for part in parts:
            self._run(f"delete from temp.{name}_{part}")
            self._run(f"insert into temp.{name}_{part} ({_PARTS[part]}) select {_PARTS[part]} from main.{self._index}_{part}")

    def _rows(self, sql: str) -> list[Row]:
        return self._db.rows(sql, {})[1]

    def _run(self, sql: str) -> None:
        self._db.rows(sql, {})
