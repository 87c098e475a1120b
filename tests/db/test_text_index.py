"""The check of a text index calls no index damaged that is whole, in whatever state its merges are."""

import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from decklog import Decklog
from decklog.db.search.index_check import STRUCTURE_ID, IndexCheck, read_structure

ROUNDS = 60


@pytest.fixture
def log(tmp_path: Path) -> Decklog:
    return Decklog.open(tmp_path / "log.db")


class Index:
    """An index with small pages, so that a few rows make many of them, beside the texts it was made of."""

    def __init__(self, path: str, dice: random.Random) -> None:
        self._dice = dice
        self.connection = apsw.Connection(path)
        self.connection.execute("create virtual table small using fts5(words, content = '', contentless_delete = 1)")
        self.connection.execute("create table texts (no integer primary key, words text)")
        for name, value in (("pgsz", 64), ("automerge", 2), ("hashsize", 3000)):
            self.connection.execute("insert into small (small, rank) values (?, ?)", (name, value))

    def change(self) -> None:
        with self.connection:
            for _ in range(self._dice.randint(1, 40)):
                self.put(self._dice.randint(1, 400))

    def put(self, no: int) -> None:
        self.connection.execute("delete from small where rowid = ?", (no,))
        words = " ".join(f"{self._dice.choice('abcdefgh')}{self._dice.randint(0, 900)}" for _ in range(self._dice.randint(1, 30)))
        self.connection.execute("insert or replace into texts (no, words) values (?, ?)", (no, words))
        self.connection.execute("insert into small (rowid, words) values (?, ?)", (no, words))

    @property
    def merging(self) -> int:
        [(block,)] = self.connection.execute("select block from small_data where id = ?", (STRUCTURE_ID,)).fetchall()
        structure = read_structure(block)
        assert structure is not None
        return structure.merging


def flaws(log: Decklog) -> list[tuple[int | None, str | None]]:
    def look() -> list[tuple[int | None, str | None]]:
        log.db.rows("create temp view told as select no, words from main.texts", {})
        try:
            return list(IndexCheck(log.db, "small", ("words",), "told").flaws())
        finally:
            log.db.rows("drop view temp.told", {})

    return log.db.read(look)


@pytest.mark.slow
def test_an_index_is_whole_after_any_deletion_and_in_the_middle_of_a_merge(log: Decklog) -> None:
    index = Index(log.db.target, random.Random(5))
    seen = set()
    for number in range(ROUNDS):
        index.change()
        if number % 10 == 9 or (index.merging and len(seen) < 2):
            seen.add(index.merging > 0)
            assert flaws(log) == []
    assert seen == {True, False}
    index.connection.execute("insert into small (small) values ('optimize')")
    assert flaws(log) == []
    log.close()


def test_an_index_that_was_written_at_once_is_whole(log: Decklog) -> None:
    index = Index(log.db.target, random.Random(8))
    with index.connection:
        for no in range(1, 200):
            index.put(no)
    assert flaws(log) == []
    log.close()


NEVER_WRITTEN = {
    "a text that is not in it": "insert into texts (no, words) values (1, 'lost')",
    "averages": "update small_data set block = x'0101' where id = 1",
    "no averages": "delete from small_data where id = 1",
    "a list of segments": f"update small_data set block = block || x'00' where id = {STRUCTURE_ID}",
    "no list of segments": f"delete from small_data where id = {STRUCTURE_ID}",
    "a page": "insert into small_data (id, block) values (137438953473, x'0000001503306869010202010574686572650102030407')",
    "a page that is listed": "insert into small_idx (segid, term, pgno) values (1, x'', 2)",
    "a row": "insert into small_docsize (id, sz, origin) values (1, x'01', 1)",
}


@pytest.mark.parametrize("what", NEVER_WRITTEN)
def test_an_index_to_which_nothing_was_written_is_whole_and_what_was_put_into_it_is_found(log: Decklog, what: str) -> None:
    index = Index(log.db.target, random.Random(9))
    assert flaws(log) == []
    index.connection.execute(NEVER_WRITTEN[what])
    assert flaws(log) != []
    log.close()


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "a digit": lambda block: block.replace(b"1", b"2", 1),
    "a word": lambda block: block[: len(block) // 2] + bytes([block[len(block) // 2] ^ 2]) + block[len(block) // 2 + 1 :],
    "the flag of a deletion": lambda block: block[:-9] + bytes([block[-9] ^ 1]) + block[-8:],
    "the end cut off": lambda block: block[:-1],
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BYTES)
def test_a_changed_page_is_found_wherever_it_lies(log: Decklog, what: str) -> None:
    index = Index(log.db.target, random.Random(6))
    for _ in range(6):
        index.change()
    pages = index.connection.execute("select id, block from small_data where id > 10 order by id").fetchall()
    for id, block in random.Random(7).sample(pages, 12):
        other = BYTES[what](block)
        if other != block:
            index.connection.execute("update small_data set block = ? where id = ?", (other, id))
            assert flaws(log) != [] or _is_refused(log)
            index.connection.execute("update small_data set block = ? where id = ?", (block, id))
    assert flaws(log) == []
    log.close()


SIGNS: dict[str, Callable[[bytes], bytes]] = {
    "another letter": lambda sign: sign[:-1] + bytes([sign[-1] ^ 1]),
    "a letter less": lambda sign: sign[:-1],
    "a letter more": lambda sign: sign + b"0",
    "a letter twice": lambda sign: sign[:1] + sign,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SIGNS)
def test_a_changed_word_by_which_a_page_is_found_is_found(log: Decklog, what: str) -> None:
    index = Index(log.db.target, random.Random(6))
    for _ in range(6):
        index.change()
    rows = index.connection.execute("select segid, term, pgno from small_idx where length(term) > 1").fetchall()
    assert len(rows) > 50
    for segment, term, page in random.Random(7).sample(rows, 12):
        index.connection.execute("update small_idx set term = ? where segid = ? and term = ?", (SIGNS[what](term), segment, term))
        assert flaws(log) != []
        index.connection.execute("update small_idx set term = ? where segid = ? and pgno = ?", (term, segment, page))
    assert flaws(log) == []
    log.close()


def _is_refused(log: Decklog) -> bool:
    """Places of words on a page are compared by SQLite's own check, which verify runs before."""
    return log.db.check_indexes(1) != []
