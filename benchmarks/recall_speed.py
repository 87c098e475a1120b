"""How long recall takes in a memory of 100,000 lessons, beside FTS5 asked directly."""

import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median
from typing import Any

import apsw

from benchmarks.recall_sets import own_sets
from decklog import Decklog, ManualClock
from decklog.clock import to_text
from decklog.db.text.lessons import lesson_search
from decklog.stores.memory import similarity
from decklog.stores.memory.tokens import terms_of, words_of

MANY = 100_000
NOW = datetime(2026, 11, 15, tzinfo=UTC)
_SET = own_sets()[0]
_QUESTIONS = [question.text for question in _SET.questions[:24]]
_ROUNDS = 7


def rows() -> "list[dict[str, Any]]":
    """Fill a memory, ask it, and compare."""
    with tempfile.TemporaryDirectory() as folder, Decklog.open(f"{folder}/log.db", clock=ManualClock(NOW)) as log:
        raw = apsw.Connection(f"{folder}/raw.db")
        filled = _fill(log, raw)
        ways = {
            "words": lambda question: _raw_words(raw, question),
            "peek": log.memory.peek,
            "recall": log.memory.recall,
        }
        took = {name: _milliseconds(way) for name, way in ways.items()}
        learning = _learning(log)
    return [
        _row("FTS5 with stemming, asked for the question's words", took["words"], None),
        _row("peek", took["peek"], took["words"]),
        _row("recall, counted and committed", took["recall"], took["words"], "<= 3 x FTS5"),
        _row("remember, compared with all others and committed", learning, None, "<= 4 ms"),
        {"name": "index a lesson", "value": filled, "unit": "ms", "target": ""},
    ]


def _row(name: str, value: float, floor: float | None, target: str = "") -> "dict[str, Any]":
    row: dict[str, Any] = {"name": f"{MANY:,} lessons: {name}", "value": round(value, 2), "unit": "ms", "target": target}
    if floor:
        row |= {"floor": round(floor, 2), "ratio": round(value / floor, 2)}
    return row


def _texts() -> Iterator[str]:
    """Make many lessons out of the labelled ones: the beginning of one, a name, and the end of another."""
    draw = Random(5)
    halves = [_halves(text.text) for text in _SET.texts]
    for _ in range(MANY):
        name = f"{draw.choice('abcdefgh')}{draw.randrange(5000)}_{draw.randrange(900)}"
        yield f"{draw.choice(halves)[0]} in {name}; {draw.choice(halves)[1]}"


def _halves(text: str) -> list[str]:
    return text.split("; ", 1) if "; " in text else [text[: len(text) // 2], text[len(text) // 2 :]]


def _fill(log: Decklog, raw: apsw.Connection) -> float:
    """Fill both, below the journal: how lessons got there makes no difference to a search. Give the time to index one."""
    raw.execute("create virtual table lessons using fts5(words, tokenize = 'porter unicode61')")
    texts = list(_texts())
    raw.execute("begin")
    raw.executemany("insert into lessons values (?)", [(text,) for text in texts])
    raw.execute("commit")
    template = log.memory.adopt("first", _SET.texts[0].topic, _SET.texts[0].text, created_at=NOW)
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
        lesson_search(log.db).put(f"l{number}", template.topic, None, terms_of(text))
    return time.perf_counter() - began


def _day(number: int) -> str:
    return to_text(NOW - timedelta(days=number % 300))


def _raw_words(raw: apsw.Connection, question: str) -> None:
    match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words_of(question)))
    raw.execute("select rowid, words from lessons where lessons match ? order by rank limit 5", (match,)).fetchall()


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
    for number, text in enumerate(_SET.texts[:50]):
        began = time.perf_counter()
        log.memory.remember(text.topic, f"{text.text}, as seen in module m{number}")
        times.append(time.perf_counter() - began)
    return 1000 * median(times)
