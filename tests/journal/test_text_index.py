"""The text index: built in small steps, never by a caller who waits for all of it; words are the same on both engines."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from decklog import Decklog, EntryKind
from decklog.db.search import entries, marks
from decklog.db.text_search import entry_words, words_of
from tests.paging import all_pages
from tests.statements import statements
from tests.waiting import wait_for_background, wait_until

BODIES = [
    "The parser fails in tests/core/test_clock.py line 12",
    "app.py imports the module `clock_helpers`",
    "Café au lait: naïve coöperation",
    "Straße und STRASSE",
    "the ﬁle has ＦＵＬＬ width letters",
    "version 3.11.4 of python3",
    "error E0277: `T` doesn't implement `Display`",
    "HTTP/1.1 404 Not Found at https://example.org/a/b?c=d&e=f",
    "user@example.org wrote: re-index everything",
    "SQLITE_BUSY: database is locked (code 5)",
    "Москва и Ёлка",
    "日本語 のテキスト",
    "x" * 300 + " long",
    "0x1f 1e5 12abc34 -7 +49",
    "parse parsed parsing parser",
]
PAYLOADS = {
    1: {"output": "first line\nTraceback: it's\tover", "path": "C:\\temp\\new.txt"},
    5: {"note": "Schlüssel"},
}
# Each query with the numbers of the bodies that it finds, the same on both engines.
QUERIES: dict[str, list[int]] = {
    "test_clock.py": [0],
    "tests/core/test_clock.py": [0],
    "clock": [0, 1],
    "clock.py": [0],
    "py": [0, 1],
    "app.py": [1],
    "app py": [1],
    "py app": [1],
    "py.app": [],
    "clock_helpers": [1],
    "clock_h*": [1],
    "test_cl*": [0],
    "cafe": [2],
    "CAFÉ": [2],
    "naive cooperation": [2],
    "strasse": [3],
    "Straße": [3],
    "file": [4],
    "full": [4],
    "3.11": [5],
    "3.11.4": [5],
    "11.3": [],
    "python3": [5],
    "python*": [5],
    "python": [],
    "E0277": [6],
    "e0*": [6],
    "doesn't": [6],
    "404": [7],
    "http/1.1": [7],
    "example.org": [7, 8],
    "user@example.org": [8],
    "re-index": [8],
    "reindex": [],
    "sqlite_busy": [9],
    "SQLITE": [9],
    "(code 5)": [9],
    "москва": [10],
    "елка": [10],
    "日本語": [11],
    "日本*": [11],
    "x" * 300: [12],
    "x" * 260 + "*": [12],
    "long": [12],
    "0x1f": [13],
    "1e5": [13],
    "12abc34": [13],
    "49": [13],
    "pars*": [0, 14],
    "parser": [0, 14],
    "parse": [14],
    "traceback": [1],
    "first line": [1],
    "over": [1],
    "new.txt": [1],
    "schlussel": [5],
    "tests -- clock": [0],
    "nothing": [],
    "'; drop": [],
    "* ( )": [],
}


@pytest.fixture
def worded(log: Decklog, run_id: str) -> Decklog:
    with log.transaction():
        for number, body in enumerate(BODIES):
            log.journal.append(run_id, body, key=str(number), payload=PAYLOADS.get(number), kind=EntryKind.TOOL)
    return log


def _found(log: Decklog, query: str, run_id: str) -> list[int]:
    return sorted(int(entry.key) for entry in log.journal.search(query, stream=run_id) if entry.key is not None)


def test_every_query_finds_the_same_on_both_engines(worded: Decklog, run_id: str) -> None:
    assert {query: _found(worded, query, run_id) for query in QUERIES} == QUERIES


def test_every_query_finds_the_same_unindexed_entries(worded: Decklog, run_id: str) -> None:
    found = worded.db.read(lambda: {query: _found(worded, query, run_id) for query in QUERIES})
    assert worded.db.read(lambda: worded.db.unindexed(None))
    assert found == QUERIES


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("tests/unit/test_zebra.py", True),
        ("test_zebra.py", True),
        ("test_zeb*", True),
        ("zebra.py", True),
        ("py_zebra", False),
        ("test_zebra.failed", False),
        ("zebra py failed", True),
        ("last_word", True),
        ("word_last", False),
    ],
)
@pytest.mark.parametrize("lines", [300, 4_000])
def test_phrase_is_found_behind_hundreds_of_the_same_words(
    log: Decklog, run_id: str, query: str, is_found: bool, lines: int
) -> None:
    passed = "".join(f"test_{number:x}.py\n" for number in range(lines))
    log.journal.append(run_id, f"{passed}tests/unit/test_zebra.py failed, the last word")
    before = len(log.journal.search(query))
    log.journal.index()
    assert (before, len(log.journal.search(query))) == (int(is_found), int(is_found))


def test_words_lose_case_accents_and_punctuation() -> None:
    assert words_of("Crème_Brûlée, ＯＫ; ½") == ["creme", "brulee", "ok", "1", "2"]
    assert entry_words("a", '{"b":"c\\nd \\\\n"}') == ["a", "b", "c", "d", "n"]


def _fill(log: Decklog, run_id: str, count: int) -> None:
    log.journal.append_many(
        [{"stream": run_id, "body": f"word{number} needle", "agent": f"agent-{number % 100}"} for number in range(count)]
    )


def _count_unindexed(log: Decklog) -> int:
    return log.db.read(lambda: marks.entries_in(marks.not_indexed(log.db, None)))


def test_search_indexes_nothing_while_its_caller_waits(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 900)
    wait_for_background(log)
    before = _count_unindexed(log)
    with statements(log) as executed:
        found = [*log.journal.search("word1"), *log.overview.search("word2").hits]
    assert len(found) == 2
    assert not [sql for sql, _ in executed if sql.split()[0] in ("insert", "update", "delete")]
    assert _count_unindexed(log) == before


def test_search_with_many_unindexed_entries_reads_the_newest_2000_and_reports_the_rest(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 4_500)
    wait_for_background(log)
    before = _count_unindexed(log)
    page = log.journal.search("word1600")
    assert (list(page), page.not_indexed) == ([], before - entries.MOST_READ)
    assert f"{page.not_indexed:,} entries are not indexed yet" in page.warnings[0]
    assert [entry.body for entry in log.journal.search("word4499")] == ["word4499 needle"]


def test_full_page_of_the_newest_entries_reports_nothing_unindexed(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 4_500)
    page = log.journal.search("needle")
    assert [entry.body for entry in page] == [f"word{number} needle" for number in range(4_499, 4_479, -1)]
    assert (page.not_indexed, page.warnings) == (0, [])


def test_searches_index_in_the_background(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 4_500)
    for _ in range(12):
        log.journal.search("word3000")
        wait_for_background(log)
    assert _count_unindexed(log) <= marks.MOST_UNINDEXED
    assert len(log.journal.search("word3000")) == 1


@pytest.mark.parametrize("query", ["NEEDLE", "résumé", "resume", "ＦＵＬＬ", "full wor*", "a_needle", "日本", "x'%_"])
def test_unindexed_and_indexed_entries_are_found_by_the_same_words(log: Decklog, run_id: str, query: str) -> None:
    bodies = ["A Needle", "Résumé of words", "RESUME", "ＦＵＬＬ words", "full work", "a_needle", "日本 語", "x % _", "x'%_ y"]
    log.journal.append_many([{"stream": run_id, "body": body, "payload": {"text": body}} for body in bodies])
    before = [entry.seq for entry in log.journal.search(query)]
    log.journal.index()
    assert before
    assert [entry.seq for entry in log.journal.search(query)] == before


def test_rare_word_on_postgres_uses_the_index(log: Decklog, run_id: str) -> None:
    if log.db.engine != "postgres":
        pytest.skip("SQLite has no planner of this kind")
    _fill(log, run_id, 3_000)
    log.journal.index()
    log.db.write(lambda: log.db.count("analyze entries, entry_text", {}))
    with statements(log) as executed:
        assert [entry.body for entry in log.journal.search("word5")] == ["word5 needle"]
    [*_, (sql, bound)] = [(sql, bound) for sql, bound in executed if "from entry_text where words @@" in sql]

    def plan() -> str:
        log.db.count("set local enable_seqscan = off", {})
        return "\n".join(row[0] for row in log.db.rows(f"explain (analyze, timing off, costs off) {sql}", bound)[1])

    text = log.db.read(plan)
    assert "entry_text_16_words_idx" in text
    # The entries are looked up by their position, once for each that was found.
    assert re.search(r"Index Scan using entries_16_pkey on entries_16 .*\(actual rows=1(\.00)? loops=1\)", text), text


def test_read_only_log_reads_at_most_2000_unindexed_entries(log: Decklog, run_id: str, target: str) -> None:
    _fill(log, run_id, 3_500)
    wait_for_background(log)
    unread = _count_unindexed(log) - entries.MOST_READ
    with Decklog.open(target, read_only=True) as reader:
        assert len(reader.journal.search("needle", limit=200)) == 200
        page = reader.journal.search("word3499")
        assert (len(page), page.not_indexed) == (1, unread)
        assert list(reader.journal.search("word700")) == []
    assert _count_unindexed(log) == unread + entries.MOST_READ


def test_find_by_agent_indexes_nothing_and_misses_nothing(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 900)
    wait_for_background(log)
    before = _count_unindexed(log)
    page = log.journal.find(agent="agent-7", limit=200)
    assert [entry.body for entry in page] == [f"word{number} needle" for number in range(807, -1, -100)]
    oldest = log.journal.find(run_id, agent="agent-7", limit=2, oldest_first=True)
    assert [entry.body for entry in oldest] == ["word7 needle", "word107 needle"]
    assert (_count_unindexed(log), page.not_indexed) == (before, 0)


@pytest.mark.slow
def test_pages_of_a_search_continue_through_unindexed_entries(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 3_000)
    seen, after = [], None
    for _ in range(40):
        page = log.db.read(lambda after=after: log.journal.find(run_id, text="needle", limit=200, after=after))
        seen += [entry.seq for entry in page]
        if (after := page.next) is None:
            break
    log.journal.index()
    assert seen == sorted(seen, reverse=True)
    hits = all_pages(lambda after: log.journal.search("needle", stream=run_id, limit=200, after=after))
    assert seen == [entry.seq for entry in hits][: len(seen)]


@pytest.mark.slow
def test_entries_are_indexed_in_the_background_as_they_are_written(log: Decklog, run_id: str) -> None:
    for number in range(600):
        log.journal.append(run_id, f"word{number}")
    log.db.submit(lambda: None).result()
    log.db.write(lambda: None)
    assert _count_unindexed(log) < 2 * marks.ENTRIES_BETWEEN_STEPS


@pytest.mark.slow
def test_entries_of_many_short_runs_are_indexed_in_the_background(log: Decklog) -> None:
    for number in range(100):
        log.runs.start(f"short run {number}")
    wait_for_background(log)
    assert _count_unindexed(log) < 2 * marks.STREAMS_BETWEEN_STEPS


@pytest.mark.slow
def test_index_indexes_everything(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 1_300)
    wait_for_background(log)
    before = _count_unindexed(log)
    assert log.journal.index() == {"indexed": before}
    assert log.journal.index() == {"indexed": 0}
    assert _count_unindexed(log) == 0
    assert log.journal.verify().ok


def test_a_search_in_a_run_does_not_walk_the_words_of_other_runs(log: Decklog, run_id: str) -> None:
    if log.db.engine != "sqlite":
        pytest.skip("PostgreSQL plans by its statistics")
    _fill(log, run_id, 100)
    executed: list[str] = []
    rows = log.db.rows
    log.db.rows = lambda sql, bound: (executed.append(sql), rows(sql, bound))[1]
    log.journal.search("needle", stream=run_id)
    [sql] = {one for one in executed if "match :match" in one}
    bound = {"match": "words : needle", "start": 0, "end": 1, "after": None, "limit": 1}
    plan = log.db.read(lambda: rows(f"explain query plan {sql}", bound)[1])
    assert any("VIRTUAL TABLE INDEX" in row[3] and "<" in row[3] and ">" in row[3] for row in plan), plan


@pytest.mark.parametrize("words", [3, 300])
def test_a_prefix_finds_every_word_that_begins_so(log: Decklog, run_id: str, words: int) -> None:
    log.journal.append_many([{"stream": run_id, "body": f"the pre{number}fix, then prefect"} for number in range(words)])
    log.journal.index()
    assert len(log.journal.search("pre*", limit=200)) == min(words, 200)
    assert len(log.journal.search("pre1*", limit=200)) == sum(str(number).startswith("1") for number in range(words))
    assert len(log.journal.search("the_pre2*", limit=200)) == sum(str(number).startswith("2") for number in range(words))
    assert list(log.journal.search("fix*")) == []


def test_a_prefix_reads_the_newest_hits_only(log: Decklog, run_id: str) -> None:
    if log.db.engine != "sqlite":
        pytest.skip("PostgreSQL has no such query")
    log.journal.append_many([{"stream": run_id, "body": "parser parsing"} for _ in range(70)])
    matches: list[str] = []
    rows = log.db.rows
    log.db.rows = lambda sql, bound: (matches.append(bound.get("match", "")), rows(sql, bound))[1]
    log.journal.index()
    log.journal.search("pars*")
    assert 'words : ("parser" OR "parsing")' in matches


def _rows_read(log: Decklog) -> list[int]:
    """Note from here on how many rows each statement returns."""
    counts: list[int] = []
    rows = log.db.rows

    def counted(sql: str, bound: Any) -> Any:
        found = rows(sql, bound)
        counts.append(len(found[1]))
        return found

    log.db.rows = counted
    return counts


@pytest.fixture
def broad(log: Decklog, run_id: str) -> Decklog:
    """A log with 4,000 entries that have words with one prefix, and then 2,100 without."""
    log.journal.append_many([{"stream": run_id, "body": f"needle zq{number}"} for number in range(4_000)])
    log.journal.append_many([{"stream": run_id, "body": f"hay {number}"} for number in range(2_100)])
    log.journal.append(run_id, "straw")
    log.journal.index()
    return log


@pytest.mark.slow
def test_broad_prefix_reads_at_most_2000_entries_with_a_warning(broad: Decklog, run_id: str) -> None:
    counts = _rows_read(broad)

    with statements(broad) as executed:
        page = broad.journal.search("zq*", stream=run_id)

    # Nothing asks the index for all entries with the prefix.
    of_index = [(sql, bound) for sql, bound in executed if "entry_text" in sql and "entry_text_marks" not in sql]
    bounded = ("limit 2", "limit :looked_at", "tablesample", "pg_relation_size")
    assert all(any(part in sql for part in bounded) for sql, _ in of_index), of_index
    assert not any("*" in str(bound.get("match")) for _, bound in executed)

    assert (list(page), page.is_cut) == ([], True)
    assert max(counts) <= entries.MOST_READ
    # At most 128 words are listed to find out that there are too many.
    assert sum(counts) <= entries.MOST_READ + 200
    assert page.warnings == [f"there is too much to search all of it at once; go on with --after {page.next}"]


@pytest.mark.slow
def test_pages_of_a_broad_prefix_find_every_entry_once_newest_first(broad: Decklog, run_id: str) -> None:
    hits = all_pages(lambda after: broad.journal.search("zq*", stream=run_id, limit=200, after=after))
    assert [entry.body for entry in hits] == [f"needle zq{number}" for number in reversed(range(4_000))]


@pytest.mark.slow
def test_broad_prefix_with_a_rare_word_is_found_at_once(broad: Decklog, run_id: str) -> None:
    broad.journal.append(run_id, "thread zqa")
    broad.journal.append_many([{"stream": run_id, "body": f"hay {number}"} for number in range(2_100)])
    broad.journal.index()

    page = broad.journal.search("zq* thread", stream=run_id)

    assert ([entry.body for entry in page], page.is_cut, page.next) == (["thread zqa"], False, None)


@pytest.mark.slow
def test_broad_prefix_finds_the_oldest_first_in_that_order(broad: Decklog, run_id: str) -> None:
    page = broad.journal.find(run_id, text="zq*", oldest_first=True, limit=3)
    assert [entry.body for entry in page] == ["needle zq0", "needle zq1", "needle zq2"]
    assert not page.is_cut


@pytest.mark.slow
def test_rare_prefix_is_found_behind_any_number_of_entries(broad: Decklog, run_id: str) -> None:
    page = broad.journal.search("zq209*", stream=run_id)
    found = [f"needle zq{number}" for number in [*range(2_099, 2_089, -1), 209]]
    assert ([entry.body for entry in page], page.is_cut) == (found, False)


@pytest.mark.slow
def test_broad_prefix_finds_entries_that_are_not_indexed(broad: Decklog, run_id: str, target: str) -> None:
    broad.journal.append_many([{"stream": run_id, "body": f"newer zq{number}"} for number in range(3)])
    with Decklog.open(target, read_only=True) as reader:
        page = reader.journal.search("zq*", stream=run_id)
    assert [entry.body for entry in page][:3] == ["newer zq2", "newer zq1", "newer zq0"]


@pytest.mark.slow
def test_search_over_everything_goes_on_behind_a_broad_prefix(broad: Decklog) -> None:
    first = broad.overview.search("zq*")
    assert (first.hits, first.is_cut) == ([], True)
    assert first.warnings
    second = broad.overview.search("zq*", after=first.next)
    assert [hit.snippet for hit in second.hits][:1] == ["needle zq3999"]


def test_index_indexes_everything_while_others_index_too(log: Decklog, run_id: str) -> None:
    _fill(log, run_id, 1_300)
    steps = marks.index_everything(log.db)
    next(steps)
    marks.index_some(log.db)
    for _ in steps:
        pass
    assert _count_unindexed(log) == 0


def test_forgetting_all_words_waits_for_a_step_of_indexing(log: Decklog, run_id: str, target: str) -> None:
    if log.db.engine != "postgres":
        pytest.skip("SQLite has one writer at a time")
    _fill(log, run_id, 20)
    spans = log.db.read(lambda: log.db.unindexed(None))
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    with Decklog.open(target) as other, ThreadPoolExecutor(1) as pool:
        with other.transaction():
            marks._index_all(other.db, spans)
            forgetting = pool.submit(log.db.forget_all_text)
            wait_until(lambda: other.db.one(waiting, {}))
        forgetting.result()
    assert log.journal.verify().ok
