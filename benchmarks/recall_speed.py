"""How long recall takes in a memory of 20,000 and of 100,000 lessons, compared with FTS5 asked directly.

Times are of the processor: nothing here waits for anybody, so on a machine with nothing else to do they are those of the clock.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import apsw
import psycopg

from benchmarks.recall_server import database, postgres
from benchmarks.recall_sets import own_sets
from decklog import Decklog, ManualClock
from decklog.core.clock import to_text
from decklog.core.errors import Unavailable
from decklog.db.search.lessons import lesson_search
from decklog.db.search.vectors import VectorIndex
from decklog.stores.memory import similarity
from decklog.stores.memory.semantic.minilm import numpy
from decklog.stores.memory.semantic.model import kept_model
from decklog.stores.memory.text import extract_terms, split_words

MANY = 100_000
FEWER = 20_000
NOW = datetime(2026, 11, 15, tzinfo=UTC)
_SET = own_sets()[0]
_QUESTIONS = [question.text for question in _SET.questions[:24]]
_ROUNDS = 7


def rows() -> "list[dict[str, Any]]":
    """Fill memories, ask them, and compare."""
    found = _by_words()
    try:
        embedder = kept_model()
    except Unavailable as problem:
        print(f"by words alone: {problem.message}")
        return found
    return found + [row for count in (FEWER, MANY) for row in _with_meaning(embedder, count)] + _on_server(embedder)


def _by_words() -> "list[dict[str, Any]]":
    with tempfile.TemporaryDirectory() as folder, Decklog.open(f"{folder}/log.db", clock=ManualClock(NOW)) as log:
        raw = apsw.Connection(f"{folder}/raw.db")
        log.memory.embedder = None
        filled = _fill(log, raw, MANY)
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


def _with_meaning(embedder: Any, count: int) -> "list[dict[str, Any]]":
    """Ask a memory whose lessons have vectors: made up of those of the labelled lessons, as their texts are."""
    with tempfile.TemporaryDirectory() as folder, Decklog.open(f"{folder}/log.db", clock=ManualClock(NOW)) as log:
        _fill(log, apsw.Connection(":memory:"), count)
        _give_vectors(log, embedder, count)
        log.memory.embedder = embedder
        began = time.process_time()
        log.memory.peek(_QUESTIONS[0])
        first = 1000 * (time.process_time() - began)
        took = {"peek": _milliseconds(log.memory.peek), "recall": _milliseconds(log.memory.recall)}
        learning = _learning(log)
    limit = "<= 30 ms" if count == FEWER else "<= 60 ms"
    name = f"{count:,} lessons with meaning: "
    measured = [("peek", took["peek"], ""), ("recall, counted and committed", took["recall"], limit)]
    measured += [("the first of a process, which reads model and vectors", first, ""), ("remember", learning, "<= 4 ms")]
    return [{"name": name + what, "value": round(value, 2), "unit": "ms", "target": target} for what, value, target in measured]


def _on_server(embedder: Any) -> "list[dict[str, Any]]":
    """Ask PostgreSQL, first without an index and then with one; in the time of the server's processes and of ours."""
    with postgres() as server:
        return [] if server is None else _asked_on(database(server, "many"), embedder)


def _asked_on(url: str, embedder: Any) -> "list[dict[str, Any]]":
    # The server that PyPI has dies of an illegal instruction on some processors when several of its processes make an index.
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter role current_user set max_parallel_maintenance_workers = 0")
    with Decklog.open(url, clock=ManualClock(NOW), migrate=True) as log:
        _fill(log, apsw.Connection(":memory:"), FEWER)
        _give_vectors(log, embedder, FEWER)
        _settle(url)
        exact = _milliseconds_there(log, url, embedder)
        began = time.perf_counter()
        log.memory.index_vectors()
        made = time.perf_counter() - began
        took = _milliseconds_there(log, url, embedder)
        missed = _missed_by_index(log, embedder)
    name, recalled = f"{FEWER:,} lessons on PostgreSQL, ", "recall, counted and committed"
    asked = {"name": name + recalled, "value": round(exact, 2), "unit": "ms", "target": "<= 30 ms"}
    name += "indexed: "
    return [
        asked,
        {"name": name + recalled, "value": round(took, 2), "unit": "ms", "target": ""},
        {"name": name + "making the index", "value": round(made, 1), "unit": "s", "target": ""},
        {"name": name + "of the ten nearest, missed", "value": round(missed, 4), "unit": "", "target": ""},
    ]


