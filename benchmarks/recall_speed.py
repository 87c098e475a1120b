"""How long recall takes in a memory of 100,000 lessons, beside FTS5 asked directly."""

import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median
from typing import Any

import apsw

from benchmarks.recall_corpus import HELD_OUT, LESSONS
from decklog import Decklog, ManualClock
from decklog.clock import to_text
from decklog.db.text.lessons import SqliteLessons, lesson_search
from decklog.stores.memory import ranking, similarity
from decklog.stores.memory.tokens import words_of

MANY = 100_000
NOW = datetime(2026, 11, 15, tzinfo=UTC)
_QUESTIONS = [question for question, _ in HELD_OUT[:24]]
_ROUNDS = 7


def rows() -> "list[dict[str, Any]]":
    """Fill a memory, ask it, and compare."""
    with tempfile.TemporaryDirectory() as folder, Decklog.open(f"{folder}/log.db", clock=ManualClock(NOW)) as log:
        raw = apsw.Connection(f"{folder}/raw.db")
        filled = _fill(log, raw)
        index = apsw.Connection(f"{folder}/log.db")
        ways = {
            "words": lambda question: _raw_words(raw, question),
            "same": lambda question: _raw_same(index, log, question),
            "peek": log.memory.peek,
            "recall": log.memory.recall,
        }
        took = {name: _milliseconds(way) for name, way in ways.items()}
        learning = _learning(log)
    return [
        _row("FTS5 asked for the question's words alone", took["words"], None),
        _row("FTS5 asked for what recall asks for", took["same"], None),
        _row("peek", took["peek"], took["same"]),
        _row("recall, counted and committed", took["recall"], took["same"], "at most 2 x FTS5 asked for the same"),
        _row("recall beside FTS5 asked for words alone", took["recall"], took["words"]),
        _row("remember, compared with all others and committed", learning, None),
        {"name": "index a lesson (words and senses)", "value": filled, "unit": "ms", "floor": None, "ratio": None, "target": ""},
    ]


def _row(name: str, value: float, floor: float | None, target: str = "") -> "dict[str, Any]":
    ratio = round(value / floor, 2) if floor else None
    named = f"{MANY:,} lessons: {name}"
    return {
        "name": named,
        "value": round(value, 2),
        "unit": "ms",
        "floor": floor and round(floor, 2),
        "ratio": ratio,
        "target": target,
    }


def _texts() -> Iterator[str]:
    """Make many lessons out of the labelled ones: the beginning of one, a name, and the end of another."""
    draw = Random(5)
    halves = [text.split("; ", 1) if "; " in text else [text[: len(text) // 2], text[len(text) // 2 :]] for _, _, text in LESSONS]
    for _ in range(MANY):
        name = f"{draw.choice('abcdefgh')}{draw.randrange(5000)}_{draw.randrange(900)}"
        yield f"{draw.choice(halves)[0]} in {name}; {draw.choice(halves)[1]}"


def _fill(log: Decklog, raw: apsw.Connection) -> float:
    """Fill both, below the journal: how lessons got there makes no difference to a search. Give the time to index one."""
    raw.execute("create virtual table lessons using fts5(words, tokenize = 'porter unicode61')")
    texts = list(_texts())
    raw.execute("begin")
    raw.executemany("insert into lessons values (?)", [(text,) for text in texts])
    raw.execute("commit")
    template = log.memory.adopt("first", LESSONS[0][1], LESSONS[0][2], created_at=NOW)
    spent = 0.0
    for start in range(0, MANY, 5000):
        with log.transaction():
            spent += _insert(log, template, list(enumerate(texts[start : start + 5000], start)))
    return round(1000 * spent / MANY, 3)


def _insert(log: Decklog, template: Any, numbered: list[tuple[int, str]]) -> float:
    image, _ = log.db.values.bind({name: getattr(template, name) for name in template.columns()})
    names = template.columns()
    log.db.many(
        f"insert into lessons ({', '.join(names)}) values ({', '.join(':' + name for name in names)})",
        [
            {**image, "id": f"l{number}", "body": text, "fingerprint": similarity.fingerprint(text), "created_at": _day(number)}
            for number, text in numbered
        ],
    )
    began = time.perf_counter()
    for number, text in numbered:
        question = ranking.Question(text, NOW, {})
        lesson_search(log.db).put(f"l{number}", template.topic, None, words_of(text), question.senses)
    return time.perf_counter() - began


def _day(number: int) -> str:
    return to_text(NOW - timedelta(days=number % 300))


def _raw_words(raw: apsw.Connection, question: str) -> None:
    match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words_of(question)))
    raw.execute("select rowid, words from lessons where lessons match ? order by rank limit 5", (match,)).fetchall()


def _raw_same(index: apsw.Connection, log: Decklog, question: str) -> None:
    asked = ranking.Question(question, NOW, {})
    wanted = log.db.read(lambda: SqliteLessons(log.db)._wanted(asked.words, asked.senses))
    sql = "select rowid, rank from lesson_text where lesson_text match ? order by rank limit 5"
    index.execute(sql, (f"({' OR '.join(wanted)})",)).fetchall()


def _milliseconds(ask: Callable[[str], object]) -> float:
    """Give the mean over the questions of the best of several rounds: what a machine does that has nothing else to do."""
    best = []
    for question in _QUESTIONS:
        times = []
        for _ in range(_ROUNDS):
            began = time.perf_counter()
            ask(question)
            times.append(time.perf_counter() - began)
        best.append(min(times))
    return 1000 * sum(best) / len(best)


def _learning(log: Decklog) -> float:
    times = []
    for number, (_, topic, text) in enumerate(LESSONS[:50]):
        began = time.perf_counter()
        log.memory.remember(topic, f"{text}, as seen in module m{number}")
        times.append(time.perf_counter() - began)
    return 1000 * median(times)
