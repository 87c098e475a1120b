"""A large memory on PostgreSQL finds the nearest lessons by pgvector's index; what is found is the same."""

from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import psycopg
import pytest

from decklog import Decklog, Invalid, ManualClock
from decklog.db.postgres.database import PostgresDatabase
from tests.stores.memory.test_memory_vectors import LESSONS, QUESTION, Letters

QUESTIONS = (QUESTION, "pin thee imag 111", "close connection 555", "sortt naames 74")


class Quoted(Letters):
    """An embedder whose name has to be spelled with care in a statement."""

    name = "o'hara; drop table lessons --"


@pytest.fixture
def taught(postgres_url: str, clock: ManualClock) -> Iterator[Decklog]:
    with Decklog.open(postgres_url, clock=clock) as log:
        log.memory.embedder = Quoted()
        for number in range(60):
            log.memory.adopt(f"l{number:02}", "flaky_tests", f"{LESSONS[number % 5]} {number * 37}", created_at=clock.now())
        log.memory.embed()
        yield log


def _told(log: Decklog) -> list[list[tuple[str, float]]]:
    """Tell what is found for each question, but for those that have next to nothing to do with it."""
    found = [log.memory.peek(question, limit=20) for question in QUESTIONS]
    return [[(hit.id, round(hit.score, 4)) for hit in hits if hit.score > 0.05] for hits in found]


def _is_asked(log: Decklog) -> bool:
    embedder = log.memory.embedder
    assert embedder is not None
    neighbours = log.memory._neighbours(embedder)
    log.db.read(neighbours.load)
    return neighbours.has_index


@pytest.mark.slow
def test_the_index_finds_what_comparing_all_finds(taught: Decklog, postgres_url: str, clock: ManualClock) -> None:
    before = _told(taught)
    assert taught.memory.index_vectors() is True
    assert _told(taught) == before
    assert _is_asked(taught)
    assert taught.memory.index_vectors() is False
    with Decklog.open(postgres_url, clock=clock) as other:
        other.memory.embedder = Quoted()
        assert _told(other) == before
        assert _is_asked(other)


@pytest.mark.slow
def test_an_index_may_take_longer_than_a_server_may_be_silent(taught: Decklog, postgres_url: str) -> None:
    assert isinstance(taught.db, PostgresDatabase)
    taught.db.connections.patience_seconds = 1.0
    with psycopg.connect(postgres_url) as writing:
        writing.execute("lock table lesson_vectors in row exclusive mode")
        later = Timer(1.5, writing.rollback)
        later.start()
        assert taught.memory.index_vectors() is True
        later.join()


@pytest.mark.slow
def test_the_planner_takes_the_index(taught: Decklog) -> None:
    taught.memory.index_vectors()
    embedder = taught.memory.embedder
    assert embedder is not None
    index = taught.memory._neighbours(embedder).index
    asked = f"({index._vector} <#> cast('{[0.1] * 256}' as vector(256)))"

    def plan() -> str:
        taught.db.one("select set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)", {})
        lines = taught.db.rows(f"explain select lesson_id from lesson_vectors where {index._ours} order by {asked} limit 5", {})[
            1
        ]
        return "\n".join(line for (line,) in lines)

    assert f"Index Scan using {index._name}" in taught.db.read(plan)


@pytest.mark.slow
def test_what_changes_after_it_was_made_is_found_as_it_is_now(taught: Decklog) -> None:
    taught.memory.index_vectors()
    taught.memory.peek(QUESTION)
    new = taught.memory.remember("failure_patterns", "Retrry refuzed conectionns at once", project="shop")
    assert taught.memory.health()["without_vector"] == 1
    assert taught.memory.peek(QUESTION, project="shop")[0].id == new.id
    assert taught.memory.health()["without_vector"] == 0
    assert new.id not in [hit.id for hit in taught.memory.peek(QUESTION, project="till")]
    assert {hit.topic for hit in taught.memory.peek(QUESTION, topic="failure_patterns")} == {"failure_patterns"}
    taught.memory.retire(new.id, reason="was wrong")
    assert new.id not in [hit.id for hit in taught.memory.peek(QUESTION, project="shop")]


@pytest.mark.slow
def test_the_proof_knows_the_index_and_tells_of_one_that_only_has_its_name(taught: Decklog) -> None:
    taught.memory.index_vectors()
    assert taught.journal.verify().ok
    embedder = taught.memory.embedder
    assert embedder is not None
    name = taught.memory._neighbours(embedder).index._name
    with taught.transaction():
        taught.db.count(f"drop index {name}", {})
        taught.db.count(f"create index {name} on lesson_vectors (embedder)", {})
    [problem] = taught.journal.verify().problems
    assert problem.what == f"the index {name} of lesson_vectors was added"


def test_a_file_needs_no_index_and_says_so(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log, pytest.raises(Invalid, match="need no index"):
        log.memory.index_vectors()
