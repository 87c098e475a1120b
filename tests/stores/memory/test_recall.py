"""What recall finds: beside FTS5, on both engines alike, and however a lesson came."""

import re
import shutil
from datetime import timedelta
from pathlib import Path
from random import Random

import apsw
import pytest
from benchmarks.recall import NOW, fts5, interval, outcomes, peeking, teach
from benchmarks.recall_sets import DATA, Question, RecallSet, Text, own_sets

from decklog import Decklog, ManualClock
from decklog.stores.memory.text import extract_terms, find_stem, split_words

SETS = own_sets()
DISCREDITED = [line.split(" | ", 2) for line in (DATA / "recall_discredited.txt").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


# Stems and terms


def test_stems_are_those_of_fts5() -> None:
    words = sorted({word for of in SETS for text in of.texts for word in re.findall(r"[a-z]{3,}", text.text.lower())})
    connection = apsw.Connection(":memory:")
    connection.execute("create virtual table texts using fts5(words, tokenize = 'porter ascii')")
    connection.execute("create virtual table stems using fts5vocab(texts, 'instance')")
    connection.executemany("insert into texts (rowid, words) values (?, ?)", enumerate(words))
    assert [find_stem(word) for word in words] == [row[0] for row in connection.execute("select term from stems order by doc")]


def test_names_are_terms_as_they_are_and_in_their_parts() -> None:
    assert extract_terms("SQLITE_BUSY") == ["sqlite", "busi", "sqlitebusy"]
    assert extract_terms("on Python 3.11") == ["python", "3", "11", "3·11"]
    assert extract_terms("Zürich, naïve") == ["zurich", "naiv"]


@pytest.mark.parametrize(
    ("lesson", "question"),
    [
        ("E0308 mismatched types: convert with into", "what is E0308"),
        ("psycopg.errors.DeadlockDetected: take the locks in one order", "psycopg.errors.DeadlockDetected"),
        ("pip needs --no-deps for that wheel", "--no-deps"),
        ("The limit is in /etc/security/limits.conf", "/etc/security/limits.conf"),
        ("ECONNREFUSED 127.0.0.1:5432: the server is not up yet", "connect ECONNREFUSED 127.0.0.1:5432"),
        ("tests/unit/test_login.py::test_logout needs mail", "tests/unit/test_login.py::test_logout"),
        ("Set max_wal_size higher", "max-wal-size"),
        ("Start-up takes long without a cache", "startup"),
    ],
)
def test_names_and_codes_find_their_lesson_before_all_others(log: Decklog, lesson: str, question: str) -> None:
    for other in ("Types and limits of a server", "A test needs a login, and a wheel of its own", "Errors come in one order"):
        log.memory.remember("failure_patterns", other)
    expected = log.memory.remember("failure_patterns", lesson)
    assert log.memory.peek(question)[0].id == expected.id


def test_an_error_is_found_in_a_trace_whatever_its_numbers_and_paths(log: Decklog) -> None:
    for number in range(30):
        log.memory.remember("failure_patterns", f"KeyError while summing items of cart number {number}, at checkout {number}")
    expected = log.memory.remember(
        "failure_patterns", "An empty cart has no total", payload={"error_signature": "KeyError: 'total' at /srv/cart.py:41"}
    )
    trace = "Traceback (most recent call last):\n  while summing items of cart at checkout\nKeyError: 'total' at /home/me/c.py:97"
    assert log.memory.peek(trace)[0].id == expected.id


def test_words_and_questions_of_any_length_are_taken(log: Decklog) -> None:
    draw = Random(9)
    endless = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=3500))
    lesson = log.memory.remember("failure_patterns", f"The word {endless} is refused")
    assert [hit.id for hit in log.memory.peek(endless)] == [lesson.id]
    document = "word refused " + " ".join(f"word{number}" for number in range(20_000))
    assert [hit.id for hit in log.memory.peek(document)] == [lesson.id]


def test_a_word_without_an_end_takes_no_time_of_its_own() -> None:
    """Hours, if every letter of it were the beginning of another search."""
    assert extract_terms("x" * 300_000 + "!") == ["x" * 80]


def test_little_words_decide_between_lessons_that_are_equal_otherwise(log: Decklog) -> None:
    before = log.memory.remember("task_outcomes", "Run the migrations before the deploy of the shop")
    after = log.memory.remember("adr_decisions", "Run the migrations after the deploy of the shop")
    assert [hit.id for hit in log.memory.peek("migrations after the deploy?")] == [after.id, before.id]
    assert [hit.id for hit in log.memory.peek("migrations before the deploy?")] == [before.id, after.id]


