"""Whether recall finds the lesson that helps, beside plain BM25, and what each part of the ranking adds; and how fast it is."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import apsw

from benchmarks.recall_corpus import DISCREDITED, LESSONS
from decklog import Decklog
from decklog.db.lesson_search import lesson_search
from decklog.stores import ranking
from decklog.stores.memory import Memory
from decklog.stores.words import senses_of, words_of

NOW = datetime(2026, 11, 15, tzinfo=UTC)
MANY = 100_000

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
        match = " OR ".join(f'"{word}"' for word in _plain_words(question))
        rows = connection.execute("select id from lessons where lessons match ? order by rank limit 10", (match,))
        return [row[0] for row in rows]

    return search


def _plain_words(question: str) -> list[str]:
    return [word for word in "".join(c if c.isalnum() else " " for c in question).split() if word]


def ours(log: Decklog, *, senses: bool = True, without: Iterable[str] = (), share: float = ranking.RECORD_SHARE) -> Search:
    """Decklog's ranking, or the same with a part taken away."""
    memory: Memory = log.memory
    weights = {name: 0.0 if name in without else weight for name, weight in ranking.WEIGHTS.items()}

    def look(question: str) -> list[str]:
        asked = words_of(question)
        words, meant = tuple(dict.fromkeys(asked)), tuple(senses_of(asked)) if senses else ()
        scored = lesson_search(log.db).ranked(words, meant, topic=None, project=None, limit=60)
        match = ranking.relative(scored)
        whole = ranking.Question(text=question, words=words, senses=meant, topics=(), now=NOW)
        hits = ranking.rank(memory._lessons(list(match)), whole, match, {"text": match}, weights=weights, share=share)
        return [hit.id for hit in hits[:10]]

    return lambda question: log.db.read(lambda: look(question))


def peeking(log: Decklog) -> Search:
    """The verb itself, as everyone calls it."""
    return lambda question: [hit.id for hit in log.memory.peek(question, limit=10)]


# Scoring


def score(search: Search, questions: "list[tuple[str, tuple[str, ...]]]") -> tuple[float, float]:
    """Recall at five, and the mean reciprocal rank within ten."""
    found, reciprocal = 0.0, 0.0
    for question, relevant in questions:
        ids = search(question)
        found += len(set(ids[:5]) & set(relevant)) / len(relevant)
        places = [place for place, lesson_id in enumerate(ids, 1) if lesson_id in relevant]
        reciprocal += 1 / places[0] if places else 0.0
    return found / len(questions), reciprocal / len(questions)
