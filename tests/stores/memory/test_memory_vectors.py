import platform
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from decklog import Decklog, Invalid
from decklog.db.text.vectors import LessonVectors
from decklog.errors import Unavailable

LESSONS = (
    "Give every worker a port of its own",
    "Sort names with an explicit collation",
    "Pin the base image by its digest",
    "Close the cursor before the connection",
    "Retry a refused connection with a growing pause",
)

# No word of it is in any lesson.
QUESTION = "retrry refuzed conectionn"


class Letters:
    """Counts pairs of letters: no meaning, but near texts are near."""

    name = "letters"
    dimensions = 256

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        return [self._one(text.lower()) for text in texts]

    def _one(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for start in range(len(text) - 1):
            vector[sha256(text[start : start + 2].encode()).digest()[0] % self.dimensions] += 1
        return vector


@pytest.fixture
def taught(log: Decklog) -> Decklog:
    log.memory.embedder = Letters()
    for lesson in LESSONS:
        log.memory.remember("failure_patterns", lesson)
    return log


def _without_sqlite_vec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)


def _neighbours(log: Decklog) -> list[tuple[str, float]]:
    [vector] = Letters().embed([QUESTION])
    unit = [part / sum(part * part for part in vector) ** 0.5 for part in vector]
    found = log.db.read(lambda: LessonVectors(log.db).nearest("letters", unit, topic=None, project=None, limit=10))
    return [(log.memory.get(lesson_id).body, round(cosine, 4)) for lesson_id, cosine in found]


def test_a_question_without_a_shared_word_is_found_by_its_vector(taught: Decklog) -> None:
    hits = taught.memory.recall(QUESTION)
    assert hits[0].body == LESSONS[4]
    assert (hits[0].signals["text"], hits[0].signals["meaning"] > 0) == (0, True)
    assert "meaning" in hits[0].why
    taught.memory.embedder = None
    assert taught.memory.peek(QUESTION) == []


def test_words_and_vectors_are_fused_by_rank(taught: Decklog) -> None:
    hits = taught.memory.peek("explicit collation")
    assert hits[0].body == LESSONS[1]
    assert hits[0].signals["text"] > 0.4
    assert len(hits) == 5


def test_without_the_extension_python_finds_the_same_neighbours(
    taught: Decklog, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _neighbours(taught)
    assert taught.memory.health()["vectors_by"] == ("sqlite-vec" if taught.db.engine == "sqlite" else "python")
    assert len(found) == 5
    _without_sqlite_vec(monkeypatch)
    with Decklog.open(target) as other:
        other.memory.embedder = Letters()
        assert _neighbours(other) == found
        assert other.memory.health()["vectors_by"] == "python"
        assert other.memory.peek(QUESTION)[0].body == LESSONS[4]


def _runs_pgvector() -> bool:
    # On ARM, the pgvector of the test server's wheel needs scalable vectors, and stops the server where there are none.
    return platform.machine() != "aarch64" or " sve" in Path("/proc/cpuinfo").read_text()


@pytest.mark.skipif(not _runs_pgvector(), reason="the test server's pgvector does not run on this processor")
def test_pgvector_finds_the_same_neighbours(postgres_url: str) -> None:
    import psycopg

    with Decklog.open(postgres_url) as log:
        log.memory.embedder = Letters()
        for lesson in LESSONS:
            log.memory.remember("failure_patterns", lesson)
        found = _neighbours(log)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("create extension vector")
        assert log.memory.health()["vectors_by"] == "pgvector"
        assert _neighbours(log) == found


def test_lessons_learned_without_an_embedder_get_their_vectors_later(log: Decklog) -> None:
    for lesson in LESSONS:
        log.memory.remember("failure_patterns", lesson)
    with pytest.raises(Unavailable):
        log.memory.embed()
    log.memory.embedder = embedder = Letters()
    assert log.memory.embed(limit=3) == 3
    assert log.memory.embed() == 2
    assert log.memory.embed() == 0
    assert embedder.calls == 2
    assert len(_neighbours(log)) == 5


def test_vectors_of_another_embedder_are_never_compared(taught: Decklog) -> None:
    class Others(Letters):
        name = "others"
        dimensions = 8

    taught.memory.embedder = Others()
    assert [hit.body for hit in taught.memory.peek("collation")] == [LESSONS[1]]
    assert taught.memory.embed() == 5
    assert len(taught.memory.peek("collation")) == 5
    assert len(_neighbours(taught)) == 5


def test_a_superseded_lesson_is_no_neighbour(taught: Decklog) -> None:
    by_body = {lesson.body: lesson.id for lesson in taught.memory.find()}
    taught.memory.supersede(by_body[LESSONS[4]], by_body[LESSONS[3]])
    assert LESSONS[4] not in [body for body, _ in _neighbours(taught)]
    assert LESSONS[4] not in [hit.body for hit in taught.memory.peek(QUESTION)]


def test_a_text_without_direction_is_nobodys_neighbour(taught: Decklog) -> None:
    class Mute(Letters):
        def embed(self, texts: list[str]) -> list[list[float]]:
            return [[0.0] * self.dimensions for _ in texts]

    taught.memory.embedder = Mute()
    taught.memory.remember("failure_patterns", "Nothing much to see")
    assert [hit.body for hit in taught.memory.peek("collation")] == [LESSONS[1]]
    taught.memory.embedder = Letters()
    assert taught.memory.peek(QUESTION)[0].body == LESSONS[4]


@pytest.mark.parametrize("given", [[], [[1.0]], [[float("nan")] * 256], [[float("inf")] * 256], [[1.0] * 256] * 2])
def test_an_embedder_that_breaks_its_promise_is_refused(log: Decklog, given: list[list[float]]) -> None:
    class Broken(Letters):
        def embed(self, texts: list[str]) -> list[list[float]]:
            return given

    log.memory.embedder = Broken()
    with pytest.raises(Invalid, match="embedder letters"):
        log.memory.remember("failure_patterns", LESSONS[0])
    assert log.memory.find() == []


def test_vectors_are_no_part_of_the_proof_and_leave_it_whole(taught: Decklog) -> None:
    assert taught.journal.verify().ok