# The same on both engines


def _log(target: str | Path) -> Decklog:
    return Decklog.open(target, clock=ManualClock(NOW))


@pytest.fixture(scope="module")
def first_taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with all lessons of the first set, which each test copies: taking them in costs more than asking."""
    path = tmp_path_factory.mktemp("taught") / "log.db"
    with _log(path) as log:
        teach(log, SETS[0])
    return path


@pytest.fixture
def taught(first_taught: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(first_taught, tmp_path / "log.db"))


@pytest.mark.slow
def test_both_engines_give_the_same_lessons_in_the_same_order_with_the_same_scores(taught: Path, postgres_url: str) -> None:
    of = SETS[0]
    with _log(taught) as one, _log(postgres_url) as two:
        teach(two, of)
        for log in (one, two):
            log.memory.supersede(of.texts[3].id, of.texts[4].id)
            log.memory.mark(of.texts[5].id, True)
        for question in of.questions[::5]:
            for narrowing in ({}, {"topic": "flaky_tests", "project": "shop"}):
                left, right = (log.memory.peek(question.text, limit=10, **narrowing) for log in (one, two))  # type: ignore[arg-type]
                assert [(hit.id, hit.score, hit.why) for hit in left] == [(hit.id, hit.score, hit.why) for hit in right]


@pytest.mark.slow
def test_lessons_of_equal_score_come_in_the_same_order_on_both_engines(tmp_path: Path, postgres_url: str) -> None:
    texts = tuple(Text(f"l{number:03}", f"deadlock number n{number:03}") for number in Random(5).sample(range(200), 200))
    of = RecallSet("equal", "", texts, (Question("deadlock", ("l001",)),))
    with _log(tmp_path / "log.db") as one, _log(postgres_url) as two:
        for log in (one, two):
            teach(log, of)
        assert peeking(one)(of.questions[0]) == peeking(two)(of.questions[0])


# Beside FTS5


# Both engines give the same, as shown above: what is found is measured on one.
@pytest.mark.slow
@pytest.mark.parametrize("of", SETS, ids=lambda of: of.name)
def test_words_find_no_provably_less_than_stemmed_bm25(tmp_path: Path, taught: Path, of: RecallSet) -> None:
    with _log(taught if of is SETS[0] else tmp_path / "other.db") as log:
        if of is not SETS[0]:
            teach(log, of)
        ours, theirs = outcomes(of, peeking(log)), outcomes(of, fts5(of, "porter unicode61"))
    for part in of.parts:
        _, _, at_best = interval(ours[part].at_5, theirs[part].at_5)
        assert at_best >= 0


@pytest.mark.slow
def test_two_words_of_a_lesson_find_it(taught: Path) -> None:
    of = SETS[0]
    draw = Random(3)
    found = 0
    with _log(taught) as log:
        for text in of.texts:
            asked = " ".join(draw.sample(list(dict.fromkeys(split_words(text.text))), 2))
            found += text.id in peeking(log)(Question(asked, (text.id,)))[:5]
    assert found >= 0.99 * len(of.texts)


@pytest.mark.slow
def test_sound_advice_comes_before_advice_that_did_harm(log: Decklog) -> None:
    of = SETS[0]
    teach(log, of)
    sound = {text.id: text.text for text in of.texts}
    first = 0
    for good_id, topic, bad in DISCREDITED:
        log.memory.adopt(f"{good_id}-bad", topic, bad, created_at=NOW - timedelta(days=300), confidence=40)
        for _ in range(3):
            log.memory.mark(f"{good_id}-bad", False)
        shared = [word for word in dict.fromkeys(split_words(bad)) if word in split_words(sound[good_id])]
        ids = peeking(log)(Question(" ".join(shared), (good_id,)))
        first += good_id in ids and (f"{good_id}-bad" not in ids or ids.index(good_id) < ids.index(f"{good_id}-bad"))
    assert first / len(DISCREDITED) >= 0.9


# However a lesson came


def test_an_index_that_was_made_of_other_terms_is_made_anew(log: Decklog) -> None:
    lesson = log.memory.remember("failure_patterns", "A deadlock means two locks in two orders")
    log.db.write(lambda: log.db.count("update lesson_marks set name = 'terms of another day'", {}))
    assert [hit.id for hit in log.memory.peek("deadlock")] == [lesson.id]
    assert log.memory.reindex() == 1
    assert log.memory.remember("failure_patterns", "A deadlock means two locks in two orders").sightings == 2
