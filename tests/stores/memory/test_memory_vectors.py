"""Recall by meaning: what is embedded when, what is compared with what, and what happens where it can't be."""

from hashlib import sha256
from pathlib import Path

import pytest

from decklog import Decklog, Invalid, ManualClock
from decklog.core.errors import Unavailable
from decklog.stores.memory import vectors

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
        self.given: list[list[str]] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.given.append(texts)
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


def _vectors(log: Decklog) -> int:
    row = log.db.read(lambda: log.db.one("select count(*) from lesson_vectors", {}))
    assert row is not None
    return int(row[0])


def test_a_question_without_a_shared_word_is_found_by_its_vector(taught: Decklog) -> None:
    hits = taught.memory.recall(QUESTION)
    assert hits[0].body == LESSONS[4]
    assert (hits[0].signals["text"], hits[0].signals["meaning"] > 0) == (0, True)
    assert "meaning" in hits[0].why
    taught.memory.embedder = None
    assert taught.memory.peek(QUESTION) == []


def test_words_and_meaning_are_added(taught: Decklog) -> None:
    hits = taught.memory.peek("explicit collation")
    assert hits[0].body == LESSONS[1]
    assert hits[0].signals["text"] > 0.4
    assert hits[0].signals["meaning"] > 0.4


def test_a_recall_embeds_what_was_learned_since_the_last(taught: Decklog) -> None:
    embedder = taught.memory.embedder
    assert isinstance(embedder, Letters)
    taught.memory.peek(QUESTION)
    taught.memory.remember("failure_patterns", "Quote every path that has a blank")
    assert taught.memory.peek("quoot evry pathh")[0].body == "Quote every path that has a blank"
    assert [len(texts) for texts in embedder.given] == [1, 5, 1, 1]
    assert taught.journal.verify().ok


@pytest.mark.slow
def test_a_recall_embeds_a_few_and_says_how_many_are_left(log: Decklog) -> None:
    for number in range(40):
        log.memory.remember("failure_patterns", f"{LESSONS[number % 5]} in part number {number}")
    log.memory.embedder = Letters()
    hits = log.memory.peek(QUESTION)
    assert hits.warnings == ("8 lessons are found by their words alone until they are embedded: decklog memory embed",)
    assert log.memory.health()["without_vector"] == 8
    assert log.memory.embed(limit=7) == 7
    with log.transaction():
        [warning] = log.memory.peek(QUESTION).warnings
    assert warning == "1 lesson is found by its words alone until it is embedded: decklog memory embed"
    assert log.memory.embed() == 1
    assert log.memory.peek(QUESTION).warnings == ()


def test_long_lessons_are_embedded_fewer_at_a_time(log: Decklog) -> None:
    for number in range(6):
        log.memory.remember("failure_patterns", f"part {number}: " + f"{LESSONS[number % 5]}. " * 70)
    log.memory.embedder = Letters()
    log.memory.peek(QUESTION)
    assert 0 < _vectors(log) < 6


def test_nothing_is_embedded_inside_of_a_transaction(taught: Decklog) -> None:
    with taught.transaction():
        assert taught.memory.recall("collation")[0].body == LESSONS[1]
    assert _vectors(taught) == 0


def test_what_is_undone_is_forgotten(taught: Decklog) -> None:
    taught.memory.embed()
    with pytest.raises(KeyError), taught.transaction():
        lost = taught.memory.find()[0]
        taught.memory.retire(lost.id)
        taught.memory.peek(QUESTION)
        raise KeyError
    taught.memory.remember("failure_patterns", "Nothing much to see")
    assert lost.body in [hit.body for hit in taught.memory.peek(lost.body)]


