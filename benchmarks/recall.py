"""Whether recall finds the text that answers, compared with FTS5 with and without stemming, on sets of your own too; and how fast it is.

python -m benchmarks.recall                     the sets that come with Decklog, and the cost at 100,000 lessons
python -m benchmarks.recall --set FILE…         your own sets, in the form that `benchmarks/recall_sets.py` describes
python -m benchmarks.recall --write             the same as the first, and write benchmarks/results/recall.md
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any

import apsw

from benchmarks.recall_server import database, postgres
from benchmarks.recall_sets import Question, RecallSet, load, own_sets
from decklog import Decklog, Embedder, ManualClock
from decklog.core.errors import Unavailable
from decklog.stores.memory.semantic.model import kept_model

NOW = datetime(2026, 11, 15, tzinfo=UTC)
REPORT = Path(__file__).parent / "results" / "recall.md"
FLOOR = "FTS5, stemmed"
_RESAMPLES = 2000

Row = dict[str, Any]
Search = Callable[[Question], list[str]]


@dataclass(frozen=True)
class Outcome:
    """How one way to search did on one part of a set: a figure for each question, in the order of the questions."""

    at_1: list[float] = field(default_factory=list)
    at_5: list[float] = field(default_factory=list)
    at_10: list[float] = field(default_factory=list)
    reciprocal: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    def add(self, found: list[str], question: Question, milliseconds: float) -> None:
        for figures, count in ((self.at_1, 1), (self.at_5, 5), (self.at_10, 10)):
            figures.append(len(set(found[:count]) & set(question.answers)) / len(question.answers))
        places = [place for place, text_id in enumerate(found, 1) if text_id in question.answers]
        self.reciprocal.append(1 / places[0] if places else 0.0)
        self.milliseconds.append(milliseconds)


# Ways to search


def fts5(of: RecallSet, tokenizer: str) -> Search:
    """Plain BM25: an FTS5 table of the texts, asked for any of the question's words."""
    connection = apsw.Connection(":memory:")
    connection.execute(f"create virtual table texts using fts5(id unindexed, project unindexed, words, tokenize = '{tokenizer}')")
    connection.executemany("insert into texts values (?, ?, ?)", [(text.id, text.project, text.text) for text in of.texts])

    def search(question: Question) -> list[str]:
        plain = "".join(letter if letter.isalnum() else " " for letter in question.text).split()
        if not plain:
            return []
        match = " OR ".join(f'"{word}"' for word in plain)
        rows = connection.execute(
            "select id from texts where texts match ? and project is ? order by rank limit 10", (match, question.project)
        )
        return [row[0] for row in rows]

    return search


def teach(log: Decklog, of: RecallSet) -> None:
    """Fill a log with a set's texts, all of them new and equally sure, so that the match alone decides."""
    with log.transaction():
        for text in of.texts:
            log.memory.adopt(text.id, text.topic, text.text, created_at=NOW, project=text.project)


def peeking(log: Decklog, embedder: Embedder | None = None) -> Search:
    """The verb itself, as everyone calls it, by words alone or with an embedder."""
    log.memory.embedder = embedder
    if embedder is not None:
        log.memory.embed()
    return lambda question: [hit.id for hit in log.memory.peek(question.text, project=question.project, limit=10)]


def model() -> Embedder | None:
    """Give the model of this machine, if it is installed."""
    try:
        return kept_model()
    except Unavailable as problem:
        print(f"by words alone: {problem.message}")
        return None


def ways(of: RecallSet, log: Decklog, postgres: Decklog | None) -> Iterator[tuple[str, Search]]:
    """Yield each way to search; each is used up before the next starts."""
    yield "FTS5", fts5(of, "unicode61")
    yield FLOOR, fts5(of, "porter unicode61")
    engines = [("", log), *([(", PostgreSQL", postgres)] if postgres is not None else [])]
    for name, one in engines:
        yield f"Decklog by words{name}", peeking(one, None)
    if (embedder := model()) is not None:
        for name, one in engines:
            yield f"Decklog with meaning{name}", peeking(one, embedder)


# Measuring


def outcomes(of: RecallSet, search: Search) -> dict[str, Outcome]:
    """Ask every question of a set; give what came of each part."""
    parts = {part: Outcome() for part in of.parts}
    for question in of.questions:
        began = time.perf_counter()
        found = search(question)
        parts[question.part].add(found, question, 1000 * (time.perf_counter() - began))
    return parts


def interval(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """Give the mean difference of paired figures with its 95 % interval, by drawing the questions anew."""
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    draw = Random(11)
    count = len(differences)
    means = sorted(sum(draw.choices(differences, k=count)) / count for _ in range(_RESAMPLES))
    return sum(differences) / count, means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES)]


