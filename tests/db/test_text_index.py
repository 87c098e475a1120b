"""The check of a text index accepts every intact index, also during a merge, and finds what changes a search."""

import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from decklog import Decklog
from decklog.db.search.index_check import IndexCheck


@pytest.fixture
def log(tmp_path: Path) -> Decklog:
    return Decklog.open(tmp_path / "log.db")


class Index:
    """An index with small pages, so that a few rows make many of them, and the texts it was made of."""

    def __init__(self, path: str, seed: int) -> None:
        self._dice = random.Random(seed)
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

    def searches(self) -> list[object]:
        """Search for every word."""
        words = {word for (text,) in self.connection.execute("select words from texts") for word in text.split()}
        sql = "select rowid from small where small match ?"
        return [self.connection.execute(sql, (word,)).fetchall() for word in sorted(words)]


def flaws(log: Decklog) -> list[tuple[int | None, str | None]]:
    def look() -> list[tuple[int | None, str | None]]:
        log.db.rows("create temp view told as select no, words from main.texts", {})
        try:
            return list(IndexCheck(log.db, "small", ("words",), "told").flaws())
        finally:
            log.db.rows("drop view temp.told", {})

    return log.db.read(look)


@pytest.mark.slow
def test_an_index_is_intact_after_any_deletion_and_in_the_middle_of_a_merge(log: Decklog) -> None:
    index = Index(log.db.target, seed=5)
    for number in range(60):
        index.change()
        if number % 6 == 0:
            assert flaws(log) == []
    index.connection.execute("insert into small (small) values ('optimize')")
    assert flaws(log) == []
    log.close()


DAMAGE = {
    "a text that is not in it": "insert into texts (no, words) values (1000, 'lost')",
    "another text": "update texts set words = 'other' where no = (select min(no) from texts)",
    "averages": "update small_data set block = x'0101' where id = 1",
    "no averages": "delete from small_data where id = 1",
    "no list of segments": "delete from small_data where id = 10",
    "a row": "insert into small_docsize (id, sz, origin) values (1000, x'01', 1)",
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("rows", [0, 20])
def test_damage_is_found(log: Decklog, what: str, rows: int) -> None:
    index = Index(log.db.target, seed=9)
    with index.connection:
        for no in range(1, rows + 1):
            index.put(no)
    assert flaws(log) == []
    index.connection.execute(DAMAGE[what])
    is_found = flaws(log) != [] or log.db.check_indexes(1) != []
    assert is_found == (rows > 0 or what != "another text")
    log.close()


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "a digit": lambda block: block.replace(b"1", b"2", 1),
    "a word": lambda block: block[: len(block) // 2] + bytes([block[len(block) // 2] ^ 2]) + block[len(block) // 2 + 1 :],
    "the end cut off": lambda block: block[:-1],
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BYTES)
def test_a_changed_page_is_found(log: Decklog, what: str) -> None:
    index = Index(log.db.target, seed=6)
    for _ in range(6):
        index.change()
    pages = index.connection.execute("select id, block from small_data where id > 10 order by id").fetchall()
    for id, block in random.Random(7).sample(pages, 12):
        other = BYTES[what](block)
        if other != block:
            index.connection.execute("update small_data set block = ? where id = ?", (other, id))
            # Places of words on a page are compared by SQLite's own check, which verify runs before.
            assert flaws(log) or log.db.check_indexes(1)
            index.connection.execute("update small_data set block = ? where id = ?", (block, id))
    assert flaws(log) == []
    log.close()


@pytest.mark.slow
@pytest.mark.parametrize("change", ["x'7a'", "substr(term, 1, 1)", "term || x'30'"])
def test_a_wrong_list_of_pages_is_found_if_it_changes_a_search(log: Decklog, change: str) -> None:
    index = Index(log.db.target, seed=6)
    for _ in range(6):
        index.change()
    before, found = index.searches(), 0
    rows = index.connection.execute("select segid, pgno, term from small_idx where length(term) > 1").fetchall()
    for segment, page, term in random.Random(7).sample(rows, 12):
        place = "where segid = ? and pgno = ?"
        index.connection.execute(f"update or ignore small_idx set term = {change} {place}", (segment, page))
        is_changed = index.searches() != before
        assert (flaws(log) != []) == is_changed
        found += is_changed
        index.connection.execute(f"update small_idx set term = ? {place}", (term, segment, page))
    assert found > 0 or change == "term || x'30'"
    log.close()