def test_without_numpy_the_same_neighbours_are_found(taught: Decklog, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {hit.body: hit.signals for hit in taught.memory.peek(QUESTION)}
    monkeypatch.setattr(vectors, "find_spec", lambda _name: None)
    with Decklog.open(target, clock=taught.clock) as other:
        other.memory.embedder = Letters()
        again = {hit.body: hit.signals for hit in other.memory.peek(QUESTION)}
    assert again == {body: pytest.approx(signals, abs=2e-4) for body, signals in found.items()}


def test_lessons_learned_without_an_embedder_get_their_vectors_later(log: Decklog) -> None:
    for lesson in LESSONS:
        log.memory.remember("failure_patterns", lesson)
    log.memory.embedder = None
    with pytest.raises(Unavailable):
        log.memory.embed()
    log.memory.embedder = embedder = Letters()
    assert log.memory.embed(limit=3) == 3
    assert log.memory.embed() == 2
    assert log.memory.embed() == 0
    assert len(embedder.given) == 2


def test_vectors_of_another_embedder_are_never_compared(taught: Decklog) -> None:
    class Others(Letters):
        name = "others"
        dimensions = 8

    taught.memory.peek(QUESTION)
    taught.memory.embedder = Others()
    assert taught.memory.embed() == 5
    assert _vectors(taught) == 10
    taught.memory.embedder = Letters()
    assert taught.memory.peek(QUESTION)[0].body == LESSONS[4]


def test_two_processes_see_what_the_other_embedded(taught: Decklog, target: str) -> None:
    taught.memory.peek(QUESTION)
    with Decklog.open(target, clock=taught.clock) as other:
        other.memory.embedder = Letters()
        new = other.memory.remember("failure_patterns", "Quote every path that has a blank")
        other.memory.embed()
    taught.memory.embedder = watched = Letters()
    assert taught.memory.peek("quoot evry pathh")[0].id == new.id
    assert watched.given == [["quoot evry pathh"]]


def test_a_superseded_lesson_is_no_neighbour_until_it_holds_again(taught: Decklog) -> None:
    taught.memory.peek(QUESTION)
    by_body = {lesson.body: lesson.id for lesson in taught.memory.find()}
    taught.memory.supersede(by_body[LESSONS[4]], by_body[LESSONS[3]])
    assert LESSONS[4] not in [hit.body for hit in taught.memory.peek(QUESTION)]
    taught.memory.reinstate(by_body[LESSONS[4]])
    assert taught.memory.peek(QUESTION)[0].body == LESSONS[4]


@pytest.mark.parametrize("reason", ["recalled", "useful", "harmful"])
def test_a_reason_that_reads_like_a_count_hides_no_change_of_neighbours(taught: Decklog, reason: str) -> None:
    gone = taught.memory.recall(QUESTION)[0]
    taught.memory.mark(gone.id, True)
    assert taught.memory.recall(QUESTION)[0].id == gone.id
    taught.memory.retire(gone.id, reason=reason)
    assert gone.id not in [hit.id for hit in taught.memory.peek(QUESTION)]


def test_neighbours_are_of_the_topic_and_project_that_are_asked_for(taught: Decklog) -> None:
    taught.memory.remember("flaky_tests", "Retry a refused connection twice", project="shop")
    taught.memory.remember("flaky_tests", "Retry a refused connection thrice", project="till")
    assert taught.memory.peek(QUESTION, topic="flaky_tests", project="shop")[0].project == "shop"
    assert {hit.project for hit in taught.memory.peek(QUESTION, project="till")} == {None, "till"}


def test_a_text_without_direction_is_nobodys_neighbour(taught: Decklog) -> None:
    class Mute(Letters):
        name = "mute"

        def embed(self, texts: list[str]) -> list[list[float]]:
            return [[0.0] * self.dimensions for _ in texts]

    taught.memory.embedder = Mute()
    assert [hit.body for hit in taught.memory.peek("collation")] == [LESSONS[1]]
    assert taught.memory.peek(QUESTION) == []


@pytest.mark.parametrize("given", [[], [[1.0]], [[float("nan")] * 256], [[float("inf")] * 256], [[1.0] * 256] * 2])
def test_an_embedder_that_breaks_its_promise_is_named_and_recall_goes_by_words(log: Decklog, given: list[list[float]]) -> None:
    class Broken(Letters):
        def embed(self, texts: list[str]) -> list[list[float]]:
            return given

    log.memory.remember("failure_patterns", LESSONS[1])
    log.memory.embedder = Broken()
    hits = log.memory.recall("collation")
    assert [hit.body for hit in hits] == [LESSONS[1]]
    assert "by words alone: the embedder letters" in hits.warnings[0]
    with pytest.raises(Invalid, match="embedder letters"):
        log.memory.embed()


def test_an_embedder_that_fails_is_named_and_recall_goes_by_words(log: Decklog) -> None:
    class Far(Letters):
        def embed(self, texts: list[str]) -> list[list[float]]:
            raise ConnectionError("the line is dead")

    log.memory.remember("failure_patterns", LESSONS[1])
    log.memory.embedder = Far()
    hits = log.memory.recall("collation")
    assert [hit.body for hit in hits] == [LESSONS[1]]
    assert hits.warnings == ("by words alone: the embedder letters failed: ConnectionError: the line is dead",)
    with pytest.raises(Unavailable, match="the line is dead") as raised:
        log.memory.embed()
    assert isinstance(raised.value.__cause__, ConnectionError)


def test_without_a_model_recall_goes_by_words_and_says_so(log: Decklog) -> None:
    log.memory.remember("failure_patterns", LESSONS[1])
    hits = log.memory.recall("collation")
    assert [hit.body for hit in hits] == [LESSONS[1]]
    assert hits.warnings == ("by words alone: the model is not installed. Install it: decklog memory model install",)
    assert log.memory.health()["by_words_because"] == "the model is not installed"
    log.memory.embedder = None
    assert log.memory.recall("collation").warnings == ()


@pytest.mark.slow
def test_both_engines_rank_by_meaning_alike(tmp_path: Path, postgres_url: str, clock: ManualClock) -> None:
    with Decklog.open(tmp_path / "log.db", clock=clock) as one, Decklog.open(postgres_url, clock=clock) as other:
        for log in (one, other):
            log.memory.embedder = Letters()
            for number in range(60):
                log.memory.adopt(f"l{number}", "flaky_tests", f"{LESSONS[number % 5]} {number * 37}", created_at=clock.now())
            log.memory.embed()
        for question in (QUESTION, "pin thee imag 111", "close connection 555"):
            left, right = (log.memory.peek(question, limit=20) for log in (one, other))
            assert [(hit.id, hit.score, hit.signals) for hit in left] == [(hit.id, hit.score, hit.signals) for hit in right]
            assert left