def mean(figures: list[float]) -> float:
    return sum(figures) / len(figures)


def measured(of: RecallSet, log: Decklog, postgres: Decklog | None) -> list[Row]:
    """Measure every way to search a set: a row for each of its parts."""
    found = {name: outcomes(of, search) for name, search in ways(of, log, postgres)}
    return [_row(of, part, name, parts[part], found[FLOOR][part]) for name, parts in found.items() for part in of.parts]


def _row(of: RecallSet, part: str, name: str, outcome: Outcome, floor: Outcome) -> Row:
    difference, low, high = interval(outcome.at_5, floor.at_5)
    row: Row = {
        "name": f"{of.name}, {part}: {name}",
        "set": of.name,
        "part": part,
        "way": name,
        "questions": len(outcome.at_5),
        "value": round(mean(outcome.at_5), 3),
        "unit": "R@5",
        "at_1": round(mean(outcome.at_1), 3),
        "at_10": round(mean(outcome.at_10), 3),
        "mrr": round(mean(outcome.reciprocal), 3),
        "difference": [round(figure, 3) for figure in (difference, low, high)],
        "milliseconds": [round(quantiles(outcome.milliseconds, n=20)[place], 2) for place in (9, 18)],
        "target": "",
    }
    if name.startswith("Decklog"):
        row |= {"floor": round(mean(floor.at_5), 3), "target": f">= {round(mean(floor.at_5), 3)}"}
    return row


@contextmanager
def _taught(server: str | None, of: RecallSet) -> Iterator[tuple[Decklog, Decklog | None]]:
    """Open a log on each engine and teach it a set."""
    with tempfile.TemporaryDirectory() as folder, Decklog.open(f"{folder}/log.db", clock=ManualClock(NOW)) as log:
        teach(log, of)
        if server is None:
            yield log, None
            return
        url = database(server, f"recall_{of.name}".replace("-", "_"))
        with Decklog.open(url, clock=ManualClock(NOW), migrate=True) as other:
            teach(other, of)
            yield log, other


def bytes_of(log: Decklog, of: RecallSet) -> int:
    """Say how many bytes of the file a lesson takes, with its entries, its place in the index, and its vector if it has one."""
    row = log.db.read(lambda: log.db.one("select page_count * page_size from pragma_page_count, pragma_page_size", {}))
    assert row is not None
    return int(row[0] // len(of.texts))


def sets_measured(sets: list[RecallSet]) -> list[Row]:
    """Measure sets one after the other, and print what was found."""
    rows: list[Row] = []
    with postgres() as server:
        for of in sets:
            with _taught(server, of) as (log, other):
                bare = bytes_of(log, of)
                found = measured(of, log, other)
                size = bytes_of(log, of)
            print(f"\n{of.name}: {len(of.texts)} texts, {bare} bytes each in a SQLite log, {size} after all was asked")
            found[0]["bytes"] = [bare, size]
            for row in found:
                _print(row)
            rows += found
    return rows


def _print(row: Row) -> None:
    difference, low, high = row["difference"]
    print(
        f"{row['part']:10} {row['way']:34} R@1 {row['at_1']:.3f}  R@5 {row['value']:.3f}  R@10 {row['at_10']:.3f}"
        f"  MRR {row['mrr']:.3f}  {difference:+.3f} [{low:+.3f}, {high:+.3f}]  {row['milliseconds'][0]:6.2f} ms"
    )


def main(arguments: "list[str] | None" = None) -> list[Row]:
    """Measure, print, and give the rows."""
    parser = argparse.ArgumentParser(description="Measure recall on labelled sets.")
    parser.add_argument("--set", dest="sets", nargs="+", type=Path, metavar="FILE", help="sets of your own")
    parser.add_argument("--write", action="store_true", help="write the page of the documentation")
    parser.add_argument("--no-costs", action="store_true", help="leave the cost at 100,000 lessons out: it needs a quiet machine")
    given = parser.parse_args(arguments or [])
    rows = sets_measured([load(path) for path in given.sets] if given.sets else own_sets())
    if given.sets:
        return rows
    costs: list[Row] = []
    if not given.no_costs:
        from benchmarks import recall_speed

        costs = recall_speed.rows()
    for row in costs:
        print(f"{row['name']:72} {row['value']:9.3f} {row['unit']}")
    if given.write:
        from benchmarks.recall_report import render

        REPORT.write_text(render(own_sets(), rows, costs), encoding="utf-8")
    return rows + costs


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
