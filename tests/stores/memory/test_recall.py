import pytest
from benchmarks.recall import NOW, in_its_own_words, peeking, raw, score, sound_advice_first, teach
from benchmarks.recall_corpus import HELD_OUT, LESSONS, TUNING
from benchmarks.recall_report import render

from decklog import Decklog, ManualClock
from decklog.db.text.lessons import SqliteLessons


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def taught(log: Decklog) -> Decklog:
    teach(log)
    return log


def test_the_labelled_set_is_large_and_names_lessons_that_exist() -> None:
    known = {lesson_id for lesson_id, _, _ in LESSONS}
    assert len(known) == len(LESSONS) >= 200
    assert len(HELD_OUT) >= 60
    assert all(set(ids) <= known for _, ids in HELD_OUT + TUNING)
    assert not {text for text, _ in HELD_OUT} & {text for text, _ in TUNING}


def test_recall_finds_more_than_plain_bm25_in_other_words_and_no_less_in_the_same(taught: Decklog) -> None:
    plain = raw("unicode61")
    ours, theirs = score(peeking(taught), HELD_OUT), score(plain, HELD_OUT)
    assert ours[0] > theirs[0]
    assert ours[1] > theirs[1]
    own = in_its_own_words()
    assert score(peeking(taught), own)[0] >= score(plain, own)[0]
    assert sound_advice_first(peeking(taught)) > sound_advice_first(plain)


def test_a_large_memory_finds_more_than_plain_bm25_too(taught: Decklog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteLessons, "small", 0)
    plain = raw("unicode61")
    assert score(peeking(taught), HELD_OUT)[0] > score(plain, HELD_OUT)[0]
    # A question of one common sense and nothing else is answered all the same.
    assert taught.memory.peek("sluggish")


def test_the_report_has_a_line_for_each_way_to_search() -> None:
    whats = [f"{of}, {measure}" for of in ("held-out", "tuning", "own words") for measure in ("recall@5", "MRR")]
    rows = [
        {"name": f"{way}: {what}", "value": 0.5, "unit": "share", "floor": None, "ratio": None, "target": ""}
        for way in ("one", "two")
        for what in [*whats, "sound advice first"]
    ]
    cost = {"name": "recall", "value": 3.0, "unit": "ms", "floor": 2.0, "ratio": 1.5, "target": "at most 2 x"}
    page = render([*rows, cost])
    assert "| two | 0.500 |" in page
    assert "| recall | 3.0 ms | 1.50 x 2.0 | at most 2 x |" in page