def _settle(url: str) -> None:
    """Do what the server does within minutes after many rows have come: until then it looks each of them up twice."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")


def _milliseconds_there(log: Decklog, url: str, embedder: Any) -> float:
    """Ask, in the time of the server's processes and of ours together."""
    log.memory.embedder = embedder
    for question in _QUESTIONS[:3]:
        log.memory.recall(question)
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        ).fetchall()

    def both() -> float:
        there = sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for (pid,) in found)
        return time.process_time() + there / 1e9

    return _milliseconds(log.memory.recall, both)


def _missed_by_index(log: Decklog, embedder: Any) -> float:
    vectors = _vectors(embedder, FEWER)
    index = VectorIndex(log.db, embedder.name, embedder.dimensions)
    missed = 0
    for question in embedder.embed(_QUESTIONS):
        true = {f"l{place}" for place in numpy.argsort(vectors @ numpy.asarray(question, dtype="float32"))[-10:]}
        found = log.db.read(lambda asked=question: index.near(asked, topic=None, project=None, limit=10, also=()))
        missed += len(true - {*found.cosines})
    return missed / (10 * len(_QUESTIONS))


def _vectors(embedder: Any, count: int) -> "Any":
    draw = numpy.random.default_rng(5)
    known = numpy.array(embedder.embed([text.text for text in _SET.texts]), dtype="float32")
    made = known[draw.integers(0, len(known), count)] * 0.7 + known[draw.integers(0, len(known), count)] * 0.5
    made += draw.normal(0, 0.02, made.shape)
    return (made / numpy.linalg.norm(made, axis=1, keepdims=True)).astype("float32")


def _give_vectors(log: Decklog, embedder: Any, count: int) -> None:
    rows = [
        {
            "lesson_id": f"l{number}",
            "embedder": embedder.name,
            "dimensions": len(vector),
            "vector": vector.tobytes() if log.db.engine == "sqlite" else vector.tolist(),
        }
        for number, vector in enumerate(_vectors(embedder, count))
    ]
    with log.transaction():
        log.db.many(
            "insert into lesson_vectors (lesson_id, embedder, dimensions, vector) values (:lesson_id, :embedder, :dimensions, :vector)",
            rows,
        )


def _texts(count: int) -> Iterator[str]:
    """Make many lessons out of the labelled ones: the beginning of one, a name, and the end of another."""
    draw = Random(5)
    halves = [_halves(text.text) for text in _SET.texts]
    for _ in range(count):
        name = f"{draw.choice('abcdefgh')}{draw.randrange(5000)}_{draw.randrange(900)}"
        yield f"{draw.choice(halves)[0]} in {name}; {draw.choice(halves)[1]}"


def _halves(text: str) -> list[str]:
    return text.split("; ", 1) if "; " in text else [text[: len(text) // 2], text[len(text) // 2 :]]


def _fill(log: Decklog, raw: apsw.Connection, count: int) -> float:
    """Fill both, below the journal: how lessons got there makes no difference to a search. Give the time to index one."""
    raw.execute("create virtual table lessons using fts5(words, tokenize = 'porter unicode61')")
    texts = list(_texts(count))
    raw.execute("begin")
    raw.executemany("insert into lessons values (?)", [(text,) for text in texts])
    raw.execute("commit")
    template = log.memory.adopt("first", _SET.texts[0].topic, _SET.texts[0].text, created_at=NOW)
    spent = 0.0
    for start in range(0, count, 5000):
        with log.transaction():
            spent += _insert(log, template, list(enumerate(texts[start : start + 5000], start)))
    return round(1000 * spent / count, 3)


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
    began = time.process_time()
    for number, text in numbered:
        lesson_search(log.db).put(f"l{number}", template.topic, None, extract_terms(text))
    return time.process_time() - began


def _day(number: int) -> str:
    return to_text(NOW - timedelta(days=number % 300))


def _raw_words(raw: apsw.Connection, question: str) -> None:
    match = " OR ".join(f'"{word}"' for word in dict.fromkeys(split_words(question)))
    raw.execute("select rowid, words from lessons where lessons match ? order by rank limit 5", (match,)).fetchall()


def _milliseconds(ask: Callable[[str], object], clock: Callable[[], float] = time.process_time) -> float:
    """Give the mean over the questions of the best of several rounds: what a machine does that has nothing else to do."""
    best = []
    for question in _QUESTIONS:
        times = []
        for _ in range(_ROUNDS):
            began = clock()
            ask(question)
            times.append(clock() - began)
        best.append(min(times))
    return 1000 * sum(best) / len(best)


def _learning(log: Decklog) -> float:
    times = []
    for number, text in enumerate(_SET.texts[:50]):
        began = time.process_time()
        log.memory.remember(text.topic, f"{text.text}, as seen in module m{number}")
        times.append(time.process_time() - began)
    return 1000 * median(times)
